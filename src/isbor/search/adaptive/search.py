"""Sparse Bayesian learning over functions with their own centres and metrics.

There are infinitely many candidate functions, so they are searched. One round is

    3 × (propose many → keep and improve the best → one pass of moves) → delete functions → move all functions

Rounds are repeated until one raises the objective by little. If rows are many, the first rounds run on a
stratified sample, which then grows by a constant factor per phase, as in `isbor.search.solvers.gram`. With
tens of thousands of rows, moving functions gains little, and a phase is a few passes only.

**Penalty.** A function may be useful only together with others that are not in the model yet. So while a
round adds functions, only a small share of the size-prior penalty applies, and their number is not limited;
the model may grow to several times its size. Then one pass with the full penalty and without proposals
deletes functions. If there are still more than `max_vectors`, the penalty is raised until there are not. So a
model at its limit can still exchange functions for better ones.

**Noise.** Varying noise (`isbor.inference.noise`) is fitted at the end of each round, given the score; then
the score is refitted, given the noise. In between, the noise is fixed. The next round may delete functions of
the noise, which can lower the objective; the search continues, and the best model is returned.
"""

from dataclasses import dataclass, replace

import numpy as np

from isbor._core.linalg import UnresolvedError
from isbor._core.parallel import Workers
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.inference.noise import fit_noise, noise_scale_at_rows
from isbor.inference.sparse import SparseModel, fit_weights
from isbor.model.basis import Functions
from isbor.search.adaptive.gains import Directions, Gains, best_candidates
from isbor.search.adaptive.proposals import Proposals
from isbor.search.ascent import move_functions
from isbor.search.recorder import Recorder
from isbor.search.solvers.passes import PassSettings, one_pass, shrink
from isbor.search.starts import INITIAL_FUNCTIONS, start_from

__all__ = ["AdaptiveSettings", "search_functions"]


@dataclass(frozen=True, slots=True)
class AdaptiveSettings:
    """Settings of the search."""

    size_prior: float = 2.0  # nats per unit of cost
    max_vectors: float = np.inf
    first_rows: int = 2000  # rows of the first phase; must include all levels
    growth: int = 8  # factor by which the number of rows grows from phase to phase
    moving_rows: int = 32_000  # functions are moved on at most this many rows; sample for gains and noise
    n_fresh: int = 600  # fresh functions proposed in each pass
    n_children: int = 200  # children proposed in each pass
    n_kept: int = 64  # fresh functions and children kept
    n_oblique: int = 8  # oblique ramps proposed in each pass, all kept
    candidate_steps: int = 6  # ascent steps of each kept proposal
    passes: int = 3  # in a round
    growing_share: float = 0.1  # share of the size prior that applies while a round adds functions
    ascent_steps: int = 15  # when all functions are moved
    first_rounds: int = 2  # in each phase but the last
    max_rounds: int = 5  # in the last phase
    # The last round is one that raises the objective by less than this share of it, or this many nats.
    round_rtol: float = 1e-3
    round_atol: float = 2.0
    tol: float = 0.1  # nats; moves that gain less are not made
    varying_noise: bool = True


def search_functions(
    rows: TrainingRows,
    proposals: Proposals,
    settings: AdaptiveSettings,
    workers: Workers,
    recorder: Recorder,
    start: SparseModel | None = None,
) -> SparseModel:
    """Search for a model of functions with their own centres and metrics.

    `start` is a model fitted to a subset of the rows, from which the search continues.
    """
    size = settings.first_rows if start is None else min(settings.growth * start.n_rows, settings.moving_rows)
    size = size if len(rows) >= 2 * size else len(rows)
    sample = rows.head(size)
    penalised = PassSettings(settings.size_prior, settings.max_vectors, settings.tol)
    if start is None:
        functions = proposals.fresh(sample, INITIAL_FUNCTIONS).centred_on(rows)
        state = _State(sample, start_from(sample, functions, workers), None)
    else:
        state = _State.of(sample, start, workers)
    recorder.begin_run(state.model, settings.size_prior)
    while True:
        n_rounds = settings.max_rounds if size == len(rows) else settings.first_rounds
        n_rounds = n_rounds if size <= settings.moving_rows else 1
        state = state.shrunk(penalised, workers, recorder)
        best = state.model
        for _ in range(n_rounds):
            before = state.model.objective(settings.size_prior)
            state = _round(state, proposals, penalised, settings, workers, recorder)
            rise = state.model.objective(settings.size_prior) - before
            if settings.varying_noise:
                try:
                    state = _with_new_noise(state, settings, workers, recorder)
                except UnresolvedError:  # with the new noise, functions are collinear
                    break
            best = max(best, state.model, key=lambda found: found.objective(settings.size_prior))
            if rise < max(settings.round_rtol * abs(before), settings.round_atol):
                break
        if size == len(rows):
            return best
        size = min(len(rows), size * settings.growth)
        state = _State.of(rows.head(size), best, workers)


