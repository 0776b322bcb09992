"""Several searches for the same rows, to be averaged.

Each search over functions with metrics of their own ends in another model: all fit about as well, and where
they differ from each other they differ from the truth as well. Their average is better than any of them,
and its variance knows what the searches disagree about.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.types import IntArray
from isbor.data.rows import TrainingRows
from isbor.model.basis import column_costs
from isbor.prediction.sparse import SparseModel
from isbor.search.adaptive.proposals import Proposals
from isbor.search.adaptive.search import AdaptiveSettings, search_functions
from isbor.search.recorder import Recorder

__all__ = ["search_committee"]

# The members are found in parallel if rows are so many that threads do not wait for each other, and not so
# many that a pass by itself keeps all threads busy.
_TOGETHER_ROWS = range(4000, 32_000)


def search_committee(
    rows: TrainingRows,
    feature: IntArray,
    settings: AdaptiveSettings,
    seeds: Sequence[np.random.SeedSequence],
    recorders: Sequence[Recorder],
    workers: Workers,
    starts: Sequence[SparseModel] = (),
) -> list[SparseModel]:
    """Return a model for each recorder, found from a start of its own: the given one, or a random one."""

    def member(k: int, workers: Workers) -> SparseModel:
        proposals = Proposals(np.random.default_rng(seeds[k]), feature, column_costs(rows))
        start = starts[k] if k < len(starts) else None
        return search_functions(rows, proposals, settings, workers, recorders[k], start)

    everyone = range(len(recorders))
    if workers.n_threads == 1 or len(recorders) == 1 or len(rows) not in _TOGETHER_ROWS:
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
