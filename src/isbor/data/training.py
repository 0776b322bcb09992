"""Check and encode the arguments of `fit`, for all estimators."""

from os import PathLike

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length

from isbor._core.checkpoints import Checkpoint
from isbor._core.parallel import Workers
from isbor._core.types import FloatArray, IntArray
from isbor.data.blocks import is_source
from isbor.data.cells import Missing
from isbor.data.encoding import EncodedTable, TableEncoding, learn_numbers, learn_table
from isbor.data.frames import refuse_dask
from isbor.data.labels import OrderedLabels, encode_labels, observed_levels, warn_of_quantity
from isbor.data.large_tables import Reading, sample_size, training_of_many_rows, training_of_source
from isbor.data.numbers import NumberTable
from isbor.data.rows import Scaling, TrainingRows, canonical_rows
from isbor.data.training_set import TrainingSet
from isbor.data.weights import (
    ClassWeight,
    check_sample_weight,
    check_total_weight,
    class_factors,
    weight_sums,
)

__all__ = ["check_lengths", "checked_weights", "read_training"]


def read_training(
    X: object,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    *,
    owner: str,
    workers: Workers,
    missing: Missing = "auto",
    classes: object = None,
    class_weight: ClassWeight = None,
    random_state: int | np.random.RandomState | None = None,
    pairwise: bool = False,
    fewest_levels: int = 2,
    samples: bool = False,
    checkpoint: Checkpoint | None = None,
) -> TrainingSet:
    """Check and encode training data.

    `owner` is what messages name, see `learn_table`; `missing` to `random_state` are parameters of the
    estimators. If `pairwise`, X is a matrix of kernel values; its rows are not scaled, merged or reordered.
    If `samples`, the rows of the result are a sample if there are many (`isbor.data.large_tables`).
    """
    checkpoint = checkpoint or Checkpoint()
    seed = 0 if random_state is None else check_random_state(random_state).randint(1, 2**31)
    if is_source(X):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "X is a source of blocks, which has labels and weights of its own. Leave out y and "
                "sample_weight, and name their columns where the source is opened."
            )
        reading = Reading(owner, missing, classes, class_weight, seed, fewest_levels, samples, checkpoint)
        return training_of_source(X, reading, workers)
    if isinstance(X, str | PathLike):
        raise TypeError(
            f"X is the path {str(X)!r}; rows are needed. Open the file: "
            f"isbor.sources.open_table({str(X)!r}, target=...), with the name of the column of labels."
        )
    refuse_dask(X)
    labels = encode_labels(y, classes)
    warn_of_quantity(len(labels.classes), len(labels.codes), labels.given_order)
    weight = checked_weights(X, labels, sample_weight, class_weight)
    observed = observed_levels(labels, weight, fewest=fewest_levels)
    encoding, table = _learned(owner, X, missing, weight, whole=pairwise or not samples)
    ranks = np.searchsorted(observed, labels.codes)
    if samples and len(table) > sample_size(table.shape[1]):
        training = training_of_many_rows(
            encoding, labels.classes, observed, table, ranks, weight, seed, workers
        )
    else:
        matrix = table[:]
        if pairwise:
            rows, scaling = _rows_of_kernel_matrix(matrix, ranks, weight)
        else:
            rows, scaling = canonical_rows(
                matrix, ranks, weight, seed=seed, feature=encoding.feature, group=encoding.scale_group
            )
        # Of a sparse matrix, all rows with their zeros are not held on to: they are read again as needed.
        sparse = NumberTable.of(X) if samples and issparse(X) else None
        all_rows = matrix if sparse is None else EncodedTable(encoding, owner, sparse)
        training = TrainingSet(encoding, labels.classes, observed, all_rows, weight, rows, scaling, seed)
    checkpoint.begin(encoding, training.rows, training.level_weight)
    return training


def _learned(
    owner: str, X: object, missing: Missing, weight: FloatArray, *, whole: bool
) -> tuple[TableEncoding, FloatArray | EncodedTable]:
    """Learn the encoding of a table, and encode it; one of many numbers only if the `whole` is needed."""
    table = NumberTable.of(X)
    if table is None or len(table) <= sample_size(table.shape[1]):
        return learn_table(owner, X, missing, weight)
    if not whole:
        encoding = learn_numbers(owner, table, missing, weight)
        return encoding, EncodedTable(encoding, owner, table)
    if table.is_sparse:
        n, d = table.shape
        raise ValueError(
            f"X is a sparse matrix of {n} rows and {d} columns; {owner} needs all rows at once with their "
            f"zeros, which takes {8e-9 * n * d:.1f} GB. Use ISBOR with its defaults, which reads them block "
            "by block, fit a sample of the rows, or pass X.toarray() if it fits in memory several times."
        )
    return learn_table(owner, X, missing, weight)


def check_lengths(X: object, labels: IntArray) -> None:
    """Raise ValueError unless there is a label for each row."""
    try:
        check_consistent_length(X, labels)
    except ValueError as error:
        raise ValueError(
            f"{error}: rows of X, and labels in y. One label for each row is needed. Take both from the same "
            "table, by the same filter."
        ) from None


def checked_weights(
    X: object, labels: OrderedLabels, sample_weight: ArrayLike | None, class_weight: ClassWeight
) -> FloatArray:
    """Check that X, y and the weights have the same length, and return the weight of each row."""
    check_lengths(X, labels.codes)
    weight = _row_weights(labels, check_sample_weight(sample_weight, len(labels.codes)), class_weight)
    check_total_weight(float(weight.sum()))
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
    """Return the weight of each row: its sample weight times the weight of its class."""
    ascending = np.argsort(sample_weight)  # so that sums do not depend on the order of rows
    totals = weight_sums(labels.codes[ascending], sample_weight[ascending], len(labels.classes))
    factors = class_factors(labels.classes, totals, class_weight)
    return np.asarray(sample_weight * factors[labels.codes])
