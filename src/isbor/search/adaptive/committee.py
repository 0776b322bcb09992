"""A committee: several searches on the same rows, to be averaged.

Searches with different random proposals find different models that fit about equally well. Their average
usually predicts better than any of them, and its variance includes the disagreement between them.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from isbor._core.parallel import Workers
from isbor.inference.sparse import SparseModel
from isbor.search.recorder import Recorder

__all__ = ["Member", "search_committee"]

# A function that searches for member k of a committee.
Member = Callable[[int, Workers, Recorder], SparseModel]


def search_committee(
    member: Member, recorders: Sequence[Recorder], workers: Workers, *, parallel: bool
) -> list[SparseModel]:
    """Return the model of each member, one for each recorder.

    If `parallel`, members are searched at the same time. That pays if most of the time is spent in loops that
    release the interpreter lock, which takes thousands of rows.
    """
    everyone = range(len(recorders))
    if workers.n_threads == 1 or len(recorders) == 1 or not parallel:
        return [member(k, workers, recorders[k]) for k in everyone]

    stop = threading.Event()
    for recorder in recorders:
        recorder.stopped = stop
    # With threads to spare, the members share them.
    with Workers(1) as alone, ThreadPoolExecutor(min(workers.n_threads, len(recorders))) as pool:
        inner = workers if workers.n_threads > len(recorders) else alone
        futures = [pool.submit(member, k, inner, recorders[k]) for k in everyone]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            failed = [future for future in futures if future.done() and future.exception()]
            if failed:
                failed[0].result()
        except BaseException:
            stop.set()
            for future in futures:
                future.cancel()
            raise
        return [future.result() for future in futures]
