"""What the displays share."""

from importlib import import_module
from numbers import Integral
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOUR_MAP", "check_count", "new_axes", "require_matplotlib", "shorten"]

# Perceptually uniform, and its lightness alone tells the order: safe for readers with a colour deficiency.
COLOUR_MAP = "viridis"


def require_matplotlib() -> None:
    """Raise an ImportError that says what to install if matplotlib is missing."""
    try:
        import_module("matplotlib")
    except ImportError as error:
        raise ImportError(
            'A picture needs matplotlib, which could not be imported. Install it: pip install "isbor[plots]"'
        ) from error


def new_axes(width: float, height: float) -> "Axes":
    """Return the axes of a new figure, its size in inches, in which nothing is cut off."""
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


def check_count(value: object, name: str, example: int) -> int:
    """Return an argument that must be a whole number, at least 1."""
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(
            f"{name} is {value!r}; a whole number, at least 1, is needed, for instance {example}."
        )
    return int(value)


def shorten(text: str, length: int) -> str:
    """Return a text with its middle left out if it is too long: names often differ at either end."""
    if len(text) <= length:
        return text
    head = length // 2
    return f"{text[:head]}…{text[head + 1 - length :]}"
