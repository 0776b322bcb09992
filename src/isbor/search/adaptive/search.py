"""Sparse Bayesian learning over functions with their own centres and metrics.

The dictionary is all functions that there are, so it is searched:

    propose many → keep and improve the best → one pass of moves → repeat; delete; move all functions; repeat

Such rounds go on until one raises the objective by little. Where rows are many, the first rounds run on a
stratified sample; then the sample grows by a constant factor a stage, as in `isbor.search.gram`. Beyond some
ten thousand rows what is left to gain by moving functions is little, and a stage is a few passes.

**Growing is cheap, staying is not.** A function that is worth its price may need others to show it, which a
greedy move does not see. So in the passes of a round functions pay a small share of the size prior and know
no limit on their number, and the model grows to a multiple of its size. Then one pass has the whole price and
nothing to offer, and what does not pay goes. If functions are still too many, the price rises until they are
not: a model at its limit goes on exchanging functions for better ones.

**Noise** that varies (`isbor.inference.noise`) is fitted to the score at the end of each round, and the score
to it. In between it is part of the data. It may be made of functions that a round deletes, and cost more than
the round gained; the search goes on, and the best model is kept.
"""

from dataclasses import dataclass, replace

import numpy as np

from isbor._core.linalg import UnresolvedError
from isbor._core.parallel import Workers
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.inference.noise import fit_noise, noise_scale_at_rows
from isbor.model.basis import Functions
from isbor.prediction.sparse import SparseModel, fit_weights
from isbor.search.adaptive.ascent import move_functions
from isbor.search.adaptive.gains import Directions, Gains, best_candidates
from isbor.search.adaptive.proposals import Proposals
from isbor.search.passes import PassSettings, one_pass, shrink
from isbor.search.recorder import Recorder
from isbor.search.starts import INITIAL_FUNCTIONS, start_from

__all__ = ["AdaptiveSettings", "search_functions"]


@dataclass(frozen=True, slots=True)
class AdaptiveSettings:
    """How the search spends its time."""

    size_prior: float = 2.0  # nats a unit of cost
    max_vectors: float = np.inf
    first_rows: int = 2000  # rows of the first stage; all levels must be among them
    growth: int = 8  # factor by which the rows grow from stage to stage
    moving_rows: int = 32_000  # functions are moved on at most that many rows
    n_fresh: int = 600  # proposed in each pass
    n_children: int = 200
    n_kept: int = 64  # of these
    n_oblique: int = 8  # proposed besides
    candidate_steps: int = 6
    passes: int = 3  # in a round
    growing_share: float = 0.1  # of the size prior, in force while a round's passes add functions
    ascent_steps: int = 15
    first_rounds: int = 2  # in each stage but the last
    max_rounds: int = 5  # in the last
    # A round that raises the objective by less than this share, or this many nats, is the last.
    enough: float = 1e-3
    enough_nats: float = 2.0
    tol: float = 0.1  # nats; a smaller gain is not worth a move
    varying_noise: bool = True


def search_functions(
    rows: TrainingRows,
    proposals: Proposals,
    settings: AdaptiveSettings,
    workers: Workers,
    recorder: Recorder,
    start: SparseModel | None = None,
) -> SparseModel:
    """Return a model of functions with their own centres and metrics.

    `start` is a model of some of the rows to go on from.
    """
    size = settings.first_rows if start is None else min(settings.growth * start.n_rows, settings.moving_rows)
    size = size if len(rows) >= 2 * size else len(rows)
    sample = rows.head(size)
    at_price = PassSettings(settings.size_prior, settings.max_vectors, settings.tol)
    if start is None:
        functions = proposals.fresh(sample, INITIAL_FUNCTIONS).centred_on(rows)
        state = _State(sample, start_from(sample, functions, workers), None)
    else:
        state = _State.of(sample, start, workers)
    recorder.begin_run(state.model, settings.size_prior)
    while True:
        n_rounds = settings.max_rounds if size == len(rows) else settings.first_rounds
        n_rounds = n_rounds if size <= settings.moving_rows else 1
        state = state.shrunk(at_price, workers, recorder)
        best = state.model
        for _ in range(n_rounds):
            before = state.model.objective(settings.size_prior)
            state = _round(state, proposals, at_price, settings, workers, recorder)
            rise = state.model.objective(settings.size_prior) - before
            if settings.varying_noise:
                try:
                    state = _with_new_noise(state, settings, workers, recorder)
                except UnresolvedError:  # noise took the curvature from rows that told functions apart
                    break
            best = max(best, state.model, key=lambda found: found.objective(settings.size_prior))
            if rise < max(settings.enough * abs(before), settings.enough_nats):
                break
        if size == len(rows):
            return best
        size = min(len(rows), size * settings.growth)
        state = _State.of(rows.head(size), best, workers)


