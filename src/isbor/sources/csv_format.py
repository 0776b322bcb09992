"""How a CSV file is written: delimiter, encoding, decimal sign, and columns that are text.

A file says none of this. `detect_csv_format` looks at its beginning:

- the encoding is that of the byte order mark, else UTF-8;
- the delimiter is the one whose header has the wanted names, then the one that splits most rows like the
  header, then the one that gives most columns;
- the decimal sign is a comma if cells such as 1,5 occur, and none such as 1.5.
"""

import codecs
import csv
import io
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice

from isbor.sources.arrow import guarded, pyarrow
from isbor.sources.errors import SourceError
from isbor.sources.files import DataFile, find_files

__all__ = [
    "DELIMITERS",
    "MARKS",
    "CsvFormat",
    "beginning",
    "detect_csv_format",
    "likely_decimal",
    "likely_delimiter",
]

# Delimiters that are tried, and their names.
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
# Byte order marks, and the encodings that they stand for.
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SAMPLE = 65_536  # characters, and
_SAMPLE_ROWS = 100  # rows, that a delimiter is judged by
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+")


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """How CSV files are written.

    Parameters
    ----------
    delimiter : str or None, default=None
        The character between columns. None means that of the ending: a tab for .tsv, else a comma.
    encoding : str, default="utf-8"
        Any encoding that Python knows. A byte order mark is skipped.
    decimal : "." or ",", default="."
        The decimal sign.
    text : tuple of str, default=()
        Columns that are text, even if all their cells are numbers: postcodes, labels such as 01.

    See Also
    --------
    detect_csv_format : Finds out delimiter, encoding and decimal sign.
    open_table : Opens the file.

    Examples
    --------
    >>> from isbor.sources import CsvFormat
    >>> CsvFormat(delimiter=";", decimal=",", text=("postcode",))
    CsvFormat(delimiter=';', encoding='utf-8', decimal=',', text=('postcode',))
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    text: tuple[str, ...] = ()


def detect_csv_format(
    path: str | os.PathLike[str],
    *,
    names: Collection[str] = (),
    delimiter: str | None = None,
    encoding: str | None = None,
) -> CsvFormat:
    r"""Return how a CSV file is written, judged by its beginning.

    Parameters
    ----------
    path : path
        A CSV file as `open_table` takes it, which may be compressed.
    names : collection of str, default=()
        Columns that the table has. A delimiter that gives them is preferred.
    delimiter, encoding : str, optional
        What is known already.

    Raises
    ------
    SourceError
        If there is no such file, or its text is not in this encoding.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "grades.csv"
    ...     _ = path.write_text("weight;grade\n1,5;low\n2,25;high\n")
    ...     detect_csv_format(path)
    CsvFormat(delimiter=';', encoding='utf-8', decimal=',', text=())
    """
    (file,) = find_files([path])
    content = _first_bytes(file)
    if encoding is None:
        encoding = next((name for mark, name in MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(content)  # the last character may be cut
    except LookupError:
        raise SourceError(
            f"There is no encoding {encoding!r}. Name one that Python knows, such as utf-8, cp1252 or utf-16."
        ) from None
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{file.path} is not text in {encoding.upper()}: byte {error.start} is "
            f"0x{content[error.start]:02x}. Name its encoding, often cp1252 from a spreadsheet program, "
            "or convert it to UTF-8."
        ) from None
    sample = beginning(text)
    delimiter = delimiter or likely_delimiter(sample, file.delimiter, names)
    return CsvFormat(delimiter, encoding.removesuffix("-sig"), likely_decimal(sample, delimiter))


def beginning(text: str) -> str:
    """Return the whole lines at the beginning of a text by which a format is judged."""
    return text if len(text) <= _SAMPLE else text[: text.rfind("\n", 0, _SAMPLE) + 1]


def likely_delimiter(sample: str, usual: str, names: Collection[str]) -> str:
    """Return the delimiter of a text; `usual` is tried first and wins if others are no better."""
    return max([usual, *DELIMITERS], key=lambda one: _merit(sample, one, names))  # the first of equals


def likely_decimal(sample: str, delimiter: str) -> str:
    """Return the decimal sign of the numbers in a text."""
    fields = [field.strip() for row in _rows(sample, delimiter)[1:] for field in row]
    has_commas = delimiter != "," and any(map(_DECIMAL_COMMA.fullmatch, fields))
    return "," if has_commas and not any(map(_DECIMAL_POINT.fullmatch, fields)) else "."


def _merit(sample: str, delimiter: str, names: Collection[str]) -> tuple[int, float, int]:
    """Return (names in the header, share of rows as long as the header, columns): the larger the better."""
    header, *rows = _rows(sample, delimiter) or [[]]
    if len(header) < 2:
        return 0, 0.0, 0
    known = {name.strip() for name in header}
    alike = sum(len(row) == len(header) for row in rows) / max(len(rows), 1)
    return sum(name in known for name in names), alike, len(header)


def _rows(sample: str, delimiter: str) -> list[list[str]]:
    try:
        reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
        return [row for row in islice(reader, _SAMPLE_ROWS) if row]
    except csv.Error:
        return []


def _first_bytes(file: DataFile) -> bytes:
    pa = pyarrow()
    with guarded(file.unreadable), pa.input_stream(file.path, compression=file.compression) as stream:
        content: bytes = stream.read(4 * _SAMPLE)
        return content
