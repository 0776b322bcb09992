"""What the displays share."""

from abc import ABC, abstractmethod
from importlib import import_module
from numbers import Integral
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axes._base import _AxesBase
    from matplotlib.transforms import Bbox

__all__ = [
    "COLOUR",
    "COLOUR_MAP",
    "SECOND_COLOUR",
    "Display",
    "axes_below",
    "axes_beside",
    "check_count",
    "check_share",
    "require_matplotlib",
    "shorten",
]

# Perceptually uniform, and its lightness alone tells the order: safe for readers with a colour deficiency.
COLOUR_MAP = "viridis"
COLOUR = "#31688e"  # of bars and single curves
SECOND_COLOUR = "#d55e00"  # of what is opposed to these


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
    """Raise an ImportError that says what to install if matplotlib is missing."""
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


def check_share(value: float, name: str, example: float) -> float:
    """Return an argument that must be a number between 0 and 1."""
    if not 0 < value < 1:
        raise ValueError(f"{name} is {value}; a number between 0 and 1 is needed, for instance {example}.")
    return float(value)


def axes_beside(ax: "Axes", share: float, gap: float) -> "Axes":
    """Return new axes in the right part of these, which keep the left part; both are shares of the width."""
    left = 1.0 - share - gap
    _keep_part(ax, 0.0, 0.0, left, 1.0)
    return ax.inset_axes((1.0 + gap / left, 0.0, share / left, 1.0))


def axes_below(ax: "Axes", share: float, gap: float) -> "Axes":
    """Return new axes in the lower part of these, with the same horizontal axis; shares of the height."""
    upper = 1.0 - share - gap
    _keep_part(ax, 0.0, share + gap, 1.0, upper)
    below = ax.inset_axes((0.0, -(1.0 - upper) / upper, 1.0, share / upper), sharex=ax)
    ax.tick_params(axis="x", labelbottom=False)
    below.tick_params(axis="x", labelbottom=True)
    return below


def _keep_part(ax: "Axes", x: float, y: float, width: float, height: float) -> None:
    """Let axes have this part of their room."""

    def part(ax: "_AxesBase", renderer: object) -> "Bbox":
        from matplotlib.transforms import Bbox

        room = ax.get_position(original=True)
        left, lower = room.x0 + x * room.width, room.y0 + y * room.height
        return Bbox.from_bounds(left, lower, width * room.width, height * room.height)

    ax.set_axes_locator(part)


def shorten(text: str, length: int) -> str:
    """Return the text, without its middle if it is too long: names often differ at either end."""
    if len(text) <= length:
        return text
    head = length // 2
    return f"{text[:head]}…{text[head + 1 - length :]}"
