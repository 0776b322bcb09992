"""Functions by the features they use, as compiled code draws, compares and improves them.

A proposal uses a few of many features, so this takes less time and memory than the matrices of
`isbor.model.basis.Functions`.
"""

from typing import NamedTuple, Self

import numpy as np

from isbor._core.types import BoolArray, FloatArray, IntArray
from isbor.model.basis import Functions

__all__ = ["Entries"]


class Entries(NamedTuple):
    """m functions: entry k, of first[j] ≤ k < first[j + 1], belongs to function j."""

    first: IntArray  # (m + 1,) first entry of each function
    column: IntArray  # (k,)
    centre: FloatArray  # (k,) z
    metric: FloatArray  # (k,) θ
    ramp: BoolArray  # (m,)
    origin: IntArray  # (m,) the training row on which each function was first centred
    cost: FloatArray  # (m,) in units of the size prior

    @classmethod
    def of(cls, functions: Functions) -> Self:
        """Return functions that are given by matrices."""
        used = functions.metric != 0.0
        return cls(
            np.concatenate([[0], np.cumsum(used.sum(axis=1))]),
            np.ascontiguousarray(np.nonzero(used)[1]),
            functions.centres[used],
            functions.metric[used],
            functions.ramp.copy(),
            np.array(functions.origin, dtype=np.intp),
            functions.cost.copy(),
        )

    @property
    def n_functions(self) -> int:
        """Number of functions, m."""
        return len(self.origin)

    def functions(self, X: FloatArray) -> Functions:
        """Return the functions as matrices, for training rows X. They are not centred."""
        m = self.n_functions
        used = np.repeat(np.arange(m), np.diff(self.first)), self.column
        centres, metric = X[self.origin], np.zeros((m, X.shape[1]))
        centres[used], metric[used] = self.centre, self.metric
        return Functions(centres, metric, self.ramp, np.zeros(m), self.origin, self.cost)

    def take(self, chosen: IntArray) -> Self:
        """Return the chosen functions."""
        size = np.diff(self.first)[chosen]
        first = np.concatenate([[0], np.cumsum(size)])
        entries = np.repeat(self.first[chosen] - first[:-1], size) + np.arange(first[-1])
        return type(self)(
            first,
            self.column[entries],
            self.centre[entries],
            self.metric[entries],
            self.ramp[chosen],
            self.origin[chosen],
            self.cost[chosen],
        )

    def followed_by(self, others: "Entries") -> Self:
        """Return these functions followed by the others."""
        first = np.concatenate([self.first, self.first[-1] + others.first[1:]])
        _, *rest = (np.concatenate(pair) for pair in zip(self, others, strict=True))
        return type(self)(first, *rest)
