"""Labels and class probabilities; sections of docs/export.md.

The standardised thresholds z of all models stand side by side, (n, J(r-1)), so that Ψ is computed once.
"""

from collections.abc import Sequence

import numpy as np

from isbor._core.types import FloatArray
from isbor.export.description import Described
from isbor.export.graph.normal import normal_cdf
from isbor.export.graph.rows import Columns
from isbor.export.graph.scores import Score
from isbor.export.graph.tensors import Tensor, concatenated, where

__all__ = ["class_probabilities", "drift_share", "levels"]

_FARTHEST = 100.0


def drift_share(drift: Described | None, columns: Columns) -> Tensor | None:
    """Return the share u of the base rates, (n, 1); None if it is 0 everywhere."""
    if drift is None or not drift["columns"]:
        return None
    # Halves, because the width of the range may be beyond the largest number.
    half = columns.take(drift["columns"]) * 0.5
    low, high = 0.5 * np.array([drift["low"]]), 0.5 * np.array([drift["high"]])
    outside: Tensor = (low - half).at_least(half - high)
    excess = (outside / np.maximum(high - low, np.finfo(float).tiny)).row_max().within(0.0, _FARTHEST)
    return 1.0 - (excess * excess * -0.125).exp()


def class_probabilities(
    described: Described, scores: Sequence[Score], drift: Tensor | None, zero: Tensor
) -> Tensor:
    """Return P(y = k), (n, r)."""
    if described["calibration"] is not None:
        thresholds = np.array([described["calibration"]["thresholds"]])
        slopes = np.full_like(thresholds, described["calibration"]["slope"])
        scores = [Score(score.mean @ slopes, score.scale, thresholds) for score in scores]
    n_models, n_classes = len(scores), len(described["classes"])
    # For all models side by side, the edges of each class: 0 is -∞, and the last one ∞.
    inner = 1 + np.arange(n_models * (n_classes - 1)).reshape(n_models, -1)
    low = np.pad(inner, ((0, 0), (1, 0))).ravel()
    high = np.pad(inner, ((0, 0), (0, 1)), constant_values=inner.size + 1).ravel()
    below, above = normal_cdf(_standardised(scores))
    below, above = concatenated([zero, below, zero + 1.0]), concatenated([zero + 1.0, above, zero])
    # Above the mean, upper tails: the difference of two numbers near 1 would lose digits.
    of_models = where(
        above.take(low).is_below(below.take(low)),
        above.take(low) - above.take(high),
        below.take(high) - below.take(low),
    )
    lapse: float = described["lapse"]
    mixed = _averaged(of_models, described, n_classes, 1.0 - lapse) + lapse / n_classes
    if drift is None:
        return mixed
    return _drifted(mixed, drift, np.array([described["drift"]["base_rates"]]))


def levels(described: Described, scores: Sequence[Score], drift: Tensor | None) -> Tensor:
    """Return the position of the predicted class, (n,): how many thresholds have less than half below."""
    z = _standardised(scores)
    if len(scores) == 1 and drift is None:
        return _count(z.is_below(0.0))
    below, above = (_averaged(side, described, len(described["thresholds"])) for side in normal_cdf(z))
    if drift is not None:
        base = np.cumsum(described["drift"]["base_rates"])[None, :-1]
        below, above = _drifted(below, drift, base), _drifted(above, drift, 1.0 - base)
    return _count(below.is_below(above))


def _standardised(scores: Sequence[Score]) -> Tensor:
    return concatenated([(score.thresholds - score.mean) / score.scale for score in scores])


def _averaged(of_models: Tensor, described: Described, size: int, factor: float = 1.0) -> Tensor:
    """Return the average, (n, size), of what models have side by side, times a factor."""
    shares = factor * np.array([[model["share"]] for model in described["models"]])
    return of_models @ np.kron(shares, np.eye(size))


def _drifted(inside: Tensor, share: Tensor, outside: FloatArray) -> Tensor:
    return inside * (1.0 - share) + share * outside


def _count(condition: Tensor) -> Tensor:
    return condition.graph.apply("ReduceSum", condition.as_type(np.int64), np.array([1]), keepdims=0)