@dataclass(frozen=True, slots=True)
class _State:
    """The rows of a phase, the model fitted to them, and the noise, which is fixed for now."""

    rows: TrainingRows
    model: SparseModel
    noise_scale: FloatArray | None  # (n,) standard deviation of each row's noise; None means 1

    @classmethod
    def of(cls, rows: TrainingRows, model: SparseModel, workers: Workers) -> "_State":
        """Return the state after refitting a model to these rows, with its own noise."""
        mode, functions, noise_weights = model.mode, model.functions.centred_on(rows), model.noise_weights
        noise_scale = noise_scale_at_rows(rows, functions, noise_weights, workers)
        fitted = fit_weights(rows, functions, mode.alpha, mode.weights, mode.thresholds, workers, noise_scale)
        return cls(rows, replace(fitted, noise_weights=noise_weights), noise_scale)

    def after_pass(
        self, fresh: Functions, settings: PassSettings, workers: Workers, recorder: Recorder
    ) -> "_State":
        """Return the state after a pass in which `fresh` functions are proposed."""
        model = one_pass(self.rows, self.model, fresh, settings, workers, recorder, self.noise_scale)
        return replace(self, model=model)

    def shrunk(self, settings: PassSettings, workers: Workers, recorder: Recorder) -> "_State":
        """Return the state with at most `max_vectors` functions."""
        model = shrink(self.rows, self.model, settings, workers, recorder, self.noise_scale)
        return replace(self, model=model)


def _with_new_noise(
    state: _State, settings: AdaptiveSettings, workers: Workers, recorder: Recorder
) -> _State:
    """Refit the noise given the score, then the score given the noise."""
    model = state.model
    noise_weights = fit_noise(state.rows.head(settings.moving_rows), model.functions, model.mode, workers)
    after = _State.of(state.rows, replace(model, noise_weights=noise_weights), workers)
    recorder.record_whole("noise", model, after.model, settings.size_prior)
    return after


def _round(
    state: _State,
    proposals: Proposals,
    penalised: PassSettings,
    settings: AdaptiveSettings,
    workers: Workers,
    recorder: Recorder,
) -> _State:
    rows = state.rows
    moving = len(rows) <= settings.moving_rows
    growing = PassSettings(settings.growing_share * settings.size_prior, np.inf, settings.tol)
    for _ in range(settings.passes if moving else 2):
        fresh = proposals.fresh(rows, settings.n_fresh)
        proposed = fresh.followed_by(proposals.children(rows, state.model.functions, settings.n_children))
        gains = Gains.of(rows, settings.moving_rows, state.model, workers, state.noise_scale)
        oblique = proposals.oblique(rows, settings.n_oblique, Directions.of(gains))
        candidates = best_candidates(
            proposed,
            oblique,
            gains,
            size_prior=growing.size_prior,
            keep=settings.n_kept,
            n_steps=settings.candidate_steps,
            workers=workers,
        )
        state = state.after_pass(candidates.centred_on(rows), growing, workers, recorder)
    nothing = state.model.functions.take(slice(0))
    state = state.after_pass(nothing, penalised, workers, recorder).shrunk(penalised, workers, recorder)
    if moving:
        moved = move_functions(rows, state.model, settings.ascent_steps, workers, state.noise_scale)
        recorder.record_whole("ascent", state.model, moved, settings.size_prior)
        state = replace(state, model=moved)
    return state
