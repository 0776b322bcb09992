"""Sequential sparse Bayesian learning in Gram space, with functions centred on training rows.

    propose → expand (one pass) → make moves while they gain → find the mode of (w, b) → repeat

`isbor.search.solvers.passes` implements one pass. This module decides what is proposed, on which rows, and
for how long. Each pass proposes other rows as centres than the one before.

Passes come in phases. The first phase has no size-prior penalty: functions that gain little alone often gain
much together, and the penalty would keep them out. The second phase applies the penalty and deletes functions
that do not gain enough. If the number of functions is limited, the first phase ends at twice the limit, and
the second one keeps the best. If rows are many, both phases run on a stratified sample (a prefix of the
rows), which then grows by a constant factor per phase, so that only the last passes use all rows.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.trace import StopReason
from isbor._core.types import IntArray
from isbor.data.rows import TrainingRows
from isbor.inference.sparse import SparseModel
from isbor.model.basis import RowDictionary
from isbor.search.recorder import Recorder
from isbor.search.settings import SolverSettings
from isbor.search.solvers.passes import PassSettings, one_pass, shrink
from isbor.search.solvers.restarts import stop_reason, with_restarts
from isbor.search.starts import initial_model, refit

__all__ = ["solve_gram"]

# A phase other than the last ends when a pass raises the objective by less than this many nats.
_PHASE_TOL = 1.0
# Size of a model in the phase without penalty, as a factor of the largest one.
_GROWTH = 2.0
# With more rows than this, gains are so large that the penalty keeps no useful function out.
_UNPENALISED_ROWS = 32_000


def solve_gram(
    rows: TrainingRows,
    dictionary: RowDictionary,
    start: SparseModel | None,
    settings: SolverSettings,
    workers: Workers,
    recorder: Recorder,
) -> tuple[SparseModel, StopReason]:
    """Maximise the objective, log evidence minus size-prior penalty, locally from a starting model."""
    proposals = _Proposals(settings.n_candidates)

    def climb(model: SparseModel, n_rows: int) -> tuple[SparseModel, bool]:
        sample = rows.head(n_rows)
        if n_rows != model.n_rows:
            model = refit(sample, dictionary, model, workers)
        for phase, tol in _phases(n_rows, n_rows == len(rows), settings):
            if phase.size_prior == settings.size_prior:
                model = shrink(sample, model, phase, workers, recorder)
            rise = np.inf
            while rise >= tol:
                if recorder.passes >= settings.max_iter or workers.is_late():
                    return model, False
                fresh = dictionary.basis(proposals.draw(n_rows, model.functions.origin))
                improved = one_pass(sample, model, fresh, phase, workers, recorder)
                rise = improved.objective(phase.size_prior) - model.objective(phase.size_prior)
                model = improved
        return model, True

    size = min(len(rows), settings.first_rows)
    first = rows.head(size)
    model, finished = with_restarts(
        lambda model: climb(model, size),
        initial_model(first, dictionary, workers) if start is None else start,
        rows=first,
        dictionary=dictionary,
        settings=settings if size == len(rows) else replace(settings, tol=_PHASE_TOL),
        workers=workers,
        recorder=recorder,
    )
    while size < len(rows) and finished:
        size = min(len(rows), size * settings.growth)
        model, finished = climb(model, size)
    if model.n_rows < len(rows):  # a limit was reached while the model was that of a sample
        model = refit(rows, dictionary, model, workers)
    return model, stop_reason(finished, workers)


def _phases(n_rows: int, last: bool, settings: SolverSettings) -> Iterator[tuple[PassSettings, float]]:
    """Yield the settings of each phase, and the rise of the objective in a pass below which it ends."""
    if settings.size_prior > 0 and n_rows <= _UNPENALISED_ROWS:
        most = _max_unpenalised(n_rows, settings.max_vectors)
        yield PassSettings(0.0, most, 0.1 * _PHASE_TOL), _PHASE_TOL
    if last:
        yield PassSettings(settings.size_prior, settings.max_vectors, settings.tol), settings.tol
    else:
        yield PassSettings(settings.size_prior, settings.max_vectors, 0.1 * _PHASE_TOL), _PHASE_TOL


def _max_unpenalised(n_rows: int, max_vectors: float) -> int:
    """Return the largest size of a model in the phase without penalty.

    If a width needs more functions than 2√n, it is too narrow, and nearly every row would be added. Of many
    more functions than there may be in the end, most would be deleted again one by one.
    """
    return int(min(2.0 * np.sqrt(n_rows), _GROWTH * max_vectors))


class _Proposals:
    """Proposes the rows in turn as centres, a fixed number in each pass, and starts again after the last."""

    def __init__(self, n_candidates: int) -> None:
        self._n_candidates = n_candidates
        self._n_drawn = 0

    def draw(self, n_rows: int, active: IntArray) -> IntArray:
        count = min(self._n_candidates, n_rows)
        drawn = (self._n_drawn + np.arange(count)) % n_rows
        self._n_drawn += count
        return np.setdiff1d(drawn, active)
