"""Weights of rows and of classes."""

from collections.abc import Mapping
from numbers import Number
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from isbor._core.types import FloatArray, IntArray, LabelArray

__all__ = [
    "ClassWeight",
    "check_sample_weight",
    "check_total_weight",
    "class_factors",
    "nonnegative_weights",
    "weight_sums",
]

ClassWeight: TypeAlias = Mapping[Any, float] | Literal["balanced"] | None

_MAX_TOTAL_WEIGHT = 1e12  # beyond, a single row is lost in rounding
_RESOLVED = 1e-12  # share of the total weight below which the thresholds of a class are not resolved


def check_sample_weight(sample_weight: ArrayLike | None, n_rows: int) -> FloatArray:
    """Return the weight of each row, at least one of which is positive."""
    weight = nonnegative_weights(sample_weight, n_rows)
    if not weight.any():
        raise ValueError("All sample weights are zero; at least one must be positive.")
    return weight


def nonnegative_weights(sample_weight: object, n_rows: int) -> FloatArray:
    """Return the weight of each row: 1 for None, the same for a single number, else as given."""
    if sample_weight is None:
        return np.ones(n_rows)
    values: Any = sample_weight
    if isinstance(values, Number):
        values = [values] * n_rows
    elif isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        weight: FloatArray = check_array(
            values,
            ensure_2d=False,
            ensure_all_finite=False,
            ensure_min_samples=0,
            dtype=np.float64,
            input_name="sample_weight",
        )
    except ValueError as error:
        raise ValueError(f"sample_weight: {error}. One number for each row is needed.") from None
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weight.shape}; one weight for each of the {n_rows} rows is needed. "
            f"Pass a sequence of length {n_rows}, or a single number for all rows."
        )
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        raise ValueError(
            f"sample_weight is {weight[bad[0]]} in row {bad[0]}; a finite, nonnegative number is needed. "
            "Use 0 to leave a row out."
        )
    return weight


def check_total_weight(total: float) -> None:
    """Raise ValueError if rows are lost in the rounding of this total."""
    if not total <= _MAX_TOTAL_WEIGHT:  # also refuses NaN and infinity
        raise ValueError(
            f"The weights of all rows sum to {total:.3g}; at most {_MAX_TOTAL_WEIGHT:.0e} is supported, "
            "because of rounding. A weight of 1 stands for one row: divide sample_weight by a constant."
        )


def class_factors(classes: LabelArray, totals: FloatArray, class_weight: ClassWeight) -> FloatArray:
    """Return the weight of each class, by which sample weights are multiplied; `totals` are sums of these.

    "balanced" gives each class that occurs the same total weight and keeps the total of all rows. A class
    with less than 1e-12 of the total gets weight zero, because its two thresholds could not be resolved.
    """
    factors = _class_weights(classes, totals, class_weight)
    total = factors * totals
    return np.where(total < _RESOLVED * total.sum(), 0.0, factors)


def _class_weights(classes: LabelArray, totals: FloatArray, class_weight: ClassWeight) -> FloatArray:
    of_class = np.ones(len(classes))
    if class_weight is None:
        return of_class
    if isinstance(class_weight, str):
        occurs = totals > 0
        of_class = np.zeros(len(classes))
        of_class[occurs] = totals.sum() / (occurs.sum() * totals[occurs])
        return of_class
    position = {label: k for k, label in enumerate(classes.tolist())}
    unknown = [label for label in class_weight if label not in position]
    if unknown:
        raise ValueError(
            f"class_weight has the keys {unknown}, which are not among the classes {list(position)}. "
            "Use the labels of y as keys."
        )
    for label, weight in class_weight.items():
        if not (np.isfinite(weight) and weight >= 0):
            raise ValueError(f"class_weight[{label!r}] is {weight}; a finite, nonnegative number is needed.")
        of_class[position[label]] = weight
    return of_class


def weight_sums(y: IntArray, weight: FloatArray, n_levels: int) -> FloatArray:
    """Return the total weight of each of so many labels 0, 1, …, (n_levels,)."""
    return np.bincount(y, weight, minlength=n_levels).astype(np.float64)
