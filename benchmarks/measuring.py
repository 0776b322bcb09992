"""What a call costs, and processes of their own to measure in: the peak of a process's memory never falls."""

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = ["Cost", "in_fresh_process", "measured"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a call took."""

    seconds: float
    megabytes: float  # that the process's peak has grown


def measured(function: Callable[..., T], *arguments: Any) -> tuple[T, Cost]:
    """Call the function and return its result with its cost."""
    before, start = _peak_memory(), time.perf_counter()
    result = function(*arguments)
    seconds = time.perf_counter() - start
    return result, Cost(seconds, _peak_memory() - before)


def in_fresh_process(function: Callable[..., T], *arguments: Any) -> T:
    """Call the function in a new interpreter, which ends after it.

    On Linux a process inherits the peak of the one that started it. This one holds no data, so its peak is
    below what the new one needs for its libraries.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _peak_memory() -> float:
    """Return the most memory that this process has held so far, in megabytes."""
    unit = 1 if sys.platform == "darwin" else 1024  # Linux counts in kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
