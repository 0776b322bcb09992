"""A committee: several searches on the same rows, to be averaged.

Searches with different random proposals find different models that fit about equally well. Their average
usually predicts better than any of them, and its variance includes the disagreement between them.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.types import IntArray
from isbor.data.rows import TrainingRows
from isbor.inference.sparse import SparseModel
from isbor.model.basis import column_costs
from isbor.search.adaptive.proposals import Proposals
from isbor.search.adaptive.search import AdaptiveSettings, search_functions
from isbor.search.recorder import Recorder

__all__ = ["search_committee"]

# The members are fitted in parallel if the number of rows is in this range. With fewer rows, threads wait for
# each other; with more, a single pass keeps all threads busy.
_PARALLEL_ROWS = range(4000, 32_000)


def search_committee(
    rows: TrainingRows,
    feature: IntArray,
    settings: AdaptiveSettings,
    seeds: Sequence[np.random.SeedSequence],
    recorders: Sequence[Recorder],
    workers: Workers,
    starts: Sequence[SparseModel] = (),
) -> list[SparseModel]:
    """Return one model for each recorder, each found from its own start: a given one, else a random one."""

    def member(k: int, workers: Workers) -> SparseModel:
        proposals = Proposals(np.random.default_rng(seeds[k]), feature, column_costs(rows))
        start = starts[k] if k < len(starts) else None
        return search_functions(rows, proposals, settings, workers, recorders[k], start)

    everyone = range(len(recorders))
    if workers.n_threads == 1 or len(recorders) == 1 or len(rows) not in _PARALLEL_ROWS:
        return [member(k, workers) for k in everyone]

    stop = threading.Event()
    for recorder in recorders:
        recorder.stopped = stop
    with Workers(1) as alone, ThreadPoolExecutor(workers.n_threads) as pool:
        futures = [pool.submit(member, k, alone) for k in everyone]
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
