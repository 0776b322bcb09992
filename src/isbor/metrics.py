r"""Ordinal metrics and scorers, on ranks.

A label counts by its rank, its place 0 < 1 < … < r−1 in the order of the classes, never by its value: any
strictly increasing relabelling leaves every metric here as it was. All metrics take

``y_true``, ``y_pred``
    Labels, shape (n,): numbers, booleans, strings, or an ordered categorical (pandas) or ``Enum`` (polars).
``y_proba``
    Probabilities, shape (n, r), columns in the order of the classes, each row summing to 1.
``labels``
    The classes, lowest first. By default the order that `y_true` carries if it is an ordered categorical,
    else the numbers that occur in `y_true` or `y_pred`, ascending. A level that occurs in neither is then not
    counted: from 1 to 3 is one step unless ``labels=[1, 2, 3]`` says otherwise. Strings need `labels`.
    Probabilities need them too, unless the order found in `y_true` has a class for every column.
``sample_weight``
    Weights, shape (n,), zero or positive: weight 2 counts as the row twice, weight 0 as no row.

With :math:`t_i` and :math:`p_i` the ranks of row :math:`i` in `y_true` and `y_pred`, and :math:`F_{ik}` the
probability given to the classes up to :math:`k`,

.. math::

    \text{MAE} &= \operatorname{mean}_i |t_i - p_i| \\
    \text{RPS} &= \operatorname{mean}_i \frac1{r-1} \sum_{k=0}^{r-2} \big(F_{ik} - 1[t_i \le k]\big)^2

The scorers of `get_scorer` serve as ``scoring=`` in scikit-learn's model selection.
"""

import difflib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import cohen_kappa_score

from isbor.arrays import FloatArray, IntArray, LabelArray
from isbor.labels import encode_labels, ordered_union, rank_labels

__all__ = [
    "OrdinalScorer",
    "accuracy",
    "average_mae",
    "get_scorer",
    "kendall_tau",
    "log_loss",
    "maximum_mae",
    "mean_absolute_error",
    "mean_squared_error",
    "mean_zero_one_error",
    "quadratic_weighted_kappa",
    "ranked_probability_score",
    "scorer_names",
]

Order: TypeAlias = Sequence[Any] | LabelArray

_SUM_TOLERANCE = 1e-4  # of a row of probabilities: loose enough for single precision

# --- Metrics on labels ------------------------------------------------------------------------------------


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
    ranked = _ranked(y_true, y_pred, labels, sample_weight)
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
    ranked = _ranked(y_true, y_pred, labels, sample_weight)
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
    ranked = _ranked(y_true, y_pred, labels, sample_weight)
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
    ranked = _ranked(y_true, y_pred, labels, sample_weight)
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
    return float(_mae_by_class(_ranked(y_true, y_pred, labels, sample_weight)).mean())


