"""Figures of a report: curves, calibration, and the ordinal likelihood.

Each function returns a matplotlib figure; write it with `save_figure`, or embed it with `figure_svg`. A model
has the same style in all figures that get the same `models`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isbor._core.types import FloatArray, IntArray
from isbor.experiments.reporting.figures.style import (
    draw_grid,
    draw_legend,
    house_style,
    model_styles,
    settled,
    text_width,
)
from isbor.model.likelihood import Derivatives, edges, ordinal_probit
from isbor.plots.common import COLOUR_MAP

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = [
    "CalibrationBins",
    "Curve",
    "Reference",
    "calibration_figure",
    "curves_figure",
    "likelihood_figure",
]

_REACH = 3.5  # of the axis beyond the outer thresholds, in units of sigma
_LEGEND_EXTRA = 0.55  # inches of a legend without its names


@dataclass(frozen=True, slots=True)
class Curve:
    """A model's results by number of training rows; NaN where there is none."""

    x: FloatArray  # (n,) ascending
    mean: FloatArray  # (n,)
    low: FloatArray  # (n,) ends of the band
    high: FloatArray  # (n,)


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference line."""

    label: str
    x: FloatArray
    y: FloatArray


@dataclass(frozen=True, slots=True)
class CalibrationBins:
    """Predicted and observed cumulative probabilities by bin; NaN where a bin is empty."""

    count: IntArray  # (n_bins,) pairs of row and threshold
    predicted: FloatArray  # (n_bins,) mean of P(y ≤ k)
    observed: FloatArray  # (n_bins,) share with y ≤ k


@house_style()
def likelihood_figure(thresholds: Sequence[float] = (-1.5, 0.0, 1.5), sigma: float = 1.0) -> "Figure":
    """Draw ln p(y | f) of each class and its first and second derivatives in the score f.

    The first derivative falls and the second is negative: the likelihood is log-concave.

    Parameters
    ----------
    thresholds : sequence of float
        Ascending, one fewer than classes.
    sigma : float
        Standard deviation of the noise.

    Returns
    -------
    matplotlib Figure
    """
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    b = np.asarray(thresholds, dtype=np.float64)
    f = np.linspace(b[0] - _REACH * sigma, b[-1] + _REACH * sigma, 401)
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
        at = ordinal_probit(f, np.full_like(f, lower), np.full_like(f, upper), scale=sigma)
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
    curves: Mapping[str, Curve],
    *,
    xlabel: str,
    ylabel: str,
    title: str = "",
    log_y: bool = False,
    reference: Reference | None = None,
    models: Sequence[str] | None = None,
) -> "Figure":
    """Draw a line with a band for each model, most often against the number of training rows.

    Parameters
    ----------
    curves : mapping of str to Curve
        By name of the model.
    xlabel, ylabel, title : str
        Texts of the figure.
    log_y : bool
        Whether the y-axis is logarithmic, as the x-axis is.
    reference : Reference or None
        Drawn as a dashed line.
    models : sequence of str or None
        All models of the report, in order; None: those of the figure.

    Returns
    -------
    matplotlib Figure
    """
    from matplotlib.figure import Figure

    styles = model_styles(curves, models)
    names = [style.label for style in styles.values()] + ([reference.label] if reference else [])
    figure = Figure(figsize=(5.2 + _legend_width(names), max(3.7, 0.2 * len(names))), layout="constrained")
    ax = figure.subplots()
    # Set before drawing, so that the limits ignore values of zero or less.
    ax.set(xscale="log", yscale="log" if log_y else "linear")
    handles: list[tuple[Any, str]] = []
    for name, style in styles.items():
        curve = curves[name]
        ax.fill_between(curve.x, curve.low, curve.high, color=style.colour, alpha=0.13, linewidth=0)
        # A point without neighbours has no band.
        ax.vlines(curve.x, curve.low, curve.high, color=style.colour, alpha=0.5, linewidth=0.8)
        (line,) = ax.plot(curve.x, curve.mean, **style.line_settings)
        handles.append((line, style.label))
    if reference is not None:
        dashes: dict[str, Any] = {"color": "0.25", "linestyle": "--", "linewidth": 1.2, "zorder": 1.5}
        (line,) = ax.plot(reference.x, reference.y, **dashes)
        handles.append((line, reference.label))
    draw_grid(ax)
    for axis, text in ((ax.xaxis, xlabel), (ax.yaxis, ylabel)):
        axis.set_label_text(text, parse_math=False)
        _write_plain_numbers(axis)
    ax.set_title(title, parse_math=False)
    draw_legend(figure, handles, loc="outside right upper")
    return settled(figure)


@house_style()
def calibration_figure(
    curves: Mapping[str, CalibrationBins], *, models: Sequence[str] | None = None
) -> "Figure":
    """Draw observed frequencies against predicted cumulative probabilities, and below the counts of the bins.

    There are no error bars: the pairs of a row are dependent, so binomial ones would be too short.

    Parameters
    ----------
    curves : mapping of str to CalibrationBins
        By name of the model.
    models : sequence of str or None
        All models of the report, in order; None: those of the figure.

    Returns
    -------
    matplotlib Figure
    """
    from matplotlib.figure import Figure

    styles = model_styles(curves, models)
    width = 4.4 + _legend_width([*(style.label for style in styles.values()), "perfect calibration"])
    figure = Figure(figsize=(width, 5.2), layout="constrained")
    ax, strip = figure.subplots(2, 1, sharex=True, height_ratios=(4.5, 1))
    (diagonal,) = ax.plot([0, 1], [0, 1], color="0.25", linestyle="--", linewidth=1.2, zorder=1.5)
    handles: list[tuple[Any, str]] = []
    for name, style in styles.items():
        bins = curves[name]
        held = np.flatnonzero(bins.count)
        (line,) = ax.plot(bins.predicted[held], bins.observed[held], **style.line_settings)
        handles.append((line, style.label))
        small = style.line_settings | {"linewidth": 1.0, "markersize": 4.0}
        strip.plot(bins.predicted[held], bins.count[held], **small)
    handles.append((diagonal, "perfect calibration"))
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), ylabel="observed frequency of y ≤ k")
    strip.set(xlabel="predicted probability of y ≤ k", ylabel="pairs (row, k)", yscale="log")
    _write_plain_numbers(strip.yaxis)
    for part in (ax, strip):
        draw_grid(part)
    figure.align_ylabels()
    draw_legend(figure, handles, loc="outside right upper")
    return settled(figure)


def _legend_width(names: Sequence[str]) -> float:
    return _LEGEND_EXTRA + max(text_width(name) for name in names)


def _write_plain_numbers(axis: "Axis") -> None:
    """Write the numbers of an axis without powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter

    if axis.get_scale() == "log":
        low, high = axis.get_view_interval()
        few_decades = np.log10(high / low) < 2.5
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few_decades else (1.0,)))
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}")
