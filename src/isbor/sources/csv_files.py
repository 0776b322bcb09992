"""CSV files, plain or compressed, read block by block.

The first line has the names of the columns. `isbor.sources.csv_types` finds the types from all cells, in one
more pass before the first one.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import narwhals as nw

from isbor.data.blocks import Block
from isbor.sources.arrow import ArrowTable, each, guarded, pyarrow
from isbor.sources.csv_format import CsvFormat
from isbor.sources.csv_types import FALSE, MISSING_NUMBERS, TRUE, Kind, find_kinds
from isbor.sources.cutting import recut
from isbor.sources.errors import SourceError, rows_text
from isbor.sources.files import DataFile
from isbor.sources.one_table import refuse_other_columns
from isbor.sources.roles import Roles, as_blocks

__all__ = ["CsvFiles", "csv_names", "open_csv"]

_CHUNK = 1 << 21  # bytes; a line must fit in, and pyarrow holds a few dozen of them


class CsvFiles:
    """Some columns of CSV files, in types that are the same for all files."""

    def __init__(self, files: tuple[DataFile, ...], roles: Roles, block_rows: int, form: CsvFormat) -> None:
        self._files = files
        self._form = form
        self._roles = roles
        self._block_rows = block_rows
        self._kinds: dict[str, Kind] | None = None  # found before the first pass

    def blocks(self) -> Iterator[Block]:
        """Yield the rows of all files, block by block."""
        return as_blocks(self._parts(), self._roles)

    def _parts(self) -> Iterator[tuple[nw.DataFrame[Any], str]]:
        if self._kinds is None:
            self._kinds = self._find_kinds()
        for file in self._files:
            first = 0
            tables = _read(file, self._roles.needed, self._kinds, self._form)
            for table in recut(tables, self._block_rows, pyarrow().concat_tables):
                yield nw.from_native(table), f"{file.name}, {rows_text(first, len(table))}"
                first += len(table)

    def _find_kinds(self) -> dict[str, Kind]:
        """Return what each column holds; if all are known to be text, nothing is read."""
        kinds: dict[str, Kind] = dict.fromkeys(self._roles.needed, "text")
        names = [name for name in kinds if name not in self._form.text]
        if names:
            batches = (batch for file in self._files for batch in _read(file, names, None, self._form))
            kinds |= find_kinds(batches, names, self._form.decimal)
        return kinds


def open_csv(
    files: tuple[DataFile, ...],
    assign: Callable[[Sequence[str]], Roles],
    block_rows: int,
    *,
    all_columns: bool,
    form: CsvFormat,
) -> CsvFiles:
    """Read the names of the columns of all files; files without a line are left out.

    Parameters are those of `isbor.sources.parquet_files.open_parquet`.
    """
    headers = {file: csv_names(file, form) for file in files}
    filled = tuple(file for file, names in headers.items() if names)
    if not filled:
        raise SourceError(
            f"{files[0].path} is empty{'' if len(files) == 1 else ', as are the other files'}; a line with "
            "the names of the columns, and at least one row, are needed. Check what wrote it."
        )
    first = filled[0]
    roles = assign(headers[first])
    for file in filled[1:]:
        refuse_other_columns(file, first, headers[file], headers[first], roles, all_columns=all_columns)
    return CsvFiles(filled, roles, block_rows, form)


def csv_names(file: DataFile, form: CsvFormat) -> list[str]:
    """Return the names in the first line; none if the file is empty."""
    pa = pyarrow()
    try:
        with _opened(file, pa.csv.ConvertOptions(), form) as reader:
            names: list[str] = reader.schema.names
            return names
    except SourceError as error:
        # As pyarrow says it, also of a compressed file without content, and of a first line without an end.
        if "Empty CSV file" in str(error.__cause__):
            return []
        raise


def _read(
    file: DataFile, names: list[str], kinds: dict[str, Kind] | None, form: CsvFormat
) -> Iterator[ArrowTable]:
    """Yield the rows of a file piece by piece; with `kinds` None all cells as text, for `find_kinds`."""
    pa = pyarrow()
    types = {
        "integers": pa.int64(),
        "numbers": pa.float64(),
        "booleans": pa.bool_(),
        "text": pa.string(),
    }
    options = pa.csv.ConvertOptions(
        include_columns=names,
        column_types={name: types["text" if kinds is None else kinds[name]] for name in names},
        null_values=list(MISSING_NUMBERS),
        strings_can_be_null=kinds is None,
        true_values=list(TRUE),
        false_values=list(FALSE),
        decimal_point=form.decimal,
    )
    file.refuse_change()
    with _opened(file, options, form) as reader:
        for batch in each(reader, file.unreadable):
            yield _with_missing_text(pa.Table.from_batches([batch]))
    file.refuse_change()  # also while it was read


@contextmanager
def _opened(file: DataFile, options: Any, form: CsvFormat) -> Iterator[Any]:
    pa = pyarrow()
    with guarded(file.unreadable):
        stream = pa.input_stream(file.path, compression=file.compression)
    with stream:
        with guarded(file.unreadable):
            reader = pa.csv.open_csv(
                stream,
                read_options=pa.csv.ReadOptions(block_size=_CHUNK, encoding=form.encoding),
                parse_options=pa.csv.ParseOptions(
                    delimiter=form.delimiter or file.delimiter, newlines_in_values=True
                ),
                convert_options=options,
            )
        with reader:
            yield reader


def _with_missing_text(table: ArrowTable) -> ArrowTable:
    """Return the table with null for empty strings."""
    pa = pyarrow()
    for j, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            column = table.column(j)
            empty = pa.compute.equal(column, "")
            if pa.compute.any(empty).as_py():
                filled = pa.compute.if_else(empty, pa.scalar(None, pa.string()), column)
                table = table.set_column(j, field, filled)
    return table
