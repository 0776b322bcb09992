"""Baselines from other packages that predict the median, which minimises the absolute error."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from isbor._core.types import FloatArray, IntArray

__all__ = ["BoostedTrees", "median_class"]


def median_class(proba: FloatArray) -> IntArray:
    """Return the position of the lowest class whose cumulative probability is at least one half.

    It has the smallest expected absolute error.

    Examples
    --------
    >>> median_class([[0.4, 0.1, 0.5], [0.1, 0.2, 0.7]])  # in the first row the most probable class is 2
    array([1, 2])
    """
    below = np.cumsum(proba, axis=1, dtype=np.float64)[:, :-1] < 0.5
    position: IntArray = np.count_nonzero(below, axis=1)
    return position


class BoostedTrees(HistGradientBoostingClassifier):
    """scikit-learn's boosted trees, predicting the median class."""

    def predict(self, X: object) -> NDArray[Any]:
        """Return the lowest class whose cumulative probability is at least one half."""
        labels: NDArray[Any] = self.classes_[median_class(self.predict_proba(X))]
        return labels

    @property
    def n_functions_(self) -> int:
        """Number of trees."""
        return int(self.n_iter_ * self.n_trees_per_iteration_)
