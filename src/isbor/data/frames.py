"""Read the columns of a data frame as numbers: values, or positions of categories; NaN for missing cells.

Data frames (pandas, polars, pyarrow, modin) are read through narwhals. `isbor.data.encoding` decides how the
columns are encoded.
"""

import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import narwhals as nw
import numpy as np
from scipy.sparse import issparse

from isbor._core.types import FloatArray, IntArray

__all__ = [
    "UNSEEN",
    "Column",
    "Category",
    "as_numbers",
    "as_positions",
    "categories_of",
    "data_frame",
    "holds_numbers",
    "read_column",
    "refuse_dask",
    "take_rows",
]

Category: TypeAlias = str | bool | int | float
_Kind: TypeAlias = Literal["strings", "booleans", "numbers"]

UNSEEN = -1.0  # position of an unseen category


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a data frame."""

    categories: tuple[Category, ...] | None  # those that occur, in order; None for a numeric column
    cells: FloatArray  # (n,) numbers, or positions in `categories`; NaN where missing
    ordered: bool = False  # whether the column's type says that the categories are ordered
    declared: tuple[Category, ...] | None = None  # all categories, if the column's type declares their order


def data_frame(X: object) -> nw.DataFrame[Any] | None:
    """Return X as a narwhals data frame, or None if it is not a data frame."""
    refuse_dask(X)
    try:
        table: Any = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = list(getattr(X, "columns", ()))
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        raise ValueError(
            f"X has several columns with the same name: {', '.join(map(repr, twice))}; names must be unique. "
            "Rename or drop columns."
        ) from None
    if isinstance(table, nw.LazyFrame) and not hasattr(X, "__array__"):
        raise TypeError(
            f"X is of type {type(X).__name__}, which holds a query, not rows; rows are needed. "
            "Pass X.collect()."
        )
    return table if isinstance(table, nw.DataFrame) else None


def take_rows(X: Any, rows: IntArray) -> Any:
    """Return rows of an array, sparse matrix, list or data frame, by position."""
    table = data_frame(X)
    if table is not None:
        return table[rows.tolist()].to_native()
    return X.tocsr()[rows] if issparse(X) else np.asarray(X)[rows]


def refuse_dask(X: object) -> None:
    """Raise TypeError if X is a collection of Dask: its rows are not here, and need not fit in memory."""
    if type(X).__module__.partition(".")[0] == "dask":
        is_frame = hasattr(X, "columns")
        opened = "sources.open_table(X, target=…)" if is_frame else "sources.open_table((X, y))"
        raise TypeError(
            f"X is a Dask {type(X).__name__}, whose rows are not in memory. To fit, pass {opened} alone. To "
            "predict, use sources.map_blocks(model.predict_proba, sources.open_table(X)). `sources` is "
            "imported from isbor. If all rows fit in memory, pass X.compute()."
        )


def holds_numbers(frame: nw.DataFrame[Any]) -> bool:
    """Return whether all columns are numeric, so that scikit-learn can convert the frame."""
    return all(dtype.is_numeric() for dtype in frame.schema.values())


def read_column(column: nw.Series[Any], where: str) -> Column:
    """Read a column of a data frame; `where` names it in errors."""
    dtype = column.dtype
    if dtype.is_numeric():
        return Column(None, column.cast(nw.Float64).to_numpy())
    if isinstance(dtype, nw.Boolean | nw.String | nw.Categorical | nw.Enum):
        return _read_categories(column, where)
    if isinstance(dtype, nw.Object | nw.Unknown):
        return _read_objects(column, where)
    raise _unsuitable(str(dtype), where)


def _read_categories(column: nw.Series[Any], where: str) -> Column:
    values = column.drop_nulls().unique().to_list()
    occurring = set(map(_plain, values))
    _only_kind(occurring, where)
    declared = _declared_categories(column)
    categories = (
        sorted(occurring)
        if declared is None
        else [category for category in declared if category in occurring]
    )
    place = {category: float(i) for i, category in enumerate(categories)}
    cells = np.full(len(column), np.nan)
    if values:
        codes = column.replace_strict(values, [place[_plain(v)] for v in values], return_dtype=nw.Float64)
        cells[:] = codes.to_numpy()
    in_order = None if declared is None else tuple(declared)
    return Column(tuple(categories), cells, _is_ordered(column), in_order)


def _is_ordered(column: nw.Series[Any]) -> bool:
    if column.implementation.is_pandas_like():
        return bool(getattr(column.to_native().dtype, "ordered", False))
    return isinstance(column.dtype, nw.Enum)


def _declared_categories(column: nw.Series[Any]) -> list[Category] | None:
    """Return all categories in the order declared by the column's type, None if it declares none."""
    dtype: Any = column.dtype
    if column.implementation.is_pandas_like():
        # narwhals remembers its types by those of pandas, for which 1, 0 and True, False are the same.
        dtype = column.to_native().dtype
    elif not isinstance(dtype, nw.Enum):
        return None
    declared = getattr(dtype, "categories", None)
    return None if declared is None else list(dict.fromkeys(map(_plain, declared)))


