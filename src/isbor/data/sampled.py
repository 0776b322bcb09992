"""Training sets of the rows that are kept of a stream; encoding and scaling follow the stream."""

from dataclasses import dataclass, replace

import numpy as np

from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.data.encoding import TableEncoding
from isbor.data.reservoir import Reservoir
from isbor.data.rows import Scaling, canonical_rows
from isbor.data.schema import Schema
from isbor.data.training_set import TrainingSet

__all__ = ["Kept", "sampled_training"]

_NEGLIGIBLE = 1e-9  # share of the total weight below which a class does not occur any more
_MOVED = 0.1  # of a column's mean, in standard deviations, or of its scale: the scaling is learned again


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a stream of rows."""

    schema: Schema
    reservoir: Reservoir
    classes: LabelArray  # all classes, lowest first

    @property
    def observed(self) -> IntArray:
        """Positions of the classes that occur."""
        totals = self.reservoir.of_class
        return np.flatnonzero(totals > _NEGLIGIBLE * totals.sum())

    def contents(self) -> FloatArray:
        """Return numbers that tell the kept rows apart, (n, d)."""
        return self.schema.contents(self.reservoir.cells)

    def compacted(self) -> "Kept":
        """Return the same rows without categories that they do not have."""
        schema, cells = self.schema.compacted(self.reservoir.cells)
        return replace(self, schema=schema, reservoir=self.reservoir.with_cells(cells))


def sampled_training(
    kept: Kept, before: tuple[TableEncoding, Scaling] | None, *, balanced: bool
) -> TrainingSet:
    """Return the training set of the kept rows.

    It has the encoding and the scaling `before`, unless there are none, the encoding lacks columns, or the
    scaling is not that of the rows any more. If `balanced`, all classes get the same total weight.
    """
    reservoir = kept.reservoir
    observed = kept.observed
    weight = _weights(reservoir, observed, balanced)
    rows_of_observed = np.flatnonzero(weight > 0.0)
    cells = reservoir.cells[rows_of_observed]
    if before is not None and not kept.schema.is_covered(before[0], cells):
        before = None
    encoding = kept.schema.encoding(cells, weight[rows_of_observed]) if before is None else before[0]
    X = kept.schema.encoded(encoding, reservoir.cells)
    ranks = np.searchsorted(observed, np.clip(reservoir.codes, observed[0], observed[-1]))
    rows, scaling = canonical_rows(
        X, ranks, weight, seed=reservoir.seed, feature=encoding.feature, group=encoding.scale_group
    )
    if before is not None and _is_close(before[1], scaling):
        rows, scaling = replace(rows, X=before[1](scaling.inverse(rows.X))), before[1]
    return TrainingSet(encoding, kept.classes, observed, X, weight, rows, scaling, reservoir.seed)


def _weights(reservoir: Reservoir, observed: IntArray, balanced: bool) -> FloatArray:
    """Return the weights of the rows, (n,); zero for those of classes that do not occur any more."""
    totals = reservoir.of_class[observed]
    of_class = np.zeros(len(reservoir.of_class))
    of_class[observed] = totals.sum() / (len(observed) * totals) if balanced else 1.0
    return reservoir.sample_weights() * of_class[reservoir.codes]


def _is_close(one: Scaling, other: Scaling) -> bool:
    """Whether a scaling is still about the one that the rows ask for."""
    if (one.varying != other.varying).any():
        return False
    varying = other.varying
    if (one.lift != other.lift).any():
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        moved = np.abs(one.mean - other.mean) * one.lift * other.factor
        stretched = np.abs(one.factor - other.factor)
    return bool((moved[varying] < _MOVED).all() and (stretched < _MOVED * other.factor)[varying].all())
