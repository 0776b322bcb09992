"""What the tasks of a Dask graph do with the rows of a partition. Nothing of Dask is needed for it."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from joblib import parallel_config

from isbor._core.parallel import Workers
from isbor.data.blocks import Block, located
from isbor.sources.arrays import slice_block
from isbor.sources.errors import SourceError, rows_text
from isbor.sources.passes import number_of_rows
from isbor.sources.roles import Roles, as_blocks

__all__ = [
    "ArrayCut",
    "Cut",
    "FrameCut",
    "Result",
    "Summary",
    "checked_length",
    "map_rows",
    "merge",
    "summarise",
]


class Cut(Protocol):
    """Cuts a partition into blocks."""

    def __call__(self, parts: Sequence[Any], number: int, first: int = 0) -> Iterator[Block]:
        """Yield the rows of partition `number`, whose first row has the number `first` in the table."""


@dataclass(frozen=True, slots=True)
class FrameCut:
    """Cuts a pandas data frame."""

    roles: Roles
    block_rows: int

    def __call__(self, parts: Sequence[Any], number: int, first: int = 0) -> Iterator[Block]:
        """Yield the rows block by block."""
        frame = nw.from_native(parts[0], eager_only=True)
        starts = range(0, len(frame), self.block_rows)
        pieces = (frame[start : start + self.block_rows] for start in starts)
        named = (
            (piece, _where(number, start, len(piece))) for start, piece in zip(starts, pieces, strict=True)
        )
        return as_blocks(named, self.roles, first)


@dataclass(frozen=True, slots=True)
class ArrayCut:
    """Cuts chunks of X, and of y and weight if there are any."""

    has_y: bool
    has_weight: bool
    block_rows: int

    def __call__(self, parts: Sequence[Any], number: int, first: int = 0) -> Iterator[Block]:
        """Yield the rows block by block."""
        others = iter(parts[1:])
        X, y = parts[0], next(others) if self.has_y else None
        weight = next(others) if self.has_weight else None
        total = number_of_rows(X)
        for name, part in (("y", y), ("weight", weight)):
            if part is not None and number_of_rows(part) != total:
                raise SourceError(
                    f"In partition {number}, X has {total} rows and {name} has {number_of_rows(part)}; both "
                    "need the same number. Check how the Dask arrays were made."
                )
        for start in range(0, total, self.block_rows):
            stop = min(start + self.block_rows, total)
            where = _where(number, start, stop - start)
            yield slice_block(X, y, weight, start, stop, first + start, where)


@dataclass(frozen=True, slots=True)
class Summary:
    """How a partition is summarised: what all tasks of a pass share."""

    of_block: Callable[[Block], Any]
    merged: Callable[[Any, Any], Any]
    cut: Cut


@dataclass(frozen=True, slots=True)
class Result:
    """A summary that knows its size, by which Dask decides where it is merged."""

    summary: Any

    def __sizeof__(self) -> int:
        buffers: list[int] = []
        rest = pickle.dumps(self.summary, 5, buffer_callback=lambda part: buffers.append(part.raw().nbytes))
        return len(rest) + sum(buffers)


def summarise(work: Summary, number: int, first: int, n_rows: int, *parts: Any) -> Result:
    """Return the summary of a partition, which has rows."""
    checked_length(parts, number, n_rows)
    with _one_thread():
        blocks = work.cut(parts, number, first)
        return Result(reduce(work.merged, (_of_located(work, block) for block in blocks)))


def merge(work: Summary, *parts: Result) -> Result:
    """Return the merged summaries of some partitions, in their order."""
    with _one_thread():
        return Result(reduce(work.merged, (part.summary for part in parts)))


def checked_length(parts: Sequence[Any], number: int, n_rows: int) -> None:
    """Raise SourceError if a partition does not have the rows that it had before."""
    found = number_of_rows(parts[0])
    if found != n_rows:
        raise SourceError(
            f"Partition {number} has {found} rows in this pass, {n_rows} in the one before; each pass must "
            "give the same rows in the same order. Let nothing write to the data, and seed what is random."
        )


def map_rows(function: Callable[[Any], Any], cut: Cut, number: int, X: Any) -> list[Any]:
    """Return what a function gives for the blocks of a partition."""
    results = []
    with _one_thread():
        for block in cut((X,), number):
            with located(block):
                result = function(block.X)
                if not isinstance(result, np.ndarray) or len(result) != number_of_rows(block.X):
                    raise TypeError(
                        f"The function returned {type(result).__name__}; an array with a row for each row "
                        "of X is needed to make a Dask collection. Take one part, as in "
                        "lambda X: model.predict_proba_interval(X)[0]."
                    )
            results.append(result)
    return results


def _of_located(work: Summary, block: Block) -> Any:
    with located(block):
        return work.of_block(block)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Use one thread: Dask has a task for each core already."""
    with parallel_config(backend="sequential"), Workers(1):
        yield


def _where(number: int, first: int, n_rows: int) -> str:
    return f"partition {number}, {rows_text(first, n_rows)}"
