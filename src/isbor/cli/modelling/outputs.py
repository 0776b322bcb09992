"""Where tables of predictions go: standard output, CSV and Parquet files, which appear as a whole."""

import csv
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from isbor._core.parallel import Workers
from isbor._core.whole_files import whole_file
from isbor.cli.modelling.tables import is_parquet
from isbor.sources.arrow import ArrowTable, pyarrow

__all__ = ["check_output", "table_writer"]

Write: TypeAlias = Callable[[ArrowTable], None]

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
    """Give a function that appends Arrow tables; the first one says what the columns are.

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

    def write(table: ArrowTable) -> None:
        nonlocal begun
        if not begun:
            file.write(_header(table.column_names, delimiter))
            begun = True
        if len(table):
            file.write(_lines(table, delimiter, workers))
            file.write(b"\n")

    with Workers(None) as workers:
        yield write
    file.flush()


def _header(names: Sequence[str], delimiter: str) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerow(names)
    return text.getvalue().encode()


def _lines(table: ArrowTable, delimiter: str, workers: Workers) -> memoryview:
    """Return the rows as lines, the last one without its end.

    Columns become text side by side. (What pyarrow writes by itself has quotes around all text.)
    """
    pa = pyarrow()
    columns = table.combine_chunks().columns
    texts = workers.map(lambda column: _text(column.combine_chunks(), delimiter), columns)
    rows = pa.compute.binary_join_element_wise(
        *texts, delimiter, null_handling="replace", null_replacement=""
    )
    of_table = pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), rows)
    return memoryview(pa.compute.binary_join(of_table, "\n")[0].as_buffer())


def _text(column: Any, delimiter: str) -> Any:
    """Return the cells of a column as they stand in a line, as Python's csv module writes them."""
    pa, compute = pyarrow(), pyarrow().compute
    if pa.types.is_boolean(column.type):
        return compute.if_else(column, "True", "False")
    text = compute.cast(column, pa.string())
    if pa.types.is_floating(column.type):
        return text
    special = compute.match_substring_regex(text, f'[\r\n"{re.escape(delimiter)}]')
    if not compute.any(special).as_py():
        return text
    doubled = compute.replace_substring(text, '"', '""')
    return compute.if_else(special, compute.binary_join_element_wise('"', doubled, '"', ""), text)


@contextmanager
def _parquet_on(file: BinaryIO) -> Iterator[Write]:
    pa = pyarrow()
    writer: Any = None

    def write(table: ArrowTable) -> None:
        nonlocal writer
        if writer is None:
            writer = pa.parquet.ParquetWriter(file, table.schema)
        writer.write_table(table.cast(writer.schema))

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()
