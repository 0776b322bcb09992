"""What runs in the process of a cell."""

import multiprocessing
import os
import sys
import threading
from dataclasses import replace
from multiprocessing.connection import Connection

from isbor.experiments.description import Cell, Limits
from isbor.experiments.measure import measure
from isbor.experiments.records import Record

__all__ = ["work"]


def work(cell: Cell, limits: Limits, result: "Connection[Record, None]") -> None:
    """Compute a cell and send its record; an error of the model is a result too.

    The process leads a group of its own, so that what a model starts can be ended with it, and it ends when
    its runner is gone. It is silent: the terminal is the runner's.
    """
    if hasattr(os, "setsid"):
        os.setsid()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    try:
        record = measure(cell, limits)
    except Exception as error:
        record = Record(cell.task.name, cell.model.name, cell.split, "failed", _sentence(error))
    result.send(replace(record, peak_memory=_peak_memory()))
    result.close()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _sentence(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return f"There is not enough memory. {error}".strip()
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _peak_memory() -> float | None:
    """Return the most memory that this process has held, in bytes, where the system tells."""
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024  # Linux counts in kilobytes
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