def _read_objects(column: nw.Series[Any], where: str) -> Column:
    """Read a column of Python objects: all numbers, all strings or all booleans."""
    present = ~column.is_null().to_numpy()
    items = column.to_numpy()[present].tolist()
    examples = dict(zip(map(type, items), items, strict=True))
    for t, example in examples.items():
        if _kind(t) is None:
            raise _unsuitable(f"{t.__name__}, such as {example!r}", where)
    cells = np.full(len(present), np.nan)
    kind = _only_kind(examples.values(), where)
    if kind is None or kind == "numbers":
        cells[present] = np.array(items, dtype=np.float64)
        return Column(None, cells)
    categories = sorted(set(items))
    place = {category: float(i) for i, category in enumerate(categories)}
    cells[present] = np.fromiter(map(place.__getitem__, items), np.float64, len(items))
    return Column(tuple(map(_plain, categories)), cells)


def as_numbers(column: Column, where: str) -> FloatArray:
    """Return the cells of a column that was numeric in training."""
    if column.categories is None:
        return column.cells
    if column.categories and _only_kind(column.categories, where) != "booleans":
        raise ValueError(
            f"X holds categories, such as {column.categories[0]!r}, in {where}; in training it held numbers. "
            "Convert the column to numbers."
        )
    return _take(np.array(column.categories, dtype=np.float64), column.cells)


def as_positions(column: Column, categories: tuple[Category, ...], where: str) -> FloatArray:
    """Return the cells of a column that was categorical in training, as positions in `categories`."""
    found, cells = column.categories, column.cells
    if found is None:
        # In training the column was declared categorical; here the same numbers may come undeclared.
        values, inverse = np.unique(cells, return_inverse=True)
        found, cells = tuple(values[~np.isnan(values)].tolist()), np.where(np.isnan(cells), np.nan, inverse)
    kind, needed = _only_kind(found, where), _only_kind(categories, where)
    if kind != needed and found and categories:
        raise ValueError(
            f"X holds {kind}, such as {found[0]!r}, in {where}; in training it held {needed}, such as "
            f"{categories[0]!r}. Convert the column to {needed}."
        )
    place = {category: float(i) for i, category in enumerate(categories)}
    return _take(np.array([place.get(category, UNSEEN) for category in found]), cells)


def categories_of(column: Column) -> tuple[Category, ...]:
    """Return the categories that occur; of a column of numbers, the numbers."""
    if column.categories is not None:
        return column.categories
    return tuple(np.unique(column.cells[~np.isnan(column.cells)]).tolist())


def _take(values: FloatArray, positions: FloatArray) -> FloatArray:
    """Return the values at the positions, NaN where the position is NaN."""
    taken = np.full(len(positions), np.nan)
    present = ~np.isnan(positions)
    taken[present] = values[positions[present].astype(np.intp)]
    return taken


def _plain(category: object) -> Category:
    """Return a category as a plain string, boolean or number; others, such as intervals, as text."""
    if isinstance(category, np.generic):
        category = category.item()
    if isinstance(category, str):
        return str.__str__(category)  # plain str, also for a subclass
    return category if isinstance(category, bool | int | float) else str(category)


def _kind(t: type) -> _Kind | None:
    if issubclass(t, str):
        return "strings"
    if issubclass(t, bool | np.bool_):
        return "booleans"
    return "numbers" if issubclass(t, numbers.Real | Decimal) else None


def _only_kind(values: Iterable[object], where: str) -> _Kind | None:
    """Return the kind of the values, None if there are none; raise ValueError if there are several."""
    examples = {_kind(type(value)): value for value in values}
    if len(examples) > 1:
        found = " and ".join(map(repr, examples.values()))
        raise ValueError(
            f"X holds values of several types in {where}, such as {found}; one type is needed. "
            "Convert them to one type, for example with astype(str)."
        )
    return next(iter(examples), None)


def _unsuitable(found: str, where: str) -> ValueError:
    return ValueError(
        f"X holds values of type {found} in {where}; numbers, booleans, strings or categories are needed. "
        "Convert dates to numbers (days since a date) or categories (the month), split nested values into "
        "several columns, or drop the column."
    )
