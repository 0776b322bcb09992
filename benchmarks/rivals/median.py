"""A classifier of another package that predicts the median of its distribution.

Some packages accept no labels but 0 … r-1, without gaps; so labels are encoded first. Each fit has one thread
and a fixed seed. A parameter that is None has the default of its package.
"""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.experiments.description.baselines import median_class

__all__ = ["MedianClassifier"]


class MedianClassifier(ClassifierMixin, BaseEstimator):
    """Labels are encoded and the median class is predicted; the rest is done by the other package."""

    @abstractmethod
    def _unfitted(self) -> Any:
        """Return the package's classifier."""

    @abstractmethod
    def _size(self, fitted: Any) -> int:
        """Return the number of functions that the classifier sums or averages."""

    def fit(self, X: FloatArray, y: LabelArray) -> Self:
        """Fit the classifier."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.classifier_ = self._unfitted().fit(X, codes)
        self.n_functions_ = self._size(self.classifier_)
        return self

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Return the classifier's probabilities."""
        return np.asarray(self.classifier_.predict_proba(X), dtype=np.float64)

    def predict(self, X: FloatArray) -> LabelArray | IntArray:
        """Return the lowest class whose cumulative probability is at least one half."""
        return self.classes_[median_class(self.predict_proba(X))]

    def _given(self) -> dict[str, Any]:
        """Return the parameters that are not None."""
        return {name: value for name, value in self.get_params().items() if value is not None}
