"""What a model says of each block of a table."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar, overload, runtime_checkable

from isbor.data.blocks import Source, is_source, located

__all__ = ["map_blocks"]

Result = TypeVar("Result")


@runtime_checkable
class MappedSource(Source, Protocol):
    """A source whose rows are predicted where they are, in other processes."""

    def mapped(self, function: Callable[[Any], Any]) -> Any:
        """Return the results for all rows as a collection that is computed when it is asked for."""


@overload
def map_blocks(function: Callable[[Any], Any], table: MappedSource) -> Any: ...
@overload
def map_blocks(function: Callable[[Any], Result], table: Source) -> Iterator[Result]: ...
def map_blocks(function: Callable[[Any], Any], table: Source) -> Any:
    """Apply a method of a model to the rows of a table, block by block.

    Parameters
    ----------
    function : callable
        Takes X: `model.predict`, `model.predict_proba`, `model.predict_proba_interval`, `model.latent`.
    table : source
        From `open_table`. Its target and weight are not used.

    Returns
    -------
    results : iterator or Dask collection
        What the function returns for each block, in the order of the rows. For a table of a Dask collection,
        a lazy collection with a row for each row of the table, of which nothing is computed yet: a Dask array
        for Dask arrays; for a Dask data frame a series, or a data frame with a column for each class. There,
        the function must return one array.

    Notes
    -----
    A Dask collection is opened like any other table, since a model needs to know which of its columns are
    features.

    Examples
    --------
    >>> import numpy as np
    >>> from isbor import sources
    >>> table = sources.open_table((np.arange(10.0).reshape(5, 2), None), block_rows=2)
    >>> [rows.tolist() for rows in sources.map_blocks(lambda X: X.sum(axis=1), table)]
    [[1.0, 5.0], [9.0, 13.0], [17.0]]
    """
    if not is_source(table):
        raise TypeError(
            f"A table from open_table is needed, got {type(table).__name__}. "
            "Pass sources.open_table(...), or apply the function itself to rows in memory."
        )
    return table.mapped(function) if isinstance(table, MappedSource) else _map(function, table)


def _map(function: Callable[[Any], Result], table: Source) -> Iterator[Result]:
    for block in table.blocks():
        with located(block):
            result = function(block.X)
        yield result
