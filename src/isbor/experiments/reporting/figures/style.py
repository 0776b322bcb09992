"""The common style of the figures: colours and markers of the models, settings, and files.

Figures are drawn with fixed settings, not the user's, and hold no date: the same numbers give the same bytes.
"""

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isbor.experiments.reporting.files import write_whole
from isbor.plots.common import require_matplotlib, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

__all__ = [
    "FONT_SIZE",
    "NAME_LENGTH",
    "TITLE_SIZE",
    "ModelStyle",
    "draw_grid",
    "draw_legend",
    "figure_svg",
    "house_style",
    "model_style",
    "model_styles",
    "save_figure",
    "settled",
    "text_width",
]

FONT_SIZE = 9.0
TITLE_SIZE = 10.0
NAME_LENGTH = 40  # to leave room for the numbers
_DPI = 150
_ROUNDING = 1.05  # letters are drawn in whole pixels
_SETTINGS = {
    "figure.dpi": _DPI,  # also used to measure texts
    "font.size": FONT_SIZE,
    "axes.titlesize": TITLE_SIZE,
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
        label=shorten(name, NAME_LENGTH),
        colour=_COLOURS[position % len(_COLOURS)],
        marker=_MARKERS[position % len(_MARKERS)],
        line=_LINES[position // len(_COLOURS) % len(_LINES)],
    )


def model_styles(shown: Iterable[str], models: Sequence[str] | None) -> dict[str, ModelStyle]:
    """Return the styles of the models of a figure by name, in order of the report.

    `models` are all models of the report; None: those of the figure.
    """
    shown = list(dict.fromkeys(shown))
    order = shown if models is None else list(models)
    return {name: model_style(name, position) for position, name in enumerate(order) if name in shown}


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


def draw_legend(figure: "Figure", handles: Sequence[tuple[Any, str]], **settings: Any) -> "Legend":
    """Draw a legend; texts are shown literally."""
    # matplotlib drops labels with a leading underscore, so texts are set afterwards.
    legend = figure.legend([mark for mark, _ in handles], ["name"] * len(handles), **settings)
    for text, (_, label) in zip(legend.get_texts(), handles, strict=True):
        text.set_parse_math(False)
        text.set_text(label)
    return legend


def settled(figure: "Figure") -> "Figure":
    """Return the figure with its layout fixed; otherwise each drawing would shift it a little."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """Return the width of a text in inches, or slightly more."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size)
    points = (
        text_to_path.get_text_width_height_descent(line, font, ismath=False)[0] for line in text.split("\n")
    )
    return _ROUNDING * max(points) / 72


def figure_svg(figure: "Figure") -> str:
    """Return a figure as an SVG element for an HTML page."""
    svg = _rendered(figure, "svg").decode()
    return svg[svg.index("<svg") :]


def save_figure(figure: "Figure", path_without_ending: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Write a figure as PNG and SVG, and return both paths."""
    stem = Path(path_without_ending)
    contents = {
        stem.with_name(f"{stem.name}.{ending}"): _rendered(figure, ending) for ending in ("png", "svg")
    }
    stem.parent.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        write_whole(path, content)
    png, svg = contents
    return png, svg


def _rendered(figure: "Figure", ending: str) -> bytes:
    content = io.BytesIO()
    with house_style():
        figure.savefig(
            content,
            format=ending,
            dpi=_DPI,
            facecolor="white",
            metadata={"Date": None} if ending == "svg" else {},
        )
    return content.getvalue()
