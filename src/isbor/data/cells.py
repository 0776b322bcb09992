"""Cells of a table: numbers, with NaN for missing cells and positions for categories."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import narwhals as nw
import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

from isbor._core.types import FloatArray
from isbor.data.features import check_names, check_number, feature_names
from isbor.data.frames import Category, Column, data_frame, holds_numbers, read_column
from isbor.data.numbers import NumberTable, as_csr

__all__ = ["Columns", "Missing", "cells_of", "check_numbers", "column_name", "read_again", "read_table"]

Missing: TypeAlias = Literal["auto", "indicator", "error"]

# The columns of a table as they were read; a matrix if all are numeric.
Columns: TypeAlias = list[Column] | FloatArray


def read_table(owner: str, X: object, missing: Missing) -> tuple[tuple[str, ...] | None, Columns]:
    """Read and check a table; return the names of its features, if it has any, and its columns."""
    _check_choice(missing)
    frame = data_frame(X)
    names = feature_names(frame)
    columns: Columns
    if frame is None or holds_numbers(frame):
        columns = _numeric_cells(X, owner)
    else:
        columns = _read_columns(frame, names, owner)
    _check_finite([cells_of(columns)], names, owner, missing, is_frame=frame is not None)
    return names, columns


def check_numbers(owner: str, table: NumberTable, missing: Missing) -> None:
    """Check all numbers of a table, as `read_table` does, block by block."""
    _check_choice(missing)
    blocks = (_numeric_cells(table[rows], owner) for rows in table.blocks())
    _check_finite(blocks, table.names, owner, missing, is_frame=table.is_frame)


def read_again(
    owner: str,
    X: object,
    missing: Missing,
    names: tuple[str, ...] | None,
    categories: tuple[tuple[Category, ...] | None, ...],
) -> Columns:
    """Read and check a table that has the features of an earlier one, with these names and categories."""
    frame = data_frame(X)
    first = next((j for j, of_feature in enumerate(categories) if of_feature is not None), None)
    if frame is None and first is not None:
        raise ValueError(
            f"X is of type {type(X).__name__}; {owner} was fitted to a data frame with categories in "
            f"{column_name(names, first)}. Pass a data frame with the same columns, of one row "
            "frame.iloc[[k]]."
        )
    check_names(feature_names(frame), names, owner)
    columns: Columns
    if frame is None or (holds_numbers(frame) and first is None):
        columns = cells = _numeric_cells(X, owner)
        check_number(cells.shape[1], len(categories), owner)
    else:
        check_number(frame.shape[1], len(categories), owner)
        columns = _read_columns(frame, names, owner)
    _check_finite([cells_of(columns)], names, owner, missing, is_frame=frame is not None)
    return columns


def cells_of(columns: Columns) -> FloatArray:
    """Return the cells of a table, (n, d)."""
    if isinstance(columns, list):
        return np.stack([column.cells for column in columns], axis=1)
    return columns


def _numeric_cells(X: object, owner: str) -> FloatArray:
    """Return the cells of a table of numbers; those of a sparse matrix with its zeros."""
    try:
        if issparse(X):
            X = as_csr(X).toarray()  # adds up entries that are stored twice
        if isinstance(X, np.ma.MaskedArray):
            X = np.ma.filled(X.astype(np.float64), np.nan)  # scikit-learn would drop the mask
        checked: FloatArray = check_array(
            X, dtype=np.float64, order="C", ensure_all_finite=False, estimator=owner, input_name="X"
        )
    except ValueError as error:
        if not str(error).startswith("could not convert string to float"):
            raise
        raise ValueError(
            f"{error}: X is an array, and {owner} needs arrays of numbers. Pass a data "
            "frame instead: its columns of strings are treated as categories."
        ) from None
    return checked


def _read_columns(frame: nw.DataFrame[Any], names: Sequence[str] | None, owner: str) -> list[Column]:
    """Return the columns of a data frame."""
    if len(frame) == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={frame.shape}) while a minimum of 1 is required by "
            f"{owner}. Check the filter that made X."
        )
    return [read_column(column, column_name(names, j)) for j, column in enumerate(frame.iter_columns())]


def _check_choice(missing: Missing) -> None:
    if missing not in get_args(Missing):
        choices = ", ".join(map(repr, get_args(Missing)))
        raise ValueError(f"missing is {missing!r}; one of {choices} is needed.")


def _check_finite(
    blocks: Iterable[FloatArray], names: Sequence[str] | None, owner: str, missing: Missing, is_frame: bool
) -> None:
    """Raise ValueError if a cell is infinite, or missing where missing cells are not accepted."""
    accepted = missing == "indicator" or (missing == "auto" and is_frame)
    n_rows = n_bad = 0
    first: tuple[int, int, bool] | None = None  # row, column, and whether the cell is missing
    for cells in blocks:
        bad = np.isinf(cells) if accepted else ~np.isfinite(cells)
        if bad.any():
            row, column = (int(i) for i in np.unravel_index(np.argmax(bad), bad.shape))
            first = first or (n_rows + row, column, bool(np.isnan(cells[row, column])))
            n_bad += int(np.count_nonzero(bad))
        n_rows += len(cells)
    if first is None:
        return
    row, column, is_missing = first
    remedy = (
        "Drop these rows or impute the values, for example with "
        'sklearn.impute.SimpleImputer(add_indicator=True). Or set missing="indicator" to replace them by the '
        "mean and mark them in an extra column."
        if is_missing
        else "Replace infinite values, or drop these rows."
    )
    raise ValueError(
        f"X contains {'inf' if accepted else 'NaN or inf'} in {n_bad} cell(s), the first "
        f"({'NaN' if is_missing else 'inf'}) in row {row}, {column_name(names, column)}; {owner} needs "
        f"finite numbers. {remedy}"
    )


def column_name(names: Sequence[str] | None, j: int) -> str:
    """Return how messages name a column."""
    return f"column {j}" if names is None else f"column {names[j]!r}"
