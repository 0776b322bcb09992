"""Rows with ordered labels, as classifiers inside a meta-estimator see them.

A classifier inside gets the labels as the user passed them. If their order was given, by ``classes=`` or by
an ordered categorical, it is passed on to classifiers inside that have a parameter ``classes`` and leave it
None. scikit-learn's classifiers sort their ``classes_``, and a fold may lack a class: columns of
``predict_proba`` are put in order, with zeros for classes that the classifier has not seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import Tags, get_tags, indexable

from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.data.folds import fold_numbers
from isbor.data.frames import take_rows
from isbor.data.labels import OrderedLabels, encode_labels, ordered_union, rank_labels
from isbor.data.training import check_lengths
from isbor.data.weights import check_sample_weight
from isbor.meta.routing import Passed
from isbor.metrics.arguments import spread_columns
from isbor.metrics.declared_order import class_parameters, given_order

__all__ = [
    "Folds",
    "LabelledTable",
    "ordered_proba",
    "random_folds",
    "set_features",
    "stratified_folds",
    "tags_of_inside",
]

Folds: TypeAlias = list[tuple[IntArray, IntArray]]  # training rows and held-out rows


@dataclass(frozen=True, slots=True)
class LabelledTable:
    """Rows, their labels in order, and weights."""

    X: Any
    labels: OrderedLabels
    weight: FloatArray | None  # (n,)
    passed: Passed  # besides rows and labels

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
        """Read labels and weights; the rows are left to the classifier inside."""
        if not hasattr(estimator, "get_params"):
            raise TypeError(
                f"estimator is of type {type(estimator).__name__}; a classifier with predict_proba is "
                "needed, such as ISBOR(). Check the order of the arguments."
            )
        labels = encode_labels(y, given_order(estimator) if classes is None else classes)
        check_lengths(X, labels.codes)
        weight = None if sample_weight is None else check_sample_weight(sample_weight, len(labels.codes))
        return cls(indexable(X)[0], labels, weight, passed)

    def __len__(self) -> int:
        return len(self.labels.codes)

    @property
    def counted(self) -> IntArray:
        """Rows of positive weight."""
        return np.arange(len(self)) if self.weight is None else np.flatnonzero(self.weight)

    def fit(self, estimator: Any, rows: IntArray | None = None) -> Any:
        """Return a clone of the estimator, fitted to all or some rows."""
        model = clone(estimator)
        if self.labels.given_order:
            unset = [key for key, value in class_parameters(model).items() if value is None]
            model.set_params(**dict.fromkeys(unset, self.labels.classes.tolist()))
        rows = np.arange(len(self)) if rows is None else rows
        y = self.labels.classes[self.labels.codes[rows]]
        return model.fit(take_rows(self.X, rows), y, **self.passed.of_rows(rows, len(self)).fit)

    def proba(self, model: Any, rows: IntArray) -> FloatArray:
        """Return class probabilities of some rows, with columns in order."""
        if not len(rows):
            return np.empty((0, len(self.labels.classes)))
        return ordered_proba(model, take_rows(self.X, rows), self.labels.classes)

    def cross_fitted(self, estimator: Any, folds: Folds) -> FloatArray:
        """Return the probabilities of each row by a classifier that has not seen it, (n, r)."""
        proba = np.empty((len(self), len(self.labels.classes)))
        for training, held_out in folds:
            proba[held_out] = self.proba(self.fit(estimator, training), held_out)
        return proba

    def with_classes_of(self, model: Any) -> Self:
        """Add the classes of a fitted classifier that no row here has."""
        classes = ordered_union(self.labels.classes, model.classes_)
        codes = rank_labels(self.labels.classes, classes)[self.labels.codes]
        return replace(self, labels=OrderedLabels(classes, codes, self.labels.given_order))


def ordered_proba(model: Any, X: object, classes: LabelArray) -> FloatArray:
    """Return the class probabilities of a fitted classifier with columns in the order of `classes`."""
    return spread_columns(np.asarray(model.predict_proba(X), dtype=np.float64), model.classes_, classes)


def random_folds(codes: IntArray, cv: Any, random: np.random.RandomState, passed: Passed) -> Folds:
    """Return folds: as given, or `cv` of equal size, drawn at random whatever the labels are."""
    if not isinstance(cv, Integral):
        return _given_folds(codes, cv, passed)
    return _folds_of(random.permutation(len(codes)) % _number(len(codes), int(cv)))


def stratified_folds(codes: IntArray, cv: Any, random: np.random.RandomState, passed: Passed) -> Folds:
    """Return folds: as given, or `cv` drawn at random with about the same class frequencies."""
    if not isinstance(cv, Integral):
        return _given_folds(codes, cv, passed)
    n_rows = len(codes)
    order = random.permutation(n_rows)
    number = np.empty(n_rows, dtype=np.intp)
    number[order] = np.maximum(fold_numbers(codes[order], _number(n_rows, int(cv))), 0)
    return _folds_of(number)


def set_features(meta: Any, model: Any) -> None:
    """Set what scikit-learn's estimators tell of features, as far as the fitted classifier inside does."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(meta, name, getattr(model, name))
        elif name in vars(meta):
            delattr(meta, name)


def tags_of_inside(tags: Tags, estimator: Any) -> Tags:
    """Return tags with the input that the classifier inside takes."""
    inside = get_tags(estimator).input_tags
    tags.input_tags.allow_nan, tags.input_tags.sparse = inside.allow_nan, inside.sparse
    return tags


def _number(n_rows: int, cv: int) -> int:
    if n_rows < cv:
        raise ValueError(
            f"cv is {cv}, more than the rows (n_samples={n_rows}). Lower cv to at most their number."
        )
    return cv


def _folds_of(number: IntArray) -> Folds:
    return [(np.flatnonzero(number != k), np.flatnonzero(number == k)) for k in np.unique(number)]


def _given_folds(codes: IntArray, cv: Any, passed: Passed) -> Folds:
    """Return the folds of a splitter of scikit-learn or an iterable of splits."""
    n_rows = len(codes)
    splits = check_cv(cv).split(np.zeros((n_rows, 1)), codes, **passed.split)
    folds = [(np.asarray(training), np.asarray(held_out)) for training, held_out in splits]
    times = np.bincount(np.concatenate([held_out for _, held_out in folds]), minlength=n_rows)
    if len(times) != n_rows or np.any(times != 1):
        raise ValueError(
            f"cv holds out some of the {n_rows} rows {times.min()} and some {times.max()} times; every row "
            "must be held out once. Pass a number of folds, a splitter such as KFold, or for groups "
            "list(GroupKFold(5).split(X, y, groups))."
        )
    return folds
