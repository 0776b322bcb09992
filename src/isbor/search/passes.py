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

from isbor._core.linalg import UnresolvedError
from isbor._core.parallel import Workers
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.inference.evidence import (
    GramModel,
    Move,
    WeightPosterior,
    apply_move,
    best_move,
    gram_model,
    residual,
    weight_posterior,
)
from isbor.inference.expansion import Expansion, expand, streamed
from isbor.inference.mode import thresholds_given_weights
from isbor.model.basis import Functions
from isbor.prediction.sparse import SparseModel, fit_weights
from isbor.search.recorder import Recorder

__all__ = ["PassSettings", "make_moves", "moves_that_pay", "one_pass", "shrink"]

# Σ and μ are refactorised when the moves have cost more digits than this.
_DRIFT = 1e-10


@dataclass(frozen=True, slots=True)
class PassSettings:
    """Which moves a pass makes."""

    size_prior: float  # nats a unit of cost
    max_vectors: float  # no additions beyond that many functions
    tol: float  # gain below which a move is not made


def one_pass(
    rows: TrainingRows,
    model: SparseModel,
    fresh: Functions,
    settings: PassSettings,
    workers: Workers,
    recorder: Recorder,
    noise_scale: FloatArray | None = None,
) -> SparseModel:
    """Make the moves of one pass and record them; return the old model if none pays.

    `noise_scale`, (n,), is the standard deviation of each row's noise; None means 1.
    """
    candidates = model.functions.followed_by(fresh)
    weights = np.concatenate([model.mode.weights, np.zeros(len(fresh))])
    expansion = expand(rows, streamed(rows, candidates), weights, model.mode.thresholds, workers, noise_scale)

    def model_after(after: WeightPosterior) -> SparseModel:
        weights, thresholds = _starting_point(expansion, after)
        functions = candidates.take(after.active)
        return fit_weights(rows, functions, after.alpha, weights, thresholds, workers, noise_scale)

    try:
        moves, moved = moves_that_pay(expansion, candidates.cost, model, settings, model_after)
    except UnresolvedError:  # the model itself is at the edge of what arithmetic resolves: leave it
        moves, moved = [], model
    recorder.record_pass(candidates, moves, model, moved, settings.size_prior)
    return moved


def shrink(
    rows: TrainingRows,
    model: SparseModel,
    settings: PassSettings,
    workers: Workers,
    recorder: Recorder,
    noise_scale: FloatArray | None = None,
) -> SparseModel:
    """Raise the size prior until the model has no more functions than it may, and lower it again."""
    nothing = model.functions.take(slice(0))
    price = max(settings.size_prior, 1.0)
    while len(model) > settings.max_vectors:
        price *= 1.3
        dearer = replace(settings, size_prior=price)
        model = one_pass(rows, model, nothing, dearer, workers, recorder, noise_scale)
    return model


def moves_that_pay(
    expansion: Expansion,
    cost: FloatArray,
    model: SparseModel,
    settings: PassSettings,
    model_after: Callable[[WeightPosterior], SparseModel],
) -> tuple[list[Move], SparseModel]:
    """Return moves after which the recomputed objective is no lower, and the model after them."""
    n_active = len(model)
    quadratic = gram_model(expansion)
    before = weight_posterior(quadratic, np.arange(n_active), model.mode.alpha)
    price = settings.size_prior * cost
    max_additions = min(max(10, n_active), settings.max_vectors - n_active)
    max_moves = 100 + 10 * len(expansion.weights)
    while max_moves:
        after, moves = make_moves(quadratic, before, price, settings.tol, max_moves, max_additions)
        if not moves:
            break
        try:
            moved = model_after(after)
            if moved.objective(settings.size_prior) >= model.objective(settings.size_prior):
                return moves, moved
        except UnresolvedError:
            pass
        max_moves = len(moves) // 2
    return [], model


def make_moves(
    quadratic: GramModel,
    state: WeightPosterior,
    price: FloatArray,
    tol: float,
    max_moves: int,
    max_additions: float,
) -> tuple[WeightPosterior, list[Move]]:
    """Make the best move again and again, while it gains at least `tol`."""
    moves: list[Move] = []
    additions_left = max_additions
    while len(moves) < max_moves:
        move = best_move(state, quadratic.floor, penalty=price, may_add=additions_left > 0)
        if move is None or move.gain < tol:
            break
        after = apply_move(quadratic, state, move)
        if residual(quadratic, after) > _DRIFT:
            try:
                after = weight_posterior(quadratic, after.active, after.alpha)
            except UnresolvedError:
                break
        state = after
        additions_left -= move.kind == "add"
        moves.append(move)
    return state, moves


def _starting_point(expansion: Expansion, after: WeightPosterior) -> tuple[FloatArray, FloatArray]:
    """Return where the quadratic model sees the new mode, or as far that way as thresholds stay ordered."""
    here = np.zeros_like(expansion.weights)
    here[after.active] = after.mean
    thresholds, step = thresholds_given_weights(expansion, here)
    start = expansion.weights[after.active]
    return start + step * (after.mean - start), thresholds
