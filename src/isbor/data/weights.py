"""Validation of sample weights."""

from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from isbor._core.types import FloatArray

__all__ = ["check_sample_weight"]


def check_sample_weight(sample_weight: ArrayLike | None, n_rows: int) -> FloatArray:
    """Return the weight of each row: 1 for None, the same for a single number, else as given."""
    if sample_weight is None:
        return np.ones(n_rows)
    values: Any = sample_weight
    if isinstance(values, Number):
        values = [values] * n_rows
    elif isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    weight: FloatArray = check_array(
        values,
        ensure_2d=False,
        ensure_all_finite=False,
        ensure_min_samples=0,
        dtype=np.float64,
        input_name="sample_weight",
    )
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
    if not weight.any():
        raise ValueError("All sample weights are zero; at least one must be positive.")
    return weight
