"""What the displays share."""

from abc import ABC, abstractmethod
from importlib import import_module
from numbers import Integral
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOUR", "COLOUR_MAP", "Display", "check_count", "require_matplotlib", "shorten"]

# Perceptually uniform, and its lightness alone tells the order: safe for readers with a colour deficiency.
COLOUR_MAP = "viridis"
COLOUR = "#31688e"  # of bars and single curves


class Display(ABC):
    """A plot that can be drawn on any axes."""

    ax_: "Axes"

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        self
        """
        require_matplotlib()
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=self._figure_size(), layout="constrained")
        self.ax_ = ax
        self.figure_ = ax.figure
        self._draw(ax)
        return self

    @abstractmethod
    def _figure_size(self) -> tuple[float, float]:
        """Return width and height of a new figure in inches."""

    @abstractmethod
    def _draw(self, ax: "Axes") -> None:
        """Draw on these axes."""


def require_matplotlib() -> None:
    """Raise an ImportError that says what to install if matplotlib is missing.

    Examples
    --------
    >>> from isbor.plots import require_matplotlib
    >>> require_matplotlib()  # nothing happens: it is installed
    """
    try:
        import_module("matplotlib")
    except ImportError as error:
        raise ImportError(
            'Plots need matplotlib, which could not be imported. Install it: pip install "isbor[plots]"'
        ) from error


def check_count(value: object, name: str, example: int, *, least: int = 1) -> int:
    """Return an argument that must be a whole number, at least `least`."""
    if not isinstance(value, Integral) or value < least:
        raise ValueError(
            f"{name} is {value!r}; a whole number, at least {least}, is needed, for instance {example}."
        )
    return int(value)


def shorten(text: str, length: int) -> str:
    """Return the text, without its middle if it is too long: names often differ at either end."""
    if len(text) <= length:
        return text
    head = length // 2
    return f"{text[:head]}…{text[head + 1 - length :]}"