@dataclass(frozen=True, slots=True)
class _State:
    """The rows of a stage, the model at its mode on them, and the noise that is taken as given."""

    rows: TrainingRows
    model: SparseModel
    noise_scale: FloatArray | None  # (n,) standard deviation of each row's noise; None means 1

    @classmethod
    def of(cls, rows: TrainingRows, model: SparseModel, workers: Workers) -> "_State":
        """Return the state of a model of other rows, or of one with other noise."""
        mode, functions, noise_weights = model.mode, model.functions.centred_on(rows), model.noise_weights
        noise_scale = noise_scale_at_rows(rows, functions, noise_weights, workers)
        fitted = fit_weights(rows, functions, mode.alpha, mode.weights, mode.thresholds, workers, noise_scale)
        return cls(rows, replace(fitted, noise_weights=noise_weights), noise_scale)

    def after_pass(
        self, fresh: Functions, settings: PassSettings, workers: Workers, recorder: Recorder
    ) -> "_State":
        """Return the state after a pass with some functions on offer."""
        model = one_pass(self.rows, self.model, fresh, settings, workers, recorder, self.noise_scale)
        return replace(self, model=model)

    def shrunk(self, settings: PassSettings, workers: Workers, recorder: Recorder) -> "_State":
        """Return the state with no more functions than the settings allow."""
        model = shrink(self.rows, self.model, settings, workers, recorder, self.noise_scale)
        return replace(self, model=model)


def _with_new_noise(
    state: _State, settings: AdaptiveSettings, workers: Workers, recorder: Recorder
) -> _State:
    """Fit the noise to the score, and the score to the noise."""
    model = state.model
    noise_weights = fit_noise(state.rows.head(settings.moving_rows), model.functions, model.mode, workers)
    after = _State.of(state.rows, replace(model, noise_weights=noise_weights), workers)
    recorder.record_whole("noise", model, after.model, settings.size_prior)
    return after


def _round(
    state: _State,
    proposals: Proposals,
    at_price: PassSettings,
    settings: AdaptiveSettings,
    workers: Workers,
    recorder: Recorder,
) -> _State:
    rows = state.rows
    moving = len(rows) <= settings.moving_rows
    growing = PassSettings(settings.growing_share * settings.size_prior, np.inf, settings.tol)
    for _ in range(settings.passes if moving else 2):
        fresh = proposals.fresh(rows, settings.n_fresh)
        offered = fresh.followed_by(proposals.children(rows, state.model.functions, settings.n_children))
        gains = Gains.of(rows, settings.moving_rows, state.model, workers, state.noise_scale)
        oblique = proposals.oblique(rows, settings.n_oblique, Directions.of(gains))
        candidates = best_candidates(
            offered,
            oblique,
            gains,
            size_prior=growing.size_prior,
            keep=settings.n_kept,
            n_steps=settings.candidate_steps,
            workers=workers,
        )
        state = state.after_pass(candidates.centred_on(rows), growing, workers, recorder)
    nothing = state.model.functions.take(slice(0))
    state = state.after_pass(nothing, at_price, workers, recorder).shrunk(at_price, workers, recorder)
    if moving:
        moved = move_functions(rows, state.model, settings.ascent_steps, workers, state.noise_scale)
        recorder.record_whole("ascent", state.model, moved, settings.size_prior)
        state = replace(state, model=moved)
    return state
