"""Training data that arrive in batches; the first batch determines encoding and scaling."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from isbor._core.types import FloatArray
from isbor.data.labels import OrderedLabels, rank_labels
from isbor.data.rows import TrainingRows
from isbor.data.training import checked_weights
from isbor.data.training_set import TrainingSet
from isbor.data.weights import ClassWeight

__all__ = ["further_training", "unscaled_where_constant"]


def further_training(
    before: TrainingSet,
    X: object,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    *,
    owner: str,
    class_weight: ClassWeight,
) -> TrainingSet:
    """Add a batch of rows: known rows gain weight, new rows are appended in the order given."""
    before = unscaled_where_constant(before)
    labels = OrderedLabels(before.classes, rank_labels(y, before.classes))
    matrix = before.encoding(owner, X)
    weight = checked_weights(matrix, labels, sample_weight, class_weight)
    n_before, rows = len(before.X), before.rows
    place = {
        _key(before.X[source], code): position
        for position, (source, code) in enumerate(zip(rows.source, before.observed[rows.y], strict=True))
    }
    total = rows.weight.tolist()
    added: list[int] = []
    for i in np.flatnonzero(weight > 0.0).tolist():
        position = place.setdefault(_key(matrix[i], labels.codes[i]), len(total))
        if position == len(total):
            added.append(i)
            total.append(0.0)
        total[position] += float(weight[i])
    codes = np.concatenate([before.observed[rows.y], labels.codes[added]])
    observed = np.unique(codes)
    return replace(
        before,
        observed=observed,
        X=np.concatenate([before.X, matrix]),
        weight=np.concatenate([before.weight, weight]),
        rows=TrainingRows(
            np.concatenate([rows.X, before.scaling(matrix[added])]),
            np.searchsorted(observed, codes),
            np.array(total),
            np.concatenate([rows.source, n_before + np.array(added, np.intp)]),
        ),
    )


def _key(row: FloatArray, code: int) -> tuple[bytes, int]:
    """Return a key that is the same for equal rows; adding 0.0 turns -0.0 into 0.0."""
    return (row + 0.0).tobytes(), int(code)


def unscaled_where_constant(training: TrainingSet) -> TrainingSet:
    """Return the training data with factor 1 for constant features, which may vary in later batches."""
    scaling = training.scaling
    constant = scaling.factor == 0.0
    if not constant.any():
        return training
    mean = np.where(constant, training.X[training.rows.source[0]], scaling.mean)
    factor = np.where(constant, 1.0, scaling.factor)
    return replace(training, scaling=replace(scaling, mean=mean, factor=factor))
