"""The range of the training rows, and how far outside of it a row lies."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from isbor._core.types import BoolArray, FloatArray, IntArray

__all__ = ["Ranges"]


@dataclass(frozen=True, slots=True)
class Ranges:
    """Smallest and largest value of each column that counts."""

    columns: IntArray
    low: FloatArray  # of these columns
    high: FloatArray

    @classmethod
    def of(cls, low: FloatArray, high: FloatArray, counted: BoolArray) -> Self:
        """Return the ranges, (d,), of the `counted` encoded columns that are not constant."""
        columns = np.flatnonzero(counted & (low < high))
        return cls(columns, low[columns], high[columns])

    def excess(self, X: FloatArray) -> FloatArray:
        """Return for each row how far its farthest column is outside, in widths of the range; 0 inside."""
        farthest = np.zeros(len(X))
        with np.errstate(over="ignore"):
            for column, low, high in zip(self.columns, self.low, self.high, strict=True):
                # Halves, because the width of the range may be beyond the largest number.
                half = 0.5 * X[:, column]
                outside = np.maximum(0.5 * low - half, half - 0.5 * high)
                width = max(0.5 * high - 0.5 * low, np.finfo(float).tiny)
                np.maximum(farthest, outside / width, out=farthest)
        return farthest
