"""Data frames of pandas or polars, whichever is installed, with categories for codes."""

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from isbor._core.types import FloatArray
from isbor.datasets.catalogue import Codes

__all__ = ["frame", "frame_library"]


def frame_library() -> ModuleType | None:
    """Return pandas, or else polars, or else None."""
    for name in ("pandas", "polars"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def frame(
    library: ModuleType, names: Sequence[str], X: FloatArray, codes: dict[str, Codes], source: str
) -> Any:
    """Return a data frame of pandas or polars, in which codes of categories are replaced by their meaning."""
    columns = {}
    for name, column in zip(names, X.T, strict=True):
        meaning = codes.get(name.lower())  # the names in R are capitalised
        if codes and meaning is None:
            raise ValueError(
                f"{source} has a column {name!r}; {', '.join(codes)} are needed. Correct its header, or pass "
                "as_frame=False for an array of numbers."
            )
        columns[name] = column if meaning is None else _category(library, column, meaning, name, source)
    return library.DataFrame(columns)


def _category(library: ModuleType, column: FloatArray, codes: Codes, name: str, source: str) -> Any:
    position = column - codes.first
    known = np.isin(position, np.arange(len(codes.levels)))
    unknown = column[~known & ~np.isnan(column)]
    if len(unknown):
        raise ValueError(
            f"{source} holds {unknown[0]:g} in the column {name!r}; {codes.first} to "
            f"{codes.first + len(codes.levels) - 1} or an empty field is needed. Replace the file."
        )
    position = np.where(known, position, -1).astype(np.intp)
    if library.__name__ == "pandas":
        return library.Categorical.from_codes(position, codes.levels, ordered=codes.ordered)
    texts = np.array([*codes.levels, None], dtype=object)[position].tolist()
    dtype = library.Enum(list(codes.levels)) if codes.ordered else library.Categorical
    return library.Series(name, texts, dtype=dtype)