def maximum_mae(
    y_true: object, y_pred: object, *, labels: Order | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean absolute error of the class, among those present in `y_true`, where it is largest.

    Examples
    --------
    >>> maximum_mae([1, 2, 2, 2], [2, 2, 2, 2])
    1.0
    """
    return float(_mae_by_class(_ranked(y_true, y_pred, labels, sample_weight)).max())


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
    ranked = _ranked(y_true, y_pred, labels, sample_weight)
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
    ranked = _ranked(y_true, y_pred, labels, sample_weight)
    table = np.zeros((ranked.n_classes, ranked.n_classes))
    np.add.at(table, (ranked.true, ranked.pred), ranked.weight)
    # W² − Σa² written as Σ a (W − a), which cannot come out negative
    untied = [float(margin @ (margin.sum() - margin)) for margin in (table.sum(axis=1), table.sum(axis=0))]
    if min(untied) == 0:
        return 0.0
    excess = _concordant_weight(table) - _concordant_weight(table[:, ::-1])
    return float(np.clip(2 * excess / np.sqrt(untied[0] * untied[1]), -1, 1))


# --- Metrics on probabilities -----------------------------------------------------------------------------


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
    true, proba, weight = _forecast(y_true, y_proba, labels, sample_weight)
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
    true, proba, weight = _forecast(y_true, y_proba, labels, sample_weight)
    given = proba[np.arange(len(true)), true]
    return _mean(-np.log(np.maximum(given, np.finfo(np.float64).tiny)), weight)


# --- Scorers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entry:
    """How a scorer's name is to be read."""

    metric: Callable[..., float]
    sign: int  # −1 for errors, so that greater is better
    response: str  # the estimator's method that the metric judges


_ENTRIES = {
    "mae": _Entry(mean_absolute_error, -1, "predict"),
    "zero_one": _Entry(mean_zero_one_error, -1, "predict"),
    "accuracy": _Entry(accuracy, 1, "predict"),
    "amae": _Entry(average_mae, -1, "predict"),
    "mmae": _Entry(maximum_mae, -1, "predict"),
    "mse": _Entry(mean_squared_error, -1, "predict"),
    "qwk": _Entry(quadratic_weighted_kappa, 1, "predict"),
    "kendall": _Entry(kendall_tau, 1, "predict"),
    "rps": _Entry(ranked_probability_score, -1, "predict_proba"),
    "log_loss": _Entry(log_loss, -1, "predict_proba"),
}


@dataclass(frozen=True, slots=True, repr=False)
class OrdinalScorer:
    """A metric as scikit-learn's ``scoring=``: a callable, greater is better. Made by `get_scorer`.

    Not scikit-learn's ``make_scorer``: that hides the estimator from the metric, and its ``classes_`` are
    needed to rank labels and to place the columns of ``predict_proba`` when a fold lacks a class.
    """

    name: str
    labels: tuple[Any, ...] | None = None

    def __call__(self, estimator: Any, X: object, y: object, sample_weight: ArrayLike | None = None) -> float:
        """Return the score of a fitted classifier on the rows X with labels y."""
        entry = _ENTRIES[self.name]
        classes = _fitted_classes(estimator)
        order = _scoring_order(classes, y) if self.labels is None else np.array(self.labels)
        response = getattr(estimator, entry.response)(X)
        if entry.response == "predict_proba":
            response = _spread(np.asarray(response, dtype=np.float64), classes, order)
        return entry.sign * entry.metric(y, response, labels=order, sample_weight=sample_weight)

    def __repr__(self) -> str:
        entry = _ENTRIES[self.name]
        labels = "" if self.labels is None else f", labels={list(self.labels)}"
        minus = "-" if entry.sign < 0 else ""
        return f"<scorer {self.name!r}: {minus}{entry.metric.__name__}(y, {entry.response}(X){labels})>"


def get_scorer(name: str, *, labels: Order | None = None) -> OrdinalScorer:
    """Return a scorer for ``scoring=`` in scikit-learn's model selection, by its name.

    Greater is better: errors are negated. The ranks are right when a fold lacks a class. The order is that of
    the fitted ``classes_``, joined by the labels of the rows to be scored; a class that the estimator never
    saw has probability 0, which the log loss counts as the smallest positive double (see `log_loss`).

    Parameters
    ----------
    name : str
        One of `scorer_names`.
    labels : sequence, optional
        All classes, lowest first. Needed where strings meet a classifier that sorts its ``classes_``
        alphabetically, as scikit-learn's do, unless y is an ordered categorical, whose order is taken.

    Returns
    -------
    OrdinalScorer
        Callable as ``scorer(estimator, X, y, sample_weight=None)``.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from isbor.datasets import make_balance_scale
    >>> X, y = make_balance_scale()
    >>> scores = cross_val_score(LogisticRegression(), X, y, scoring=get_scorer("mae"))
    >>> bool(scores.max() < 0)  # an error, negated
    True
    >>> get_scorer("mae")
    <scorer 'mae': -mean_absolute_error(y, predict(X))>
    """
    if name not in _ENTRIES:
        close = difflib.get_close_matches(str(name), _ENTRIES, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"There is no scorer {name!r}.{hint} The names are {', '.join(_ENTRIES)}.")
    return OrdinalScorer(name, None if labels is None else tuple(np.asarray(labels).tolist()))


def scorer_names() -> list[str]:
    """Return the names that `get_scorer` knows.

    Examples
    --------
    >>> "rps" in scorer_names()
    True
    """
    return list(_ENTRIES)


def _fitted_classes(estimator: Any) -> LabelArray:
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        raise TypeError(
            f"{type(estimator).__name__} has no classes_; a fitted classifier is needed. Fit it first, or "
            "give the scorer a classifier instead of a regressor."
        )
    return np.asarray(classes)


def _scoring_order(classes: LabelArray, y: object) -> LabelArray:
    """Return the order of the estimator's classes and the labels of y together."""
    if classes.dtype.kind in "OUT":
        # Most classifiers sort strings alphabetically; an ordered categorical knows better.
        try:
            return ordered_union(encode_labels(y).classes, classes)
        except ValueError:  # plain strings, or an order that lacks a class of the estimator
            pass
    return _union(classes, y)


def _spread(proba: FloatArray, classes: LabelArray, order: LabelArray) -> FloatArray:
    """Return the columns of `classes` in their places in `order`, zeros for the other places."""
    spread = np.zeros((len(proba), len(order)))
    spread[:, _ranks(classes, order, "the estimator's classes_")] = proba
    return spread


# --- Reading the arguments --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Truth and prediction as ranks."""

    true: IntArray  # (n,)
    pred: IntArray  # (n,)
    weight: FloatArray  # (n,)
    n_classes: int

    @property
    def distance(self) -> IntArray:
        distance: IntArray = np.abs(self.true - self.pred)
        return distance


def _ranked(y_true: object, y_pred: object, labels: Order | None, sample_weight: ArrayLike | None) -> _Ranked:
    """Return truth, prediction and weights, checked."""
    order = _own_order(y_true) if labels is None else labels
    if labels is None:
        with _argument("y_pred"):
            order = _union(order, y_pred)
    true, pred = _ranks(y_true, order, "y_true"), _ranks(y_pred, order, "y_pred")
    if len(true) != len(pred):
        raise ValueError(
            f"y_true holds {len(true)} label(s) and y_pred {len(pred)}; as many are needed. "
            "Pass the truth and the prediction of the same rows."
        )
    return _Ranked(true, pred, _weights(sample_weight, len(true)), len(order))


def _forecast(
    y_true: object, y_proba: ArrayLike, labels: Order | None, sample_weight: ArrayLike | None
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the ranks of the truth, the probabilities and the weights, checked."""
    order = _own_order(y_true) if labels is None else labels
    true = _ranks(y_true, order, "y_true")
    proba = np.asarray(y_proba, dtype=np.float64)
    if proba.shape != (len(true), len(order)):
        raise ValueError(
            f"y_proba has shape {proba.shape}; for {len(true)} row(s) and the {len(order)} classes "
            f"{np.asarray(order).tolist()}, {(len(true), len(order))} is needed. Give the classes of all "
            "columns, lowest first, as labels= (for example the estimator's classes_)."
        )
    # Written so that NaN fails it.
    if not (proba.min() >= -_SUM_TOLERANCE and np.all(np.abs(proba.sum(axis=1) - 1) <= _SUM_TOLERANCE)):
        raise ValueError(
            f"y_proba has entries from {proba.min():.3g} and rows that sum to between "
            f"{proba.sum(axis=1).min():.6g} and {proba.sum(axis=1).max():.6g}; probabilities, none negative "
            "and each row summing to 1, are needed. Pass the output of predict_proba."
        )
    return true, proba, _weights(sample_weight, len(true))


def _own_order(y_true: object) -> Order:
    with _argument("y_true"):
        return encode_labels(y_true).classes


def _union(classes: Order, y: object) -> LabelArray:
    """Return the order of `classes` and the labels of y together."""
    order = ordered_union(classes, y)
    if len(order) > len(classes):
        encode_labels(y)  # only numbers can have joined: this refuses fractions, which are no classes
    return order


def _ranks(y: object, order: Order, name: str) -> IntArray:
    with _argument(name):
        return rank_labels(y, order)


@contextmanager
def _argument(name: str) -> Iterator[None]:
    """Say in errors about labels what this module calls the arguments."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{error} (Here y is {name}, and classes= is labels=.)") from error


def _weights(sample_weight: ArrayLike | None, n: int) -> FloatArray:
    """Return the weights as an array, ones by default."""
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {weight.shape}; {(n,)} is needed. Pass one weight a row, or None."
        )
    # Written so that NaN fails it.
    if not (weight.min() >= 0 and 0 < weight.sum() < np.inf):
        raise ValueError(
            f"sample_weight has minimum {weight.min():.3g} and sum {weight.sum():.3g}; finite weights, none "
            "negative and not all zero, are needed."
        )
    return weight


# --- Sums -------------------------------------------------------------------------------------------------


def _mean(values: FloatArray | IntArray | NDArray[np.bool_], weight: FloatArray) -> float:
    return float(np.average(values, weights=weight))


def _mae_by_class(ranked: _Ranked) -> FloatArray:
    """Return the mean absolute error of each class with weight in y_true, lowest class first."""
    total = np.bincount(ranked.true, weights=ranked.weight)
    error = np.bincount(ranked.true, weights=ranked.weight * ranked.distance)
    return error[total > 0] / total[total > 0]


def _concordant_weight(table: FloatArray) -> float:
    """Return the weight of the pairs of cells of which one has both the higher row and the higher column."""
    beyond = table[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]  # weight at or beyond (i, j)
    return float(np.sum(table[:-1, :-1] * beyond[1:, 1:]))
