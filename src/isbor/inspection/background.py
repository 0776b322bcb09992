"""Training rows that a fitted model keeps: what rows are compared with when their scores are explained.

Canonical rows are in an order in which every prefix is a stratified sample (`isbor.data.rows`). So the first
rows, with their weights, stand for all of them, and so do fewer of them.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from isbor._core.types import FloatArray
from isbor.data.training_set import TrainingSet

__all__ = ["Background"]

_ROWS = 500


@dataclass(frozen=True, slots=True)
class Background:
    """A sample of encoded rows, and the ranges of the columns of the table from which it comes."""

    X: FloatArray  # (n, d) encoded
    share: FloatArray  # (n,) of each row in a mean, of sum 1
    low: FloatArray  # (d,) smallest and largest value of each encoded column
    high: FloatArray

    @classmethod
    def of_training(cls, training: TrainingSet) -> Self:
        """Return the rows that a model keeps of its training rows."""
        X, weight = training.encoded(slice(_ROWS)), training.rows.weight[:_ROWS]
        return cls(X, weight / weight.sum(), *training.ranges)

    @classmethod
    def of_rows(cls, X: FloatArray) -> Self:
        """Return a sample of encoded rows that count alike."""
        return cls(X, np.full(len(X), 1.0 / len(X)), X.min(axis=0), X.max(axis=0))

    def head(self, n: int) -> "Background":
        """Return the first n rows, which are a sample as well."""
        share = self.share[:n]
        return Background(self.X[:n], share / share.sum(), self.low, self.high)
