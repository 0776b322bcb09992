"""Data frames of pandas or polars, whichever is installed, with codes replaced by categories."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from isbor._core.types import FloatArray
from isbor.datasets.catalogue import Codes

__all__ = ["frame"]


def frame(
    library: ModuleType, names: Sequence[str], X: FloatArray, codes: dict[str, Codes], source: str
) -> Any:
    """Return a data frame of pandas or polars in which codes are replaced by their categories."""
    columns = {}
    for name, column in zip(names, X.T, strict=True):
        own = codes.get(name.lower())  # the names in R are capitalised
        if codes and own is None:
            raise ValueError(
                f"{source} has a column {name!r}; {', '.join(codes)} are needed. Correct its header, or pass "
                "as_frame=False for an array of numbers."
            )
        columns[name] = column if own is None else _categorical(library, column, own, name, source)
    return library.DataFrame(columns)


def _categorical(library: ModuleType, column: FloatArray, codes: Codes, name: str, source: str) -> Any:
    position = column - codes.first
    known = np.isin(position, np.arange(len(codes.categories)))
    unknown = column[~known & ~np.isnan(column)]
    if len(unknown):
        raise ValueError(
            f"{source} holds {unknown[0]:g} in the column {name!r}; {codes.first} to "
            f"{codes.first + len(codes.categories) - 1} or an empty field is needed. Replace the file."
        )
    position = np.where(known, position, -1).astype(np.intp)
    if library.__name__ == "pandas":
        return library.Categorical.from_codes(position, codes.categories, ordered=codes.ordered)
    texts = np.array([*codes.categories, None], dtype=object)[position].tolist()
    dtype = library.Enum(list(codes.categories)) if codes.ordered else library.Categorical
    return library.Series(name, texts, dtype=dtype)
