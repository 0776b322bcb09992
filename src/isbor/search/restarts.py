"""Restarts: search again from the result, with other functions added.

Selecting one function at a time ends where no single move gains, which need not be the best
there is: functions that would gain together are never tried alone. So the search is restarted from
its result with other functions added under weak priors, until that has been unsuccessful a few
times in a row. Each restart is kept only if it ends higher.
"""

from collections.abc import Callable

import numpy as np

from isbor._core.linalg import UnresolvedError
from isbor._core.parallel import Workers
from isbor.data.rows import TrainingRows
from isbor.model.basis import RowDictionary
from isbor.prediction.sparse import SparseModel
from isbor.search.recorder import Recorder
from isbor.search.settings import SolverSettings
from isbor.search.starts import enlarged_model

__all__ = ["with_restarts"]

_ADDED = 30  # functions at a restart


def with_restarts(
    improve: Callable[[SparseModel], tuple[SparseModel, bool]],
    start: SparseModel,
    *,
    rows: TrainingRows,
    dictionary: RowDictionary,
    settings: SolverSettings,
    workers: Workers,
    recorder: Recorder,
) -> tuple[SparseModel, bool]:
    """Return the best model that `improve` reaches; give up after `patience` unsuccessful restarts in a row.

    `improve` says whether it came to an end or ran out of passes; so does the result. The recorder keeps
    the steps of the winning run only.
    """
    size_prior = settings.size_prior
    recorder.begin_run(start, size_prior)
    best, finished = improve(start)
    steps = recorder.steps
    unsuccessful = 0
    dealt = 0
    while unsuccessful < settings.patience and finished:
        added = (dealt + np.arange(min(_ADDED, len(rows)))) % len(rows)
        dealt += len(added)
        fresh = dictionary.basis(np.setdiff1d(added, best.functions.origin))
        try:
            enlarged = enlarged_model(rows, best, fresh, workers)
        except UnresolvedError:
            unsuccessful += 1
            continue
        recorder.begin_run(enlarged, size_prior)
        trial, ended = improve(enlarged)
        if trial.objective(size_prior) > best.objective(size_prior) + settings.tol:
            best, steps, finished, unsuccessful = trial, recorder.steps, ended, 0
        elif ended:
            unsuccessful += 1
        else:  # out of passes, with nothing better than what had converged
            break
    recorder.steps = steps
    return best, finished
