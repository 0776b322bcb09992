"""Start again from a better place.

Selecting one function at a time ends where no single move gains, which need not be the best
there is: functions that would gain together are never tried alone. So the search is started again from
its result with other functions thrown in under weak priors, and again, until that has failed a few
times in a row. Each restart is kept only if it ends higher.
"""

from collections.abc import Callable

import numpy as np

from isbor._core.parallel import Workers
from isbor.data.rows import TrainingRows
from isbor.inference.mode import UnresolvedError
from isbor.model.basis import RowDictionary
from isbor.search.model import Recorder, SparseModel, enlarged_model

__all__ = ["with_restarts"]

_THROWN_IN = 30


def with_restarts(
    improve: Callable[[SparseModel], tuple[SparseModel, bool]],
    start: SparseModel,
    *,
    rows: TrainingRows,
    dictionary: RowDictionary,
    size_prior: float,
    tolerance: float,
    patience: int,
    workers: Workers,
    recorder: Recorder,
) -> tuple[SparseModel, bool]:
    """Return the best model that `improve` reaches; give up after `patience` vain restarts in a row.

    `improve` says whether it came to an end or ran out of passes; so does the result. The recorder keeps
    the steps of the winning run only.
    """
    recorder.begin_run(start, size_prior)
    best, finished = improve(start)
    steps = recorder.steps
    vain = 0
    dealt = 0
    while vain < patience and finished:
        thrown_in = (dealt + np.arange(min(_THROWN_IN, len(rows)))) % len(rows)
        dealt += len(thrown_in)
        fresh = dictionary.basis(np.setdiff1d(thrown_in, best.functions.origin))
        try:
            enlarged = enlarged_model(rows, best, fresh, workers)
        except UnresolvedError:
            vain += 1
            continue
        recorder.begin_run(enlarged, size_prior)
        trial, ended = improve(enlarged)
        if trial.objective(size_prior) > best.objective(size_prior) + tolerance:
            best, steps, finished, vain = trial, recorder.steps, ended, 0
        elif ended:
            vain += 1
        else:  # out of passes, with nothing better than what had converged
            break
    recorder.steps = steps
    return best, finished
