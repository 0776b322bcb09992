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

from isbor._core.parallel import Workers
from isbor.data.rows import TrainingRows
from isbor.inference.mode import UnresolvedError
from isbor.inference.noise import fit_noise, with_noise
from isbor.search.adaptive.ascent import move_functions
from isbor.search.adaptive.gains import Directions, Gains, best_candidates
from isbor.search.adaptive.proposals import Proposals
from isbor.search.model import INITIAL_FUNCTIONS, Recorder, SparseModel, settle, start_from
from isbor.search.passes import Terms, one_pass, shrink

__all__ = ["MixedSettings", "solve_mixed"]


@dataclass(frozen=True, slots=True)
class MixedSettings:
    """How the solver spends its time."""

    size_prior: float = 2.0  # nats a unit of cost
    max_functions: float = np.inf
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
    worthwhile: float = 0.1  # nats; a smaller gain is not worth a move
    varying_noise: bool = True


def solve_mixed(
    rows: TrainingRows,
    proposals: Proposals,
    settings: MixedSettings,
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
    if start is None:
        model = start_from(sample, proposals.fresh(sample, INITIAL_FUNCTIONS).centred_on(rows), workers)
    else:
        sample, model = _on(sample, start, workers)
    terms = Terms(settings.size_prior, settings.max_functions, settings.worthwhile)
    recorder.begin_run(model, terms.size_prior)
    while True:
        n_rounds = settings.max_rounds if size == len(rows) else settings.first_rounds
        n_rounds = n_rounds if size <= settings.moving_rows else 1
        model = shrink(sample, model, terms, workers, recorder)
        best = model
        for _ in range(n_rounds):
            before = model.objective(terms.size_prior)
            model = _round(sample, model, proposals, terms, settings, workers, recorder)
            rise = model.objective(terms.size_prior) - before
            if settings.varying_noise:
                try:
                    sample, model = _with_noise(sample, model, terms, settings, workers, recorder)
                except UnresolvedError:  # noise took the curvature from rows that told functions apart
                    break
            best = max(best, model, key=lambda found: found.objective(terms.size_prior))
            if rise < max(settings.enough * abs(before), settings.enough_nats):
                break
        if size == len(rows):
            return best
        size = min(len(rows), size * settings.growth)
        sample = rows.head(size)
        sample, model = _on(sample, best, workers)


def _on(sample: TrainingRows, model: SparseModel, workers: Workers) -> tuple[TrainingRows, SparseModel]:
    """Return rows with the noise of the model, and the model at its mode on them."""
    mode, functions, noise = model.mode, model.functions.centred_on(sample), model.noise_weights
    sample = with_noise(sample, functions, noise, workers)
    settled = settle(sample, functions, mode.alpha, mode.weights, mode.thresholds, workers)
    return sample, replace(settled, noise_weights=noise)


def _with_noise(
    sample: TrainingRows,
    model: SparseModel,
    terms: Terms,
    settings: MixedSettings,
    workers: Workers,
    recorder: Recorder,
) -> tuple[TrainingRows, SparseModel]:
    """Fit the noise to the score, and the score to the noise."""
    noise = fit_noise(sample.head(settings.moving_rows), model.functions, model.mode, workers)
    sample, moved = _on(sample, replace(model, noise_weights=noise), workers)
    recorder.record_whole("noise", model, moved, terms.size_prior)
    return sample, moved


def _round(
    sample: TrainingRows,
    model: SparseModel,
    proposals: Proposals,
    terms: Terms,
    settings: MixedSettings,
    workers: Workers,
    recorder: Recorder,
) -> SparseModel:
    moving = len(sample) <= settings.moving_rows
    growing = Terms(settings.growing_share * terms.size_prior, np.inf, terms.worthwhile)
    for _ in range(settings.passes if moving else 2):
        fresh = proposals.fresh(sample, settings.n_fresh)
        offered = fresh.followed_by(proposals.children(sample, model.functions, settings.n_children))
        gains = Gains.of(sample, settings.moving_rows, model, workers)
        oblique = proposals.oblique(sample, settings.n_oblique, Directions.of(gains))
        candidates = best_candidates(
            offered,
            oblique,
            gains,
            size_prior=growing.size_prior,
            keep=settings.n_kept,
            n_steps=settings.candidate_steps,
            workers=workers,
        )
        model = one_pass(sample, model, candidates.centred_on(sample), growing, workers, recorder)
    model = one_pass(sample, model, model.functions.take(slice(0)), terms, workers, recorder)
    model = shrink(sample, model, terms, workers, recorder)
    if moving:
        moved = move_functions(sample, model, settings.ascent_steps, workers)
        recorder.record_whole("ascent", model, moved, terms.size_prior)
        model = moved
    return model
