"""Training data of which a fit has a sample in memory, and sums over all rows.

A search does not get better with more than some hundred thousand rows, but weights and thresholds do. So
the search takes a sample of the distinct rows, and the model is then refitted to all rows, which are read
block by block. Classes, encoding and ranges are those of all rows; scales and warps those of the sample.

In the sample, each class has the same share of the weight as in the table.

A table is read twice before the search: for a survey (`isbor.data.survey`) and for the sample
(`isbor.data.sample`). If the sample has all distinct rows, the training set is the same as that of the table
in memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self, cast

import numpy as np

from isbor._core.checkpoints import Checkpoint
from isbor._core.parallel import Workers
from isbor._core.types import BoolArray, FloatArray, IntArray, LabelArray
from isbor.data.all_rows import AllRows, BlockReader, RowSampler
from isbor.data.blocks import Block, Source, summarised
from isbor.data.cells import Missing
from isbor.data.encoding import EncodedTable, TableEncoding
from isbor.data.labels import levels_of_weight, warn_of_quantity
from isbor.data.moments import Moments
from isbor.data.numbers import rows_at_once
from isbor.data.order import Grid, Keys, exact_keys
from isbor.data.rows import canonical_rows, merged_by_key
from isbor.data.sample import EncodedRows, RowSample
from isbor.data.survey import BlockSurvey, Survey
from isbor.data.training_set import TrainingSet
from isbor.data.weights import ClassWeight, check_total_weight, class_factors, weight_sums

__all__ = ["Reading", "sample_size", "training_of_many_rows", "training_of_source"]

_SAMPLE_ROWS = 128_000
_SAMPLE_CELLS = 64_000_000  # half a gigabyte
_MARGIN = 1.3  # ten standard errors of the number of distinct rows


@dataclass(frozen=True, slots=True)
class Reading:
    """How a source is read: parameters of an estimator."""

    owner: str  # what messages name
    missing: Missing
    classes: object
    class_weight: ClassWeight
    seed: int
    fewest_levels: int
    samples: bool  # whether a sample of the rows will do
    checkpoint: Checkpoint


def sample_size(n_columns: int) -> int:
    """Return the number of distinct rows above which a sample is taken, and its size."""
    return min(_SAMPLE_ROWS, _SAMPLE_CELLS // max(n_columns, 1))


def training_of_source(source: Source, reading: Reading, workers: Workers) -> TrainingSet:
    """Read the training set of a source; all rows of the sample if they are few, else a sample."""
    of_block = BlockSurvey(reading.owner, reading.missing, reading.classes)
    survey = summarised(source, of_block, Survey.merged, workers)
    reading.checkpoint.begin(survey)
    warn_of_quantity(len(survey.classes), survey.n_rows, survey.order_is_given)
    factors = class_factors(survey.classes, survey.class_weight, reading.class_weight)
    of_class = factors * survey.class_weight
    check_total_weight(float(of_class.sum()))
    observed = levels_of_weight(survey.classes, of_class, fewest=reading.fewest_levels)
    level = np.full(len(of_class), -1)
    level[observed] = np.arange(len(observed))
    encoding = survey.encoding(reading.missing)
    moments = survey.moments(encoding)
    all_rows = AllRows(
        source,
        BlockReader(reading.owner, encoding, survey.classes, level, factors),
        int(survey.class_rows[observed].sum()),
        of_class[observed],
        moments.low,
        moments.high,
    )
    size, grid = sample_size(len(encoding.feature)), _grid(moments, encoding)
    sampler = RowSampler(all_rows.read, grid, reading.seed, size, _largest_key(size, survey.n_distinct))
    sample = reading.checkpoint.once("sample", lambda: _sample(source, sampler, workers))
    if not (sample.is_complete or reading.samples):
        raise ValueError(
            f"The source has {all_rows.n_rows} rows; {reading.owner} needs its rows in memory, at most "
            f"{size} of them from a source. Fit ISBOR, or pass a sample of the rows as arrays."
        )
    return _with_sample(encoding, survey.classes, observed, all_rows, sample, reading.seed)


def training_of_many_rows(
    encoding: TableEncoding,
    classes: LabelArray,
    observed: IntArray,
    table: FloatArray | EncodedTable,
    y: IntArray,
    weight: FloatArray,
    seed: int,
    workers: Workers,
) -> TrainingSet:
    """Return the training set of many rows in memory, with a sample of them if too many differ.

    `table`, (n, D), has all rows, `y`, (n,), the places of their labels in `observed`.
    """
    rows = _RowsInMemory.of(table, y, weight, seed, workers)
    moments = summarised(rows, rows.moments, Moments.merged, workers)
    all_rows = AllRows(
        rows,
        rows.encoded,
        len(rows.y),
        weight_sums(rows.y, rows.weight, len(observed)),
        moments.low,
        moments.high,
    )
    size, grid = sample_size(len(encoding.feature)), _grid(moments, encoding)
    sampler = RowSampler(rows.encoded, grid, seed, size, _largest_key(size, len(rows.y)))
    sample = _sample(rows, sampler, workers)
    return _with_sample(encoding, classes, observed, all_rows, sample, seed)


def _sample(source: Source, sampler: RowSampler, workers: Workers) -> RowSample:
    return summarised(source, sampler, RowSample.merged, workers).settled()


def _largest_key(size: int, n_distinct: float) -> np.uint64 | None:
    """Return a key below which there are more than `size` of so many distinct rows; None if there may not be.

    Blocks need not send rows that will not stay in the sample.
    """
    share = _MARGIN * size / max(n_distinct, 1.0)
    return None if share >= 1.0 else np.uint64(share * 2.0**64)


def _with_sample(
    encoding: TableEncoding,
    classes: LabelArray,
    observed: IntArray,
    all_rows: AllRows,
    sample: RowSample,
    seed: int,
) -> TrainingSet:
    """Return the training set of a sample; if that is complete, of all rows."""
    taken = sample.rows
    if not sample.is_complete:
        of_level = weight_sums(taken.y, taken.weight, len(observed))
        factor = all_rows.level_weight / of_level * (of_level.sum() / all_rows.total_weight)
        # In single precision, so that they do not depend on the order of these sums.
        weight = (taken.weight * factor[taken.y]).astype(np.float32)
        taken = replace(taken, weight=weight.astype(np.float64))
    rows, scaling = canonical_rows(
        taken.X,
        taken.y,
        taken.weight,
        seed=seed,
        feature=encoding.feature,
        group=encoding.scale_group,
    )
    return TrainingSet(
        encoding,
        classes,
        observed,
        taken.X,
        taken.weight,
        replace(rows, source=taken.number[rows.source]),
        scaling,
        seed,
        rows.source,
        None if sample.is_complete else all_rows,
    )


def _grid(moments: Moments, encoding: TableEncoding) -> Grid:
    """Return the grids of the encoded columns; columns that are no numbers have one of unit 1."""
    number = np.zeros(len(encoding.feature), np.bool_)
    number[encoding.first_column] = [found is None for found in encoding.categories]
    return Grid.of(
        np.where(number, moments.spread, 1.0),
        np.where(number, moments.mean, 0.0),
        np.where(number, moments.varying, True),
    )


@dataclass(frozen=True, slots=True)
class _RowsInMemory:
    """The distinct rows of a table in memory as a source.

    Their order depends on nothing but the set of rows, so sums over all of them do not, either.
    """

    table: FloatArray | EncodedTable
    y: IntArray  # (m,)
    weight: FloatArray  # (m,)
    number: IntArray  # (m,) row numbers in the table

    @classmethod
    def of(
        cls, table: FloatArray | EncodedTable, y: IntArray, weight: FloatArray, seed: int, workers: Workers
    ) -> Self:
        """Return the distinct rows of positive weight, with their total weights."""
        number = np.flatnonzero(weight > 0.0)
        y, weight, size = y[number], weight[number], rows_at_once(table.shape[1])
        all_columns = np.ones(table.shape[1], np.bool_)

        def keys(rows: slice) -> Keys:
            return exact_keys(table[number[rows]], y[rows], seed, all_columns)

        def are_equal(one: IntArray, other: IntArray) -> BoolArray:
            pairs = [slice(first, first + size) for first in range(0, len(one), size)]
            equal = [(table[number[one[p]]] == table[number[other[p]]]).all(axis=1) for p in pairs]
            return np.concatenate([np.zeros(0, np.bool_), *equal])

        blocks = [slice(first, first + size) for first in range(0, len(number), size)]
        key = np.concatenate(list(workers.map(keys, blocks)))
        distinct, merged = merged_by_key(key, y, weight, are_equal)
        return cls(table, y[distinct], merged, number[distinct])

    def blocks(self) -> Iterator[Block]:
        """Yield the places of all rows, block by block."""
        size = rows_at_once(self.table.shape[1])
        for first in range(0, len(self.y), size):
            rows = slice(first, min(first + size, len(self.y)))
            yield Block(rows, None, None, first, f"rows {first} to {rows.stop - 1}")

    def encoded(self, block: Block) -> EncodedRows:
        """Return the rows of a block."""
        rows = cast(slice, block.X)
        number = self.number[rows]
        return EncodedRows(self.table[number], self.y[rows], self.weight[rows], number)

    def moments(self, block: Block) -> Moments:
        """Return the moments of a block."""
        rows = self.encoded(block)
        return Moments.of(rows.X, rows.weight)
