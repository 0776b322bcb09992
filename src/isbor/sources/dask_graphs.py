"""Graphs of Dask tasks: one task for each partition, and a tree that merges their results.

A task reads its partition and computes with it at once, so that a partition need not be kept or sent
anywhere: the steps that make the partition become part of the task, if no other partition needs them. What
is persisted on a cluster, and what several partitions are made of, such as the parts of a shuffle, stay tasks
of their own.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias
from uuid import uuid4

__all__ = ["Graph", "Partitions", "computed", "merged_in_a_tree", "new_name"]

Key: TypeAlias = Any
Graph: TypeAlias = dict[Key, Any]  # tasks by their keys

_FAN_IN = 8
_MOST_STEPS = 200  # that make a partition; above, it is made of many others


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partitions of collections that have as many each."""

    nodes: Graph  # tasks that make them
    futures: Graph  # what is on the cluster already
    dependents: dict[Key, set[Key]]
    keys: tuple[tuple[Key, ...], ...]  # of the parts of each partition

    @classmethod
    def of_frame(cls, frame: Any) -> Self:
        """Return the partitions of a Dask data frame."""
        optimized = frame.optimize()
        keys = tuple((key,) for key in optimized.__dask_keys__())
        return cls._of(optimized.__dask_graph__(), keys)

    @classmethod
    def of_arrays(cls, *arrays: Any) -> Self:
        """Return the partitions of Dask arrays with the same chunks of rows, and one chunk of columns."""
        from dask.core import flatten
        from dask.highlevelgraph import HighLevelGraph

        keys = tuple(zip(*(flatten(array.__dask_keys__()) for array in arrays), strict=True))
        graph = HighLevelGraph.merge(*(array.__dask_graph__() for array in arrays))
        return cls._of(arrays[0].__dask_optimize__(graph, [key for part in keys for key in part]), keys)

    @classmethod
    def _of(cls, optimized: Any, keys: tuple[tuple[Key, ...], ...]) -> Self:
        from dask._task_spec import convert_legacy_graph
        from dask.utils import ensure_dict

        graph: Graph = ensure_dict(optimized)
        futures = {key: task for key, task in graph.items() if _is_future(task)}
        others = {key: task for key, task in graph.items() if key not in futures}
        nodes = convert_legacy_graph(others, all_keys=set(graph))
        dependents = defaultdict(set)
        for key, node in nodes.items():
            for needed in node.dependencies:
                dependents[needed].add(key)
        return cls(nodes, futures, dict(dependents), keys)

    def __len__(self) -> int:
        return len(self.keys)

    def add_task(
        self, graph: Graph, key: Key, number: int, function: Callable[..., Any], *arguments: Any
    ) -> None:
        """Add a task that calls function(*arguments, *parts of a partition), and what it needs."""
        from dask._task_spec import Task, TaskRef

        parts = self.keys[number]
        task = Task(key, function, *arguments, *map(TaskRef, parts))
        steps = self._own_steps(set(parts))
        if steps is None:
            steps = set().union(*(self._own_steps({part}) or () for part in parts))
        own = [self.nodes[step] for step in steps]
        graph[key] = Task.fuse(task, *own, key=key)
        waiting = [needed for node in (task, *own) for needed in node.dependencies if needed not in steps]
        while waiting:
            needed = waiting.pop()
            if needed in self.futures:
                graph[needed] = self.futures[needed]
            elif needed in self.nodes and needed not in graph:
                graph[needed] = self.nodes[needed]
                waiting += self.nodes[needed].dependencies

    def _own_steps(self, parts: set[Key]) -> set[Key] | None:
        """Return the steps that make some parts, None if something else needs one of them."""
        from dask._task_spec import DataNode

        steps: set[Key] = set()
        waiting = [part for part in parts if part in self.nodes]
        while waiting:
            step = waiting.pop()
            if step in steps:
                continue
            steps.add(step)
            if len(steps) > _MOST_STEPS or getattr(self.nodes[step], "block_fusion", False):
                return None
            waiting += [needed for needed in self.nodes[step].dependencies if needed in self.nodes]
        shared = {step for step in steps if not self.dependents.get(step, set()) <= steps}
        if not all(isinstance(self.nodes[step], DataNode) for step in shared):
            return None
        return steps - shared


def merged_in_a_tree(
    graph: Graph, keys: Sequence[Key], name: str, merge: Callable[..., Any], *arguments: Any
) -> Key:
    """Add tasks that merge results, always in the same order; return the key of the last one."""
    from dask._task_spec import Task, TaskRef

    level = 0
    while len(keys) > 1:
        above = []
        for place in range(0, len(keys), _FAN_IN):
            key = (name, level, place // _FAN_IN)
            graph[key] = Task(key, merge, *arguments, *map(TaskRef, keys[place : place + _FAN_IN]))
            above.append(key)
        keys, level = above, level + 1
    return keys[0]


def computed(graph: Graph, key: Key) -> Any:
    """Return the result of a task, computed by the current client if there is one, else by threads."""
    from dask.delayed import Delayed

    return Delayed(key, graph).compute(optimize_graph=False)


def new_name(label: str) -> str:
    """Return a name for tasks that are not to be taken for those of another pass."""
    return f"isbor-{label}-{uuid4().hex}"


def _is_future(task: object) -> bool:
    """Return whether it stands for what is on a cluster."""
    return hasattr(task, "key") and hasattr(task, "release") and hasattr(task, "status")
