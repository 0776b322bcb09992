"""Tables of numbers in memory, whose rows become double precision some at a time.

A fit and a prediction compute in double precision, and they know zeros of a sparse matrix as numbers like any
others. But an array in single precision would take twice its memory in double precision, and a sparse matrix
a hundred times its memory with all its zeros. So large tables of numbers stay as they are, and what reads
their rows takes a block of them. Each number in single precision is one in double precision, so results are
the same to the last bit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse

from isbor._core.types import IntArray
from isbor.data.features import feature_names
from isbor.data.frames import data_frame, holds_numbers

__all__ = ["NumberTable", "as_csr", "rows_at_once"]

_MOST_ROWS = 65_536
_MOST_CELLS = 8_000_000  # 64 MB in double precision


def rows_at_once(n_columns: int) -> int:
    """Return how many rows are read at once from a table in memory."""
    return max(1, min(_MOST_ROWS, _MOST_CELLS // max(n_columns, 1)))


def as_csr(X: Any) -> Any:
    """Return a sparse matrix of any format by rows; one that is stored by rows is returned as it is."""
    if X.ndim != 2:
        raise ValueError(
            f"X is a sparse array of shape {X.shape}; rows and columns are needed. "
            "Reshape it: X.reshape(1, -1) is a single row."
        )
    return X.tocsr()


@dataclass(frozen=True, slots=True)
class NumberTable:
    """A table of numbers as it is in memory."""

    values: Any  # (n, d) array, sparse matrix by rows, or data frame without categories
    names: tuple[str, ...] | None  # of the features, if they have any

    @classmethod
    def of(cls, X: Any) -> Self | None:
        """Return a table of numbers; None for tables that are read as a whole, such as lists."""
        if issparse(X) or isinstance(X, np.ndarray):
            if X.ndim != 2 or X.dtype.kind not in "fiub" or 0 in X.shape:
                return None
            return cls(as_csr(X) if issparse(X) else X, None)
        frame = data_frame(X)
        if frame is None or 0 in frame.shape or not holds_numbers(frame):
            return None
        return cls(frame, feature_names(frame))

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def __getitem__(self, rows: slice | IntArray) -> Any:
        """Return some rows, as they are in memory."""
        return self.values[rows]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        n, d = self.values.shape
        return int(n), int(d)

    @property
    def is_sparse(self) -> bool:
        """Whether zeros take no memory."""
        return bool(issparse(self.values))

    @property
    def is_frame(self) -> bool:
        """Whether it is a data frame."""
        return not (self.is_sparse or isinstance(self.values, np.ndarray))

    def blocks(self) -> Iterator[slice]:
        """Yield the rows that are read at once."""
        size = rows_at_once(self.shape[1])
        for first in range(0, len(self), size):
            yield slice(first, first + size)
