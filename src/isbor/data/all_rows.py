"""All rows of a table that is too large to be searched as a whole.

The search takes a sample of the rows (`isbor.data.sample`). Of all rows, it needs sums only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.data.blocks import Block, Source, summarised
from isbor.data.encoding import TableEncoding
from isbor.data.labels import rank_labels
from isbor.data.order import Grid, exact_keys
from isbor.data.sample import EncodedRows, RowSample
from isbor.data.weights import nonnegative_weights

__all__ = ["AllRows", "Arrays", "BlockReader", "RowSampler"]

Arrays: TypeAlias = tuple[FloatArray, ...]


@dataclass(frozen=True, slots=True)
class BlockReader:
    """Encodes the rows of a block."""

    owner: str  # what messages name
    encoding: TableEncoding
    classes: LabelArray  # all classes, lowest first
    level: IntArray  # of each class, the number among those with rows; -1 for those without
    factor: FloatArray  # of each class, by which sample weights are multiplied

    def __call__(self, block: Block) -> EncodedRows:
        """Return the encoded rows of positive weight."""
        codes = rank_labels(block.y, self.classes)
        weight = nonnegative_weights(block.weight, len(codes)) * self.factor[codes]
        X, number = self.encoding(self.owner, block.X), block.first + np.arange(len(codes))
        rows = EncodedRows(X, self.level[codes], weight, number)
        counted = weight > 0.0
        return rows if counted.all() else rows.take(counted)


@dataclass(frozen=True, slots=True)
class RowSampler:
    """Makes the sample of a block."""

    read: Callable[[Block], EncodedRows]
    grid: Grid
    seed: int
    size: int
    largest: np.uint64 | None  # rows with larger keys hardly belong to the sample
    label: ClassVar[str] = "sample"

    def __call__(self, block: Block) -> RowSample:
        """Return the sample of a block."""
        rows = self.read(block)
        key = self.grid.keys(rows.X, rows.y, self.seed)
        exact = exact_keys(rows.X, rows.y, self.seed, self.grid.varying)
        return RowSample.of(rows, key, exact, self.size, self.largest)


@dataclass(frozen=True, slots=True)
class _Summand:
    """What a block adds to sums over all rows."""

    read: Callable[[Block], EncodedRows]
    sums_of: Callable[[EncodedRows], Arrays]
    label: ClassVar[str] = "pass"

    def __call__(self, block: Block) -> tuple[int, Arrays]:
        rows = self.read(block)
        return len(rows), self.sums_of(rows)


def _added(one: tuple[int, Arrays], other: tuple[int, Arrays]) -> tuple[int, Arrays]:
    return one[0] + other[0], tuple(a + b for a, b in zip(one[1], other[1], strict=True))


@dataclass(frozen=True, slots=True)
class AllRows:
    """The rows of a source, encoded."""

    source: Source
    read: Callable[[Block], EncodedRows]
    n_rows: int  # of positive weight
    level_weight: FloatArray  # (r,) total weight of each level
    low: FloatArray  # (D,) smallest value of each encoded column
    high: FloatArray  # (D,)

    @property
    def total_weight(self) -> float:
        """Total weight of the rows."""
        return float(self.level_weight.sum())

    def summed(self, sums_of: Callable[[EncodedRows], Arrays], workers: Workers) -> Arrays:
        """Return the sums of some arrays over all blocks. `sums_of` can be pickled."""
        n_rows, sums = summarised(self.source, _Summand(self.read, sums_of), _added, workers)
        if n_rows != self.n_rows:
            raise ValueError(
                f"The source has changed between two passes: {self.n_rows} rows of positive weight at first, "
                f"{n_rows} now. Fit to data that nobody writes to."
            )
        return sums
