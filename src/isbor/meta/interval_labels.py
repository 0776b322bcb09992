"""`IntervalLabelClassifier`: labels of which only a range is known, for any classifier."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state, indexable
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.validation import check_is_fitted

from isbor._core.tables import columns_like
from isbor._core.types import BoolArray, FloatArray, IntArray, LabelArray
from isbor._core.warnings import warn_user
from isbor.data.frames import take_rows
from isbor.data.intervals import read_intervals
from isbor.data.labels import OrderedLabels, rank_labels
from isbor.data.training import check_lengths
from isbor.data.weights import check_sample_weight
from isbor.estimators.parameters import (
    POSITIVE,
    RANDOM_STATE,
    Allowed,
    check_parameters,
    integer,
)
from isbor.meta.routing import Passed, router_of
from isbor.meta.self_consistency import class_frequencies, within
from isbor.meta.table import (
    Folds,
    LabelledTable,
    ordered_proba,
    random_folds,
    set_features,
    stratified_folds,
    tags_of_inside,
)
from isbor.metrics.declared_order import given_order

__all__ = ["IntervalLabelClassifier"]

_FAINT = 0.05  # of the weight of intervals, in the first round


class IntervalLabelClassifier(ClassifierMixin, BaseEstimator):
    r"""Labels of which only a range is known ("2 or 3", "at least 4"), for any classifier of ordered classes.

    ``fit(X, y)`` takes pairs (lower, upper): (2, 3), (4, None), and (2, 2) for the label 2. The classifier is
    fitted to a table in which a row occurs once for each class of its interval, weighted with the probability
    of this class given features and interval, and refitted until these weights stay as they are.

    Parameters
    ----------
    estimator : classifier with `predict_proba`
        `ISBOR`, another estimator of isbor, any classifier of scikit-learn or a pipeline of these. Its `fit`
        must take `sample_weight`.
    cv : int, splitter, iterable of splits or None, default=5
        Folds of the probabilities that become weights: a row gets them from a classifier that was fitted
        without it. A number is that of random folds of the intervals; known labels are in all training parts.
        Rows that belong together must stay together: ``list(GroupKFold(5).split(X, y, groups))``. None: from
        a classifier fitted to all rows, so that a round takes one fit instead of `cv`. For models of few
        parameters this is the EM algorithm, which finds the maximum of the likelihood of the intervals. Trees
        of full depth, and other models that fit every training row, then only confirm the first guess.
    max_iter : int, default=10
        Largest number of rounds, in which weights are computed. A warning is issued if it is reached.
    tol : float, default=0.05
        The rounds end if less than this share of the weight of an interval moves to other classes, on
        average. Models that select something, or draw at random, move about 0.02 from then on. For the
        maximum of the likelihood of a linear model to some digits, set 1e-6, with cv=None and a larger
        `max_iter`.
    classes : sequence of labels, default=None
        All labels, lowest first. Needed for strings, unless the estimator has its own or the ends are ordered
        categoricals, and for classes that are no end of any interval. It is passed on to an estimator inside
        that has the parameter and leaves it None.
    random_state : int, RandomState or None, default=0
        Draws the folds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in order.
    estimator_ : classifier
        The classifier, fitted to all rows and the final weights.
    label_distributions_ : ndarray of shape (n_samples, n_classes)
        Probabilities of the classes for each row of `fit`, given its features and its interval.
    n_iter_ : int
        Number of rounds. The fits are `cv` times as many, and a last one to all rows.
    n_features_in_, feature_names_in_
        As in scikit-learn, if the classifier has them.

    See Also
    --------
    isbor.from_ratings : Several labels for the same item.
    isbor.meta.suspicious_labels : Labels that are probably wrong.

    Notes
    -----
    It is assumed that an interval is as likely to be reported for each label in it: who says "at least 4"
    says it as often for 4 as for 5. This holds for scales that end early and for answers that were merged
    later, whichever labels these were. It does not hold if "2 or 3" mostly means a 3. Rows of known labels
    alone are often a biased sample: if only high labels are uncertain, they are rare among known ones.

    Intervals that have all classes, such as (None, None), say nothing and do not enter the fit.

    The classifier takes a weighted row for an observed one. Bands (`ISBOR.predict_proba_interval` of
    `estimator_`) and the log evidence are those of as many known labels: bands are too narrow.

    scikit-learn's tools cannot tell the kind of labels with missing ends: pass them a splitter, such as
    ``cross_val_score(model, X, y, cv=KFold(5))``, instead of a number.

    `isbor.meta.self_consistency` has the mathematics.

    References
    ----------
    B. W. Turnbull, "The Empirical Distribution Function with Arbitrarily Grouped, Censored and Truncated
    Data", Journal of the Royal Statistical Society B, 1976.

    Examples
    --------
    >>> from isbor.estimators.linear import OrderedProbit
    >>> from isbor.meta import IntervalLabelClassifier
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
    >>> y = [(1, 1), (1, 2), (1, 1), (2, 2), (2, None), (3, 3)]
    >>> model = IntervalLabelClassifier(OrderedProbit(), cv=None).fit(X, y)
    >>> bool(model.label_distributions_[1, 0] > 0.9)  # "1 or 2", between two rows of label 1
    True
    """

    classes_: LabelArray
    estimator_: Any
    label_distributions_: FloatArray
    n_iter_: int
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    _allowed: ClassVar[dict[str, Allowed]] = {
        "max_iter": integer(at_least=1),
        "tol": POSITIVE,
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        estimator: Any,
        *,
        cv: Any = 5,
        max_iter: int = 10,
        tol: float = 0.05,
        classes: Sequence[Any] | LabelArray | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.max_iter = max_iter
        self.tol = tol
        self.classes = classes
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, **params: Any) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows, as the estimator takes them.
        y : array-like or data frame of shape (n_samples, 2), or array-like of shape (n_samples,)
            The lowest and the highest label that a row may have. None, NaN or an infinite number is an open
            end. With one dimension, labels that are known.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; in a pipeline, for its last step.
        **params
            With scikit-learn's metadata routing, what else the estimator and the splitter `cv` request, such
            as `groups`.

        Returns
        -------
        self : object
        """
        check_parameters(self, self._allowed)
        passed = Passed.from_fit(self, sample_weight, params)
        table = _IntervalTable.read(self.estimator, X, y, self.classes, sample_weight, passed)
        folds = self._folds(table)
        share = table.first
        for n_iter in range(1, self.max_iter + 1):
            interval_weight = _FAINT if n_iter == 1 else 1.0
            before, share = share, table.next_shares(self.estimator, share, folds, interval_weight)
            change = 0.5 * float(np.abs(share - before).sum()) / max(len(table.open), 1)
            if change <= self.tol:
                break
        else:
            warn_user(
                f"The weights of intervals still moved by {change:.2g} on average in round {n_iter}: raise "
                "max_iter, or tol if this is exact enough.",
                ConvergenceWarning,
            )
        self.n_iter_ = n_iter
        self.estimator_ = table.fit(self.estimator, share)
        self.classes_, self.label_distributions_ = table.classes, share
        set_features(self, self.estimator_)
        return self

    def _folds(self, table: "_IntervalTable") -> Folds:
        """Return training rows and rows that get weights."""
        everything = np.arange(len(table.inside))
        if self.cv is None or not len(table.open):
            return [(everything, table.open)]
        random = check_random_state(self.random_state)
        if not isinstance(self.cv, Integral):
            given = random_folds(table.kind, self.cv, random, table.passed)
            return [(training, np.intersect1d(held_out, table.open)) for training, held_out in given]
        folds = stratified_folds(
            table.kind[table.open], min(int(self.cv), len(table.open)), random, table.passed
        )
        held_out_rows = [table.open[held_out] for _, held_out in folds]
        return [(np.setdiff1d(everything, held_out), held_out) for held_out in held_out_rows]

    def predict(self, X: ArrayLike) -> LabelArray:
        """Predict labels: those of the classifier.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        labels: LabelArray = self.estimator_.predict(X)
        return labels

    def predict_proba(self, X: ArrayLike, *, as_frame: bool = False) -> Any:
        """Predict class probabilities: those of the classifier.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.
        as_frame : bool, default=False
            Whether to return a data frame with the classes as columns, of the library of X.

        Returns
        -------
        proba : ndarray or data frame of shape (n_samples, n_classes)
            P(y = k) for each row and class, with columns as in `classes_`.
        """
        check_is_fitted(self)
        proba = ordered_proba(self.estimator_, X, self.classes_)
        return columns_like(X, proba, self.classes_) if as_frame else proba

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of rows whose predicted label lies in their interval.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.
        y : array-like or data frame of shape (n_samples, 2), or array-like of shape (n_samples,)
            Intervals or labels, as in `fit`. For labels, this is the accuracy.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
        """
        predicted = rank_labels(self.predict(X), self.classes_)
        intervals = read_intervals(y, self.classes_)
        hit = (intervals.lower <= predicted) & (predicted <= intervals.upper)
        weight = check_sample_weight(sample_weight, len(intervals))
        return float(weight @ hit / weight.sum())

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how arguments of `fit` reach the estimator and the splitter, see scikit-learn's user guide.

        Returns
        -------
        routing : MetadataRouter
        """
        return router_of(self)

    def __sklearn_tags__(self) -> Tags:
        return tags_of_inside(super().__sklearn_tags__(), self.estimator)


@dataclass(frozen=True, slots=True)
class _IntervalTable:
    """Rows with intervals of labels, and a table with a copy of each row for each class of its interval."""

    X: Any
    classes: LabelArray  # (r,)
    inside: BoolArray  # (n, r) whether a row may have a class
    is_open: BoolArray  # (n,) whether it may have several
    first: FloatArray  # (n, r) P(k | interval) from the class frequencies alone
    row: IntArray  # (m,) row number of each copy
    copies: LabelledTable  # with the user's weights, if any; without rows that may have all classes
    passed: Passed  # besides rows and labels

    @property
    def open(self) -> IntArray:
        """Row numbers of intervals of several classes."""
        return np.flatnonzero(self.is_open)

    @property
    def kind(self) -> IntArray:
        """Number of the interval of each row, (n,)."""
        kind: IntArray = np.unique(self.inside, axis=0, return_inverse=True)[1].ravel()
        return kind

    @classmethod
    def read(
        cls,
        estimator: Any,
        X: object,
        y: object,
        classes: Sequence[Any] | LabelArray | None,
        sample_weight: ArrayLike | None,
        passed: Passed,
    ) -> Self:
        """Read intervals and weights; the rows are left to the classifier inside."""
        intervals = read_intervals(y, given_order(estimator) if classes is None else classes)
        check_lengths(X, intervals.lower)
        is_open = intervals.lower < intervals.upper
        inside = intervals.inside
        informative = ~(is_open & inside.all(axis=1))
        if not informative.any():
            raise ValueError(
                f"All {len(intervals)} intervals in y have all of the classes {intervals.classes.tolist()} "
                "and say nothing. Check the two columns, or name all classes in classes=."
            )
        weight = check_sample_weight(sample_weight, len(intervals))
        frequency = class_frequencies(inside, np.where(informative, weight, 0.0))
        first = within(frequency[None], inside, inside / len(frequency))
        table, (row, code) = indexable(X)[0], np.nonzero(inside & informative[:, None])
        copies = LabelledTable(
            take_rows(table, row),
            OrderedLabels(intervals.classes, code, intervals.given_order),
            None if sample_weight is None and not is_open.any() else weight[row],
            passed.of_rows(row, len(intervals)),
        )
        return cls(table, intervals.classes, inside, is_open, first, row, copies, passed)

    def next_shares(
        self, estimator: Any, share: FloatArray, folds: Folds, interval_weight: float
    ) -> FloatArray:
        """Return P(k | features, interval), by classifiers fitted to the training rows of the folds."""
        proba = np.zeros(share.shape)
        for training, held_out in folds:
            if len(held_out):
                model = self.fit(estimator, share, training, interval_weight)
                proba[held_out] = ordered_proba(model, take_rows(self.X, held_out), self.classes)
        following = share.copy()
        following[self.open] = within(proba, self.inside, self.first)[self.open]
        return following

    def fit(
        self,
        estimator: Any,
        share: FloatArray,
        rows: IntArray | None = None,
        interval_weight: float = 1.0,
    ) -> Any:
        """Return a clone of the estimator, fitted to the copies of all or some rows with these shares."""
        of_row = np.ones(len(share)) if rows is None else np.bincount(rows, minlength=len(share)) > 0.0
        of_row = np.where(self.is_open, interval_weight, 1.0) * of_row
        of_copy = of_row[self.row] * share[self.row, self.copies.labels.codes]
        copies, counted = self.copies, np.flatnonzero(of_copy)
        if copies.weight is not None:
            copies = replace(copies, passed=copies.passed.with_weights(estimator, copies.weight * of_copy))
        return copies.fit(estimator, counted)
