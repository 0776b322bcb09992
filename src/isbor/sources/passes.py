"""Check that a table gives the same rows each time it is read.

A fit adds up over all rows again and again. If a query or a function gives other rows in a later pass, the
result is wrong without a sign. So the number of rows is compared in each pass, and the first few rows where
nothing else vouches for them.
"""

from collections.abc import Callable, Iterator
from typing import Any

import narwhals as nw
import numpy as np

from isbor.data.blocks import Block
from isbor.sources.errors import SourceError

__all__ = ["RereadTable", "number_of_rows"]

_COMPARED = 20  # rows: enough to notice another order of rows


class RereadTable:
    """A table that is read by a function, anew for each pass.

    Parameters
    ----------
    read : callable
        Returns the blocks of a new pass.
    name : str
        What messages call the table.
    remedy : str
        What to do if a pass gives other rows than the one before.
    compare_rows : bool
        Whether to compare the first rows too; else only their number.
    """

    def __init__(
        self, read: Callable[[], Iterator[Block]], name: str, remedy: str, *, compare_rows: bool
    ) -> None:
        self._read = read
        self._name = name
        self._remedy = remedy
        self._compare_rows = compare_rows
        self._n_rows: int | None = None  # once a pass is complete
        self._first_rows: list[str] | None = None

    def __repr__(self) -> str:
        rows = "" if self._n_rows is None else f" with {self._n_rows} rows"
        return f"<{self._name}{rows}>"

    def blocks(self) -> Iterator[Block]:
        """Yield all rows, block by block, from the first one."""
        n_rows = 0
        for block in self._read():
            if n_rows == 0 and self._compare_rows:
                self._check_first_rows(block)
            n_rows += number_of_rows(block.X)
            if self._n_rows is not None and n_rows > self._n_rows:
                raise self._changed(f"at least {n_rows} rows in this pass, {self._n_rows} in the one before")
            yield block
        if self._n_rows is None:
            if n_rows == 0:
                raise SourceError(
                    f"The {self._name} has no rows; at least one is needed. "
                    "Check the files, or the filter that made it."
                )
            self._n_rows = n_rows
        elif n_rows != self._n_rows:
            raise self._changed(f"{n_rows} rows in this pass, {self._n_rows} in the one before")

    def _check_first_rows(self, block: Block) -> None:
        found = _first_rows(block)
        if self._first_rows is None:
            self._first_rows = found
        else:
            # A pass may be cut differently; what both have is compared.
            n = min(len(found), len(self._first_rows))
            if found[:n] != self._first_rows[:n]:
                raise self._changed("other first rows in this pass than in the one before")

    def _changed(self, found: str) -> SourceError:
        return SourceError(
            f"The {self._name} has {found}; each pass must give the same rows in the same order. "
            f"{self._remedy}"
        )


def number_of_rows(table: Any) -> int:
    """Return the number of rows of an array or data frame."""
    shape = getattr(table, "shape", None)
    return int(shape[0]) if shape else len(table)


def _first_rows(block: Block) -> list[str]:
    """Describe the first rows; numbers to six digits, since sums of a query may differ in the last ones."""
    rows: list[Any] = []
    for item in (block.X, block.y, block.weight):
        if item is not None:
            native: Any = nw.from_native(item, pass_through=True, eager_only=True, allow_series=True)
            head = native[:_COMPARED]
            rows.append(head.rows() if isinstance(head, nw.DataFrame) else _as_list(head))
    return [_text(row) for row in zip(*rows, strict=True)]


def _as_list(values: Any) -> list[Any]:
    values = values.toarray() if hasattr(values, "toarray") else values  # scipy's sparse matrices
    listed: list[Any] = values.to_list() if isinstance(values, nw.Series) else np.asarray(values).tolist()
    return listed


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_text, value))})"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
