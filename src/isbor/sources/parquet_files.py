"""Parquet files, read batch by batch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from isbor.data.blocks import Block
from isbor.sources.arrow import (
    ArrowSchema,
    ArrowTable,
    as_plain,
    common_type,
    each,
    guarded,
    plain_schema,
    pyarrow,
    settled,
)
from isbor.sources.cutting import recut
from isbor.sources.errors import SourceError, rows_text
from isbor.sources.files import DataFile
from isbor.sources.one_table import refuse_other_columns
from isbor.sources.roles import Roles, as_blocks

__all__ = ["ParquetFiles", "open_parquet", "parquet_names"]

_BUFFER = 1 << 20  # bytes read at once of a column, so that row groups need not fit in memory


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """Some columns of Parquet files, in types that are the same for all files."""

    files: tuple[DataFile, ...]
    roles: Roles
    schema: ArrowSchema
    block_rows: int

    def blocks(self) -> Iterator[Block]:
        """Yield the rows of all files, block by block."""
        return as_blocks(self._parts(), self.roles)

    def _parts(self) -> Iterator[tuple[nw.DataFrame[Any], str]]:
        pa = pyarrow()
        for file in self.files:
            first = 0
            file.refuse_change()
            for table in recut(self._read(file), self.block_rows, pa.concat_tables):
                yield nw.from_native(table), f"{file.name}, {rows_text(first, len(table))}"
                first += len(table)

    def _read(self, file: DataFile) -> Iterator[ArrowTable]:
        pa = pyarrow()
        with guarded(file.unreadable):
            # With pre_buffer, which is the default, pyarrow reads the whole file ahead.
            reader = pa.parquet.ParquetFile(file.path, buffer_size=_BUFFER, pre_buffer=False)
        with reader:
            batches = reader.iter_batches(batch_size=self.block_rows, columns=self.schema.names)
            for batch in each(batches, file.unreadable):
                with guarded(file.unreadable):
                    table = as_plain(pa.Table.from_batches([batch]), self.schema)
                yield table
        file.refuse_change()  # also while it was read


def open_parquet(
    files: tuple[DataFile, ...],
    assign: Callable[[Sequence[str]], Roles],
    block_rows: int,
    *,
    all_columns: bool,
) -> ParquetFiles:
    """Read the types of the columns of all files, and agree on those of the table.

    Parameters
    ----------
    files : tuple of DataFile
    assign : callable
        Says what the columns with some names are.
    block_rows : int
    all_columns : bool
        Whether all columns are read, so that all files must have the same.
    """
    schemas = [_schema(file) for file in files]
    roles = assign(schemas[0].names)
    schema = plain_schema(schemas[0], roles.needed)
    for file, other in zip(files[1:], schemas[1:], strict=True):
        refuse_other_columns(file, files[0], other.names, schemas[0].names, roles, all_columns=all_columns)
        schema = _agree(schema, plain_schema(other, roles.needed), file, files[0])
    return ParquetFiles(files, roles, settled(schema), block_rows)


def parquet_names(file: DataFile) -> list[str]:
    """Return the names of the columns of a file."""
    names: list[str] = _schema(file).names
    return names


def _schema(file: DataFile) -> ArrowSchema:
    with guarded(file.unreadable):
        return pyarrow().parquet.read_schema(file.path)


def _agree(schema: ArrowSchema, other: ArrowSchema, file: DataFile, first: DataFile) -> ArrowSchema:
    pa = pyarrow()
    fields, conflicts = [], []
    for one, two in zip(schema, other, strict=True):
        kind = common_type(one.type, two.type)
        if kind is None:
            conflicts.append(f"{one.name!r} ({two.type} here, {one.type} there)")
        fields.append(pa.field(one.name, kind or one.type))
    if conflicts:
        raise SourceError(
            f"{file.path} has other types than {first.path} in {', '.join(conflicts)}; all files of a table "
            "need the same. Convert the columns, or leave the file out."
        )
    return pa.schema(fields)
