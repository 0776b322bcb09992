r"""Calibration of the cumulative probabilities.

For each row, an ordinal forecast with r classes gives r − 1 cumulative probabilities, one per threshold:
:math:`F_k = P(y \le k)`. It is calibrated if, among the rows with :math:`F_k = p`, a fraction p has
:math:`y \le k`.

The intervals are Wilson's (`isbor.plots.intervals`).

Where thresholds are pooled, the outcomes :math:`1[y \le k]` and :math:`1[y \le l]` of one row, :math:`k < l`,
are dependent: under the forecast their covariance is :math:`F_k (1 - F_l)`. So n is replaced by the effective
number of independent outcomes, whose frequency has the same variance,

.. math:: n \,\frac{\sum_{ik} F_{ik}(1 - F_{ik})}
                   {\sum_{ik} F_{ik}(1 - F_{ik}) + 2 \sum_i \sum_{k<l} F_{ik}(1 - F_{il})},

with sums over the pairs of row and threshold in the bin.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.data.labels import OrderedLabels
from isbor.metrics.arguments import check_forecast
from isbor.plots.common import shorten
from isbor.plots.intervals import wilson

__all__ = ["HISTOGRAM_BARS", "CalibrationCurve", "Forecast", "mean_absolute_gap"]

HISTOGRAM_BARS = 20
_LABEL_LENGTH = 26


@dataclass(frozen=True, slots=True)
class CalibrationCurve:
    """Predicted probability and observed frequency of y ≤ label, in bins of equal counts."""

    label: Any  # the class below the threshold; None if all thresholds are pooled
    predicted: FloatArray  # (n_bins,) mean predicted probability, ascending
    observed: FloatArray  # (n_bins,) frequency of y ≤ label
    lower: FloatArray  # (n_bins,) ends of the Wilson interval for the frequency
    upper: FloatArray  # (n_bins,)
    count: IntArray  # (n_bins,) rows; if thresholds are pooled, pairs of row and threshold
    histogram: IntArray  # (20,) predicted probabilities in each twentieth of [0, 1]

    @property
    def name(self) -> str:
        """Return the name in the legend."""
        return (
            "P(y ≤ k), all k" if self.label is None else f"P(y ≤ {shorten(str(self.label), _LABEL_LENGTH)})"
        )


@dataclass(frozen=True, slots=True)
class Forecast:
    """Cumulative probabilities of rows, and their outcomes."""

    classes: LabelArray  # (r,) lowest first
    cumulative: FloatArray  # (n, r - 1), P(y ≤ k)
    below: NDArray[np.bool_]  # (n, r - 1), whether y ≤ k

    @classmethod
    def of(cls, labels: OrderedLabels, proba: ArrayLike) -> "Forecast":
        """Return the forecast for labels and the probabilities of their classes, checked."""
        cumulative = _cumulative(proba, len(labels.codes), labels.classes)
        below = labels.codes[:, np.newaxis] <= np.arange(len(labels.classes) - 1)
        return cls(labels.classes, cumulative, below)

    def curves(self, n_bins: int, confidence: float) -> tuple[CalibrationCurve, ...]:
        """Return the curve of each threshold, lowest first."""
        return tuple(
            _curve(label, self.cumulative[:, [k]], self.below[:, [k]], n_bins, confidence)
            for k, label in enumerate(self.classes[:-1])
        )

    def pooled_curve(self, n_bins: int, confidence: float) -> CalibrationCurve:
        """Return the curve of all thresholds together."""
        return _curve(None, self.cumulative, self.below, n_bins, confidence)


def mean_absolute_gap(curves: Sequence[CalibrationCurve]) -> float:
    """Return the mean of |predicted - observed| over all bins, weighted by their counts."""
    gaps = np.concatenate([np.abs(curve.predicted - curve.observed) for curve in curves])
    return float(np.average(gaps, weights=np.concatenate([curve.count for curve in curves])))


def _cumulative(proba: ArrayLike, n_rows: int, classes: LabelArray) -> FloatArray:
    """Return P(y ≤ k), shape (n, r − 1), checked and not decreasing in k."""
    table = check_forecast(proba, n_rows, classes, name="proba", order_name="classes")
    if len(classes) < 2:
        raise ValueError(
            f"proba has 1 column, for class {classes.tolist()}; at least 2 classes are needed. Check the "
            "labels, and classes= if it was given."
        )
    cumulative: FloatArray = np.minimum(np.maximum(table, 0.0).cumsum(axis=1)[:, :-1], 1.0)
    return cumulative


def _curve(
    label: object, cumulative: FloatArray, below: NDArray[np.bool_], n_bins: int, confidence: float
) -> CalibrationCurve:
    """Return the curve of some thresholds: predictions and outcomes of shape (n, thresholds)."""
    flat = cumulative.ravel()
    bins = _equal_count_bins(flat, n_bins)
    count = np.bincount(bins)
    observed = np.bincount(bins, below.ravel()) / count
    independent = _independent_count(cumulative, bins.reshape(cumulative.shape), count)
    lower, upper = wilson(observed, independent, confidence)
    return CalibrationCurve(
        label=label,
        predicted=np.bincount(bins, flat) / count,
        observed=observed,
        lower=lower,
        upper=upper,
        count=count,
        histogram=np.histogram(flat, HISTOGRAM_BARS, (0.0, 1.0))[0],
    )


def _equal_count_bins(values: FloatArray, n_bins: int) -> IntArray:
    """Return each value's bin, 0 the lowest; equal values share a bin, so the order of rows has no effect."""
    first = np.arange(n_bins) * len(values) // n_bins
    starts = np.unique(np.sort(values)[first])
    return np.searchsorted(starts, values, side="right") - 1


def _independent_count(cumulative: FloatArray, bins: IntArray, count: IntArray) -> FloatArray:
    """Return the effective number of independent outcomes in each bin (see the module's docstring)."""
    n_bins = len(count)
    variance = np.bincount(bins.ravel(), (cumulative * (1 - cumulative)).ravel(), minlength=n_bins)
    covariance = np.zeros(n_bins)
    n_rows = np.bincount(bins[:, 0], minlength=n_bins)
    # Along a row neither probabilities nor bins decrease: the thresholds of a bin are neighbours.
    earlier = np.zeros(len(bins))
    for k in range(1, bins.shape[1]):
        same = bins[:, k] == bins[:, k - 1]
        earlier = np.where(same, earlier + cumulative[:, k - 1], 0.0)
        covariance += np.bincount(bins[:, k], (1 - cumulative[:, k]) * earlier, minlength=n_bins)
        n_rows += np.bincount(bins[~same, k], minlength=n_bins)
    independent = n_rows.astype(np.float64)  # where all forecasts are certain, 0/0, a row counts once
    free = variance > 0
    independent[free] = count[free] * variance[free] / (variance + 2 * covariance)[free]
    return independent
