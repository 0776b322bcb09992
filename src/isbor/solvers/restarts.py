"""Start again from a better place.

Selecting one function at a time ends where no single move gains, which need not be the best
there is: functions that would gain together are never tried alone. So the search is started again from
its result with other functions thrown in under weak priors, and again, until that has failed a few
times in a row. Each restart is kept only if it ends higher.
"""

from collections.abc import Callable

import numpy as np

from isbor.basis import RowDictionary
from isbor.blocks import Workers
from isbor.inputs import TrainingRows
from isbor.posterior import UnresolvedError
from isbor.solvers.model import Recorder, SparseModel, enlarged_model

__all__ = ["with_restarts"]

_THROWN_IN = 30


def with_restarts(
    improve: Callable[[SparseModel], SparseModel],
    start: SparseModel,
    *,
    rows: TrainingRows,
    dictionary: RowDictionary,
    size_prior: float,
    tolerance: float,
    patience: int,
    workers: Workers,
    recorder: Recorder,
) -> SparseModel:
    """Return the best model that `improve` reaches; give up after `patience` vain restarts in a row.

    The recorder keeps the steps of the winning run only.
    """
    best, steps = improve(start), recorder.take()
    vain = 0
    dealt = 0
    while vain < patience:
        thrown_in = (dealt + np.arange(min(_THROWN_IN, len(rows)))) % len(rows)
        dealt += len(thrown_in)
        fresh = np.setdiff1d(thrown_in, best.chosen)
        try:
            trial = improve(enlarged_model(rows, dictionary, best, fresh, workers))
        except UnresolvedError:
            trial = best
        trial_steps = recorder.take()
        if trial.objective(size_prior) > best.objective(size_prior) + tolerance:
            best, steps, vain = trial, trial_steps, 0
        else:
            vain += 1
    recorder.steps = steps
    return best
