"""Propose, select, move: the search for tables of up to 1,500 rows.

There are infinitely many candidate functions, so they are searched. One round is

    3 × (propose many → keep and improve the best → one pass of moves) → delete functions → move all functions

Rounds are repeated until one raises the objective by little. (With more rows, training all functions jointly
is cheaper, see `isbor.search.adaptive.joint`; with few rows, it would fit noise, because only here the
evidence also moves the functions.)

**Penalty.** A function may be useful only together with others that are not in the model yet. So while a
round adds functions, only a small share of the size-prior penalty applies, and their number is not limited;
the model may grow to several times its size. Then one pass with the full penalty and without proposals
deletes functions. If there are still more than `max_vectors`, the penalty is raised until there are not. So a
model at its limit can still exchange functions for better ones.

**Noise.** Varying noise is fitted at the end of each round. The next round may delete functions of the noise,
which can lower the objective; the search continues, and the best model is returned. Thresholds that vary with
the row are fitted once, at the end.
"""

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from isbor._core.linalg import UnresolvedError
from isbor._core.parallel import Workers
from isbor._core.trace import StopReason
from isbor._core.types import IntArray
from isbor.data.rows import TrainingRows
from isbor.inference.sparse import SparseModel
from isbor.model.cuts import Varying, n_shape_sums
from isbor.search.adaptive.entries import Entries
from isbor.search.adaptive.gains import Directions, Gains, best_candidates
from isbor.search.adaptive.proposals import Proposals
from isbor.search.adaptive.state import State
from isbor.search.ascent import move_functions
from isbor.search.recorder import Recorder
from isbor.search.solvers.passes import PassSettings
from isbor.search.starts import INITIAL_FUNCTIONS, start_from

__all__ = ["AdaptiveSettings", "search_functions"]


@dataclass(frozen=True, slots=True)
class AdaptiveSettings:
    """Settings of the search."""

    size_prior: float = 2.0  # nats per unit of cost
    max_vectors: float = np.inf
    n_fresh: int = 600  # fresh functions proposed in each pass
    n_children: int = 200  # children proposed in each pass
    n_kept: int = 40  # fresh functions and children kept
    n_oblique: int = 8  # oblique ramps proposed in each pass, all kept
    candidate_steps: int = 6  # ascent steps of each kept proposal
    passes: int = 3  # in a round
    growing_share: float = 0.1  # share of the size prior that applies while a round adds functions
    ascent_steps: int = 15  # when all functions are moved
    max_rounds: int = 4
    # The last round is one that raises the objective by less than this share of it, or this many nats.
    round_rtol: float = 1e-3
    round_atol: float = 2.0
    tol: float = 0.1  # nats; moves that gain less are not made
    varying: Varying = "thresholds"


def search_functions(
    rows: TrainingRows,
    feature: IntArray,
    settings: AdaptiveSettings,
    random: np.random.Generator,
    workers: Workers,
    recorder: Recorder,
) -> tuple[SparseModel, StopReason]:
    """Search for a model of functions with their own centres and metrics; return why it ended, too.

    `feature`, (d,), is the feature of each column.
    """
    penalised = PassSettings(settings.size_prior, settings.max_vectors, settings.tol)
    proposals = Proposals.of(random, rows, feature)
    functions = proposals.fresh(INITIAL_FUNCTIONS).functions(rows.X).centred_on(rows)
    state = State(rows, start_from(rows, functions, workers), None)
    recorder.begin_run(state.model, settings.size_prior)
    state = state.shrunk(penalised, workers, recorder)
    best, reason = _best_of_rounds(state, proposals, penalised, settings, workers, recorder)
    n_sums = n_shape_sums(settings.varying, len(best.model.mode.thresholds))
    if n_sums > 1:
        with suppress(UnresolvedError):
            best = best.with_new_shape(n_sums, workers, recorder, settings.size_prior)
    return best.model, reason


def _best_of_rounds(
    state: State,
    proposals: Proposals,
    penalised: PassSettings,
    settings: AdaptiveSettings,
    workers: Workers,
    recorder: Recorder,
) -> tuple[State, StopReason]:
    """Return the best state after rounds with varying noise at most, and why they ended."""
    n_sums, best = (0 if settings.varying == "nothing" else 1), state
    for _ in range(settings.max_rounds):
        before = state.objective(settings.size_prior)
        state = _round(state, proposals, penalised, settings, workers, recorder)
        rise = state.objective(settings.size_prior) - before
        if n_sums:
            try:
                state = state.with_new_shape(n_sums, workers, recorder, settings.size_prior)
            except UnresolvedError:  # with the new noise, functions are collinear
                return best, StopReason.CONVERGED
        best = max(best, state, key=lambda found: found.objective(settings.size_prior))
        if rise < max(settings.round_rtol * abs(before), settings.round_atol):
            return best, StopReason.CONVERGED
        if workers.is_late():
            return best, StopReason.MAX_TIME
    return best, StopReason.MAX_ROUNDS


def _round(
    state: State,
    proposals: Proposals,
    penalised: PassSettings,
    settings: AdaptiveSettings,
    workers: Workers,
    recorder: Recorder,
) -> State:
    rows = state.rows
    growing = PassSettings(settings.growing_share * settings.size_prior, np.inf, settings.tol)
    for k in range(settings.passes):
        if k and workers.is_late():
            break
        active = Entries.of(state.model.functions)
        proposed = proposals.fresh(settings.n_fresh).followed_by(
            proposals.children(active, settings.n_children)
        )
        gains = Gains.of(rows, state.model, workers, state.shape)
        oblique = proposals.oblique(settings.n_oblique, Directions.of(gains))
        candidates = best_candidates(
            proposed,
            oblique,
            gains,
            size_prior=growing.size_prior,
            keep=settings.n_kept,
            n_steps=settings.candidate_steps,
            workers=workers,
        )
        functions = candidates.functions(rows.X).centred_on(rows)
        state = state.after_pass(functions, growing, workers, recorder)
    state = state.pruned(penalised, workers, recorder)
    moved = move_functions(rows, state.model, settings.ascent_steps, workers, state.shape)
    recorder.record_whole("ascent", state.model, moved, settings.size_prior)
    return replace(state, model=moved)
