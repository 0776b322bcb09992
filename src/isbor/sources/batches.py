"""Batches that a function of the user gives, such as one that reads or simulates data."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from isbor.data.blocks import Block
from isbor.sources.arrays import slice_block, sliceable
from isbor.sources.errors import SourceError, rows_text
from isbor.sources.passes import number_of_rows

__all__ = ["CalledBatches"]


class CalledBatches:
    """Batches of rows from a function that is called anew for each pass.

    Parameters
    ----------
    function : callable
        Returns batches (X, y) or (X, y, weight), one after the other. y may be None.
    block_rows : int
        Batches with more rows are cut.
    """

    def __init__(self, function: Callable[[], Iterable[Any]], block_rows: int) -> None:
        self._function = function
        self._block_rows = block_rows
        self._before: Iterator[Any] | None = None  # what the last call returned

    def blocks(self) -> Iterator[Block]:
        """Yield all rows, block by block."""
        first = 0
        n_columns: int | None = None
        for number, batch in enumerate(self._call()):
            X, y, weight = _parts(batch, number)
            n_rows, found = number_of_rows(X), _number_of_columns(X, number)
            if n_rows == 0:
                continue
            where = f"batch {number}, {rows_text(first, n_rows)}"
            n_columns = found if n_columns is None else n_columns
            _check(X, y, weight, where, found, n_columns)
            X, block_rows = sliceable(X, self._block_rows)
            for start in range(0, n_rows, block_rows):
                stop = min(start + block_rows, n_rows)
                where = f"batch {number}, {rows_text(first + start, stop - start)}"
                yield slice_block(X, y, weight, start, stop, first + start, where)
            first += n_rows

    def _call(self) -> Iterator[Any]:
        returned = self._function()
        if not isinstance(returned, Iterable):
            raise SourceError(
                f"The function returned {type(returned).__name__}; batches (X, y) or (X, y, weight), one "
                "after the other, are needed. Let it yield them."
            )
        batches = iter(returned)
        if batches is self._before:
            raise SourceError(
                f"The function returned the same {type(batches).__name__} as before, which is used up; each "
                "call must begin anew with the first batch. Make the generator within the function: pass "
                "the generator function itself, not a function that returns one generator again."
            )
        self._before = batches
        return batches


def _parts(batch: Any, number: int) -> tuple[Any, Any, Any]:
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        n_parts = f" of {len(batch)} parts" if isinstance(batch, tuple | list) else ""
        raise SourceError(
            f"Batch {number} is a {type(batch).__name__}{n_parts}; (X, y) or (X, y, weight) is needed. "
            "If there are no labels, give (X, None)."
        )
    parts = [np.asarray(part) if isinstance(part, list) else part for part in batch]
    return parts[0], parts[1], parts[2] if len(parts) == 3 else None


def _number_of_columns(X: Any, number: int) -> int:
    shape: Any = getattr(X, "shape", ())
    if len(shape) != 2:
        raise SourceError(
            f"In batch {number}, X is a {type(X).__name__} of shape {tuple(shape)}; a table of rows and "
            "columns is needed. Pass a two-dimensional array or a data frame; a single row is X[None, :]."
        )
    return int(shape[1])


def _check(X: Any, y: Any, weight: Any, where: str, found: int, n_columns: int) -> None:
    if found != n_columns:
        raise SourceError(
            f"{_capital(where)}: X has {found} columns, and the first batch has {n_columns}; all batches "
            "need the same columns. Correct the function."
        )
    for name, part in (("y", y), ("weight", weight)):
        if part is not None and number_of_rows(part) != number_of_rows(X):
            raise SourceError(
                f"{_capital(where)}: X has {number_of_rows(X)} rows and {name} has {number_of_rows(part)}; "
                "both need the same number. Correct the function."
            )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
