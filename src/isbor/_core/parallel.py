"""Map a function over blocks of rows, or run independent tasks, on all cores and in bounded memory.

Compiled loops, NumPy and SciPy release the interpreter lock, so plain threads suffice. BLAS is limited to
one thread per call, so the cores work on different blocks instead of sharing one. The blocks, and the order
in which their results are combined, depend only on array sizes, not on the number of threads. Results are
therefore the same on any machine with the same BLAS.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack
from copy import copy
from functools import cache
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from isbor._core.checkpoints import Checkpoint

__all__ = ["StoppedError", "TimeIsUpError", "Workers", "row_blocks"]

T = TypeVar("T")
Block = TypeVar("Block")

# Values per block: small enough for the caches, large enough to hide the interpreter's overhead.
_BLOCK_VALUES = 400_000
_MAX_BLOCK_VALUES = 4_000_000  # upper limit per block, 32 MB


def row_blocks(n_rows: int, n_columns: int) -> list[slice]:
    """Split the rows into blocks for a function that evaluates `n_columns` columns."""
    size = min(max(_BLOCK_VALUES // max(n_columns, 1), 2048), 8192)
    size = min(size, max(_MAX_BLOCK_VALUES // max(n_columns, 1), 128))
    return [slice(i, min(i + size, n_rows)) for i in range(0, n_rows, size)]


class _SingleThreadedBlas:
    """Limit BLAS to one thread as long as at least one user needs it; then restore the old limit.

    The limit applies to the whole process. A fit that ends must not lift it while another thread still
    fits.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limit: AbstractContextManager[Any] | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._limit = _blas_controller().limit(limits=1, user_api="blas")
                self._limit.__enter__()

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._limit is not None:
                self._limit.__exit__(None, None, None)
                self._limit = None


@cache
def _blas_controller() -> ThreadpoolController:
    return ThreadpoolController()


_single_threaded_blas = _SingleThreadedBlas()


def _all_cores() -> int:
    """Return the number of cores, or 1 inside a joblib worker: joblib uses the cores already."""
    backend, _ = get_active_backend()
    return 1 if backend.nesting_level else int(effective_n_jobs(-1))


class StoppedError(Exception):
    """Raised in one thread because another thread of the same fit failed or was interrupted."""


class TimeIsUpError(Exception):
    """Raised where work that cannot be used in part is given up, because the time is up."""


class _IdleThreads:
    """How many threads of a fit have nothing to do."""

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self.count = count

    def take(self) -> bool:
        """Take one of them, if there is one."""
        with self._lock:
            taken = self.count > 0
            self.count -= taken
            return taken

    def give(self) -> None:
        """Give one back."""
        with self._lock:
            self.count += 1


