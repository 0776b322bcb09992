"""What a model says of all rows of a Dask collection, as a Dask collection that is not computed yet."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from isbor.sources.dask_tasks import Cut, map_rows

__all__ = ["array_of_results", "frame_of_results"]


def array_of_results(function: Callable[[Any], Any], X: Any, cut: Cut) -> Any:
    """Return a Dask array with the chunks of X."""
    import dask.array as da

    example = _example(function, np.ones((2, X.shape[1]), X.dtype), cut)
    shape = example.shape[1:]
    return da.map_blocks(
        _of_chunk,
        X,
        function=_shared(function),
        cut=cut,
        empty=example[:0],
        drop_axis=None if shape else 1,
        chunks=(X.chunks[0], *((size,) for size in shape)),
        dtype=example.dtype,
        meta=example[:0],
        name=None,
        token=None,
    )


def frame_of_results(function: Callable[[Any], Any], features: Any, cut: Cut) -> Any:
    """Return a Dask data frame of probabilities, with the classes as columns, or a series."""
    import pandas as pd

    example = _example(function, features._meta_nonempty, cut)
    names = None
    if example.ndim == 2:
        classes = getattr(getattr(function, "__self__", None), "classes_", range(example.shape[1]))
        names = list(classes if len(classes) == example.shape[1] else range(example.shape[1]))
    empty = _labelled(example[:0], features._meta.index, names)
    assert isinstance(empty, pd.DataFrame | pd.Series)
    return features.map_partitions(_of_partition, _shared(function), cut, empty, meta=empty)


def _shared(function: Callable[[Any], Any]) -> Any:
    """Return a function as a task of its own, so that a model goes to each worker once."""
    import dask

    return dask.delayed(function, pure=False, traverse=False)


def _example(function: Callable[[Any], Any], rows: Any, cut: Cut) -> Any:
    """Return what a function gives for some rows of the right types, to know the type of its results."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the rows are made up
        return np.concatenate(map_rows(function, cut, 0, rows))


def _of_chunk(
    X: Any, function: Callable[[Any], Any], cut: Cut, empty: Any, block_id: tuple[int, ...] = (0,)
) -> Any:
    return np.concatenate([empty, *map_rows(function, cut, block_id[0], X)])


def _of_partition(
    rows: Any, function: Callable[[Any], Any], cut: Cut, empty: Any, partition_info: Any = None
) -> Any:
    number = 0 if partition_info is None else partition_info["number"]
    results = map_rows(function, cut, number, rows)
    if not results:
        return empty
    return _labelled(np.concatenate(results), rows.index, list(empty.columns) if empty.ndim == 2 else None)


def _labelled(results: Any, index: Any, names: list[Any] | None) -> Any:
    import pandas as pd

    return pd.Series(results, index) if names is None else pd.DataFrame(results, index, names)
