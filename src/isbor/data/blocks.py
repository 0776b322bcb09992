"""Tables that are read block by block, as often as a fit needs.

A fit passes over all rows several times, so what it reads is a source: something that gives its blocks of
rows again each time it is asked. `isbor.sources` opens files, queries and others as sources.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

__all__ = ["Block", "Source"]


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
