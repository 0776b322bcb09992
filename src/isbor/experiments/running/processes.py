"""Processes of jobs as the runner sees them: started, watched and ended.

Where the system supports it, processes are forked from a server that has imported the libraries, so that a
job starts at once. Linear algebra uses one thread, set before the server starts: with more threads sums may
differ in the last digits. Only the runner receives Ctrl-C, not the server or its processes.
"""

import contextlib
import datetime
import multiprocessing
import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from multiprocessing import forkserver, resource_tracker
from typing import TYPE_CHECKING, Any

try:
    import psutil
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        'Experiments need psutil, which is not installed: pip install "isbor[experiments]".', name=error.name
    ) from None

from isbor.experiments.description.experiment import Job, Limits
from isbor.experiments.description.models import Model
from isbor.experiments.running.machine import machine_facts, package_versions, source_commit
from isbor.experiments.running.records import Record, Status
from isbor.experiments.running.worker import work

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext  # Windows does not have the first

__all__ = ["JobProcess", "one_thread", "process_context"]

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)
_GIGABYTE = 1e9
_SECONDS_BETWEEN_LOOKS = 1.0  # at the children of a job: listing all processes is slow
_COMPILED = {"isbor:ISBOR", "isbor:SVOR"}
_SERVER_IS_DEAD = 255  # exit code of a process whose server was killed


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Make processes that start in this block use one thread for linear algebra."""
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def process_context(models: Iterable[Model]) -> "ForkServerContext | SpawnContext":
    """Return how to start processes: by a fork server with the libraries loaded, or by spawning."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    loaded = ["__main__", "isbor.experiments.running.worker"]
    if any({model.estimator, model.searched_by} & _COMPILED for model in models):
        loaded.append("isbor.experiments.running.compiled")
    context.set_forkserver_preload(loaded)
    return context


def _start_server() -> None:
    """Start the fork server if it is not running, with Ctrl-C blocked for it and its children."""
    resource_tracker.ensure_running()  # or the server would start it, and unblock signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class JobProcess:
    """The process of a running job."""

    def __init__(self, job: Job, limits: Limits, context: "ForkServerContext | SpawnContext") -> None:
        self.job = job
        self.killed = False  # by somebody else
        self._limits = limits
        self._peak = 0.0  # bytes
        self._result, theirs = context.Pipe()  # duplex: the worker notices when this end closes
        self._process = context.Process(target=work, args=(job, theirs))
        if context.get_start_method() == "forkserver":
            _start_server()
        try:
            self._process.start()
        except BaseException:  # the process may run already; closing the pipe ends it
            self._result.close()
            raise
        finally:
            theirs.close()
        self._started = time.monotonic()  # after the first start has waited for the server
        self._family: list[psutil.Process] = []
        self._next_look = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def poll(self) -> Record | None:
        """Return the record if the job has ended, else None; end a job that exceeds its limits."""
        is_alive = self._process.is_alive()  # read first: what a dead process sent is in the pipe
        if self._result.poll():
            try:
                record: Record = self._result.recv()
            except (EOFError, OSError):  # killed while sending
                return self._broken_off()
            elapsed = self.elapsed
            self.end()
            self._peak = max(self._peak, 1e6 * (record.peak_memory or 0.0))
            return replace(record, seconds={**record.seconds, "total": elapsed}, **self._circumstances())
        if not is_alive:
            return self._broken_off()
        if self.elapsed > self._limits.seconds:
            return self._record("timeout", f"Not finished after {self._limits.seconds:g} s.")
        self._peak = max(self._peak, self._memory())
        if self._peak > self._limits.memory * _GIGABYTE:
            return self._record("failed", f"More than {self._limits.memory:g} GB of memory needed.")
        return None

    def end(self) -> None:
        """End the process and its descendants."""
        pid = self._process.pid
        for process in _family(pid):
            with contextlib.suppress(psutil.Error):
                process.kill()
        if hasattr(os, "killpg") and pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        self._process.kill()
        self._process.join()
        self._result.close()

    def _broken_off(self) -> Record:
        """Return the record of a process that died without a result."""
        self._process.join()
        code = self._process.exitcode or 0
        self.killed = code in (-signal.SIGTERM, -9, _SERVER_IS_DEAD)
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return self._record("failed", f"The process died with {how}.")

    def _record(self, status: Status, reason: str) -> Record:
        seconds = {"total": self.elapsed}
        self.end()
        job = self.job
        return Record(
            job.task.name,
            job.model.name,
            job.split,
            status,
            reason,
            seconds=seconds,
            threads=1,  # see `one_thread`
            **self._circumstances(),
        )

    def _memory(self) -> float:
        """Return the bytes held by the process and its descendants."""
        if self.elapsed > self._next_look:
            self._family, self._next_look = _family(self._process.pid), self.elapsed + _SECONDS_BETWEEN_LOOKS
        total = 0.0
        for process in self._family:
            with contextlib.suppress(psutil.Error):
                total += process.memory_info().rss
        return total

    def _circumstances(self) -> dict[str, Any]:
        return {
            "peak_memory": round(self._peak / 1e6, 1),
            "limits": asdict(self._limits),
            "versions": package_versions(*self.job.model.packages),
            "commit": source_commit(),
            "machine": machine_facts(),
            "finished": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        }


def _family(pid: int | None) -> list[psutil.Process]:
    """Return a process and its descendants, if they exist."""
    if pid is None:  # for psutil, None is the runner itself
        return []
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []
