"""The metrics themselves; the package's docstring says what they have in common."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import cohen_kappa_score

from isbor._core.types import FloatArray, IntArray
from isbor.metrics.arguments import Order, Ranked, read_forecast, read_labels

__all__ = [
    "accuracy",
    "average_mae",
    "kendall_tau",
    "log_loss",
    "maximum_mae",
    "mean_absolute_error",
    "mean_squared_error",
    "mean_zero_one_error",
    "quadratic_weighted_kappa",
    "ranked_probability_score",
]


def mean_absolute_error(
    y_true: object, y_pred: object, *, labels: Order | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean distance, in ranks, between truth and prediction.

    Examples
    --------
    >>> mean_absolute_error([1, 2, 10], [1, 10, 10])  # from 2 to 10 is one class
    0.3333333333333333
    >>> mean_absolute_error(["low", "high"], ["high", "high"], labels=["low", "mid", "high"])
    1.0
    """
    ranked = read_labels(y_true, y_pred, labels, sample_weight)
    return _mean(ranked.distance, ranked.weight)


def mean_squared_error(
    y_true: object, y_pred: object, *, labels: Order | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean squared distance, in ranks, between truth and prediction.

    Examples
    --------
    >>> mean_squared_error([1, 2, 3, 3], [3, 2, 3, 3])
    1.0
    """
    ranked = read_labels(y_true, y_pred, labels, sample_weight)
    return _mean(ranked.distance**2, ranked.weight)


def mean_zero_one_error(
    y_true: object, y_pred: object, *, labels: Order | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the share of wrong predictions.

    Examples
    --------
    >>> mean_zero_one_error([1, 2, 3, 3], [3, 2, 3, 3])
    0.25
    """
    ranked = read_labels(y_true, y_pred, labels, sample_weight)
    return _mean(ranked.distance > 0, ranked.weight)


def accuracy(
    y_true: object, y_pred: object, *, labels: Order | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the share of right predictions.

    Examples
    --------
    >>> accuracy([1, 2, 3, 3], [3, 2, 3, 3])
    0.75
    """
    ranked = read_labels(y_true, y_pred, labels, sample_weight)
    return _mean(ranked.distance == 0, ranked.weight)


def average_mae(
    y_true: object, y_pred: object, *, labels: Order | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean, over the classes present in `y_true`, of each class's mean absolute error.

    Every class counts alike, however few its rows.

    Examples
    --------
    >>> average_mae([1, 2, 2, 2], [2, 2, 2, 2])  # class 1: error 1, class 2: error 0
    0.5
    """
    return float(_mae_by_class(read_labels(y_true, y_pred, labels, sample_weight)).mean())


def maximum_mae(
    y_true: object, y_pred: object, *, labels: Order | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean absolute error of the class, among those present in `y_true`, where it is largest.

    Examples
    --------
    >>> maximum_mae([1, 2, 2, 2], [2, 2, 2, 2])
    1.0
    """
    return float(_mae_by_class(read_labels(y_true, y_pred, labels, sample_weight)).max())


def quadratic_weighted_kappa(
    y_true: object, y_pred: object, *, labels: Order | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return Cohen's kappa with squared rank distances: 1 is full agreement, 0 that of chance.

    When truth and prediction are one and the same class throughout, chance agrees fully too and kappa is 0/0.
    It is 1.0 then, as for any other perfect prediction.

    Examples
    --------
    >>> quadratic_weighted_kappa([1, 1, 3, 3], [1, 1, 3, 3])
    1.0
    >>> quadratic_weighted_kappa([1, 1, 3, 3], [1, 3, 1, 3])
    0.0
    """
    ranked = read_labels(y_true, y_pred, labels, sample_weight)
    counted = ranked.weight > 0
    if len(np.unique([ranked.true[counted], ranked.pred[counted]])) == 1:
        return 1.0
    return float(
        cohen_kappa_score(
            ranked.true,
            ranked.pred,
            labels=np.arange(ranked.n_classes),
            weights="quadratic",
            sample_weight=ranked.weight,
        )
    )


def kendall_tau(
    y_true: object, y_pred: object, *, labels: Order | None = None, sample_weight: ArrayLike | None = None
) -> float:
    r"""Return Kendall's rank correlation :math:`\tau_b`, between −1 and 1.

    Where `y_true` or `y_pred` is constant there is nothing to correlate, and the result is 0.0.

    Notes
    -----
    With :math:`C_{ij}` the weight of truth i with prediction j, :math:`a, b` its margins, :math:`W` its sum,

    .. math:: \tau_b = \frac{2(P - Q)}{\sqrt{(W^2 - \sum_i a_i^2)(W^2 - \sum_j b_j^2)}}, \qquad
              P = \sum_{i<k,\,j<l} C_{ij} C_{kl}

    and :math:`Q` the same with :math:`j > l`. Taken from the table, it costs n + r² and extends to weights.

    Examples
    --------
    >>> kendall_tau([1, 2, 3], [1, 2, 3])
    1.0
    >>> kendall_tau([1, 2, 3], [3, 2, 1])
    -1.0
    >>> kendall_tau([1, 2, 3], [2, 2, 2])
    0.0
    """
    ranked = read_labels(y_true, y_pred, labels, sample_weight)
    table = np.zeros((ranked.n_classes, ranked.n_classes))
    np.add.at(table, (ranked.true, ranked.pred), ranked.weight)
    # W² − Σa² written as Σ a (W − a), which cannot come out negative
    untied = [float(margin @ (margin.sum() - margin)) for margin in (table.sum(axis=1), table.sum(axis=0))]
    if min(untied) == 0:
        return 0.0
    excess = _concordant_weight(table) - _concordant_weight(table[:, ::-1])
    return float(np.clip(2 * excess / np.sqrt(untied[0] * untied[1]), -1, 1))


def ranked_probability_score(
    y_true: object, y_proba: ArrayLike, *, labels: Order | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean squared error of the cumulative probabilities, between 0 (best) and 1.

    The sum over the r − 1 cuts between classes is divided by r − 1. Probability far from the true class costs
    more than probability next to it.

    Examples
    --------
    >>> ranked_probability_score([1, 3], [[1, 0, 0], [0, 0, 1]], labels=[1, 2, 3])
    0.0
    >>> near, far = [[0, 1, 0]], [[0, 0, 1]]
    >>> ranked_probability_score([1], near, labels=[1, 2, 3])
    0.5
    >>> ranked_probability_score([1], far, labels=[1, 2, 3])
    1.0
    """
    true, proba, weight = read_forecast(y_true, y_proba, labels, sample_weight)
    cuts = proba.shape[1] - 1
    below = true[:, np.newaxis] <= np.arange(cuts)
    squares: FloatArray = (proba.cumsum(axis=1)[:, :-1] - below) ** 2
    per_row: FloatArray = squares.sum(axis=1) / max(cuts, 1)  # a single class is certain: no cuts, no error
    return _mean(per_row, weight)


def log_loss(
    y_true: object, y_proba: ArrayLike, *, labels: Order | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean of minus the natural logarithm of the probability given to the true class.

    A probability below the smallest normal double, 2.2e-308, counts as that: a row that was held impossible
    costs 708.4, large but finite. Nothing else is clipped.

    Examples
    --------
    >>> round(log_loss([1, 2], [[0.5, 0.5], [0.5, 0.5]]), 4)  # ln 2
    0.6931
    """
    true, proba, weight = read_forecast(y_true, y_proba, labels, sample_weight)
    given = proba[np.arange(len(true)), true]
    return _mean(-np.log(np.maximum(given, np.finfo(np.float64).tiny)), weight)


def _mean(values: FloatArray | IntArray | NDArray[np.bool_], weight: FloatArray) -> float:
    return float(np.average(values, weights=weight))


def _mae_by_class(ranked: Ranked) -> FloatArray:
    """Return the mean absolute error of each class with weight in y_true, lowest class first."""
    total = np.bincount(ranked.true, weights=ranked.weight)
    error = np.bincount(ranked.true, weights=ranked.weight * ranked.distance)
    return error[total > 0] / total[total > 0]


def _concordant_weight(table: FloatArray) -> float:
    """Return the weight of the pairs of cells of which one has both the higher row and the higher column."""
    beyond = table[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]  # weight at or beyond (i, j)
    return float(np.sum(table[:-1, :-1] * beyond[1:, 1:]))
