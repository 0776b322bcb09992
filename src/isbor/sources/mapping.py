"""What a model says of each block of a table."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from isbor.data.blocks import Source, located

__all__ = ["map_blocks"]

Result = TypeVar("Result")


def map_blocks(function: Callable[[Any], Result], table: Source) -> Iterator[Result]:
    """Apply a method of a model to the rows of a table, block by block.

    Parameters
    ----------
    function : callable
        Takes X: `model.predict`, `model.predict_proba`, `model.predict_proba_interval`, `model.latent`.
    table : source
        From `open_table`. Its target and weight are not used.

    Yields
    ------
    result
        What the function returns for each block, in the order of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from isbor import sources
    >>> table = sources.open_table((np.arange(10.0).reshape(5, 2), None), block_rows=2)
    >>> [rows.tolist() for rows in sources.map_blocks(lambda X: X.sum(axis=1), table)]
    [[1.0, 5.0], [9.0, 13.0], [17.0]]
    """
    if not isinstance(table, Source):
        raise TypeError(
            f"A table from open_table is needed, got {type(table).__name__}. "
            "Pass sources.open_table(...), or apply the function itself to rows in memory."
        )
    return _map(function, table)


def _map(function: Callable[[Any], Result], table: Source) -> Iterator[Result]:
    for block in table.blocks():
        with located(block):
            result = function(block.X)
        yield result
