"""Demšar's critical difference diagram: mean ranks of models, and groups that do not differ.

Source: Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 2006.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from isbor._core.types import FloatArray
from isbor.experiments.reporting.figures.style import (
    FONT_SIZE,
    NAME_LENGTH,
    TITLE_SIZE,
    house_style,
    text_width,
)
from isbor.experiments.reporting.significance import Friedman
from isbor.plots.common import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["critical_difference_figure"]

# In inches; heights downwards from the axis.
_TITLE_ABOVE, _RULER_Y, _NUMBER_Y, _TICK_Y, _BAR_Y = 0.36, -0.44, -0.09, -0.06, 0.14
_MARGIN = 0.12
_STUB = 0.1  # of a stem beyond the end of the axis
_GAP = 0.07  # between a text and a line
_ROW = 0.235  # between names
_BAR = 0.09  # between bars
_OVERHANG = 0.06  # of a bar beyond its ranks
_STEP = 0.42  # between ranks
_LEAST_SPAN = 2.6  # of the axis
_SMALL = FONT_SIZE - 1


@house_style()
def critical_difference_figure(found: Friedman, titles: Mapping[str, str]) -> "Figure":
    """Draw mean ranks on an axis, best at the left, with bars that join models which do not differ.

    Parameters
    ----------
    found : Friedman
        Mean ranks and critical difference.
    titles : mapping of str to str
        Titles of the models by name.

    Returns
    -------
    matplotlib Figure
        Its x-axis shows ranks; y is in inches below the axis.
    """
    from matplotlib.figure import Figure

    models, n_tasks, critical_difference = found.models, found.n_tasks, found.critical_difference
    ranks = np.array(found.mean_ranks)
    rank_of = dict(zip(models, ranks, strict=True))
    bars = _stacked_bars([np.sort([rank_of[name] for name in group]) for group in found.groups()])
    labels = [shorten(titles[name], NAME_LENGTH) for name in models]
    order = np.argsort(ranks, kind="stable").tolist()
    half = (len(order) + 1) // 2
    # Outermost first, so that no stem crosses a name.
    left, right = order[:half], order[half:][::-1]

    span = max(_STEP * (len(models) - 1), _LEAST_SPAN)
    unit = (len(models) - 1) / span  # ranks per inch
    title = f"Mean rank over {n_tasks} task{'' if n_tasks == 1 else 's'}, best at the left"
    number_width = max(text_width(_rank_text(rank), _SMALL) for rank in ranks)
    left_width, right_width = (
        _STUB + number_width + 2.5 * _GAP + max(text_width(labels[model]) for model in side) + _MARGIN
        for side in (left, right)
    )
    left_width = max(left_width, _GAP + text_width("best") + _MARGIN)
    right_width = max(right_width, _GAP + text_width("worst") + _MARGIN)
    ruler = critical_difference / unit + _GAP + text_width(_ruler_label(critical_difference), _SMALL)
    right_width = max(right_width, ruler - span + _MARGIN)
    width = max(left_width + span + right_width, text_width(title, TITLE_SIZE) + 2 * _MARGIN)
    first_row = _BAR_Y + _BAR * (1 + max((level for _, level in bars), default=-1)) + 0.5 * _ROW
    title_y = _RULER_Y - _TITLE_ABOVE
    top, bottom = title_y - 0.14, first_row + _ROW * (half - 1) + 0.6 * _ROW

    figure = Figure(figsize=(width, bottom - top))
    figure.text(_MARGIN / width, (bottom - title_y) / (bottom - top), title, va="center", size=TITLE_SIZE)
    ax = figure.add_axes((left_width / width, 0.0, span / width, 1.0))
    ax.set(xlim=(1.0, len(models)), ylim=(bottom, top))
    ax.set_axis_off()
    _draw_axis(ax, len(models), _GAP * unit)
    _draw_ruler(ax, critical_difference, _GAP * unit)
    for side, axis_end, outwards in ((left, 1.0, -unit), (right, float(len(models)), unit)):
        end, alignment = axis_end + _STUB * outwards, "right" if outwards < 0 else "left"
        number, name = end + _GAP * outwards, end + (number_width + 2.5 * _GAP) * outwards
        for row, model in enumerate(side):
            rank, y = ranks[model], first_row + row * _ROW
            ax.plot([rank, rank, end], [0.0, y, y], color="0.4", lw=0.9, clip_on=False)
            ax.plot([rank], [0.0], "o", color="black", markersize=3.5, clip_on=False, zorder=3)
            place: dict[str, Any] = {"y": y, "ha": alignment, "va": "center_baseline"}
            ax.text(number, s=_rank_text(rank), size=_SMALL, color="0.4", **place)
            ax.text(name, s=labels[model], parse_math=False, **place)
    for joined, level in bars:
        _draw_bar(ax, joined, _BAR_Y + level * _BAR, _OVERHANG * unit)
    return figure


def _stacked_bars(groups: list[FloatArray]) -> list[tuple[FloatArray, int]]:
    """Return each group with the level of its bar, 0 on top; bars of a level do not touch."""
    bars: list[tuple[FloatArray, int]] = []
    ends: list[float] = []  # of the last bar of each level
    for ranks in sorted(groups, key=lambda ranks: (ranks[0], ranks[-1])):
        free = [level for level, end in enumerate(ends) if end + 2 * _OVERHANG / _STEP < ranks[0]]
        level = free[0] if free else len(ends)
        ends[level : level + 1] = [float(ranks[-1])]
        bars.append((ranks, level))
    return bars


def _rank_text(rank: float) -> str:
    return f"{rank:.2f}"


def _ruler_label(length: float) -> str:
    return f"critical difference {length:.2f}"


def _draw_axis(ax: "Axes", n_models: int, gap: float) -> None:
    """Draw the axis of ranks and label its ends."""
    ax.plot([1.0, n_models], [0.0, 0.0], color="black", lw=1.0, clip_on=False, solid_capstyle="projecting")
    for rank in range(1, n_models + 1):
        ax.plot([rank, rank], [0.0, _TICK_Y], color="black", lw=1.0, clip_on=False)
        ax.text(rank, _NUMBER_Y, str(rank), ha="center", va="bottom", size=_SMALL)
    ax.text(1.0 - gap, 0.0, "best", ha="right", va="center", style="italic")
    ax.text(n_models + gap, 0.0, "worst", ha="left", va="center", style="italic")


def _draw_ruler(ax: "Axes", length: float, gap: float) -> None:
    ax.plot([1.0, 1.0 + length], [_RULER_Y, _RULER_Y], color="black", lw=1.2, clip_on=False)
    for end in (1.0, 1.0 + length):
        ax.plot([end, end], [_RULER_Y - 0.05, _RULER_Y + 0.05], color="black", lw=1.2, clip_on=False)
    ax.text(1.0 + length + gap, _RULER_Y, _ruler_label(length), ha="left", va="center", size=_SMALL)


def _draw_bar(ax: "Axes", joined: FloatArray, y: float, overhang: float) -> None:
    ends = [joined[0] - overhang, joined[-1] + overhang]
    ax.plot(ends, [y, y], color="black", lw=3.0, solid_capstyle="butt", clip_on=False, zorder=3)
