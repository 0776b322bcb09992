"""Arrow tables: pyarrow if it is installed, and columns of a few plain types.

Text comes as strings, whether a file has it as strings, large strings or a dictionary without an order.
Numbers that are of several types in several files become the type that holds them all, and a column without
any cell is a column of missing numbers.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from isbor.sources.errors import SourceError

__all__ = [
    "ArrowSchema",
    "ArrowTable",
    "as_plain",
    "common_type",
    "each",
    "guarded",
    "plain_schema",
    "pyarrow",
    "settled",
]

# pyarrow has no types for mypy, and need not be installed.
ArrowTable: TypeAlias = Any
ArrowSchema: TypeAlias = Any
ArrowType: TypeAlias = Any


def pyarrow() -> Any:
    """Return the module pyarrow with its readers of files."""
    try:
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "This table is read with pyarrow, which is not installed. Install it with\n"
            '    pip install "isbor[files]"'
        ) from error
    return pa


def plain_schema(schema: ArrowSchema, names: list[str]) -> ArrowSchema:
    """Return the plain types of some columns, in the order of `names`."""
    pa = pyarrow()
    return pa.schema([pa.field(name, _plain_type(schema.field(name).type)) for name in names])


def settled(schema: ArrowSchema) -> ArrowSchema:
    """Return the schema with numbers for columns that have no cell in any file."""
    pa = pyarrow()
    return pa.schema(
        [
            pa.field(field.name, pa.float64() if pa.types.is_null(field.type) else field.type)
            for field in schema
        ]
    )


def as_plain(table: ArrowTable, schema: ArrowSchema) -> ArrowTable:
    """Return the columns of a table that a schema names, in its types."""
    pa = pyarrow()
    columns = [_as_type(table.column(field.name), field.type) for field in schema]
    return pa.table(columns, schema=schema)


def common_type(one: ArrowType, other: ArrowType) -> ArrowType | None:
    """Return the type that holds the cells of two plain types; None if these are no numbers together."""
    pa = pyarrow()
    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if not (_is_number(one) and _is_number(other)):
        return None
    both = [pa.schema([("x", one)]), pa.schema([("x", other)])]
    try:
        return pa.unify_schemas(both, promote_options="permissive").field("x").type
    except pa.ArrowException:
        return pa.float64()


@contextmanager
def guarded(describe: Callable[[BaseException], SourceError]) -> Iterator[None]:
    """Replace what pyarrow raises by an error that says which table cannot be read."""
    pa = pyarrow()
    try:
        yield
    except SourceError:
        raise
    except (pa.ArrowException, OSError, EOFError) as error:
        raise describe(error) from error


def each(items: Iterable[Any], describe: Callable[[BaseException], SourceError]) -> Iterator[Any]:
    """Yield items that pyarrow reads, guarded."""
    iterator = iter(items)
    while True:
        with guarded(describe):
            item = next(iterator, None)
        if item is None:
            return
        yield item


def _plain_type(kind: ArrowType) -> ArrowType:
    types = pyarrow().types
    if types.is_dictionary(kind) and not kind.ordered and _is_text(kind.value_type):
        return pyarrow().string()
    return pyarrow().string() if _is_text(kind) else kind


def _as_type(column: Any, kind: ArrowType) -> Any:
    types = pyarrow().types
    if column.type.equals(kind):
        return column
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    # Large integers lose digits as floats, which is no reason to refuse a table.
    return column.cast(kind, safe=not _is_number(kind))


def _is_text(kind: ArrowType) -> bool:
    types = pyarrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_number(kind: ArrowType) -> bool:
    types = pyarrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
