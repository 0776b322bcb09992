"""Results as tables: data frames of pandas or polars, or dicts of arrays where neither is installed."""

from importlib import import_module
from types import ModuleType
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

__all__ = ["as_frame", "columns_like", "frame_library", "objects"]


def frame_library() -> ModuleType | None:
    """Return the module pandas or, if it is not installed, polars; None if neither is."""
    for name in ("pandas", "polars"):
        try:
            return import_module(name)
        except ImportError:
            continue
    return None


def as_frame(columns: dict[str, NDArray[Any]]) -> Any:
    """Return columns of the same length as a data frame, or as they are without a library for it."""
    library = frame_library()
    return columns if library is None else library.DataFrame(columns)


def columns_like(X: object, values: NDArray[Any], labels: NDArray[Any]) -> Any:
    """Return a data frame with a column for each label, of the library of X and with its index.

    If X is no data frame, it is the library of `as_frame`. In pandas, the names of the columns are the labels
    as they are; elsewhere they are text.
    """
    names = labels.tolist()
    table: Any = nw.from_native(X, pass_through=True, eager_only=True)
    if not isinstance(table, nw.DataFrame):
        library = frame_library()
        if library is not None and library.__name__ != "pandas":
            names = list(map(str, names))
        return as_frame(dict(zip(names, values.T, strict=True)))
    if table.implementation.is_pandas_like():
        library = table.implementation.to_native_namespace()
        return library.DataFrame(values, index=table.to_native().index, columns=names)
    columns = dict(zip(map(str, names), values.T, strict=True))
    return nw.from_dict(columns, backend=table.implementation).to_native()


def objects(values: list[Any]) -> NDArray[np.object_]:
    """Return values of several types as an array."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
