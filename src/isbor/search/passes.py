"""One pass: expand the log likelihood over active and proposed functions, and make the moves that gain.

Given the expansion the paper's incremental loop (add, delete, reestimate, hundreds of times) runs on an
n × n matrix without touching the data. Then the mode is found on the active functions.

The moves are exact for the quadratic model of the likelihood, which is crude while the model is far
from its end. So a pass adds at most about as many functions as there are, and if the evidence
recomputed at the new mode did not rise, half of the moves are taken back, and half of those: on the
same rows the objective never falls from pass to pass.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.inference.evidence import (
    Gaussian,
    GramModel,
    Move,
    apply_move,
    best_move,
    condition,
    gram_model,
    residual,
)
from isbor.inference.expansion import Expansion, expand, streamed
from isbor.inference.mode import UnresolvedError, condition_thresholds
from isbor.model.basis import Functions
from isbor.search.model import Recorder, SparseModel, settle

__all__ = ["Terms", "make_moves", "moves_that_pay", "one_pass", "shrink"]

# Σ and μ are refactorised when the moves have cost more digits than this.
_DRIFT = 1e-10


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms a pass makes moves."""

    size_prior: float  # nats a unit of cost
    max_functions: float  # no additions beyond that many
    worthwhile: float  # gain below which a move is not made


def one_pass(
    rows: TrainingRows,
    model: SparseModel,
    fresh: Functions,
    terms: Terms,
    workers: Workers,
    recorder: Recorder,
) -> SparseModel:
    """Make the moves of one pass and record them; return the old model if none pays."""
    candidates = model.functions.followed_by(fresh)
    weights = np.concatenate([model.mode.weights, np.zeros(len(fresh))])
    expansion = expand(rows, streamed(rows, candidates), weights, model.mode.thresholds, workers)

    def settle_at(after: Gaussian) -> SparseModel:
        weights, thresholds = _starting_point(expansion, after)
        return settle(rows, candidates.take(after.active), after.alpha, weights, thresholds, workers)

    try:
        moves, moved = moves_that_pay(expansion, candidates.cost, model, terms, settle_at)
    except UnresolvedError:  # the model itself is at the edge of what arithmetic resolves: leave it
        moves, moved = [], model
    recorder.record_pass(candidates, moves, model, moved, terms.size_prior)
    return moved


def shrink(
    rows: TrainingRows, model: SparseModel, terms: Terms, workers: Workers, recorder: Recorder
) -> SparseModel:
    """Raise the size prior until the model has no more functions than it may, and lower it again."""
    nothing = model.functions.take(slice(0))
    price = max(terms.size_prior, 1.0)
    while len(model) > terms.max_functions:
        price *= 1.3
        model = one_pass(rows, model, nothing, replace(terms, size_prior=price), workers, recorder)
    return model


def moves_that_pay(
    expansion: Expansion,
    cost: FloatArray,
    model: SparseModel,
    terms: Terms,
    settle_at: Callable[[Gaussian], SparseModel],
) -> tuple[list[Move], SparseModel]:
    """Return moves after which the recomputed objective is no lower, and the model after them."""
    n_active = len(model)
    quadratic = gram_model(expansion)
    before = condition(quadratic, np.arange(n_active), model.mode.alpha)
    price = terms.size_prior * cost
    max_additions = min(max(10, n_active), terms.max_functions - n_active)
    max_moves = 100 + 10 * len(expansion.weights)
    while max_moves:
        after, moves = make_moves(quadratic, before, price, terms.worthwhile, max_moves, max_additions)
        if not moves:
            break
        try:
            moved = settle_at(after)
            if moved.objective(terms.size_prior) >= model.objective(terms.size_prior):
                return moves, moved
        except UnresolvedError:
            pass
        max_moves = len(moves) // 2
    return [], model


def make_moves(
    quadratic: GramModel,
    state: Gaussian,
    price: FloatArray,
    worthwhile: float,
    max_moves: int,
    max_additions: float,
) -> tuple[Gaussian, list[Move]]:
    """Make the best move again and again, while it is worthwhile."""
    moves: list[Move] = []
    additions_left = max_additions
    while len(moves) < max_moves:
        move = best_move(state, quadratic.floor, price=price, may_add=additions_left > 0)
        if move is None or move.gain < worthwhile:
            break
        after = apply_move(quadratic, state, move)
        if residual(quadratic, after) > _DRIFT:
            try:
                after = condition(quadratic, after.active, after.alpha)
            except UnresolvedError:
                break
        state = after
        additions_left -= move.kind == "add"
        moves.append(move)
    return state, moves


def _starting_point(expansion: Expansion, after: Gaussian) -> tuple[FloatArray, FloatArray]:
    """Return where the quadratic model sees the new mode, or as far that way as thresholds stay ordered."""
    here = np.zeros_like(expansion.weights)
    here[after.active] = after.mean
    thresholds, step = condition_thresholds(expansion, here)
    start = expansion.weights[after.active]
    return start + step * (after.mean - start), thresholds
