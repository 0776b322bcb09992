"""Ordered labels as integers, for tools that would sort them otherwise."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from isbor._core.types import IntArray, LabelArray
from isbor.data.labels import encode_labels, rank_labels

__all__ = ["OrderedLabelEncoder"]


class OrderedLabelEncoder(BaseEstimator):
    """Encode ordered labels as the integers 0 … r-1, lowest first, and decode them.

    scikit-learn's `LabelEncoder` sorts strings alphabetically. So do many of its tools, before the estimator
    inside them sees the labels. Encode the labels here first: integers keep their order everywhere. A level
    without rows has its integer, too.

    Parameters
    ----------
    classes : sequence of labels, default=None
        All labels, lowest first. Needed for strings, unless y is an ordered categorical (pandas) or an `Enum`
        (polars), whose order is taken by default; numbers are sorted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in order.

    See Also
    --------
    from_ratings : Labels by several raters as rows to fit.
    sklearn.preprocessing.LabelEncoder : Labels without an order.

    Examples
    --------
    >>> from sklearn.ensemble import BaggingClassifier
    >>> from isbor import ISBOR, OrderedLabelEncoder
    >>> X = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]
    >>> y = ["low", "low", "medium", "medium", "high", "high"]
    >>> encoder = OrderedLabelEncoder(classes=["low", "medium", "high"])
    >>> codes = encoder.fit_transform(y)
    >>> codes.tolist()
    [0, 0, 1, 1, 2, 2]
    >>> model = BaggingClassifier(ISBOR(gamma=0.3), n_estimators=2, random_state=0)
    >>> predicted = model.fit(X, codes).predict(X)
    >>> set(encoder.inverse_transform(predicted)) <= set(y)
    True
    """

    classes_: LabelArray

    def __init__(self, *, classes: Sequence[Any] | LabelArray | None = None) -> None:
        self.classes = classes

    def fit(self, y: ArrayLike) -> Self:
        """Learn the order of the labels."""
        self.classes_ = encode_labels(y, self.classes).classes
        return self

    def fit_transform(self, y: ArrayLike) -> IntArray:
        """Learn the order of the labels, and return the position of each in it."""
        return self.fit(y).transform(y)

    def transform(self, y: ArrayLike) -> IntArray:
        """Return the position, 0 … r-1, of each label in `classes_`."""
        check_is_fitted(self)
        return rank_labels(y, self.classes_)

    def inverse_transform(self, codes: ArrayLike) -> LabelArray:
        """Return the labels at the positions, for instance at those that a model predicts."""
        check_is_fitted(self)
        positions, n_classes = np.asarray(codes), len(self.classes_)
        known = np.isin(positions, np.arange(n_classes)) & (positions.dtype.kind in "iu")
        if not known.all():
            raise ValueError(
                f"codes holds {positions[~known][0].item()!r}; integers from 0 to {n_classes - 1}, the "
                f"positions of the {n_classes} classes, are needed. Pass what transform returned, or what a "
                "model that was fitted to it predicts."
            )
        labels: LabelArray = self.classes_[positions.astype(np.intp)]
        return labels
