"""The types of CSV columns, found from all cells.

A CSV file does not say what its columns hold. The first rows cannot tell: a column of integers may have a
fraction or a word further down. So all cells of all files are read once, as text, before the first pass:

==========  ============================================================================================
integers    All cells are whole numbers of 64 bits, or missing.
numbers     All cells are numbers, or missing.
booleans    All cells are true or false (also True, TRUE), or missing.
text        All other columns, dates among them. Cells are as they are in the file.
==========  ============================================================================================

An empty cell is missing in any column, quoted or not. In a column of numbers or booleans so are the usual
marks of a missing number (`MISSING_NUMBERS`: NA, NaN, null, …). In a column of text they are text: NA may be
a country. A column without any cell has missing integers.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

from isbor.sources.arrow import ArrowTable, pyarrow

__all__ = ["FALSE", "MISSING_NUMBERS", "TRUE", "Kind", "find_kinds"]

Kind: TypeAlias = Literal["integers", "numbers", "booleans", "text"]

TRUE = ("true", "True", "TRUE")
FALSE = ("false", "False", "FALSE")
MISSING_NUMBERS = (
    *("", " ", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-NaN", "-nan", "NAN"),
    *("null", "NULL", "Null", "None", "none", "."),
)

_ORDER: tuple[Kind, ...] = ("integers", "numbers", "booleans")  # the first one that all cells allow


def find_kinds(batches: Iterable[ArrowTable], names: Sequence[str], decimal: str = ".") -> dict[str, Kind]:
    """Return what each column holds.

    Parameters
    ----------
    batches : iterable of Arrow tables
        All cells as strings; null where they are in `MISSING_NUMBERS`.
    names : sequence of str
    decimal : "." or ","
        The decimal sign. A number has no other one.
    """
    possible: dict[str, frozenset[Kind]] = {name: frozenset(_ORDER) for name in names}
    for batch in batches:
        for name, kinds in possible.items():
            if kinds:
                possible[name] = _allowed(batch.column(name), kinds, decimal)
    return {
        name: next((kind for kind in _ORDER if kind in kinds), "text") for name, kinds in possible.items()
    }


def _allowed(column: Any, kinds: frozenset[Kind], decimal: str) -> frozenset[Kind]:
    """Return the kinds, of those given, that all cells allow."""
    if column.null_count == len(column):
        return kinds
    pa = pyarrow()
    allowed: set[Kind] = set()
    if "numbers" in kinds and _is_all(_with_points(column, decimal), pa.float64()):
        allowed.add("numbers")
        # Whole numbers in hexadecimal are no numbers, so that the kind does not depend on where it is cut.
        if "integers" in kinds and _is_all(column, pa.int64()):
            allowed.add("integers")
    elif "booleans" in kinds and pa.compute.all(_is_boolean(column)).as_py():
        allowed.add("booleans")
    return frozenset(allowed)


def _with_points(column: Any, decimal: str) -> Any:
    """Return cells with decimal points, and without a sign that is none if they had points before."""
    if decimal == ".":
        return column
    pa = pyarrow()
    return pa.compute.replace_substring(pa.compute.replace_substring(column, ".", "?"), decimal, ".")


def _is_all(column: Any, kind: Any) -> bool:
    """Return whether all cells can be read as a type; the reader of CSV files allows blanks around them."""
    pa = pyarrow()
    for cells in (column, None):
        cells = pa.compute.utf8_trim(column, " \t") if cells is None else cells
        try:
            cells.cast(kind)
        except pa.ArrowInvalid:
            continue
        return True
    return False


def _is_boolean(column: Any) -> Any:
    pa = pyarrow()
    present = column.drop_null()
    return pa.compute.is_in(present, value_set=pa.array([*TRUE, *FALSE]))
