"""The order of the classes that a fitted classifier predicts: scikit-learn's classifiers sort strings."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from isbor._core.types import FloatArray, LabelArray
from isbor.data.labels import encode_labels, rank_labels

__all__ = ["class_order", "forecast_of"]

Classes = Sequence[Any] | LabelArray


def class_order(known: LabelArray, y: object, classes: Classes | None) -> Classes:
    """Return the order of the classes: as given, that of y if it has one, or that of the estimator."""
    if classes is not None:
        return classes
    if np.asarray(known).dtype.kind in "OUT":
        try:
            return encode_labels(y).classes
        except ValueError:  # plain strings
            pass
    return known


def forecast_of(
    estimator: Any, X: ArrayLike, y: object, classes: Classes | None, display: str
) -> tuple[FloatArray, Classes]:
    """Return the class probabilities of a fitted classifier with columns in order, and the order."""
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"{type(estimator).__name__} has no predict_proba; a fitted classifier that predicts "
            f"probabilities is needed. For probabilities from another source, use {display}.from_predictions."
        )
    check_is_fitted(estimator)
    order = class_order(estimator.classes_, y, classes)
    try:
        columns = rank_labels(estimator.classes_, order)
    except ValueError as error:
        raise ValueError(f"{error} (Here y is the estimator's classes_.)") from error
    given = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    proba = np.zeros((len(given), len(order)))  # 0 for a class that the estimator does not know
    proba[:, columns] = given
    return proba, order
