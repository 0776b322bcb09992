"""Queries that give their rows batch by batch: polars, DuckDB, Arrow datasets and streams.

A query is run anew for each pass. Databases keep no order of rows unless a query sorts them; after a join or
a group by it may differ from run to run, which `isbor.sources.passes` notices in the first rows.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from typing import Any

import narwhals as nw

from isbor.data.blocks import Block
from isbor.sources.arrow import ArrowSchema, ArrowTable, as_plain, plain_schema, pyarrow, settled
from isbor.sources.cutting import recut
from isbor.sources.errors import SourceError
from isbor.sources.roles import Roles, as_blocks

__all__ = ["Query", "open_dataset", "open_duckdb", "open_polars", "open_stream"]

Assign = Callable[[Sequence[str]], Roles]


@dataclass(frozen=True, slots=True)
class Query:
    """Rows that a library computes anew in each pass."""

    run: Callable[[list[str]], Generator[Any, None, None]]  # the pieces of some columns
    join: Callable[[Sequence[Any]], Any]  # pieces, one below the other
    roles: Roles
    block_rows: int

    def blocks(self) -> Iterator[Block]:
        """Yield all rows, block by block."""
        return as_blocks(self._parts(), self.roles)

    def _parts(self) -> Iterator[tuple[nw.DataFrame[Any], str]]:
        with closing(_described(self.run(self.roles.needed))) as pieces:
            for rows in recut(pieces, self.block_rows, self.join):
                yield nw.from_native(rows), ""


def open_polars(frame: Any, assign: Assign, block_rows: int) -> Query:
    """Read a lazy polars frame; the blocks are polars frames."""
    if not hasattr(frame, "collect_batches"):
        raise SourceError(
            "The installed polars cannot give the rows of a LazyFrame in batches. Update it (pip install -U "
            "polars), write the rows to a file with frame.sink_parquet(path) and pass the path, or, if they "
            "fit in memory, pass frame.collect()."
        )

    def run(names: list[str]) -> Generator[Any, None, None]:
        yield from frame.select(names).collect_batches(chunk_size=block_rows, maintain_order=True)

    return Query(run, _stack, assign(frame.collect_schema().names()), block_rows)


def open_duckdb(relation: Any, assign: Assign, block_rows: int) -> Query:
    """Read a DuckDB relation; the blocks are Arrow tables.

    A connection gives one result at a time. DuckDB 1 ends a result without an error when another query
    begins, so the rows are counted by a query of their own after the first pass.
    """
    pyarrow()
    total: int | None = None

    def run(names: list[str]) -> Generator[ArrowTable, None, None]:
        nonlocal total
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        selected = relation.project(quoted)  # a new relation, which runs the query anew
        read = next(
            getattr(selected, method)
            for method in ("to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader")  # by version
            if hasattr(selected, method)
        )
        n_rows = 0
        with read(block_rows) as reader:
            for table in _plain_tables(reader, settled(plain_schema(reader.schema, names))):
                n_rows += len(table)
                yield table
        if total is None:
            total = relation.aggregate("count(*)").fetchall()[0][0]
        if total is not None and n_rows < total:  # more rows are noticed in `RereadTable`
            raise SourceError(
                f"DuckDB gave {n_rows} of {total} rows. A connection gives one result at a time: another "
                "query on it ends this one. Make the relation on a connection of its own, "
                "connection.cursor(), and let no rows be removed meanwhile."
            )

    return Query(run, pyarrow().concat_tables, assign(relation.columns), block_rows)


def open_dataset(dataset: Any, assign: Assign, block_rows: int) -> Query:
    """Read a pyarrow dataset; the blocks are Arrow tables.

    It holds some row groups of Parquet files at once; paths are read in less memory.
    """

    def run(names: list[str]) -> Generator[ArrowTable, None, None]:
        schema = settled(plain_schema(dataset.schema, names))
        # The defaults read 16 batches and 4 files ahead.
        batches = dataset.to_batches(
            columns=names, batch_size=block_rows, batch_readahead=2, fragment_readahead=1
        )
        yield from _plain_tables(batches, schema)

    return Query(run, pyarrow().concat_tables, assign(dataset.schema.names), block_rows)


def open_stream(data: Any, assign: Assign, block_rows: int) -> Query:
    """Read an object that gives an Arrow stream each time it is asked, such as an ibis table."""
    pa = pyarrow()

    def run(names: list[str]) -> Generator[ArrowTable, None, None]:
        with pa.RecordBatchReader.from_stream(data) as reader:
            yield from _plain_tables(reader, settled(plain_schema(reader.schema, names)))

    try:
        with pa.RecordBatchReader.from_stream(data) as reader:
            names = reader.schema.names
    except pa.ArrowException as error:
        raise SourceError(
            f"The Arrow stream of {type(data).__name__} is no table: {error}. Rows of several columns are "
            "needed; pass the data frame, not one column of it."
        ) from error
    return Query(run, pa.concat_tables, assign(names), block_rows)


def _plain_tables(batches: Any, schema: ArrowSchema) -> Iterator[ArrowTable]:
    pa = pyarrow()
    for batch in batches:
        yield as_plain(pa.Table.from_batches([batch]), schema)


def _stack(frames: Sequence[Any]) -> Any:
    return reduce(lambda upper, lower: upper.vstack(lower), frames)


def _described(pieces: Generator[Any, None, None]) -> Generator[Any, None, None]:
    """Yield the pieces; say of any error of the library that the query failed."""
    with closing(pieces):
        while True:
            try:
                piece = next(pieces, None)
            except SourceError:
                raise
            except Exception as error:  # each library has its own
                raise SourceError(
                    f"The query failed while its rows were read. Run it by itself to see why.\n{error}"
                ) from error
            if piece is None:
                return
            yield piece
