"""Figures of a report: curves, calibration, and the ordinal likelihood.

A model has the same style in all figures that list the models in the same order.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isbor._core.types import FloatArray
from isbor.experiments.reporting.figures.style import (
    draw_grid,
    draw_legend,
    house_style,
    model_style,
    settled,
)
from isbor.model.likelihood import Derivatives, edges, ordinal_probit
from isbor.plots.common import COLOUR_MAP

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = ["calibration_figure", "curves_figure", "likelihood_figure"]

_THRESHOLDS = np.array([-1.5, 0.0, 1.5])  # of the likelihood that is drawn, with noise of unit variance
_REACH = 3.5  # of the axis beyond the outer thresholds
_DASHED: dict[str, Any] = {"color": "0.25", "linestyle": "--", "linewidth": 1.2, "zorder": 1.5}


@house_style()
def likelihood_figure() -> "Figure":
    """Draw ln p(y | f) of each class and its first and second derivatives in the score f.

    The first derivative falls and the second is negative: the likelihood is log-concave.
    """
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    b = _THRESHOLDS
    f = np.linspace(b[0] - _REACH, b[-1] + _REACH, 401)
    panels: dict[str, Callable[[Derivatives], FloatArray]] = {
        "ln p(y | f)": lambda at: at.log_p,
        "first derivative, ∂ ln p/∂f": lambda at: at.slope,
        "second derivative, ∂² ln p/∂f²": lambda at: -at.curvature,
    }
    figure = Figure(figsize=(9.6, 3.1), layout="constrained")
    axes = figure.subplots(1, len(panels), sharex=True)
    colours = colormaps[COLOUR_MAP](np.linspace(0.0, 0.85, len(b) + 1))
    handles: list[tuple[Any, str]] = []
    for k, (lower, upper) in enumerate(zip(edges(b)[:-1], edges(b)[1:], strict=True)):
        at = ordinal_probit(f, np.full_like(f, lower), np.full_like(f, upper))
        lines = [
            ax.plot(f, value(at), color=colours[k], linewidth=1.8)[0]
            for ax, value in zip(axes, panels.values(), strict=True)
        ]
        handles.append((lines[0], f"y = {k + 1}"))
    for ax, title in zip(axes, panels, strict=True):
        for threshold in b:
            ax.axvline(threshold, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
        ax.set(xlim=(f[0], f[-1]), xlabel="score f", title=title)
    handles.append((axes[0].get_lines()[-1], "thresholds"))
    draw_legend(figure, handles, loc="outside right center")
    return settled(figure)


@house_style()
def curves_figure(
    sizes: Sequence[int],
    values: Mapping[str, Sequence[FloatArray]],
    *,
    ylabel: str,
    title: str,
    reference: FloatArray | None = None,
) -> "Figure":
    """Draw means by number of training rows, with bands of one standard deviation.

    `values` are by model and size, an array with a value for each split. `reference` is the error of the true
    score by size, drawn as a dashed line.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.4, max(3.7, 0.2 * (len(values) + 1))), layout="constrained")
    ax = figure.subplots()
    means = {name: np.array([_mean(one) for one in by_size]) for name, by_size in values.items()}
    positive = any(np.any(mean > 0.0) for mean in means.values())
    # Set before drawing, so that the limits ignore values of zero or less.
    ax.set(xscale="log", yscale="log" if positive else "linear", title=title)
    handles: list[tuple[Any, str]] = []
    for position, (name, mean) in enumerate(means.items()):
        style = model_style(name, position)
        spread = np.array([one.std(ddof=1) if len(one) > 1 else 0.0 for one in values[name]])
        low, high = np.maximum(mean - spread, 0.5 * mean), mean + spread  # positive, for the logarithm
        ax.fill_between(sizes, low, high, color=style.colour, alpha=0.13, linewidth=0)
        # A point without neighbours has no band.
        ax.vlines(sizes, low, high, color=style.colour, alpha=0.5, linewidth=0.8)
        (line,) = ax.plot(sizes, mean, **style.line_settings)
        handles.append((line, style.label))
    if reference is not None:
        (line,) = ax.plot(sizes, reference, **_DASHED)
        handles.append((line, "true score"))
    draw_grid(ax)
    for axis, text in ((ax.xaxis, "training rows"), (ax.yaxis, ylabel)):
        axis.set_label_text(text)
        _write_plain_numbers(axis)
    draw_legend(figure, handles, loc="outside right upper")
    return settled(figure)


@house_style()
def calibration_figure(sums: Mapping[str, FloatArray | None]) -> "Figure":
    """Draw observed frequencies against predicted cumulative probabilities, and below the counts of the bins.

    `sums` are by model, an array (n_bins, 3) of counts and sums of predicted and observed, or None for a
    model without probabilities. There are no error bars: the pairs of a row are dependent, so binomial ones
    would be too short.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.6, 5.2), layout="constrained")
    ax, strip = figure.subplots(2, 1, sharex=True, height_ratios=(4.5, 1))
    (diagonal,) = ax.plot([0, 1], [0, 1], **_DASHED)
    handles: list[tuple[Any, str]] = []
    for position, (name, of_model) in enumerate(sums.items()):
        if of_model is None:
            continue
        style = model_style(name, position)
        count, predicted, observed = of_model[of_model[:, 0] > 0].T
        (line,) = ax.plot(predicted / count, observed / count, **style.line_settings)
        handles.append((line, style.label))
        small = style.line_settings | {"linewidth": 1.0, "markersize": 4.0}
        strip.plot(predicted / count, count, **small)
    handles.append((diagonal, "perfect calibration"))
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), ylabel="observed frequency of y ≤ k")
    strip.set(xlabel="predicted probability of y ≤ k", ylabel="pairs (row, k)", yscale="log")
    _write_plain_numbers(strip.yaxis)
    for part in (ax, strip):
        draw_grid(part)
    figure.align_ylabels()
    draw_legend(figure, handles, loc="outside right upper")
    return settled(figure)


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else np.nan


def _write_plain_numbers(axis: "Axis") -> None:
    """Write the numbers of an axis without powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter

    if axis.get_scale() == "log":
        low, high = axis.get_view_interval()
        few_decades = np.log10(high / low) < 2.5
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few_decades else (1.0,)))
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}")
