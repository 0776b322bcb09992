"""Where tables of predictions go: standard output, CSV and Parquet files, which appear as a whole."""

import csv
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from isbor._core.whole_files import whole_file
from isbor.cli.modelling.tables import is_parquet
from isbor.sources.arrow import pyarrow

__all__ = ["Columns", "check_output", "table_writer"]

Columns: TypeAlias = Mapping[str, Sequence[Any]]
Write: TypeAlias = Callable[[Columns], None]

_DELIMITERS = {".csv": ",", ".tsv": "\t"}


def check_output(path: Path) -> None:
    """Raise OSError unless a file can be written there; say so before hours of work."""
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a file in it with --output.")
    if path.exists() and not path.is_file():
        raise OSError(f"{str(path)!r} is not a regular file; leave --output out, or name a file.")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {str(folder)!r} for the output. Create it first.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"The folder {str(folder)!r} is not writable; name another with --output.")


@contextmanager
def table_writer(output: str) -> Iterator[Write]:
    """Give a function that appends rows to a table; its first call says what the columns are.

    A file takes its name when the block ends without an error. Until then, what was there is left as it was.
    """
    if output == "-":
        with _csv_on(sys.stdout.buffer, ",") as write:
            yield write
        return
    path = Path(output)
    ending = path.suffix.lower()
    if ending not in _DELIMITERS and not is_parquet(output):
        raise ValueError(f"{path.name!r} does not end in .csv, .tsv or .parquet; rename the output.")
    check_output(path)
    # A link stays one: the file that it names is written.
    with (
        whole_file(path.resolve()) as file,
        _csv_on(file, _DELIMITERS[ending]) if ending in _DELIMITERS else _parquet_on(file) as write,
    ):
        yield write


@contextmanager
def _csv_on(file: BinaryIO, delimiter: str) -> Iterator[Write]:
    begun = False

    def write(columns: Columns) -> None:
        nonlocal begun
        text = io.StringIO(newline="")
        rows = csv.writer(text, delimiter=delimiter, lineterminator="\n")
        if not begun:
            rows.writerow(columns)
            begun = True
        rows.writerows(zip(*columns.values(), strict=True))
        file.write(text.getvalue().encode())

    yield write
    file.flush()


@contextmanager
def _parquet_on(file: BinaryIO) -> Iterator[Write]:
    pa = pyarrow()
    writer: Any = None

    def write(columns: Columns) -> None:
        nonlocal writer
        table = pa.table(dict(columns)) if writer is None else pa.table(dict(columns), schema=writer.schema)
        if writer is None:
            writer = pa.parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()
