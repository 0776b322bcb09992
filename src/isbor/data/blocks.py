"""Tables that are read block by block, as often as a fit needs.

A fit passes over all rows several times, so what it reads is a source: something that gives its blocks of
rows again each time it is asked. `isbor.sources` opens files, queries and others as sources.

All that a fit needs of the rows are summaries: counts, moments, samples, sums of derivatives. The summary of
a table follows from those of its blocks, which are merged one after the other. So blocks may be read and
summarised by several threads, or where they are: a source that has its rows elsewhere has a method
`summarised` of its own.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeGuard, TypeVar, runtime_checkable

from isbor._core.parallel import TimeIsUpError, Workers

__all__ = ["Block", "RemoteSource", "Source", "is_source", "located", "summarised"]

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows of a table, as their source has them."""

    X: object  # array of numbers or data frame, (n, d)
    y: object | None  # n labels; None if the source has no target
    weight: object | None  # n weights; None if all are 1
    first: int  # number of its first row in the whole table
    where: str  # names the rows in messages, such as "ratings-3.parquet, rows 8192 to 16383"


@runtime_checkable
class Source(Protocol):
    """A table that can be read several times, always with the same rows in the same order."""

    def blocks(self) -> Iterator[Block]:
        """Yield all rows, block by block, from the first one."""


@runtime_checkable
class RemoteSource(Source, Protocol):
    """A source whose rows are summarised where they are, in other processes."""

    def summarised(self, of_block: Callable[[Block], S], merged: Callable[[S, S], S]) -> S:
        """Return the merged summaries of all blocks. Both functions can be pickled.

        `of_block` may have a `label`, the word for this pass where tasks are shown.
        """


def is_source(table: object) -> TypeGuard[Source]:
    """Return whether a table is a source; Dask arrays have `blocks` too, but not as a method."""
    return isinstance(table, Source) and callable(table.blocks)


def summarised(
    source: Source, of_block: Callable[[Block], S], merged: Callable[[S, S], S], workers: Workers
) -> S:
    """Return the summary of a table: those of its blocks, merged in their order.

    An error for a block names its rows. If the workers' time is up before the last block, `TimeIsUpError` is
    raised; a remote source is asked for all of its blocks at once.
    """
    if isinstance(source, RemoteSource):
        return source.summarised(of_block, merged)

    def of_located(block: Block) -> S:
        with located(block):
            return of_block(block)

    def in_time() -> Iterator[Block]:
        for block in source.blocks():
            if workers.is_late():
                raise TimeIsUpError
            yield block

    parts = workers.map(of_located, in_time())
    try:
        total = next(parts)
    except StopIteration:
        raise ValueError("The source has no rows. Check the files or the filter that it reads.") from None
    for part in parts:
        total = merged(total, part)
    return total


@contextmanager
def located(block: Block) -> Iterator[None]:
    """Name the rows of a block in the message of a ValueError or TypeError."""
    try:
        yield
    except (ValueError, TypeError) as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"In {block.where} (row {block.first} of the table is row 0 below): {error}") from error
