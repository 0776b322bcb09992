"""Random proposals of basis functions: fresh ones, children and siblings of active ones, and oblique ramps.

A fresh function is centred on a row and uses one, two, three or many features, at random scales. If a feature
has several columns (categories, or a number and its warp), the function uses one of them.

A child is an active function with perturbed centre and scales, and possibly one feature dropped or added. A
sibling uses the features of an active function, at about its scales, on another row: where one function of
some features is useful, others are, too.

An oblique ramp uses many features, in the direction in which a nearly linear ramp gains most: S⁻¹Q in the
notation of `isbor.search.adaptive.gains`. Random directions would not find it. It uses all columns of a
categorical feature, unless they are so many that the best direction would fit noise.

The loops are compiled (`isbor.search.adaptive.compiled_proposals`).
"""

from dataclasses import dataclass

import numpy as np

from isbor._core.types import IntArray
from isbor.data.rows import TrainingRows
from isbor.model.basis import column_costs
from isbor.search.adaptive import compiled_proposals
from isbor.search.adaptive.compiled_proposals import Table
from isbor.search.adaptive.entries import Entries
from isbor.search.adaptive.gains import Directions

__all__ = ["Proposals"]

_ROWS_PER_FEATURE = 50  # of an oblique ramp, at least


@dataclass(frozen=True, slots=True)
class Proposals:
    """Draws functions at random."""

    random: np.random.Generator
    table: Table

    @classmethod
    def of(cls, random: np.random.Generator, rows: TrainingRows, feature: IntArray) -> "Proposals":
        """Return proposals for some rows; `feature`, (d,), is the feature of each column, in order."""
        column = np.flatnonzero(rows.varying)
        starts = np.flatnonzero(np.diff(feature[column], prepend=-1))
        return cls(random, Table(rows.X, column, np.append(starts, len(column)), column_costs(rows)))

    def fresh(self, count: int) -> Entries:
        """Return functions centred on random rows, of a few features each."""
        return compiled_proposals.fresh(self.random, self.table, count)

    def children(self, parents: Entries, count: int) -> Entries:
        """Return perturbed copies of random `parents`."""
        return compiled_proposals.children(
            self.random, self.table, parents, count if parents.n_functions else 0
        )

    def siblings(self, parents: Entries, count: int) -> Entries:
        """Return functions of the features of random `parents`, centred on random rows."""
        return compiled_proposals.siblings(
            self.random, self.table, parents, count if parents.n_functions else 0
        )

    def oblique(self, count: int, directions: Directions) -> Entries:
        """Return ramps along the best directions of several features, drawn by their strength."""
        max_features = len(self.table.X) // _ROWS_PER_FEATURE
        return compiled_proposals.oblique(
            self.random, self.table, directions.quality, directions.sparsity, count, max_features
        )
