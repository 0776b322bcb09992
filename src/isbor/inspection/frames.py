"""Results as tables: a pandas data frame, or a dict of arrays where pandas is not installed."""

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_frame", "objects"]


def as_frame(columns: dict[str, NDArray[Any]]) -> Any:
    """Return columns of the same length as a data frame, or as they are without pandas."""
    try:
        pandas = import_module("pandas")
    except ImportError:
        return columns
    return pandas.DataFrame(columns)


def objects(values: list[Any]) -> NDArray[np.object_]:
    """Return values of several types as an array."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
