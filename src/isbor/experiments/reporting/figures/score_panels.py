"""The errors of a comparison split by split, in one panel per task."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isbor.experiments.reporting.figures.style import (
    TITLE_SIZE,
    ModelStyle,
    draw_grid,
    draw_legend,
    house_style,
    model_styles,
    settled,
    text_width,
)
from isbor.plots.common import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["score_figure"]

_MOST_COLUMNS = 5
_TITLE_LENGTH = 78
_SPLIT_MARK: dict[str, Any] = {
    "marker": "o",
    "markersize": 3.5,
    "markeredgewidth": 0.0,
    "alpha": 0.5,
    "linestyle": "",
}
_MEAN_MARK: dict[str, Any] = {
    "color": "black",
    "markersize": 6.5,
    "markeredgewidth": 1.1,
    "linestyle": "",
    "zorder": 3,
}


@house_style()
def score_figure(
    errors: Mapping[str, Mapping[str, Sequence[float]]], *, xlabel: str, models: Sequence[str] | None = None
) -> "Figure":
    """Draw the error of each split and the means, with a panel per task and a row per model.

    Parameters
    ----------
    errors : mapping of str to mapping of str to sequence of float
        By task and model, one error per split, NaN where there is none. A hollow mark is the mean of a model
        that lacks some splits.
    xlabel : str
        Name of the error.
    models : sequence of str or None
        All models of the report, in order; None: those of the figure.

    Returns
    -------
    matplotlib Figure
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    styles = model_styles((model for by_model in errors.values() for model in by_model), models)
    n_rows = math.ceil(len(errors) / _MOST_COLUMNS)
    n_columns = math.ceil(len(errors) / n_rows)
    panel_width = 1.9 if n_columns > 1 else 4.0
    titles = [_wrapped(shorten(task, _TITLE_LENGTH), panel_width - 0.15) for task in errors]
    names_width = max(text_width(style.label) for style in styles.values()) + 0.2
    width = names_width + panel_width * n_columns
    title_height = 0.17 * max(title.count("\n") + 1 for title in titles)
    panel_height = 0.23 * len(styles) + title_height + 0.4
    figure = Figure(figsize=(width, panel_height * n_rows + 0.55), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False)
    some_unfinished = False
    for ax, title, by_model in zip(axes.flat, titles, errors.values(), strict=False):
        n_splits = max(map(len, by_model.values()), default=0)
        for row, (name, style) in enumerate(styles.items()):
            unfinished = _draw_errors(ax, row, by_model.get(name, ()), n_splits, style)
            some_unfinished = some_unfinished or unfinished
        ax.set_title(title, parse_math=False)
        ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
        ax.margins(x=0.08)
        ax.tick_params(axis="y", length=0)
        draw_grid(ax)
    for ax in axes.flat[len(errors) :]:
        ax.remove()
    for ax in axes[:, 0]:
        ax.set_yticks(range(len(styles)), [style.label for style in styles.values()], parse_math=False)
    axes[0, 0].set_ylim(len(styles) - 0.4, -0.6)  # first model on top
    middle = (names_width + 0.5 * panel_width * n_columns) / width
    figure.supxlabel(xlabel, x=middle, size="medium", parse_math=False)
    marks = [
        (Line2D([], [], **_SPLIT_MARK, color="0.4"), "one split"),
        (Line2D([], [], **_MEAN_MARK, marker="D", markerfacecolor="0.4"), "mean"),
    ]
    if some_unfinished:
        hollow = Line2D([], [], **_MEAN_MARK, marker="D", markerfacecolor="white")
        marks.append((hollow, "mean of finished splits"))
    draw_legend(figure, marks, loc="outside upper left", ncols=len(marks), handletextpad=0.2)
    return settled(figure)


def _draw_errors(ax: "Axes", row: int, errors: Sequence[float], n_splits: int, style: ModelStyle) -> bool:
    """Draw a model's errors and their mean; return whether only some of its splits finished."""
    values = np.asarray(errors, dtype=np.float64)
    finished = np.isfinite(values)
    if not finished.any():
        ax.text(
            0.5,
            row,
            "no result",
            transform=ax.get_yaxis_transform(),
            ha="center",
            va="center",
            color="0.4",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
        )
        return False
    # Splits have the same offset in all rows, so that equal errors do not overlap.
    places = row + (np.linspace(-0.22, 0.22, n_splits) if n_splits > 1 else np.zeros(1))[: len(values)]
    ax.plot(values[finished], places[finished], **_SPLIT_MARK, color=style.colour)
    complete = int(finished.sum()) == n_splits
    inside = style.colour if complete else "white"
    ax.plot(values[finished].mean(), row, **_MEAN_MARK, marker=style.marker, markerfacecolor=inside)
    return not complete


def _wrapped(text: str, width: float) -> str:
    """Return a text broken into lines of about this many inches."""
    n_lines = text_width(text, TITLE_SIZE) / width
    return text if n_lines <= 1 else textwrap.fill(text, max(1, int(len(text) / n_lines)))
