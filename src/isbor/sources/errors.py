"""The error that sources raise, and words that their messages share."""

import difflib
from collections.abc import Iterable, Sequence

__all__ = ["SourceError", "listed", "near_misses", "rows_text"]

_SHOWN = 10  # names quoted in a message


class SourceError(ValueError):
    """A table cannot be read, or is not what it was when it was read before.

    See Also
    --------
    open_table : Opens a table.

    Examples
    --------
    >>> from isbor import sources
    >>> try:
    ...     sources.open_table("no-such-folder/*.parquet")
    ... except sources.SourceError as error:
    ...     print(error)
    No file matches 'no-such-folder/*.parquet'. Check the pattern and the working directory.
    """


def listed(names: Iterable[object]) -> str:
    """List names for a message, cut after the first few."""
    names = list(names)
    shown = ", ".join(map(repr, names[:_SHOWN]))
    return f"{shown}, … {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


def near_misses(name: object, names: Sequence[object]) -> list[str]:
    """Return the names that someone who wrote `name` may have meant, the nearest first."""
    by_lower_case = {str(known).lower(): str(known) for known in reversed(names)}
    return [by_lower_case[near] for near in difflib.get_close_matches(str(name).lower(), by_lower_case)]


def rows_text(first: int, n_rows: int) -> str:
    """Name rows by their numbers, counted from 0."""
    return f"row {first}" if n_rows == 1 else f"rows {first} to {first + n_rows - 1}"
