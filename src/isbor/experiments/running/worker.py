"""What runs in the process of a job."""

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
    """Compute a job, send its record, and wait to be ended; an error of the model is a result too.

    The process leads a group of its own, so that what a model starts can be ended with it. It does not end by
    itself, so that its number is no other's and its children stay its own until its runner ends them all; but
    it does when nobody listens any more. It is silent: the terminal is the runner's.
    """
    if hasattr(os, "setsid"):
        os.setsid()
    threading.Thread(target=_end_with_listener, args=(result,), daemon=True).start()
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    threadpool_limits(1)  # a server of processes that was there before may allow more
    try:
        record = measure(job)
    except Exception as error:
        record = Record(job.task.name, job.model.name, job.split, "failed", _sentence(error))
    result.send(replace(record, peak_memory=_peak_megabytes(), threads=thread_count()))
    threading.Event().wait()


def _end_with_listener(result: "Connection[Record, None]") -> None:
    """End the process and all that it started when the other end of the pipe is closed or its holder dead."""
    with contextlib.suppress(OSError):
        result.poll(None)  # the runner never sends: what comes is the end
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            child.kill()
    if hasattr(os, "killpg"):
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def _sentence(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return f"There is not enough memory. {error}".strip()
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _peak_megabytes() -> float | None:
    """Return the most memory that this process has held, where the system tells."""
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024  # Linux counts in kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
