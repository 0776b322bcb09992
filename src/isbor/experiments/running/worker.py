"""The function that runs in the process of a job."""

import contextlib
import os
import signal
import sys
import threading
from dataclasses import replace
from multiprocessing.connection import Connection

import psutil
from threadpoolctl import threadpool_limits

from isbor.experiments.description.experiment import Job
from isbor.experiments.running.machine import thread_count
from isbor.experiments.running.measure import measure
from isbor.experiments.running.records import Record

__all__ = ["work"]


def work(job: Job, result: "Connection[Record, None]") -> None:
    """Run a job, send its record, and wait to be killed; an error of the model gives a record as well.

    The process leads its own group, so that everything a model starts can be killed with it. It does not exit
    by itself: until the runner kills it, its process number stays taken and its children remain its own. It
    does exit when the runner is gone. Its output is discarded.
    """
    if hasattr(os, "setsid"):
        os.setsid()
    threading.Thread(target=_end_with_listener, args=(result,), daemon=True).start()
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    threadpool_limits(1)  # a fork server started earlier may allow more
    try:
        record = measure(job)
    except Exception as error:
        record = Record(job.task.name, job.model.name, job.split, "failed", _sentence(error))
    result.send(replace(record, peak_memory=_peak_megabytes(), threads=thread_count()))
    threading.Event().wait()


def _end_with_listener(result: "Connection[Record, None]") -> None:
    """End the process and its descendants when the runner closes the pipe or dies."""
    with contextlib.suppress(OSError):
        result.poll(None)  # returns only when the other end closes: the runner never sends
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            child.kill()
    if hasattr(os, "killpg"):
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def _sentence(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return f"Not enough memory. {error}".strip()
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _peak_megabytes() -> float | None:
    """Return the peak memory of this process, None on Windows."""
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024  # Linux counts in kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