class Workers:
    """A thread pool for one fit or one prediction, to be used in a `with` statement.

    `max_time` is a limit on its time, in seconds. A search asks `is_late` before it goes on, and returns the
    best model so far if it is. `checkpoint` keeps the results of the steps that are done `once`.
    """

    def __init__(
        self,
        n_jobs: int | None = None,
        max_time: float | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.n_threads = _all_cores() if n_jobs is None else int(effective_n_jobs(n_jobs))
        self._stack = ExitStack()
        self._pool: ThreadPoolExecutor | None = None
        self._stops: tuple[threading.Event, ...] = ()
        self._idle = _IdleThreads(self.n_threads)  # of those for tasks
        self._is_task = False  # whether this is one of several tasks, so that its thread is not idle
        self._end = math.inf if max_time is None else time.monotonic() + max_time
        # Whether the fit, its step, the step in that … was told that it is late.
        self._told: tuple[threading.Event, ...] = (threading.Event(),)
        self._checkpoint = Checkpoint() if checkpoint is None else checkpoint
        self._path: tuple[str, ...] = ()  # of the step

    def __enter__(self) -> Self:
        self._stack.enter_context(_single_threaded_blas)
        if self.n_threads > 1:
            self._pool = ThreadPoolExecutor(self.n_threads)
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._stack.close()

    @property
    def stopped(self) -> bool:
        """Whether another task failed, so that this one should end."""
        return any(stop.is_set() for stop in self._stops)

    def check(self) -> None:
        """Raise `StoppedError` if this task should end."""
        if self.stopped:
            raise StoppedError

    def is_late(self) -> bool:
        """Return whether the time is up, to be asked only where more could be done."""
        late = time.monotonic() >= self._end
        if late:
            for told in self._told:
                told.set()
        return late

    @property
    def was_late(self) -> bool:
        """Whether any search in this step was told that the time is up."""
        return self._told[-1].is_set()

    def within(self, name: str) -> "Workers":
        """Return the same workers for a part of the fit. Its steps are named after it, too."""
        part = copy(self)
        part._path = (*self._path, name)
        part._told = (*self._told, threading.Event())
        return part

    def once(self, step: str, compute: Callable[["Workers"], T]) -> T:
        """Return the result of a step, computed by workers for it if no checkpoint has it.

        The result can be pickled. If the time was up before the step ended, it is not kept.
        """
        part = self.within(step)
        return self._checkpoint.once(" ".join(part._path), lambda: compute(part), lambda: not part.was_late)

    def with_share(self, share: float) -> "Workers":
        """Return the same workers with a share of the time that is left."""
        part, now = copy(self), time.monotonic()
        part._end = now + share * (self._end - now)
        return part

    def map(self, function: Callable[[Block], T], blocks: Iterable[Block]) -> Iterator[T]:
        """Yield `function(block)` in the order of the blocks, computed a few blocks in advance.

        The blocks are taken one by one, as they are needed.
        """
        self.check()
        if self._pool is None or not self._idle.count or (isinstance(blocks, Sized) and len(blocks) < 2):
            yield from map(function, blocks)
            return
        pending: deque[Future[T]] = deque()
        for block in blocks:
            pending.append(self._pool.submit(function, block))
            if len(pending) > self.n_threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()

    def side_by_side(self, tasks: Sequence[Callable[["Workers"], T]]) -> list[T]:
        """Return the results of independent tasks, which run at the same time on the threads there are.

        Each task gets workers of its own. As long as all threads have tasks, it has one thread; tasks within
        it, and its blocks of rows, share the threads of those that have ended. If a task fails, the others
        end when they next use their workers.
        """
        if self._pool is None or len(tasks) < 2:
            return [task(self) for task in tasks]
        group = _Group(self, tasks)
        with ThreadPoolExecutor(min(self.n_threads, len(tasks))) as pool:
            return group.results(pool)


class _Group(Generic[T]):
    """Tasks that run side by side."""

    def __init__(self, workers: Workers, tasks: Sequence[Callable[[Workers], T]]) -> None:
        self._idle, self._stop = workers._idle, threading.Event()
        self._is_within_a_task = workers._is_task
        self._workers = copy(workers)
        self._workers._is_task = True
        self._workers._stops = (*workers._stops, self._stop)
        self._waiting = deque(enumerate(tasks))
        self._results: list[T | None] = [None] * len(tasks)
        self._errors: list[BaseException] = []
        self._helpers: list[Future[None]] = []

    def results(self, pool: ThreadPoolExecutor) -> list[T]:
        """Run all tasks: on the thread that has this one, and on idle ones."""
        try:
            self._call_idle_threads(pool)
            if self._is_within_a_task:
                self._run(pool)
            while self._waiting or not all(helper.done() for helper in self._helpers):
                wait(self._helpers)
        except BaseException:
            self._stop.set()
            self._waiting.clear()
            raise
        for error in sorted(self._errors, key=lambda error: isinstance(error, StoppedError)):
            raise error
        return cast(list[T], self._results)

    def _call_idle_threads(self, pool: ThreadPoolExecutor) -> None:
        """Let idle threads help, as many as there are tasks."""
        for _ in range(len(self._waiting)):
            if not self._idle.take():
                break
            self._helpers.append(pool.submit(self._help, pool))

    def _help(self, pool: ThreadPoolExecutor) -> None:
        try:
            self._run(pool)
        finally:
            self._idle.give()

    def _run(self, pool: ThreadPoolExecutor) -> None:
        """Run tasks until none is left."""
        try:
            while (following := self._next()) is not None:
                place, task = following
                self._results[place] = task(self._workers)
                self._call_idle_threads(pool)
        except BaseException as error:
            self._errors.append(error)
            self._stop.set()
            self._waiting.clear()

    def _next(self) -> tuple[int, Callable[[Workers], T]] | None:
        """Return a task that nobody has begun, with its place; None if there is none."""
        try:
            return self._waiting.popleft()
        except IndexError:
            return None
