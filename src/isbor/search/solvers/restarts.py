"""Restarts: search again from the result, with other functions added.

A search that changes one function at a time ends where no single move gains. This need not be the best model,
because functions may gain only together. So the search is restarted from its result, with other functions
added under weak priors, until several restarts in a row were unsuccessful. The result of a restart is kept
only if its objective is higher.
"""

from collections.abc import Callable

import numpy as np

from isbor._core.linalg import UnresolvedError
from isbor._core.parallel import Workers
from isbor._core.trace import StopReason
from isbor.data.rows import TrainingRows
from isbor.inference.sparse import SparseModel
from isbor.model.basis import RowDictionary
from isbor.search.recorder import Recorder
from isbor.search.settings import SolverSettings
from isbor.search.starts import enlarged_model

__all__ = ["stop_reason", "with_restarts"]

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
    """Return the best model that `improve` finds, and whether its search converged.

    Ends after `patience` unsuccessful restarts in a row. `improve` returns a model and whether it converged
    (True) or reached a limit (False). The recorder keeps the steps of the best run only.
    """
    size_prior = settings.size_prior
    recorder.begin_run(start, size_prior)
    best, finished = improve(start)
    steps = recorder.steps
    unsuccessful = 0
    n_drawn = 0
    while unsuccessful < settings.patience and finished:
        added = (n_drawn + np.arange(min(_ADDED, len(rows)))) % len(rows)
        n_drawn += len(added)
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
        else:  # a limit was reached without a better model
            break
    recorder.steps = steps
    return best, finished


def stop_reason(finished: bool, workers: Workers) -> StopReason:
    """Return why a search ended: it converged, or one of its limits was reached."""
    if finished:
        return StopReason.CONVERGED
    return StopReason.MAX_TIME if workers.was_late else StopReason.MAX_ITER
