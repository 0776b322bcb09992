"""Sequential sparse Bayesian learning in Gram space, with rows as centres.

    propose → expand (one pass) → moves while they gain → mode of (w, b) → repeat

`isbor.search.passes` has the pass; here is what is proposed, on which rows and for how long. A pass
proposes other rows as centres than the last.

Passes come in stages. The first runs without a size prior: functions that gain little by themselves
often gain much together, and a price on each would keep them all out. The next adds the price, and
the model shrinks to what pays. Where rows are many, both run on a stratified sample (a prefix of the
rows), which then grows by a constant factor a stage: only the last passes see all rows.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.trace import StopReason
from isbor._core.types import IntArray
from isbor.data.rows import TrainingRows
from isbor.model.basis import RowDictionary
from isbor.prediction.sparse import SparseModel
from isbor.search.passes import PassSettings, one_pass, shrink
from isbor.search.recorder import Recorder
from isbor.search.restarts import with_restarts
from isbor.search.settings import SolverSettings
from isbor.search.starts import initial_model, refit

__all__ = ["solve_gram"]

# A stage other than the last ends when a pass raises the objective by less than this many nats.
_ENOUGH = 1.0
# With more rows than this, gains are so large that the size prior keeps nothing useful out.
_FREE_GROWTH_ROWS = 32_000


def solve_gram(
    rows: TrainingRows,
    dictionary: RowDictionary,
    start: SparseModel | None,
    settings: SolverSettings,
    workers: Workers,
    recorder: Recorder,
) -> tuple[SparseModel, StopReason]:
    """Raise the log evidence less the size prior from a starting model to a local maximum."""
    proposals = _Proposals(settings.n_candidates)

    def climb(model: SparseModel, n_rows: int) -> tuple[SparseModel, bool]:
        sample = rows.head(n_rows)
        if n_rows != model.n_rows:
            model = refit(sample, dictionary, model, workers)
        for stage, enough in _stages(n_rows, n_rows == len(rows), settings):
            if stage.size_prior == settings.size_prior:
                model = shrink(sample, model, stage, workers, recorder)
            rise = np.inf
            while rise >= enough:
                if recorder.passes >= settings.max_iter:
                    return model, False
                fresh = dictionary.basis(proposals.draw(n_rows, model.functions.origin))
                improved = one_pass(sample, model, fresh, stage, workers, recorder)
                rise = improved.objective(stage.size_prior) - model.objective(stage.size_prior)
                model = improved
        return model, True

    size = min(len(rows), settings.first_rows)
    first = rows.head(size)
    model, finished = with_restarts(
        lambda model: climb(model, size),
        initial_model(first, dictionary, workers) if start is None else start,
        rows=first,
        dictionary=dictionary,
        settings=settings if size == len(rows) else replace(settings, tol=_ENOUGH),
        workers=workers,
        recorder=recorder,
    )
    while size < len(rows) and finished:
        size = min(len(rows), size * settings.growth)
        model, finished = climb(model, size)
    return model, StopReason.CONVERGED if finished else StopReason.MAX_ITER


def _stages(n_rows: int, last: bool, settings: SolverSettings) -> Iterator[tuple[PassSettings, float]]:
    """Yield the settings of each stage, and the rise of the objective in a pass below which it ends."""
    if settings.size_prior > 0 and n_rows <= _FREE_GROWTH_ROWS:
        yield PassSettings(0.0, _free_functions(n_rows), 0.1 * _ENOUGH), _ENOUGH
    if last:
        yield PassSettings(settings.size_prior, settings.max_vectors, settings.tol), settings.tol
    else:
        yield PassSettings(settings.size_prior, settings.max_vectors, 0.1 * _ENOUGH), _ENOUGH


def _free_functions(n_rows: int) -> int:
    """Return how large a model may grow before its functions have to pay.

    Free growth is to find functions that pay together. A width at which even this many are not enough
    is too narrow, and would take in nearly every row.
    """
    return int(2.0 * np.sqrt(n_rows))


class _Proposals:
    """Deals the rows out as candidates, a hand a pass, and starts again when all have been dealt."""

    def __init__(self, n_candidates: int) -> None:
        self._hand = n_candidates
        self._dealt = 0

    def draw(self, n_rows: int, active: IntArray) -> IntArray:
        hand = min(self._hand, n_rows)
        drawn = (self._dealt + np.arange(hand)) % n_rows
        self._dealt += hand
        return np.setdiff1d(drawn, active)
