"""Reading and writing of benchmark files: CSV, gzipped if the name ends in ``.gz``.

A file has one header line, then rows of numbers. An empty field is a missing value; the last column is
``target``.
"""

import csv
import gzip
import io
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from isbor._core.types import FloatArray
from isbor._core.whole_files import write_whole

__all__ = ["read_table", "write_table"]


def read_table(path: Path) -> tuple[list[str], FloatArray, FloatArray]:
    """Read feature names, features and target from a benchmark file."""
    content = path.read_bytes()
    try:
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
        header, *rows = csv.reader(io.StringIO(text, newline=""))
        values = np.array([[float(field or "nan") for field in row] for row in rows])
        if header[-1:] != ["target"] or values.shape != (len(rows), len(header)):
            raise ValueError(f"the header is {header}, the table has shape {values.shape}")
    except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{path} is not a benchmark file: {error}. It needs a header line, rows of numbers as long as "
            "the header, empty fields for missing values, and a last column named 'target'. Replace or "
            "remove the file."
        ) from error
    return header[:-1], np.ascontiguousarray(values[:, :-1]), values[:, -1].copy()


def write_table(path: Path, names: Sequence[str], X: FloatArray, target: FloatArray) -> None:
    """Write a benchmark file; other processes never see a part of it."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*names, "target"])
    for row in np.column_stack([X, target]).tolist():
        # repr gives the shortest text that is read back as the same number
        writer.writerow(["" if value != value else repr(value).removesuffix(".0") for value in row])
    content = text.getvalue().encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
