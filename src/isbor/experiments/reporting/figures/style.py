"""The common style of the figures: colours and markers of the models, settings, and files.

Figures are drawn with fixed settings, not the user's, and hold no date: the same numbers give the same bytes.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isbor.plots.common import require_matplotlib, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ModelStyle", "draw_grid", "draw_legend", "house_style", "model_style", "rendered", "settled"]

_NAME_LENGTH = 40  # to leave room for the numbers
_DPI = 150
_SETTINGS = {
    "figure.dpi": _DPI,  # also used to measure texts
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "legend.frameon": False,
    "svg.fonttype": "path",  # looks the same where the font is missing
    "svg.hashsalt": "isbor",
}
# Okabe and Ito's colours, safe for colour-blind readers, without the yellow, too light for a line.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "osD^vPX<>ph*"
_SPIKY = "PX*"
_LINES: tuple[Any, ...] = ("-", (0, (4.0, 1.2, 1.0, 1.2)), (0, (1.0, 1.2)))


@dataclass(frozen=True, slots=True)
class ModelStyle:
    """The style of a model in all figures of a report."""

    label: str  # its name, shortened in the middle if very long
    colour: str
    marker: str
    line: Any  # a line style of matplotlib

    @property
    def line_settings(self) -> dict[str, Any]:
        """Return the arguments of a line with markers."""
        return {
            "color": self.colour,
            "linestyle": self.line,
            "linewidth": 1.5,
            "marker": self.marker,
            "markersize": 6.0,
            # A white edge separates overlapping marks; spiky ones would get too small.
            "markeredgecolor": self.colour if self.marker in _SPIKY else "white",
            "markeredgewidth": 0.5,
        }


def model_style(name: str, position: int) -> ModelStyle:
    """Return the style of a model by its position in the report, from 0.

    The first seven differ in colour, the first twelve in marker, and no two of the first 84 are alike.
    """
    return ModelStyle(
        label=shorten(name, _NAME_LENGTH),
        colour=_COLOURS[position % len(_COLOURS)],
        marker=_MARKERS[position % len(_MARKERS)],
        line=_LINES[position // len(_COLOURS) % len(_LINES)],
    )


@contextmanager
def house_style() -> Iterator[None]:
    """Draw with the settings of a report instead of the user's."""
    require_matplotlib()
    from matplotlib import style

    with style.context(["default", _SETTINGS]):
        yield


def draw_grid(ax: "Axes") -> None:
    """Draw a pale grid in the background."""
    ax.grid(color="0.91", linewidth=0.7)
    ax.set_axisbelow(True)


def draw_legend(figure: "Figure", handles: Sequence[tuple[Any, str]], **settings: Any) -> None:
    """Draw a legend; texts are shown literally."""
    # matplotlib drops labels with a leading underscore, so texts are set afterwards.
    legend = figure.legend([mark for mark, _ in handles], ["name"] * len(handles), **settings)
    for text, (_, label) in zip(legend.get_texts(), handles, strict=True):
        text.set_parse_math(False)
        text.set_text(label)


def settled(figure: "Figure") -> "Figure":
    """Return the figure with its layout fixed; otherwise each drawing would shift it a little."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def rendered(figure: "Figure", ending: str) -> bytes:
    """Return the content of a figure's file, "png" or "svg"."""
    content = io.BytesIO()
    with house_style():
        metadata = {"Date": None} if ending == "svg" else {}
        figure.savefig(content, format=ending, dpi=_DPI, facecolor="white", metadata=metadata)
    return content.getvalue()
