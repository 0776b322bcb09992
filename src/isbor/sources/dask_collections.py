"""Dask data frames and arrays as sources: their rows are summarised in the tasks that read them."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeVar

from isbor.data.blocks import Block
from isbor.sources.dask_graphs import Graph, Partitions, computed, merged_in_a_tree, new_name
from isbor.sources.dask_predictions import array_of_results, frame_of_results
from isbor.sources.dask_tasks import ArrayCut, Cut, FrameCut, Summary, checked_length, merge, summarise
from isbor.sources.errors import SourceError
from isbor.sources.passes import number_of_rows
from isbor.sources.roles import Roles

__all__ = ["DaskTable", "open_dask_arrays", "open_dask_frame"]

S = TypeVar("S")


class DaskTable(ABC):
    """A table in partitions, which tasks of Dask read anew in each pass.

    With a current client of `distributed`, the tasks run on its cluster, else on Dask's threads.
    """

    _cut: Cut

    def __repr__(self) -> str:
        return f"<Dask table of {len(self._partitions)} partitions>"

    def blocks(self) -> Iterator[Block]:
        """Yield all rows, block by block; partitions come here one after the other."""
        for number, (first, n_rows) in enumerate(self._places):
            graph: Graph = {}
            key = (new_name("rows"), number)
            self._partitions.add_task(graph, key, number, _parts)
            parts = computed(graph, key)
            checked_length(parts, number, n_rows)
            yield from self._cut(parts, number, first)

    def summarised(self, of_block: Callable[[Block], S], merged: Callable[[S, S], S]) -> S:
        """Return the merged summaries of all blocks; nothing else leaves the workers."""
        from dask._task_spec import DataNode, TaskRef

        label = getattr(of_block, "label", "summary")
        name = new_name(label)
        # One task has what all others need, so that it goes to each worker once.
        work = (new_name(f"{label}-work"), 0)
        graph: Graph = {work: DataNode(work, Summary(of_block, merged, self._cut))}
        keys = []
        for number, (first, n_rows) in enumerate(self._places):
            if n_rows:
                key = (name, number)
                self._partitions.add_task(graph, key, number, summarise, TaskRef(work), number, first, n_rows)
                keys.append(key)
        last = merged_in_a_tree(graph, keys, new_name(f"{label}-merge"), merge, TaskRef(work))
        total: S = computed(graph, last).summary
        return total

    @abstractmethod
    def mapped(self, function: Callable[[Any], Any]) -> Any:
        """Return what a function of the features gives for all rows, as a Dask collection."""

    @property
    @abstractmethod
    def _partitions(self) -> Partitions:
        """Return the partitions, with the tasks that make them."""

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        """Number of the first row of each partition, and its number of rows."""
        lengths = self._lengths()
        if not sum(lengths):
            raise SourceError(
                "The Dask collection has no rows; at least one is needed. Check the files, or the filter "
                "that made it."
            )
        return list(zip(accumulate(lengths[:-1], initial=0), lengths, strict=True))

    @abstractmethod
    def _lengths(self) -> list[int]:
        """Return the number of rows of each partition."""


class _DaskFrame(DaskTable):
    """Some columns of a Dask data frame."""

    def __init__(self, frame: Any, roles: Roles, block_rows: int) -> None:
        self._frame = frame
        self._roles = roles
        self._block_rows = block_rows
        self._cut = FrameCut(roles, block_rows)

    def mapped(self, function: Callable[[Any], Any]) -> Any:
        """Return a Dask data frame or series."""
        features = self._frame[list(self._roles.features)]
        cut = FrameCut(Roles(self._roles.features, None, None), self._block_rows)
        return frame_of_results(function, features, cut)

    @cached_property
    def _partitions(self) -> Partitions:
        return Partitions.of_frame(self._frame[self._roles.needed])

    def _lengths(self) -> list[int]:
        known = _lengths_from_metadata(self._frame)
        # Dask may read several files as one partition, more of them if fewer columns are needed.
        return known if len(known) == len(self._partitions) else _counted(self._partitions)


class _DaskArrays(DaskTable):
    """X, and y and weight if there are any."""

    def __init__(self, X: Any, y: Any | None, weight: Any | None, block_rows: int) -> None:
        self._arrays = tuple(part for part in (X, y, weight) if part is not None)
        self._block_rows = block_rows
        self._cut = ArrayCut(y is not None, weight is not None, block_rows)

    def mapped(self, function: Callable[[Any], Any]) -> Any:
        """Return a Dask array."""
        return array_of_results(function, self._arrays[0], ArrayCut(False, False, self._block_rows))

    @cached_property
    def _partitions(self) -> Partitions:
        return Partitions.of_arrays(*self._arrays)

    def _lengths(self) -> list[int]:
        X = self._arrays[0]
        return _counted(self._partitions) if _unknown(X) else list(X.chunks[0])


def open_dask_frame(frame: Any, assign: Callable[[Sequence[Any]], Roles], block_rows: int) -> DaskTable:
    """Say what the columns of a Dask data frame are."""
    return _DaskFrame(frame, assign(list(frame.columns)), block_rows)


def open_dask_arrays(X: object, y: object, weight: object, block_rows: int) -> DaskTable:
    """Check that Dask arrays have the same rows, and give them the chunks of X."""
    from dask.array import Array

    parts: dict[str, Any] = {"X": X, "y": y, "weight": weight}
    for name, part in parts.items():
        if not (isinstance(part, Array) or (part is None and name != "X")):
            others = ", ".join(other for other, given in parts.items() if isinstance(given, Array))
            raise SourceError(
                f"{others} is a Dask array and {name} is of type {type(part).__name__}; Dask arrays are "
                f"needed. Pass dask.array.from_array({name}), or give columns of a Dask data frame to "
                "open_table(ddf, target=…)."
            )
        n_axes = 2 if name == "X" else 1
        if part is not None and part.ndim != n_axes:
            raise SourceError(
                f"{name} has the shape {part.shape}; {n_axes} axes are needed. Use "
                f"{name}.reshape or {name}.ravel."
            )
    table = parts.pop("X")
    if table.numblocks[1] > 1:
        table = table.rechunk({1: -1})
    y, weight = (None if part is None else _aligned(part, name, table) for name, part in parts.items())
    return _DaskArrays(table, y, weight, block_rows)


def _counted(partitions: Partitions) -> list[int]:
    """Return the number of rows of each partition, counted by a task for each."""
    from dask._task_spec import Task, TaskRef

    name, graph = new_name("lengths"), Graph()
    for number in range(len(partitions)):
        partitions.add_task(graph, (name, number), number, _rows_of_first)
    last = (new_name("lengths-all"), 0)
    graph[last] = Task(last, _parts, *(TaskRef((name, number)) for number in range(len(partitions))))
    return list(computed(graph, last))


def _aligned(part: Any, name: str, X: Any) -> Any:
    """Return an array with the chunks of X."""
    if _unknown(X) or _unknown(part):
        if part.numblocks[0] != X.numblocks[0]:
            raise SourceError(
                f"X has {X.numblocks[0]} chunks of rows and {name} has {part.numblocks[0]}, some of unknown "
                "length; both need the same chunks. Call compute_chunk_sizes() on both."
            )
        return part
    if part.shape[0] != X.shape[0]:
        raise SourceError(
            f"X has {X.shape[0]} rows and {name} has {part.shape[0]}; both need the same number. "
            "Check how they were made."
        )
    return part.rechunk((X.chunks[0],))


def _unknown(array: Any) -> bool:
    return any(math.isnan(size) for size in array.chunks[0])


def _lengths_from_metadata(frame: Any) -> list[int]:
    """Return the number of rows of each partition if Dask knows it, as of Parquet files; else nothing."""
    from dask.dataframe.dask_expr._expr import Lengths, Literal

    known = Lengths(frame.expr).optimize()
    return list(known.value) if isinstance(known, Literal) else []


def _rows_of_first(*parts: Any) -> int:
    return number_of_rows(parts[0])


def _parts(*parts: Any) -> tuple[Any, ...]:
    return parts
