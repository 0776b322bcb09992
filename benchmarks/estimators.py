"""Estimators that the studies compare with, in the form that an experiment expects.

It counts the rows in `support_`, and takes `predict_proba` at its word.
"""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from skordinal import classifiers

from isbor._core.types import FloatArray, IntArray
from isbor.datasets import saddle_labels

__all__ = ["KDLOR", "SVOR", "TrueSaddle"]


class _KernelMachine(ClassifierMixin, BaseEstimator):
    """A machine of skordinal's; gamma is `width` divided by the number of columns."""

    width: float

    @abstractmethod
    def _unfitted(self, gamma: float) -> Any:
        """Return skordinal's estimator."""

    def fit(self, X: FloatArray, y: IntArray) -> Self:
        """Fit the machine."""
        self.machine_ = self._unfitted(self.width / X.shape[1]).fit(X, y)
        self.classes_ = self.machine_.classes_
        dual = getattr(self.machine_, "model_", None)
        self.support_ = np.arange(len(y)) if dual is None else np.flatnonzero(dual["alpha"])
        return self

    def predict(self, X: FloatArray) -> Any:
        """Return the machine's labels."""
        return self.machine_.predict(X)


class SVOR(_KernelMachine):
    """The support vector machine, with implicit constraints."""

    def __init__(self, C: float = 1.0, width: float = 1.0) -> None:
        self.C = C
        self.width = width

    def _unfitted(self, gamma: float) -> Any:
        return classifiers.SVOR(C=self.C, gamma=gamma)


class KDLOR(_KernelMachine):
    """The kernel discriminant, without its probabilities: by its documentation they are mere scores.

    Its C scales the score and leaves the labels as they are; the ridge u is what matters.
    """

    def __init__(self, u: float = 0.001, width: float = 1.0) -> None:
        self.u = u
        self.width = width

    def _unfitted(self, gamma: float) -> Any:
        return classifiers.KDLOR(u=self.u, gamma=gamma)


class TrueSaddle(ClassifierMixin, BaseEstimator):
    """The function that the saddle's labels are drawn from: nothing is better on average."""

    def fit(self, X: FloatArray, y: IntArray) -> Self:
        """Learn nothing but the labels."""
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: FloatArray) -> IntArray:
        """Return the labels of the score without noise, counted from 0."""
        return saddle_labels(10.0 * (X[:, 0] - 5.0) * (X[:, 1] - 5.0)) - 1
