"""What a fit knows of its training data."""

from dataclasses import dataclass, replace

import numpy as np

from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.data.all_rows import AllRows
from isbor.data.encoding import EncodedTable, TableEncoding
from isbor.data.rows import Scaling, TrainingRows
from isbor.data.weights import weight_sums

__all__ = ["TrainingSet"]


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Checked training data: all rows as given, and the distinct rows in canonical order.

    Of a large table, these are the rows of a sample, and `all_rows` gives sums over all.
    """

    encoding: TableEncoding
    classes: LabelArray  # all classes, lowest first
    observed: IntArray  # (r,) positions in `classes` of the classes with rows: the levels
    X: FloatArray | EncodedTable  # (n, d) all rows, encoded, not scaled
    weight: FloatArray  # (n,) their weights
    rows: TrainingRows  # distinct and scaled; labels number the observed classes only
    scaling: Scaling
    seed: int  # selects one of the pseudo-random orders
    # (m,) positions in X of the distinct rows; None: their `source`, which numbers the rows of the table.
    place: IntArray | None = None
    all_rows: AllRows | None = None  # None: these are all

    def encoded(self, chosen: IntArray | slice) -> FloatArray:
        """Return some of the distinct rows, encoded but not scaled."""
        return self.X[(self.rows.source if self.place is None else self.place)[chosen]]

    @property
    def level_weight(self) -> FloatArray:
        """Total weight of each level over all rows, (r,)."""
        if self.all_rows is not None:
            return self.all_rows.level_weight
        return weight_sums(self.rows.y, self.rows.weight, len(self.observed))

    @property
    def total_weight(self) -> float:
        """Total weight of all rows."""
        return self.rows.total_weight if self.all_rows is None else float(self.level_weight.sum())

    @property
    def ranges(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest value of each encoded column over all rows, two arrays (d,)."""
        if self.all_rows is not None:
            return self.all_rows.low, self.all_rows.high
        X = self.encoded(slice(None))
        return X.min(axis=0), X.max(axis=0)

    @property
    def feature(self) -> IntArray:
        """The feature of each encoded column, (d,)."""
        return self.encoding.feature

    @property
    def n_varying(self) -> int:
        """Number of features that are not constant, at least 1; a categorical feature counts once."""
        return max(len(np.unique(self.feature[self.scaling.varying])), 1)

    @property
    def scale_groups(self) -> IntArray:
        """For each column, the number of its scale: the columns of a categorical feature share one."""
        alone = len(self.feature) + np.arange(len(self.feature))
        return np.where(self.encoding.categorical, self.feature, alone)

    def with_unseen_categories(self, held_out: TrainingRows) -> TrainingRows:
        """Return held-out rows with categories that do not occur in the training rows marked as unseen."""
        categorical = self.encoding.categorical
        if not categorical.any():
            return held_out
        X = held_out.X.copy()
        constant = self.rows.X[0]
        unseen = self.encoding.unseen_column
        lacking = categorical & (self.rows.X == constant).all(axis=0)
        for column in np.flatnonzero(lacking & (unseen != np.arange(len(unseen)))):
            rows, mark = np.flatnonzero(X[:, column] != constant[column]), unseen[column]
            X[rows, column] = constant[column]
            X[rows, mark] = self.scaling.factor[mark]
        return replace(held_out, X=X)
