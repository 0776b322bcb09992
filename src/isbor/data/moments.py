"""Moments and ranges of columns, which may be merged: those of a table follow from those of its blocks."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from isbor._core.types import FloatArray

__all__ = ["Moments", "steady"]

_STEPS = 2.0**30  # of the grid of means, in a unit


def steady(mean: float, squares: float) -> float:
    """Return a mean without the digits that depend on the order of the sum.

    It is rounded to a grid, 2⁻³⁰ of the root mean square wide; `squares` is the mean square.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        width = 2.0 ** np.round(0.5 * np.log2(squares)) / _STEPS
        rounded = np.round(mean / width) * width
    return float(rounded) if np.isfinite(rounded) and width > 0.0 else float(mean)


@dataclass(frozen=True, slots=True)
class Moments:
    """Moments and ranges of the numbers of d columns, without missing cells (NaN) and rows of weight 0."""

    weight: FloatArray  # (d,) total weight of the rows with a number
    mean: FloatArray  # (d,) 0 for a column without numbers
    squares: FloatArray  # (d,) weighted sum of squared deviations from the mean
    low: FloatArray  # (d,) infinity for a column without numbers
    high: FloatArray  # (d,)

    @classmethod
    def none(cls, n_columns: int) -> Self:
        """Return the moments of no rows."""
        nothing, infinite = np.zeros(n_columns), np.full(n_columns, np.inf)
        return cls(nothing, nothing, nothing, infinite, -infinite)

    @classmethod
    def of(cls, X: FloatArray, weight: FloatArray) -> Self:
        """Return the moments of the rows of X, (n, d), with these weights, (n,)."""
        counted = weight > 0.0
        if not counted.all():
            X, weight = X[counted], weight[counted]
        present = ~np.isnan(X)
        with np.errstate(over="ignore", invalid="ignore"):
            if present.all():
                total = np.full(X.shape[1], weight.sum())
                mean = (weight / max(total.max(initial=0.0), np.finfo(float).tiny)) @ X
                squares = weight @ np.square(X - mean)
                low = X.min(axis=0, initial=np.inf)
                high = X.max(axis=0, initial=-np.inf)
            else:
                total = weight @ present
                share = weight[:, None] * present / np.maximum(total, np.finfo(float).tiny)
                cells = np.where(present, X, 0.0)
                mean = np.einsum("nd,nd->d", share, cells)
                squares = weight @ np.where(present, np.square(cells - mean), 0.0)
                low = np.where(present, X, np.inf).min(axis=0, initial=np.inf)
                high = np.where(present, X, -np.inf).max(axis=0, initial=-np.inf)
        return cls(total, mean, squares, low, high)

    def merged(self, other: "Moments") -> "Moments":
        """Return the moments of the rows of both."""
        total = self.weight + other.weight
        share = other.weight / np.where(total > 0.0, total, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            step = other.mean - self.mean
            mean = np.where(self.weight > 0.0, self.mean + share * step, other.mean)
            between = np.square(step) * self.weight * share
            squares = self.squares + other.squares + np.where(np.isfinite(between), between, np.inf)
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return Moments(total, mean, squares, low, high)

    @property
    def varying(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether each column has two different numbers, (d,)."""
        return self.low < self.high

    @property
    def spread(self) -> FloatArray:
        """Standard deviation of each column, (d,); if it overflows, half the width of the range."""
        with np.errstate(over="ignore", invalid="ignore"):
            std = np.sqrt(self.squares / np.where(self.weight > 0.0, self.weight, 1.0))
            half = np.where(self.varying, 0.5 * self.high - 0.5 * self.low, 0.0)
        return np.where(np.isfinite(std), std, half)

    @property
    def mean_square(self) -> FloatArray:
        """Mean square of each column, (d,); infinite if it overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.squares / np.where(self.weight > 0.0, self.weight, 1.0) + np.square(self.mean)
