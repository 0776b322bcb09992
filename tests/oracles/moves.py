"""The moves of `isbor.inference.evidence` with NumPy: one posterior after the other, one move at a time."""

from dataclasses import replace

import numpy as np

from isbor._core.linalg import UnresolvedError, factorise
from isbor.inference.evidence import Move, WeightPosterior

DRIFT = 1e-10  # relative error from which Σ and μ are recomputed


def make_moves(quadratic, state, penalty, tol, max_moves, max_additions):
    """Make the best move repeatedly while it gains at least `tol`."""
    moves = []
    additions_left = max_additions
    while len(moves) < max_moves:
        move = best_move(state, quadratic.floor, penalty=penalty, may_add=additions_left > 0)
        if move is None or move.gain < tol:
            break
        after = apply_move(quadratic, state, move)
        if residual(quadratic, after) > DRIFT:
            try:
                after = weight_posterior(quadratic, after.active, after.alpha)
            except UnresolvedError:
                break
        state = after
        additions_left -= move.kind == "add"
        moves.append(move)
    return state, moves


def weight_posterior(model, active, alpha):
    """Return the posterior for an active set, computed from a new factorisation."""
    if not len(active):
        empty = np.zeros(0)
        return WeightPosterior(
            active, alpha, np.zeros((0, 0)), empty, np.diag(model.gram).copy(), model.linear.copy()
        )
    inside = model.gram[np.ix_(active, active)]
    covariance = factorise(inside + np.diag(alpha)).inverse()
    mean = covariance @ model.linear[active]
    columns = model.gram[:, active]
    sparsity = np.diag(model.gram) - np.einsum("ij,ij->i", columns @ covariance, columns)
    quality = model.linear - columns @ mean
    return WeightPosterior(active, alpha, covariance, mean, sparsity, quality)


def residual(model, state):
    """Return the relative error that the rank-one updates have accumulated.

    For active functions, Q_i = α_i μ_i and S_i = α_i - α_i² Σ_ii. The two sides are updated by different
    recursions, so their difference shows the digits lost.
    """
    if not len(state.active):
        return 0.0
    i, alpha = state.active, state.alpha
    quality = np.abs(state.quality[i] - alpha * state.mean) / (1.0 + np.abs(model.linear[i]))
    sparsity = np.abs(state.sparsity[i] - alpha * (1.0 - alpha * np.diag(state.covariance)))
    return float(max(quality.max(), (sparsity / np.maximum(np.diag(model.gram)[i], model.floor[i])).max()))


def optimal_precision(s, q):
    """Return the precision that maximises the evidence, infinite if the function should be deleted."""
    excess = q**2 - s
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(excess > 0.0, s**2 / np.where(excess > 0.0, excess, 1.0), np.inf)


def best_move(state, floor, *, penalty=0.0, may_add=True, excluded=()):
    """Return the move with the largest gain; None if there is no possible move."""
    penalties = np.broadcast_to(np.asarray(penalty, dtype=np.float64), state.sparsity.shape)
    skipped = np.fromiter(excluded, dtype=np.intp)
    best = None
    if may_add:
        best = _best_addition(state, floor, penalties, skipped)
    inside = _best_inside(state, penalties, skipped)
    if best is None or (inside is not None and inside.gain >= best.gain):
        best = inside
    return best


def _best_addition(state, floor, penalty, excluded):
    s, q = state.sparsity, state.quality
    ratio = np.where(s > floor, q**2 / np.where(s > 0.0, s, 1.0), 0.0)
    ratio[state.active] = 0.0
    ratio[excluded] = 0.0
    possible = ratio > 1.0
    if not possible.any():
        return None
    ratio = np.where(possible, ratio, 1.0)
    gain = np.where(possible, 0.5 * (ratio - 1.0 - np.log(ratio)) - penalty, -np.inf)
    j = int(np.argmax(gain))
    return Move("add", j, float(s[j] / (ratio[j] - 1.0)), float(gain[j]))


def _best_inside(state, penalty, excluded):
    if len(excluded):
        state = _without(state, np.isin(state.active, excluded))
    if not len(state.active):
        return None
    variance, mean, alpha = np.diag(state.covariance), state.mean, state.alpha
    deletion = -0.5 * (mean**2 / variance + np.log(alpha * variance)) + penalty[state.active]
    best = optimal_precision(np.maximum(1.0 / variance - alpha, 0.0), mean / variance)
    stays = np.isfinite(best) & (best > 0.0)
    change = np.where(stays, best, alpha) - alpha
    growth = 1.0 + change * variance
    with np.errstate(divide="ignore"):
        reestimation = np.where(
            stays,
            0.5 * (np.log1p(change / alpha) - np.log(growth) - change * mean**2 / growth),
            -np.inf,
        )
    gain = np.maximum(deletion, reestimation)
    i = int(np.argmax(gain))
    j = int(state.active[i])
    if deletion[i] >= reestimation[i]:
        return Move("delete", j, np.inf, float(deletion[i]))
    return Move("reestimate", j, float(best[i]), float(reestimation[i]))


def _without(state, left_out):
    """Return the marginal posterior of some of the active weights."""
    kept = np.flatnonzero(~left_out)
    return replace(
        state,
        active=state.active[kept],
        alpha=state.alpha[kept],
        covariance=state.covariance[np.ix_(kept, kept)],
        mean=state.mean[kept],
    )


def apply_move(model, state, move):
    """Return the posterior after a move."""
    if move.kind == "add":
        return add(model, state, move.candidate, move.alpha)
    if move.kind == "delete":
        return delete(model, state, move.candidate)
    return reestimate(model, state, move.candidate, move.alpha)


def add(model, state, j, alpha):
    """Add candidate j to the model with precision alpha."""
    towards = state.covariance @ model.gram[j, state.active]
    column = model.gram[j] - towards @ model.gram[state.active]
    variance = 1.0 / (alpha + state.sparsity[j])
    mean = variance * state.quality[j]
    m = len(state.active)
    covariance = np.empty((m + 1, m + 1))
    covariance[:m, :m] = state.covariance + variance * np.outer(towards, towards)
    covariance[m, :m] = covariance[:m, m] = -variance * towards
    covariance[m, m] = variance
    return WeightPosterior(
        np.append(state.active, j),
        np.append(state.alpha, alpha),
        covariance,
        np.append(state.mean - mean * towards, mean),
        state.sparsity - variance * column**2,
        state.quality - mean * column,
    )


def reestimate(model, state, j, alpha):
    """Change the precision of active candidate j."""
    i = _position(state, j)
    change = alpha - state.alpha[i]
    rate = change / (1.0 + change * state.covariance[i, i])
    alphas = state.alpha.copy()
    alphas[i] = alpha
    return replace(_release(model, state, i, rate), alpha=alphas)


def delete(model, state, j):
    """Delete active candidate j from the model."""
    i = _position(state, j)
    state = _release(model, state, i, 1.0 / state.covariance[i, i])
    return _without(state, np.arange(len(state.active)) == i)


def _position(state, j):
    return int(np.flatnonzero(state.active == j)[0])


def _release(model, state, i, rate):
    """Subtract rate · Σ_i Σ_iᵀ from Σ: the common part of reestimating and deleting."""
    covariance_column = state.covariance[:, i]
    column = covariance_column @ model.gram[state.active]
    shift = rate * state.mean[i]
    return replace(
        state,
        covariance=state.covariance - rate * np.outer(covariance_column, covariance_column),
        mean=state.mean - shift * covariance_column,
        sparsity=state.sparsity + rate * column**2,
        quality=state.quality + shift * column,
    )
