"""Sparse Bayesian learning over functions with their own centres and metrics.

The dictionary is all functions that there are, so it is searched:

    propose many → keep and improve the best → one pass of moves → repeat; then move all functions; repeat

Rounds of some passes and one ascent go on until a round raises the objective by little. Where rows are
many, the first rounds run on a stratified sample; then the sample grows by a constant factor a stage, as in
`isbor.solvers.gram`. Beyond some ten thousand rows what is left to gain by moving functions is little, and
a stage is a few passes.
"""

from dataclasses import dataclass

import numpy as np

from isbor.blocks import Workers
from isbor.inputs import TrainingRows
from isbor.solvers.ascent import move_functions
from isbor.solvers.candidates import best_candidates
from isbor.solvers.model import INITIAL_FUNCTIONS, Recorder, SparseModel, settle, start_from
from isbor.solvers.passes import Terms, one_pass, shrink
from isbor.solvers.proposals import Proposals

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
    n_kept: int = 96  # of these
    candidate_steps: int = 6
    passes: int = 3  # in a round
    ascent_steps: int = 15
    max_rounds: int = 5  # in a stage
    # A round that raises the objective by less than this share, or this many nats, is the last.
    enough: float = 1e-3
    enough_nats: float = 2.0
    worthwhile: float = 0.1  # nats; a smaller gain is not worth a move


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
    terms = Terms(settings.size_prior, settings.max_functions, settings.worthwhile)
    size = settings.first_rows if start is None else min(settings.growth * start.n_rows, settings.moving_rows)
    size = size if len(rows) >= 2 * size else len(rows)
    sample = rows.head(size)
    if start is None:
        model = start_from(sample, proposals.fresh(sample, INITIAL_FUNCTIONS).centred_on(rows), workers)
    else:
        model = _on(sample, start, workers)
    recorder.begin_run(model, settings.size_prior)
    while True:
        n_rounds = settings.max_rounds if size <= settings.moving_rows else 1
        model = shrink(sample, model, terms, workers, recorder)
        for _ in range(n_rounds):
            before = model.objective(settings.size_prior)
            model = _round(sample, model, proposals, terms, settings, workers, recorder)
            rise = model.objective(settings.size_prior) - before
            if rise < max(settings.enough * abs(before), settings.enough_nats):
                break
        if size == len(rows):
            return model
        size = min(len(rows), size * settings.growth)
        sample = rows.head(size)
        model = _on(sample, model, workers)


def _on(sample: TrainingRows, model: SparseModel, workers: Workers) -> SparseModel:
    """Return the model at its mode on other rows."""
    mode, functions = model.mode, model.functions.centred_on(sample)
    return settle(sample, functions, mode.alpha, mode.weights, mode.thresholds, workers)


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
    for _ in range(settings.passes if moving else 2):
        fresh = proposals.fresh(sample, settings.n_fresh)
        offered = fresh.followed_by(proposals.children(sample, model.functions, settings.n_children))
        candidates = best_candidates(
            sample,
            model,
            offered,
            size_prior=terms.size_prior,
            keep=settings.n_kept,
            n_steps=settings.candidate_steps,
            workers=workers,
        )
        model = one_pass(sample, model, candidates.centred_on(sample), terms, workers, recorder)
    if moving:
        moved = move_functions(sample, model, settings.ascent_steps, workers)
        recorder.record_ascent(model, moved, terms.size_prior)
        model = moved
    return model
