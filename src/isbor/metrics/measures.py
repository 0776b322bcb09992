"""The metrics. Their common parameters are described in `isbor.metrics`."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import cohen_kappa_score

from isbor._core.types import FloatArray, IntArray
from isbor.metrics.arguments import Order, Ranked, own_order, read_forecast, read_labels
from isbor.prediction.costs import cost_matrix, in_order_of

__all__ = [
    "accuracy",
    "average_mae",
    "kendall_tau",
    "log_loss",
    "maximum_mae",
    "mean_absolute_error",
    "mean_cost",
    "mean_squared_error",
    "mean_zero_one_error",
    "quadratic_weighted_kappa",
    "ranked_probability_score",
]


def mean_absolute_error(
    y_true: object, y_pred: object, *, labels: Order | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean absolute difference between the ranks of true and predicted labels.

    The parameters are described in `isbor.metrics`.

    Examples
    --------
    >>> mean_absolute_error([1, 2, 10], [1, 10, 10])  # 2 and 10 are adjacent classes
    0.3333333333333333
    >>> mean_absolute_error(["low", "high"], ["high", "high"], labels=["low", "mid", "high"])
    1.0
    """
    ranked = read_labels(y_true, y_pred, labels, sample_weight)
    return _mean(ranked.distance, ranked.weight)


def mean_cost(
    y_true: object,
    y_pred: object,
    cost: ArrayLike,
    *,
    labels: Order | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the mean cost of predicted labels.

    `cost` is a matrix of shape (n_classes, n_classes), cost[true, predicted], with the classes in order, or a
    pandas data frame whose rows and columns have their names. The other parameters are described in
    `isbor.metrics`; `labels` is needed unless every class occurs.

    Examples
    --------
    >>> cost = [[0, 1, 2], [1, 0, 1], [9, 4, 0]]  # to miss the highest class is dear
    >>> mean_cost([1, 2, 3, 3], [1, 3, 3, 2], cost)
    1.25
    """
    order = own_order(y_true) if labels is None else np.asarray(labels)
    ranked = read_labels(y_true, y_pred, order, sample_weight)
    return _mean(cost_matrix(in_order_of(order, cost), len(order))[ranked.true, ranked.pred], ranked.weight)


def mean_squared_error(
    y_true: object, y_pred: object, *, labels: Order | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean squared difference between the ranks of true and predicted labels.

    The parameters are described in `isbor.metrics`.

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

    The parameters are described in `isbor.metrics`.

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
    """Return the share of correct predictions.

    The parameters are described in `isbor.metrics`.

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
    """Return the mean over classes of the mean absolute error within each class of `y_true`.

    Every class has the same weight, however few rows it has. The parameters are described in
    `isbor.metrics`.

    Examples
    --------
    >>> average_mae([1, 2, 2, 2], [2, 2, 2, 2])  # class 1: error 1, class 2: error 0
    0.5
    """
    return float(_mae_by_class(read_labels(y_true, y_pred, labels, sample_weight)).mean())


def maximum_mae(
    y_true: object, y_pred: object, *, labels: Order | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the largest mean absolute error within a class of `y_true`.

    The parameters are described in `isbor.metrics`.

    Examples
    --------
    >>> maximum_mae([1, 2, 2, 2], [2, 2, 2, 2])
    1.0
    """
    return float(_mae_by_class(read_labels(y_true, y_pred, labels, sample_weight)).max())


def quadratic_weighted_kappa(
    y_true: object, y_pred: object, *, labels: Order | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return Cohen's kappa with quadratic weights: 1 for full agreement, 0 for agreement by chance.

    If all true and predicted labels are the same class, kappa is 0/0; the result is then 1.0, as for any
    other perfect prediction. The parameters are described in `isbor.metrics`.

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

    If `y_true` or `y_pred` is constant, the result is 0.0. The parameters are described in `isbor.metrics`.

    Notes
    -----
    With :math:`C_{ij}` the weight of rows with true rank i and predicted rank j, :math:`a, b` the row and
    column sums of C, and :math:`W` its total,

    .. math:: \tau_b = \frac{2(P - Q)}{\sqrt{(W^2 - \sum_i a_i^2)(W^2 - \sum_j b_j^2)}}, \qquad
              P = \sum_{i<k,\,j<l} C_{ij} C_{kl}

    and :math:`Q` the same with :math:`j > l`. Computed from this table, it takes O(n + r²) time and allows
    weights.

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
    # W² − Σa² written as Σ a (W − a), which cannot become negative by rounding
    untied = [float(margin @ (margin.sum() - margin)) for margin in (table.sum(axis=1), table.sum(axis=0))]
    if min(untied) == 0:
        return 0.0
    excess = _concordant_weight(table) - _concordant_weight(table[:, ::-1])
    return float(np.clip(2 * excess / np.sqrt(untied[0] * untied[1]), -1, 1))


def ranked_probability_score(
    y_true: object, y_proba: ArrayLike, *, labels: Order | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the ranked probability score: the mean squared error of cumulative probabilities.

    It is between 0 (best) and 1: the sum over the r − 1 boundaries between classes is divided by r − 1.
    Probability far from the true class counts more than probability next to it. The parameters are described
    in `isbor.metrics`.

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
    n_boundaries = proba.shape[1] - 1
    below = true[:, np.newaxis] <= np.arange(n_boundaries)
    squares: FloatArray = (proba.cumsum(axis=1)[:, :-1] - below) ** 2
    per_row: FloatArray = squares.sum(axis=1) / max(n_boundaries, 1)  # zero if there is a single class
    return _mean(per_row, weight)


def log_loss(
    y_true: object, y_proba: ArrayLike, *, labels: Order | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean negative natural logarithm of the predicted probability of the true class.

    Probabilities below the smallest normal float64, 2.2e-308, are replaced by it, so that a probability of
    zero gives a large but finite loss of 708.4. Nothing else is clipped. The parameters are described in
    `isbor.metrics`.

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
    """Return the mean absolute error of each class of y_true with positive weight, lowest class first."""
    total = np.bincount(ranked.true, weights=ranked.weight)
    error = np.bincount(ranked.true, weights=ranked.weight * ranked.distance)
    return error[total > 0] / total[total > 0]


def _concordant_weight(table: FloatArray) -> float:
    """Return the total weight of pairs of entries of which one has both the higher row and column."""
    beyond = table[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]  # total weight at or beyond (i, j)
    return float(np.sum(table[:-1, :-1] * beyond[1:, 1:]))
