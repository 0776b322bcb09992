"""The errors of a comparison split by split, in one panel per task."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isbor.experiments.reporting.figures.style import (
    ModelStyle,
    draw_grid,
    draw_legend,
    house_style,
    model_style,
    settled,
)
from isbor.plots.common import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["score_figure"]

_MOST_COLUMNS = 5
_TITLE_LENGTH = 78
_LINE_LENGTH = 22  # of a title in a narrow panel
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
def score_figure(errors: Mapping[str, Mapping[str, Sequence[float]]], *, xlabel: str) -> "Figure":
    """Draw the error of each split and the means, with a panel per task and a row per model.

    `errors` are by task and model, one per split, NaN where there is none. A hollow mark is the mean of a
    model that lacks some splits.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    models = next(iter(errors.values()))
    styles = [model_style(name, position) for position, name in enumerate(models)]
    n_rows = math.ceil(len(errors) / _MOST_COLUMNS)
    n_columns = math.ceil(len(errors) / n_rows)
    line_length = _LINE_LENGTH if n_columns > 1 else _TITLE_LENGTH
    titles = [textwrap.fill(shorten(task, _TITLE_LENGTH), line_length) for task in errors]
    title_height = 0.17 * max(title.count("\n") + 1 for title in titles)
    panel_height = 0.23 * len(styles) + title_height + 0.4
    width = 2.5 + (1.9 * n_columns if n_columns > 1 else 4.0)
    figure = Figure(figsize=(width, panel_height * n_rows + 0.55), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False)
    some_unfinished = False
    for ax, title, by_model in zip(axes.flat, titles, errors.values(), strict=False):
        for row, (values, style) in enumerate(zip(by_model.values(), styles, strict=True)):
            some_unfinished |= _draw_errors(ax, row, values, style)
        ax.set_title(title, parse_math=False)
        ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
        ax.margins(x=0.08)
        ax.tick_params(axis="y", length=0)
        draw_grid(ax)
    for ax in axes.flat[len(errors) :]:
        ax.remove()
    for ax in axes[:, 0]:
        ax.set_yticks(range(len(styles)), [style.label for style in styles], parse_math=False)
    axes[0, 0].set_ylim(len(styles) - 0.4, -0.6)  # first model on top
    figure.supxlabel(xlabel, size="medium")
    marks = [
        (Line2D([], [], **_SPLIT_MARK, color="0.4"), "one split"),
        (Line2D([], [], **_MEAN_MARK, marker="D", markerfacecolor="0.4"), "mean"),
    ]
    if some_unfinished:
        hollow = Line2D([], [], **_MEAN_MARK, marker="D", markerfacecolor="white")
        marks.append((hollow, "mean of finished splits"))
    draw_legend(figure, marks, loc="outside upper left", ncols=len(marks), handletextpad=0.2)
    return settled(figure)


def _draw_errors(ax: "Axes", row: int, errors: Sequence[float], style: ModelStyle) -> bool:
    """Draw a model's errors and their mean; return whether only some of its splits finished."""
    values = np.asarray(errors, dtype=np.float64)
    finished = np.isfinite(values)
    if not finished.any():
        ax.text(
            0.5, row, "no result", transform=ax.get_yaxis_transform(), ha="center", va="center", color="0.4"
        )
        return False
    # Splits have the same offset in all rows, so that equal errors do not overlap.
    places = row + (np.linspace(-0.22, 0.22, len(values)) if len(values) > 1 else np.zeros(1))
    ax.plot(values[finished], places[finished], **_SPLIT_MARK, color=style.colour)
    inside = style.colour if finished.all() else "white"
    ax.plot(values[finished].mean(), row, **_MEAN_MARK, marker=style.marker, markerfacecolor=inside)
    return not finished.all()
