"""Cells of a table: numbers, with NaN for missing cells and positions for categories."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

import narwhals as nw
import numpy as np
from sklearn.utils import check_array

from isbor._core.types import FloatArray
from isbor.data.features import feature_names
from isbor.data.frames import Column, data_frame, holds_numbers, read_column

__all__ = ["Missing", "check_cells", "column_name", "numeric_cells", "read_columns", "read_table"]

Missing: TypeAlias = Literal["auto", "indicator", "error"]


def read_table(
    owner: str, X: object, missing: Missing
) -> tuple[tuple[str, ...] | None, FloatArray, list[Column] | None]:
    """Return the names of the features, the cells, and the columns if some hold categories.

    Raises ValueError if a cell is infinite, or missing where that is not accepted.
    """
    if missing not in get_args(Missing):
        choices = ", ".join(map(repr, get_args(Missing)))
        raise ValueError(f"missing is {missing!r}; one of {choices} is needed.")
    frame = data_frame(X)
    names = feature_names(frame)
    columns = None
    if frame is None or holds_numbers(frame):
        cells = numeric_cells(X, owner)
    else:
        columns = read_columns(frame, names, owner)
        cells = np.stack([column.cells for column in columns], axis=1)
    check_cells(cells, names, owner, missing, is_frame=frame is not None)
    return names, cells, columns


def numeric_cells(X: object, owner: str) -> FloatArray:
    """Return the cells of a table of numbers."""
    try:
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


def read_columns(frame: nw.DataFrame[Any], names: Sequence[str] | None, owner: str) -> list[Column]:
    """Return the columns of a data frame."""
    if len(frame) == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={frame.shape}) while a minimum of 1 is required by "
            f"{owner}. Check the filter that made X."
        )
    return [read_column(column, column_name(names, j)) for j, column in enumerate(frame.iter_columns())]


def check_cells(
    cells: FloatArray, names: Sequence[str] | None, owner: str, missing: Missing, is_frame: bool
) -> None:
    """Raise ValueError if a cell is infinite, or missing where missing cells are not accepted."""
    bad = ~np.isfinite(cells)
    if not bad.any():
        return
    accepted = missing == "indicator" or (missing == "auto" and is_frame)
    if accepted:
        bad = np.isinf(cells)
        if not bad.any():
            return
    row, column = (int(i) for i in np.unravel_index(np.argmax(bad), bad.shape))
    is_missing = np.isnan(cells[row, column])
    remedy = (
        "Drop these rows or impute the values, for example with "
        'sklearn.impute.SimpleImputer(add_indicator=True). Or set missing="indicator" to replace them by the '
        "mean and mark them in an extra column."
        if is_missing
        else "Replace infinite values, or drop these rows."
    )
    raise ValueError(
        f"X contains {'inf' if accepted else 'NaN or inf'} in {np.count_nonzero(bad)} cell(s), the first "
        f"({'NaN' if is_missing else 'inf'}) in row {row}, {column_name(names, column)}; {owner} needs "
        f"finite numbers. {remedy}"
    )


def column_name(names: Sequence[str] | None, j: int) -> str:
    """Return how messages name a column."""
    return f"column {j}" if names is None else f"column {names[j]!r}"
