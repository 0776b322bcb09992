"""Map a function over blocks of rows, on all cores, in bounded memory.

NumPy and SciPy release the interpreter lock inside their loops, so plain threads suffice. BLAS is limited to
one thread per call, so the cores work on different blocks instead of sharing one. The blocks, and the order
in which their results are combined, depend only on array sizes, not on the number of threads. Results are
therefore the same on any machine with the same BLAS.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from functools import cache
from types import TracebackType
from typing import Any, Self, TypeVar

from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

__all__ = ["Workers", "row_blocks"]

T = TypeVar("T")

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


class Workers:
    """A thread pool for one fit or one prediction, to be used in a `with` statement."""

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_threads = _all_cores() if n_jobs is None else int(effective_n_jobs(n_jobs))
        self._stack = ExitStack()
        self._pool: ThreadPoolExecutor | None = None

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

    def map(self, function: Callable[[slice], T], blocks: list[slice]) -> Iterator[T]:
        """Yield `function(block)` in the order of the blocks, computed a few blocks in advance."""
        if self._pool is None or len(blocks) < 2:
            yield from map(function, blocks)
            return
        ahead = self.n_threads
        pending: deque[Future[T]] = deque()
        for block in blocks:
            pending.append(self._pool.submit(function, block))
            if len(pending) > ahead:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
