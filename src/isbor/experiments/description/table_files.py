"""Users' tables: CSV, TSV and Parquet files, read with pandas.

Of a text file, the encoding, the delimiter and the decimal sign are detected. The encoding is that of the
byte order mark, else UTF-8 if the bytes are valid in it, else Windows-1252, which includes printable Latin-1.
The delimiter is the one whose header names the target, then the one that splits most rows like the header.
"""

import contextlib
import gzip
import importlib
import io
from pathlib import Path
from typing import Any

import narwhals as nw

from isbor.sources.csv_format import DELIMITERS, MARKS, beginning, likely_decimal, likely_delimiter

__all__ = ["labels_as_written", "read_table", "unusual_format"]

_ENCODINGS = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8 with a byte order mark", "cp1252": "Windows-1252"}


def read_table(path: Path, target: str) -> nw.DataFrame[Any]:
    """Read a table with at least one row; its format follows from the file's ending."""
    ending = _ending(path)
    if not ending.endswith((".csv", ".tsv", ".parquet")):
        raise ValueError(f"{path.name} is not a .csv, .tsv or .parquet file; save the table as one of these.")
    _pandas()  # if it is missing, that is not the file's fault
    try:
        table = _read_parquet(path) if ending.endswith(".parquet") else _read_text(path, target)
    except OSError:
        raise
    except Exception as error:  # pandas and its readers have many kinds
        raise ValueError(f"{path.name} cannot be read as a table: {' '.join(str(error).split())}") from error
    frame: nw.DataFrame[Any] = nw.from_native(table, eager_only=True)
    if len(frame) == 0:
        raise ValueError(f"{path.name} has no rows.")
    return frame


def labels_as_written(path: Path, labels: nw.Series[Any]) -> nw.Series[Any]:
    """Return labels as strings, exactly as in the file.

    By default "None" and "NA" would be missing values, "01" a number and "false" a Boolean; as labels they
    may be classes.
    """
    if _ending(path).endswith(".parquet"):
        return labels
    name = labels.name
    table = _read_text(path, name, dtype={name: str}, keep_default_na=False, na_values=[""])
    written: nw.Series[Any] = nw.from_native(table[name], series_only=True)
    return written


def unusual_format(path: Path, target: str) -> str:
    """Return the format of a text file in words; nothing for UTF-8 with the delimiter of its ending."""
    if _ending(path).endswith(".parquet"):
        return ""
    _, encoding, delimiter, decimal = _detect(path, target)
    if (encoding, delimiter, decimal) == ("utf-8", _usual_delimiter(path), "."):
        return ""
    name = _ENCODINGS.get(encoding, encoding.upper())
    commas = " and decimal commas" if decimal == "," else ""
    return f"text in {name} with {DELIMITERS[delimiter]} between columns{commas}"


def _pandas() -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise ImportError(
            'To read a table, pandas is needed, which is not installed: pip install "isbor[experiments]".'
        ) from None


def _read_parquet(path: Path) -> Any:
    try:
        return _pandas().read_parquet(path)
    except ImportError:  # pandas needs another package for this
        with contextlib.suppress(ImportError):
            return importlib.import_module("polars").read_parquet(path)
        raise


def _read_text(path: Path, target: str, **options: Any) -> Any:
    """Read a CSV or TSV file; column types are inferred from all rows."""
    text, _, delimiter, decimal = _detect(path, target)
    file = io.StringIO(text, newline="")
    return _pandas().read_csv(file, sep=delimiter, decimal=decimal, low_memory=False, **options)


def _detect(path: Path, target: str) -> tuple[str, str, str, str]:
    """Return the text of a file, its encoding, delimiter and decimal sign."""
    content = path.read_bytes()
    if path.suffix.lower() == ".gz":
        content = gzip.decompress(content)
    encoding = _encoding(content)
    text = content.decode(encoding)
    sample = beginning(text)
    delimiter = likely_delimiter(sample, _usual_delimiter(path), [target])
    decimal = likely_decimal(sample, delimiter)
    return text, encoding, delimiter, decimal


def _encoding(content: bytes) -> str:
    for mark, encoding in MARKS.items():
        if content.startswith(mark):
            return encoding
    if b"\0" in content[:4]:  # a Latin letter in UTF-16 has a zero byte
        return "utf-16-be" if content[0] == 0 else "utf-16-le"
    for encoding in ("utf-8", "cp1252"):
        with contextlib.suppress(UnicodeDecodeError):
            content.decode(encoding)
            return encoding
    raise ValueError("it is not text in UTF-8, UTF-16 or Windows-1252.")


def _usual_delimiter(path: Path) -> str:
    return "\t" if _ending(path).endswith(".tsv") else ","


def _ending(path: Path) -> str:
    return "".join(path.suffixes).lower().removesuffix(".gz")
