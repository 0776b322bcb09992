"""The metrics as scorers for scikit-learn's model selection."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metadata_routing import MetadataRequest

from isbor._core.types import LabelArray
from isbor.data.labels import encode_labels, ordered_union
from isbor.metrics.arguments import Order, spread_columns, union_order
from isbor.metrics.declared_order import given_order, may_declare_order
from isbor.metrics.measures import (
    accuracy,
    average_mae,
    kendall_tau,
    log_loss,
    maximum_mae,
    mean_absolute_error,
    mean_cost,
    mean_squared_error,
    mean_zero_one_error,
    quadratic_weighted_kappa,
    ranked_probability_score,
)
from isbor.prediction.costs import in_order_of, least_expected_loss

__all__ = ["OrdinalScorer", "get_scorer", "scorer_names"]


@dataclass(frozen=True, slots=True)
class _Entry:
    """The metric of a scorer."""

    metric: Callable[..., float]
    sign: int  # −1 for errors, so that greater is better
    response: str  # method of the estimator that the metric evaluates
    has_order: bool = True  # whether the score depends on the order of the classes


_COST = "cost"  # of the labels that have the least expected cost

_ENTRIES = {
    "mae": _Entry(mean_absolute_error, -1, "predict"),
    "zero_one": _Entry(mean_zero_one_error, -1, "predict", has_order=False),
    "accuracy": _Entry(accuracy, 1, "predict", has_order=False),
    "amae": _Entry(average_mae, -1, "predict"),
    "mmae": _Entry(maximum_mae, -1, "predict"),
    "mse": _Entry(mean_squared_error, -1, "predict"),
    "qwk": _Entry(quadratic_weighted_kappa, 1, "predict"),
    "kendall": _Entry(kendall_tau, 1, "predict"),
    "rps": _Entry(ranked_probability_score, -1, "predict_proba"),
    "log_loss": _Entry(log_loss, -1, "predict_proba", has_order=False),
    _COST: _Entry(mean_cost, -1, "predict_proba"),
}


@dataclass(frozen=True, slots=True, repr=False)
class OrdinalScorer:
    """A scorer for scikit-learn's parameter ``scoring``; greater is better. Created by `get_scorer`.

    scikit-learn's ``make_scorer`` would not do: it does not pass the estimator to the metric. The estimator's
    ``classes_`` are needed to rank labels, and to assign the columns of ``predict_proba`` to classes if a
    class is missing from a fold.

    See Also
    --------
    get_scorer : Creates it from a name.
    scorer_names : The names.

    Examples
    --------
    >>> from isbor import SVOR
    >>> from isbor.datasets import make_saddle
    >>> from isbor.metrics import get_scorer
    >>> X, y = make_saddle(200, random_state=0)
    >>> model = SVOR(probability=False).fit(X, y)
    >>> scorer = get_scorer("mae")
    >>> bool(scorer(model, X, y) <= 0.0)  # greater is better, so errors are negative
    True
    """

    name: str
    labels: tuple[Any, ...] | None = None
    weight_request: bool | str | None = None  # see `set_score_request`
    cost: Any = field(default=None, compare=False)  # of the scorer "cost"

    def set_score_request(self, *, sample_weight: bool | str | None) -> Self:
        """Return a scorer that says whether it is to get weights, for scikit-learn's metadata routing.

        Parameters
        ----------
        sample_weight : bool, str or None
            Whether it requests `sample_weight`, or the name under which it does. None means that it has not
            been said: weights that are passed then raise an error.

        Returns
        -------
        OrdinalScorer
            A new one.
        """
        return replace(self, weight_request=sample_weight)

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what it requests."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self.weight_request)
        return request

    def __call__(self, estimator: Any, X: object, y: object, sample_weight: ArrayLike | None = None) -> float:
        """Return the score of a fitted classifier on the rows X with labels y."""
        entry = _ENTRIES[self.name]
        classes = _fitted_classes(estimator)
        order = (
            _scoring_order(estimator, classes, y, self.name) if self.labels is None else np.array(self.labels)
        )
        response = getattr(estimator, entry.response)(X)
        if entry.response == "predict_proba":
            response = spread_columns(np.asarray(response, dtype=np.float64), classes, order)
        costs = {}
        if self.name == _COST:
            costs["cost"] = in_order_of(order, self.cost)
            response = order[least_expected_loss(response, costs["cost"])]
        return entry.sign * entry.metric(y, response, **costs, labels=order, sample_weight=sample_weight)

    @property
    def response(self) -> str:
        """The method of the estimator that the metric evaluates: "predict" or "predict_proba"."""
        return _ENTRIES[self.name].response

    def __repr__(self) -> str:
        entry = _ENTRIES[self.name]
        labels = "" if self.labels is None else f", labels={list(self.labels)}"
        minus = "-" if entry.sign < 0 else ""
        return f"<scorer {self.name!r}: {minus}{entry.metric.__name__}(y, {entry.response}(X){labels})>"


def get_scorer(name: str, *, labels: Order | None = None, cost: ArrayLike | None = None) -> OrdinalScorer:
    """Return a scorer for the parameter ``scoring`` of scikit-learn's model selection.

    Greater is better: errors are negated. Ranks are correct even if a class is missing from a fold: the order
    is that of the fitted ``classes_`` together with the labels of the rows to be scored. A class that the
    estimator has not seen has probability 0 (see `log_loss`).

    Parameters
    ----------
    name : str
        One of `scorer_names`, or "cost".
    labels : sequence of labels, default=None
        All classes, lowest first. Needed if labels are strings and the classifier sorts its ``classes_``
        alphabetically, as those of scikit-learn do, unless y is an ordered categorical or an estimator inside
        has ``classes=``. Without an order, there is an error, unless the score does not depend on it.
    cost : array-like of shape (n_classes, n_classes), default=None
        For "cost", and only for it: what errors cost, see `mean_cost`. It is the mean cost of the labels with
        the least expected cost by `predict_proba`, those of ``predict(X, loss=cost)`` for isbor's models. So
        classifiers of any package can be compared by what their probabilities are worth.

    Returns
    -------
    OrdinalScorer
        Called as ``scorer(estimator, X, y, sample_weight=None)``.

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
    >>> cost = [[0, 1, 2], [1, 0, 1], [9, 4, 0]]  # to miss the highest class is dear
    >>> scores = cross_val_score(LogisticRegression(), X, y, scoring=get_scorer("cost", cost=cost))
    >>> bool(scores.max() < 0)
    True
    """
    if name not in _ENTRIES:
        within = [known for known, entry in _ENTRIES.items() if str(name) in entry.metric.__name__]
        close = within[:1] or difflib.get_close_matches(str(name), _ENTRIES, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"There is no scorer {name!r}.{hint} The names are {', '.join(_ENTRIES)}.")
    if (name == _COST) != (cost is not None):
        found = "needs cost=, the matrix cost[true, predicted]" if cost is None else "takes no cost="
        raise ValueError(f"The scorer {name!r} {found}. Pass get_scorer('cost', cost=…).")
    return OrdinalScorer(name, None if labels is None else tuple(np.asarray(labels).tolist()), cost=cost)


def scorer_names() -> list[str]:
    """Return the names of all scorers that need nothing else, see `get_scorer`: all but "cost".

    Examples
    --------
    >>> "rps" in scorer_names()
    True
    """
    return [name for name in _ENTRIES if name != _COST]


def _fitted_classes(estimator: Any) -> LabelArray:
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        raise TypeError(
            f"{type(estimator).__name__} has no classes_; a fitted classifier is needed. Fit it first, or "
            "use a classifier instead of a regressor."
        )
    return np.asarray(classes)


def _scoring_order(estimator: Any, classes: LabelArray, y: object, name: str) -> LabelArray:
    """Return the order of the estimator's classes together with the labels of y.

    Most classifiers sort strings alphabetically. So an order is looked for in y, and in what the estimator
    was given. If there is none, the score `name` must not depend on it.
    """
    if classes.dtype.kind in "OUT":
        try:
            return ordered_union(encode_labels(y).classes, classes)
        except ValueError:  # plain strings, or an order that lacks a class of the estimator
            pass
        given = given_order(estimator)
        if given is not None:
            classes = ordered_union(np.asarray(given), classes)
        elif _ENTRIES[name].has_order and _is_alphabetical(classes) and not may_declare_order(estimator):
            raise ValueError(
                f"The classes_ of {type(estimator).__name__} are strings in alphabetical order, "
                f"{classes.tolist()}; the score {name!r} needs their own order. Pass get_scorer({name!r}, "
                "labels=[…]) with all labels, lowest first, or make y an ordered categorical."
            )
    return union_order(classes, y)


def _is_alphabetical(classes: LabelArray) -> bool:
    """Return whether strings may have been sorted; of two, scores do not depend on which is the lower."""
    labels = classes.tolist()
    return len(labels) > 2 and all(isinstance(label, str) for label in labels) and labels == sorted(labels)
