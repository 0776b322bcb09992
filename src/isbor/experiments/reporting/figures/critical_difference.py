"""Demšar's critical difference diagram: mean ranks of models, and groups that do not differ.

Source: Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 2006. Here it is
turned by a quarter, so that names of any length stand in front of their ranks.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from isbor.experiments.reporting.figures.style import draw_grid, house_style, model_style, settled
from isbor.experiments.reporting.significance import Friedman

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["critical_difference_figure"]


@house_style()
def critical_difference_figure(found: Friedman, titles: Mapping[str, str]) -> "Figure":
    """Draw mean ranks, best on top, and bars at the right that join models which do not differ."""
    from matplotlib.figure import Figure

    ranks = dict(sorted(zip(found.models, found.mean_ranks, strict=True), key=lambda item: item[1]))
    row_of = {name: row for row, name in enumerate(ranks, start=1)}
    labels = ["critical difference", *(model_style(titles[name], 0).label for name in ranks)]
    ends = [1.0 + found.critical_difference, *ranks.values()]
    figure = Figure(figsize=(6.5, 0.25 * len(ends) + 0.9), layout="constrained")
    ax = figure.subplots()
    ax.plot([1.0, ends[0]], [0, 0], "|-", color="black")
    ax.plot(ends[1:], list(row_of.values()), "o", color="black", markersize=4.5)
    for row, (end, value) in enumerate(zip(ends, [found.critical_difference, *ranks.values()], strict=True)):
        ax.annotate(f"{value:.2f}", (end, row), (6, 0), textcoords="offset points", va="center", color="0.4")
    for column, group in enumerate(found.groups()):
        x, rows = 1.02 + 0.025 * column, [row_of[name] for name in group]
        ends_of_bar = [min(rows) - 0.2, max(rows) + 0.2]
        ax.plot([x, x], ends_of_bar, color="black", lw=3.0, transform=ax.get_yaxis_transform(), clip_on=False)
    ax.set_yticks(range(len(labels)), labels, parse_math=False)
    ax.set(ylim=(len(labels) - 0.4, -0.6), xlabel=f"mean rank over {found.n_tasks} data sets, best on top")
    ax.tick_params(axis="y", length=0)
    ax.margins(x=0.12)
    draw_grid(ax)
    return settled(figure)
