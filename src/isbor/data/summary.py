"""What a training table is like: the range and a typical value of each feature."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from isbor._core.types import BoolArray, FloatArray
from isbor.data.training_set import TrainingSet

__all__ = ["TableSummary"]

_MAX_ROWS = 500  # from which medians and frequencies are computed: a stratified sample


@dataclass(frozen=True, slots=True)
class TableSummary:
    """Ranges and typical values of d features; NaN where there is none."""

    low: FloatArray  # (d,) smallest number of a numeric feature
    high: FloatArray  # (d,) largest number
    typical: FloatArray  # (d,) median of the numbers, or position of the most frequent category
    whole: BoolArray  # (d,) whether a numeric feature has whole numbers only
    total_weight: float  # of all rows

    @classmethod
    def of(cls, training: TrainingSet) -> Self:
        """Return the summary of the training rows."""
        encoding, sample = training.encoding, training.rows.head(_MAX_ROWS)
        cells = encoding.decoded(training.encoded(slice(len(sample))))
        low, high = (limit[encoding.first_column] for limit in training.ranges)
        numeric = np.array([categories is None for categories in encoding.categories])
        typical = _medians(cells, sample.weight)
        for j in np.flatnonzero(~numeric):
            known = ~np.isnan(cells[:, j])
            if known.any():
                typical[j] = np.bincount(cells[known, j].astype(np.intp), sample.weight[known]).argmax()
        whole = numeric & (np.isnan(cells) | (cells == np.round(cells))).all(axis=0)
        low, high = np.where(numeric, low, np.nan), np.where(numeric, high, np.nan)
        return cls(low, high, typical, whole, training.total_weight)


def _medians(cells: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the weighted median of the present cells of each column, one of them; NaN if there is none."""
    order = np.argsort(cells, axis=0)  # missing cells come last
    mass = np.where(np.isnan(cells), 0.0, weight[:, None])
    below = np.cumsum(np.take_along_axis(mass, order, axis=0), axis=0)
    middle = np.argmax(below >= 0.5 * below[-1], axis=0)
    columns = np.arange(cells.shape[1])
    medians: FloatArray = cells[order[middle, columns], columns]
    return medians
