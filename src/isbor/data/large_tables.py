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
from functools import reduce
from typing import cast

import numpy as np

from isbor._core.checkpoints import Checkpoint
from isbor._core.parallel import Workers
from isbor._core.types import IntArray, LabelArray
from isbor.data.all_rows import AllRows, BlockReader, RowSampler
from isbor.data.blocks import Block, Source, summarised
from isbor.data.cells import Missing
from isbor.data.encoding import TableEncoding
from isbor.data.labels import levels_of_weight, warn_of_quantity
from isbor.data.moments import Moments
from isbor.data.order import Grid
from isbor.data.rows import canonical_rows
from isbor.data.sample import EncodedRows, RowSample
from isbor.data.survey import BlockSurvey, Survey
from isbor.data.training_set import TrainingSet
from isbor.data.weights import ClassWeight, check_total_weight, class_factors, weight_sums

__all__ = ["Reading", "sample_size", "training_of_many_rows", "training_of_source"]

_SAMPLE_ROWS = 128_000
_SAMPLE_CELLS = 64_000_000  # half a gigabyte
_BLOCK_ROWS = 65_536  # of rows in memory
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
    rows: EncodedRows,
    seed: int,
    workers: Workers,
) -> TrainingSet:
    """Return the training set of many distinct rows in memory, with a sample of them."""
    source = _RowsInMemory(rows)
    moments = reduce(Moments.merged, (_moments(block) for block in source.blocks()))
    all_rows = AllRows(
        source,
        _encoded,
        len(rows),
        weight_sums(rows.y, rows.weight, len(observed)),
        moments.low,
        moments.high,
    )
    size, grid = sample_size(len(encoding.feature)), _grid(moments, encoding)
    sampler = RowSampler(_encoded, grid, seed, size, _largest_key(size, len(rows)))
    sample = _sample(source, sampler, workers)
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
    """Rows in memory as a source."""

    rows: EncodedRows

    def blocks(self) -> Iterator[Block]:
        n = len(self.rows)
        for first in range(0, n, _BLOCK_ROWS):
            part = self.rows.take(slice(first, first + _BLOCK_ROWS))
            yield Block(part, None, None, first, f"rows {first} to {first + len(part) - 1}")


def _encoded(block: Block) -> EncodedRows:
    """Return the rows of a block of `_RowsInMemory`."""
    return cast(EncodedRows, block.X)


def _moments(block: Block) -> Moments:
    rows = _encoded(block)
    return Moments.of(rows.X, rows.weight)
