"""A model as a function of two of its features: which they are, a grid over them, and the scores there."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from isbor._core.types import FloatArray
from isbor.data.encoding import TableEncoding
from isbor.data.frames import data_frame, read_column

__all__ = [
    "check_complete",
    "check_numeric",
    "feature_names",
    "feature_numbers",
    "grid",
    "typical_row",
]

_MARGIN = 0.02  # of the range of X, on each side


def feature_names(estimator: Any) -> list[str]:
    """Return the names of the features that a model was fitted to, or their numbers in words."""
    numbered = [f"feature {column}" for column in range(estimator.n_features_in_)]
    return list(getattr(estimator, "feature_names_in_", numbered))


def feature_numbers(features: Sequence[int | str], names: list[str]) -> list[int]:
    """Return the two features as numbers, checked."""
    found = f"features is {features!r}; "
    if len(features) != 2 or len(set(features)) != 2:
        raise ValueError(f"{found}two different columns are needed, for instance (0, 1).")
    columns = [
        names.index(f) if isinstance(f, str) and f in names else f  # an unknown name stays, to be refused
        for f in features
    ]
    if not all(isinstance(column, int | np.integer) and 0 <= column < len(names) for column in columns):
        raise ValueError(
            f"{found}the model has {len(names)} feature(s), {names}. Give two of them by name, if the model "
            f"was fitted to named columns, or by number, from 0 to {len(names) - 1}."
        )
    return [int(column) for column in columns]


def check_numeric(numbers: list[int], names: list[str], table: TableEncoding) -> None:
    """Raise ValueError if a feature that is to be an axis was a category in training."""
    numeric = [name for name, levels in zip(names, table.levels, strict=True) if levels is None]
    for number in numbers:
        levels = table.levels[number]
        if levels is not None:
            raise ValueError(
                f"{names[number]!r} held categories in training, such as {list(levels[:3])}; both axes need "
                f"numbers. The numeric features are {numeric}: give two of them as `features`, or turn the "
                "category into a number before fit."
            )


def check_complete(X: object, names: list[str]) -> None:
    """Raise ValueError if a table that a model accepts has missing cells: they have no place on an axis."""
    frame = data_frame(X)
    if frame is None:
        missing = np.isnan(np.asarray(X, dtype=np.float64))
    else:
        cells = [read_column(column, name) for column, name in zip(frame.iter_columns(), names, strict=True)]
        missing = np.stack([np.isnan(column.cells) for column in cells], axis=1)
    if missing.any():
        rows = np.flatnonzero(missing.any(axis=1))
        affected = [names[column] for column in np.flatnonzero(missing.any(axis=0))]
        raise ValueError(
            f"X has missing cells in {len(rows)} row(s), the first row {rows[0]}, of {affected}; the picture "
            "needs rows without any. Drop those rows from X and y, for instance with X.dropna()."
        )


def typical_row(encoded: FloatArray, table: TableEncoding) -> FloatArray:
    """Return the means of numbers and the most frequent levels of categories, as an encoded row."""
    row: FloatArray = encoded.mean(axis=0)
    for number, levels in enumerate(table.levels):
        if levels is not None:
            own = table.feature == number
            patterns, counts = np.unique(encoded[:, own], axis=0, return_counts=True)
            row[own] = patterns[np.argmax(counts)]
    return row


def grid(shown: FloatArray, resolution: int) -> tuple[FloatArray, FloatArray]:
    """Return a grid over the range of two columns and a little more."""
    low, high = shown.min(axis=0), shown.max(axis=0)
    margin = np.where(high > low, _MARGIN * (high - low), 0.5)
    axes = np.linspace(low - margin, high + margin, resolution)
    xx, yy = np.meshgrid(axes[:, 0], axes[:, 1])
    return xx, yy
