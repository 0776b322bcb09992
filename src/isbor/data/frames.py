"""The columns of a data frame as numbers: cells, NaN where missing, and positions of levels.

Data frames are read by narwhals: pandas, polars, pyarrow and modin alike. What the columns of a table in
training become is decided in `isbor.data.encoding`.
"""

import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import narwhals as nw
import numpy as np

from isbor._core.types import FloatArray

__all__ = [
    "UNSEEN",
    "Column",
    "Level",
    "as_numbers",
    "as_positions",
    "data_frame",
    "holds_numbers",
    "read_column",
]

Level: TypeAlias = str | bool | int | float
_Kind: TypeAlias = Literal["strings", "booleans", "numbers"]

UNSEEN = -1.0  # in the place of a level that training did not have


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a data frame."""

    levels: tuple[Level, ...] | None  # those that occur, in order; None if the column holds numbers
    cells: FloatArray  # (n,) numbers, or positions in levels; NaN where missing
    ordered: bool = False  # whether the column says that its levels are in order


def data_frame(X: object) -> nw.DataFrame[Any] | None:
    """Return X as a data frame if it is one."""
    try:
        table: Any = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = list(getattr(X, "columns", ()))
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        raise ValueError(
            f"X has several columns of one name: {', '.join(map(repr, twice))}; each needs its own. Rename "
            "or drop them."
        ) from None
    if isinstance(table, nw.LazyFrame) and not hasattr(X, "__array__"):
        raise TypeError(
            f"X is of type {type(X).__name__}, whose rows are yet to be computed; rows are needed. "
            "Pass what its collect() returns."
        )
    return table if isinstance(table, nw.DataFrame) else None


def holds_numbers(frame: nw.DataFrame[Any]) -> bool:
    """Whether all columns hold numbers, which scikit-learn converts itself."""
    return all(dtype.is_numeric() for dtype in frame.schema.values())


def read_column(column: nw.Series[Any], where: str) -> Column:
    """Return a column of a data frame; `where` is what errors call it."""
    dtype = column.dtype
    if dtype.is_numeric():
        return Column(None, column.cast(nw.Float64).to_numpy())
    if isinstance(dtype, nw.Boolean | nw.String | nw.Categorical | nw.Enum):
        return _read_levels(column, where)
    if isinstance(dtype, nw.Object | nw.Unknown):
        return _read_objects(column, where)
    raise _unsuitable(str(dtype), where)


def _read_levels(column: nw.Series[Any], where: str) -> Column:
    values = column.drop_nulls().unique().to_list()
    occurring = set(map(_plain, values))
    _only_kind(occurring, where)
    declared = _declared_levels(column)
    levels = sorted(occurring) if declared is None else [level for level in declared if level in occurring]
    place = {level: float(i) for i, level in enumerate(levels)}
    cells = np.full(len(column), np.nan)
    if values:
        codes = column.replace_strict(values, [place[_plain(v)] for v in values], return_dtype=nw.Float64)
        cells[:] = codes.to_numpy()
    return Column(tuple(levels), cells, _is_ordered(column))


def _is_ordered(column: nw.Series[Any]) -> bool:
    if column.implementation.is_pandas_like():
        return bool(getattr(column.to_native().dtype, "ordered", False))
    return isinstance(column.dtype, nw.Enum)


def _declared_levels(column: nw.Series[Any]) -> list[Level] | None:
    """Return all levels in the order that the column's type gives them, if it does."""
    if isinstance(column.dtype, nw.Enum):
        return list(dict.fromkeys(map(_plain, column.dtype.categories)))
    if isinstance(column.dtype, nw.Categorical) and column.implementation.is_pandas_like():
        return list(dict.fromkeys(map(_plain, column.to_native().dtype.categories)))
    return None


def _read_objects(column: nw.Series[Any], where: str) -> Column:
    """Read a column of Python objects: numbers, or else strings or booleans."""
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
    levels = sorted(set(items))
    place = {level: float(i) for i, level in enumerate(levels)}
    cells[present] = np.fromiter(map(place.__getitem__, items), np.float64, len(items))
    return Column(tuple(map(_plain, levels)), cells)


def as_numbers(column: Column, where: str) -> FloatArray:
    """Return the cells of a column that held numbers in training."""
    if column.levels is None:
        return column.cells
    if column.levels and _only_kind(column.levels, where) != "booleans":
        raise ValueError(
            f"X holds categories, such as {column.levels[0]!r}, in {where}; in training it held numbers. "
            "Convert the column to numbers."
        )
    return _take(np.array(column.levels, dtype=np.float64), column.cells)


def as_positions(column: Column, levels: tuple[Level, ...], where: str) -> FloatArray:
    """Return the cells of a column that held categories in training, as positions in their levels."""
    found, cells = column.levels, column.cells
    if found is None:
        # Numbers may be levels, too, and need not be declared so again.
        values, inverse = np.unique(cells, return_inverse=True)
        found, cells = tuple(values[~np.isnan(values)].tolist()), np.where(np.isnan(cells), np.nan, inverse)
    kind, needed = _only_kind(found, where), _only_kind(levels, where)
    if kind != needed and found and levels:
        raise ValueError(
            f"X holds {kind}, such as {found[0]!r}, in {where}; in training it held {needed}, such as "
            f"{levels[0]!r}. Convert the column to {needed}."
        )
    place = {level: float(i) for i, level in enumerate(levels)}
    return _take(np.array([place.get(level, UNSEEN) for level in found]), cells)


def _take(values: FloatArray, positions: FloatArray) -> FloatArray:
    """Return the values at the positions, NaN at NaN."""
    taken = np.full(len(positions), np.nan)
    present = ~np.isnan(positions)
    taken[present] = values[positions[present].astype(np.intp)]
    return taken


def _plain(level: object) -> Level:
    """Return a level as a plain string, boolean or number; others, such as intervals, by their text."""
    if isinstance(level, np.generic):
        level = level.item()
    if isinstance(level, str):
        return str.__str__(level)  # the text alone of a subclass
    return level if isinstance(level, bool | int | float) else str(level)


def _kind(t: type) -> _Kind | None:
    if issubclass(t, str):
        return "strings"
    if issubclass(t, bool | np.bool_):
        return "booleans"
    return "numbers" if issubclass(t, numbers.Real | Decimal) else None


def _only_kind(values: Iterable[object], where: str) -> _Kind | None:
    """Return the kind of the values, None if there are none; mixtures are refused."""
    examples = {_kind(type(value)): value for value in values}
    if len(examples) > 1:
        found = " and ".join(map(repr, examples.values()))
        raise ValueError(
            f"X holds values of several types in {where}, such as {found}; one type is needed. "
            "Convert them all to it, for instance with astype(str)."
        )
    return next(iter(examples), None)


def _unsuitable(found: str, where: str) -> ValueError:
    return ValueError(
        f"X holds values of type {found} in {where}; numbers, booleans, strings or categories are needed. "
        "Turn dates into numbers (days since one of them) or categories (the month), take nested values "
        "apart into columns of their own, or drop the column."
    )
