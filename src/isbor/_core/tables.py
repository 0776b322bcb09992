"""Results as tables: data frames of pandas or polars, or dicts of arrays where neither is installed."""

from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_frame", "frame_library", "objects"]


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


def objects(values: list[Any]) -> NDArray[np.object_]:
    """Return values of several types as an array."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
