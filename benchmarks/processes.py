"""Measurements in processes of their own: the peak of a process's memory never falls."""

import multiprocessing
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

__all__ = ["in_fresh_process", "peak_memory"]

T = TypeVar("T")


def in_fresh_process(function: Callable[..., T], *arguments: Any) -> T:
    """Call the function in a new interpreter, which ends after it.

    On Linux a process inherits the peak of the one that started it. This one holds no data, so its peak is
    below what the new one needs for its libraries.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def peak_memory() -> float:
    """Return the most memory that this process has held so far, in megabytes."""
    unit = 1 if sys.platform == "darwin" else 1024  # Linux counts in kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
