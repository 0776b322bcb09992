"""Check and encode the arguments of `fit`, for all estimators."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length

from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.data.encoding import Missing, TableEncoding, learn_table
from isbor.data.labels import OrderedLabels, encode_labels, observed_levels, warn_of_quantity
from isbor.data.rows import Scaling, TrainingRows, canonical_rows
from isbor.data.weights import check_sample_weight

__all__ = ["ClassWeight", "TrainingSet", "checked_weights", "read_training"]

ClassWeight = Mapping[Any, float] | Literal["balanced"] | None

_MAX_TOTAL_WEIGHT = 1e12  # beyond, a single row is lost in rounding


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Checked training data: all rows as given, and the distinct rows in canonical order."""

    encoding: TableEncoding
    classes: LabelArray  # all classes, lowest first
    observed: IntArray  # (r,) positions in `classes` of the classes with rows: the levels
    X: FloatArray  # (n, d) all rows, encoded, not scaled
    weight: FloatArray  # (n,) their weights
    rows: TrainingRows  # distinct and scaled; labels number the observed classes only
    scaling: Scaling
    seed: int  # selects one of the pseudo-random orders

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


def read_training(
    X: object,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    owner: str,
    missing: Missing = "auto",
    classes: object = None,
    class_weight: ClassWeight = None,
    random_state: int | np.random.RandomState | None = None,
    pairwise: bool = False,
    fewest_levels: int = 2,
) -> TrainingSet:
    """Check and encode training data.

    `owner` is what messages name, see `learn_table`; `missing` to `random_state` are parameters of the
    estimators. If `pairwise`, X is a matrix of kernel values; its rows are not scaled, merged or reordered.
    """
    labels = encode_labels(y, classes)
    warn_of_quantity(labels)
    weight = checked_weights(X, labels, sample_weight, class_weight)
    observed = observed_levels(labels, weight, fewest=fewest_levels)
    encoding, matrix = learn_table(owner, X, missing, weight)
    seed = 0 if random_state is None else check_random_state(random_state).randint(1, 2**31)
    ranks = np.searchsorted(observed, labels.codes)
    if pairwise:
        rows, scaling = _rows_of_kernel_matrix(matrix, ranks, weight)
    else:
        group = np.where(encoding.categorical, encoding.feature, -1)
        rows, scaling = canonical_rows(
            matrix, ranks, weight, seed=seed, feature=encoding.feature, group=group
        )
    return TrainingSet(encoding, labels.classes, observed, matrix, weight, rows, scaling, seed)


def checked_weights(
    X: object, labels: OrderedLabels, sample_weight: ArrayLike | None, class_weight: ClassWeight
) -> FloatArray:
    """Check that X, y and the weights have the same length, and return the weight of each row."""
    check_consistent_length(X, labels.codes)
    weight = _row_weights(labels, check_sample_weight(sample_weight, len(labels.codes)), class_weight)
    total = float(weight.sum())
    if not total <= _MAX_TOTAL_WEIGHT:  # also refuses NaN and infinity
        raise ValueError(
            f"The weights of all rows sum to {total:.3g}; at most {_MAX_TOTAL_WEIGHT:.0e} is supported, "
            "because of rounding. A weight of 1 stands for one row: divide sample_weight by a constant."
        )
    return weight


def _rows_of_kernel_matrix(
    matrix: FloatArray, y: IntArray, weight: FloatArray
) -> tuple[TrainingRows, Scaling]:
    n, d = matrix.shape
    if n != d:
        raise ValueError(
            f"X has shape {matrix.shape}; kernel='precomputed' needs a square matrix of the kernel values "
            "between all training rows. Compute it with sklearn.metrics.pairwise, or choose another kernel."
        )
    kept = np.flatnonzero(weight > 0)
    rows = TrainingRows(matrix[kept], y[kept], weight[kept], kept)
    return rows, Scaling.identity(d)


def _row_weights(labels: OrderedLabels, sample_weight: FloatArray, class_weight: ClassWeight) -> FloatArray:
    """Return the weight of each row: its sample weight times the weight of its class.

    "balanced" gives each class that occurs the same total weight and keeps the total of all rows. A class
    with less than 1e-12 of the total gets weight zero, because its two thresholds could not be resolved.
    """
    weight = sample_weight * _class_weights(labels, sample_weight, class_weight)[labels.codes]
    totals = np.bincount(labels.codes, weight, minlength=len(labels.classes))
    return np.where(totals[labels.codes] < 1e-12 * totals.sum(), 0.0, weight)


def _class_weights(labels: OrderedLabels, sample_weight: FloatArray, class_weight: ClassWeight) -> FloatArray:
    """Return the weight of each class."""
    n_levels = len(labels.classes)
    if class_weight is None:
        return np.ones(n_levels)
    if isinstance(class_weight, str):
        ascending = np.argsort(sample_weight)  # so that sums do not depend on the order of rows
        totals = np.bincount(labels.codes[ascending], sample_weight[ascending], minlength=n_levels)
        occurs = totals > 0
        of_class = np.zeros(n_levels)
        of_class[occurs] = totals.sum() / (occurs.sum() * totals[occurs])
    else:
        position = {label: k for k, label in enumerate(labels.classes.tolist())}
        unknown = [label for label in class_weight if label not in position]
        if unknown:
            raise ValueError(
                f"class_weight has the keys {unknown}, which are not among the classes {list(position)}. "
                "Use the labels of y as keys."
            )
        of_class = np.ones(n_levels)
        for label, weight in class_weight.items():
            if not (np.isfinite(weight) and weight >= 0):
                raise ValueError(
                    f"class_weight[{label!r}] is {weight}; a finite, nonnegative number is needed."
                )
            of_class[position[label]] = weight
    return of_class
