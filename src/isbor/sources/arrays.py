"""Arrays in memory or in a memory map and sparse matrices, sliced where they are."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scipy.sparse import issparse

from isbor.data.blocks import Block
from isbor.data.numbers import as_csr, rows_at_once
from isbor.sources.errors import SourceError, rows_text
from isbor.sources.passes import number_of_rows

__all__ = ["ArraySlices", "open_arrays", "slice_block", "sliceable"]


@dataclass(frozen=True, slots=True)
class ArraySlices:
    """Rows of X, and the same rows of y and weight if there are any."""

    X: Any
    y: Any | None
    weight: Any | None
    block_rows: int

    def blocks(self) -> Iterator[Block]:
        """Yield all rows, block by block, as slices."""
        total = number_of_rows(self.X)
        for first in range(0, total, self.block_rows):
            stop = min(first + self.block_rows, total)
            where = rows_text(first, stop - first)
            yield slice_block(self.X, self.y, self.weight, first, stop, first, where)


def open_arrays(X: object, y: object, weight: object, block_rows: int) -> ArraySlices:
    """Check that arrays have the same number of rows."""
    X, block_rows = sliceable(X, block_rows)
    total = number_of_rows(X)
    for name, part in (("y", y), ("weight", weight)):
        if part is not None and number_of_rows(part) != total:
            raise SourceError(
                f"X has {total} rows and {name} has {number_of_rows(part)}; both need the same number. "
                "Check how they were made."
            )
    return ArraySlices(X, y, weight, block_rows)


def sliceable(X: Any, block_rows: int) -> tuple[Any, int]:
    """Return X such that its rows can be sliced, and the most rows of a block.

    Blocks of a sparse matrix are so small that they fit in memory with their zeros.
    """
    if not issparse(X):
        return X, block_rows
    X = as_csr(X)
    return X, min(block_rows, rows_at_once(X.shape[1]))


def slice_block(X: Any, y: Any, weight: Any, start: int, stop: int, first: int, where: str) -> Block:
    """Return the rows from `start` to before `stop` as a block whose first row has the number `first`."""
    cut = [None if part is None else _rows(part, start, stop) for part in (X, y, weight)]
    return Block(cut[0], cut[1], cut[2], first, where)


def _rows(table: Any, first: int, stop: int) -> Any:
    """Return rows of an array, list, data frame or column without copying them, where it can be."""
    if hasattr(table, "iloc"):  # pandas
        return table.iloc[first:stop]
    if hasattr(table, "slice"):  # polars, pyarrow
        return table.slice(first, stop - first)
    return table[first:stop]
