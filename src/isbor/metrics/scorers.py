"""The metrics as scorers for scikit-learn's model selection."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isbor._core.types import FloatArray, LabelArray
from isbor.data.labels import encode_labels, ordered_union
from isbor.metrics.arguments import Order, ranks, union_order
from isbor.metrics.measures import (
    accuracy,
    average_mae,
    kendall_tau,
    log_loss,
    maximum_mae,
    mean_absolute_error,
    mean_squared_error,
    mean_zero_one_error,
    quadratic_weighted_kappa,
    ranked_probability_score,
)

__all__ = ["OrdinalScorer", "get_scorer", "scorer_names"]


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

    @property
    def response(self) -> str:
        """The estimator's method that the metric judges: "predict" or "predict_proba"."""
        return _ENTRIES[self.name].response

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
    return union_order(classes, y)


def _spread(proba: FloatArray, classes: LabelArray, order: LabelArray) -> FloatArray:
    """Return the columns of `classes` in their places in `order`, zeros for the other places."""
    spread = np.zeros((len(proba), len(order)))
    spread[:, ranks(classes, order, "the estimator's classes_")] = proba
    return spread
