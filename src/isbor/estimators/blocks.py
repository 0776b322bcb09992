"""Functions of all rows of a table, in blocks on all cores."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from isbor._core.parallel import Workers, row_blocks
from isbor._core.types import FloatArray
from isbor.data.encoding import EncodedTable
from isbor.model.latent import Latent

__all__ = ["A", "map_latent", "map_rows"]

A = TypeVar("A", bound=NDArray[Any])


def map_latent(
    latent: Callable[[FloatArray], Latent],
    n_functions: int,
    X: FloatArray | EncodedTable,
    function: Callable[[Latent], A],
    workers: Workers,
) -> A:
    """Apply a function of the latent score to all rows, in blocks on all cores.

    `n_functions` is the number of values per row that both need.
    """
    return map_rows(lambda rows: function(latent(rows)), n_functions, X, workers)


def map_rows(
    function: Callable[[FloatArray], A], n_values: int, X: FloatArray | EncodedTable, workers: Workers
) -> A:
    """Apply a function to all rows, in blocks on all cores; it needs so many values per row."""
    blocks = row_blocks(len(X), max(n_values, X.shape[1]))
    return cast(A, np.concatenate(list(workers.map(lambda block: function(X[block]), blocks))))
