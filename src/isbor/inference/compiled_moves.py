"""The moves of one prior precision at a time, compiled; `isbor.inference.evidence` derives the formulas.

A loop of moves is one call without the interpreter lock. Its memory is allocated at the start: two posteriors
with room for all functions that may be added. Each move reads one and writes the other, so that the posterior
before a move is still there if the one after it turns out to be singular.

G is symmetric, so its rows are used as columns: they are contiguous.
"""

import math
from typing import NamedTuple

import numpy as np

from isbor._core.compiled import compiled, inner
from isbor._core.compiled_linalg import cholesky, inverse, whitening
from isbor._core.trace import MoveKind
from isbor._core.types import BoolArray, FloatArray, IntArray

__all__ = [
    "KINDS",
    "Missing",
    "NO_MOVE",
    "ShapePosterior",
    "State",
    "apply_move",
    "best_move",
    "make_moves",
    "optimal_precision",
    "posterior",
    "residual",
]

KINDS: tuple[MoveKind, ...] = ("add", "delete", "reestimate")
ADD, DELETE, REESTIMATE = 0, 1, 2  # positions in `KINDS`
NO_MOVE = -1

# Σ and μ are recomputed when the moves have accumulated a relative error larger than this.
_DRIFT = 1e-10


class State(NamedTuple):
    """Memory for a posterior of up to c active weights and n candidates; of the c, the first m are in use."""

    active: IntArray  # (c,) candidates in the model
    alpha: FloatArray  # (c,)
    covariance: FloatArray  # (c, c), Σ
    mean: FloatArray  # (c,), μ
    sparsity: FloatArray  # (n,), S
    quality: FloatArray  # (n,), Q


class Missing(NamedTuple):
    """Which rows of G are missing, but for their diagonal and columns whose rows are there; and their parts.

    Row j is Σ_i H_i φ_j φ_k - Σ_t c_tj c_tk for all candidates k.
    """

    missing: BoolArray  # (n,)
    values: FloatArray  # (n, N), φ
    curvature: FloatArray  # (N,), H
    cross: FloatArray  # (r-1, n), c


class ShapePosterior(NamedTuple):
    """The posteriors of the weights of the candidates in the sums of the shape, K of them, maybe none."""

    covariance: FloatArray  # (K, n, n)
    mean: FloatArray  # (K, n)
    prior: FloatArray  # (K, n), prior precisions


@inner
def _worth(shape: ShapePosterior, j: int) -> float:
    """Return what candidate j adds to the log evidence of the shape."""
    worth = 0.0
    for q in range(len(shape.mean)):
        variance, mean = shape.covariance[q, j, j], shape.mean[q, j]
        worth += max(0.5 * (mean * mean / variance + math.log(shape.prior[q, j] * variance)), 0.0)
    return worth


@inner
def _delete_from_shape(shape: ShapePosterior, gone: BoolArray, j: int) -> None:
    """Write the posteriors without candidate j; those of candidates that are gone are left as they are."""
    n = len(gone)
    for q in range(len(shape.mean)):
        covariance, mean = shape.covariance[q], shape.mean[q]
        towards = covariance[j].copy()
        rate = 1.0 / towards[j]
        shift = rate * mean[j]
        for i in range(n):
            if gone[i]:
                continue
            row, factor = covariance[i], rate * towards[i]
            for k in range(n):
                row[k] -= factor * towards[k]
            mean[i] -= shift * towards[i]


@inner
def _complete(gram: FloatArray, rest: Missing, j: int) -> None:
    """Compute a row of G that is missing."""
    row = np.dot(rest.values, rest.curvature * rest.values[j])
    for t in range(len(rest.cross)):
        c = rest.cross[t, j]
        for k in range(len(row)):
            row[k] -= c * rest.cross[t, k]
    for k in range(len(row)):
        if rest.missing[k] and k != j:
            gram[j, k] = row[k]
        elif k != j:
            gram[j, k] = gram[k, j]
    rest.missing[j] = False


# --- The posterior of an active set ------------------------------------------------------------------------


@compiled
def posterior(gram: FloatArray, linear: FloatArray, m: int, state: State) -> bool:
    """Write Σ, μ, S and Q for the active functions and their α by a new factorisation; False if singular.

    They are computed from W with WᵀW = Σ: S_j = G_jj - ‖W G_Aj‖², Q = h - (W G_A·)ᵀ W h_A.
    """
    active, n = state.active, len(linear)
    precision, scale = np.empty((m, m)), np.empty(m)
    for i in range(m):
        for k in range(i + 1):
            precision[i, k] = gram[active[i], active[k]]
        precision[i, i] += state.alpha[i]
    if not cholesky(precision, precision, scale):
        return False
    root = whitening(precision, scale)
    inverse(root, state.covariance)
    for i in range(m):
        state.mean[i] = 0.0
    for j in range(n):
        state.sparsity[j], state.quality[j] = gram[j, j], linear[j]
    column = np.empty(n)
    for k in range(m):
        whitened = 0.0
        for i in range(k + 1):
            whitened += root[k, i] * linear[active[i]]
        for i in range(k + 1):
            state.mean[i] += whitened * root[k, i]
        for j in range(n):
            column[j] = 0.0
        _add_rows(gram, active, root[k], k + 1, column)
        for j in range(n):
            state.sparsity[j] -= column[j] * column[j]
            state.quality[j] -= whitened * column[j]
    return True


@inner
def _add_rows(gram: FloatArray, active: IntArray, factor: FloatArray, m: int, column: FloatArray) -> None:
    """Add the rows of G of m active functions to `column`, each times its factor."""
    for k in range(m):
        row, f = gram[active[k]], factor[k]
        for j in range(len(column)):
            column[j] += f * row[j]


@inner
def residual(gram: FloatArray, linear: FloatArray, floor: FloatArray, m: int, state: State) -> float:
    """Return the relative error that the rank-one updates have accumulated; NaN if there is one.

    For active functions, Q_i = α_i μ_i and S_i = α_i - α_i² Σ_ii. The two sides are updated by different
    recursions, so their difference shows the digits lost.
    """
    largest = 0.0
    for i in range(m):
        j, alpha = state.active[i], state.alpha[i]
        quality = abs(state.quality[j] - alpha * state.mean[i]) / (1.0 + abs(linear[j]))
        sparsity = abs(state.sparsity[j] - alpha * (1.0 - alpha * state.covariance[i, i]))
        error = max(quality, sparsity / max(gram[j, j], floor[j]))
        if not error <= largest:
            largest = error
    return largest


# --- The best move -----------------------------------------------------------------------------------------


@compiled
def best_move(
    state: State, m: int, floor: FloatArray, penalty: FloatArray, may_add: bool, excluded: BoolArray
) -> tuple[int, int, float, float]:
    """Return kind, candidate, new precision and gain of the move with the largest gain."""
    addition, most = -1, -np.inf
    if may_add:
        addition, most = _best_addition(state, m, floor, penalty, excluded)
    kind, candidate, alpha, gain = _best_inside(state, m, penalty, excluded)
    if addition < 0 or (kind != NO_MOVE and gain >= most):
        return kind, candidate, alpha, gain
    s, q = state.sparsity[addition], state.quality[addition]
    return ADD, addition, s / (q * q / s - 1.0), most


@inner
def _best_addition(
    state: State, m: int, floor: FloatArray, penalty: FloatArray, excluded: BoolArray
) -> tuple[int, float]:
    """Return the candidate whose addition gains most, -1 for none, and the gain."""
    closed = excluded.copy()
    for i in range(m):
        closed[state.active[i]] = True
    best, most = -1, -np.inf
    for j in range(len(floor)):
        s, q = state.sparsity[j], state.quality[j]
        if closed[j] or not s > floor[j]:
            continue
        ratio = q * q / s
        # Without the logarithm, the gain is at least as large: most candidates need none.
        if ratio > 1.0 and 0.5 * (ratio - 1.0) - penalty[j] > most:
            gain = 0.5 * (ratio - 1.0 - math.log(ratio)) - penalty[j]
            if gain > most:
                best, most = j, gain
    return best, most


@inner
def _best_inside(
    state: State, m: int, penalty: FloatArray, excluded: BoolArray
) -> tuple[int, int, float, float]:
    """Return the deletion or reestimation that gains most."""
    kind, candidate, precision, most = NO_MOVE, -1, np.inf, -np.inf
    for i in range(m):
        j = state.active[i]
        if excluded[j]:
            continue
        variance, mean, alpha = state.covariance[i, i], state.mean[i], state.alpha[i]
        deletion = -0.5 * (mean * mean / variance + math.log(alpha * variance)) + penalty[j]
        if math.isnan(deletion):  # the posterior is worth nothing
            return NO_MOVE, -1, np.inf, -np.inf
        if deletion > most:
            kind, candidate, precision, most = DELETE, j, np.inf, deletion
        best = optimal_precision(max(1.0 / variance - alpha, 0.0), mean / variance)
        if 0.0 < best < np.inf:
            change = best - alpha
            growth = 1.0 + change * variance
            reestimation = 0.5 * (
                math.log1p(change / alpha) - math.log(growth) - change * mean * mean / growth
            )
            if reestimation > most:
                kind, candidate, precision, most = REESTIMATE, j, best, reestimation
    return kind, candidate, precision, most


@inner
def optimal_precision(s: float, q: float) -> float:
    """Return the precision that maximises the evidence, infinite if the function should be deleted."""
    excess = q * q - s
    return s * s / excess if excess > 0.0 else np.inf


# --- The posterior after a move ----------------------------------------------------------------------------


@inner
def apply_move(
    gram: FloatArray, before: State, m: int, kind: int, candidate: int, alpha: float, after: State
) -> int:
    """Write the posterior after a move; return its number of active functions."""
    for i in range(m):
        after.active[i], after.alpha[i] = before.active[i], before.alpha[i]
    if kind == ADD:
        _add(gram, before, m, candidate, alpha, after)
        return m + 1
    i = 0
    while before.active[i] != candidate:
        i += 1
    if kind == REESTIMATE:
        change = alpha - before.alpha[i]
        _release(gram, before, m, i, change / (1.0 + change * before.covariance[i, i]), after)
        after.alpha[i] = alpha
        return m
    _release(gram, before, m, i, 1.0 / before.covariance[i, i], after)
    _remove(after, m, i)
    return m - 1


@inner
def _add(gram: FloatArray, before: State, m: int, j: int, alpha: float, after: State) -> None:
    """Add candidate j to the model with precision alpha."""
    away = np.zeros(m)  # -Σ G_Aj
    for k in range(m):
        g = gram[j, before.active[k]]
        for i in range(m):
            away[i] -= g * before.covariance[k, i]
    column = gram[j].copy()
    _add_rows(gram, before.active, away, m, column)
    variance = 1.0 / (alpha + before.sparsity[j])
    mean = variance * before.quality[j]
    for i in range(m):
        for k in range(m):
            after.covariance[i, k] = before.covariance[i, k] + variance * (away[i] * away[k])
        after.covariance[i, m] = after.covariance[m, i] = variance * away[i]
        after.mean[i] = before.mean[i] + mean * away[i]
    after.active[m], after.alpha[m] = j, alpha
    after.covariance[m, m], after.mean[m] = variance, mean
    for k in range(len(column)):
        after.sparsity[k] = before.sparsity[k] - variance * (column[k] * column[k])
        after.quality[k] = before.quality[k] - mean * column[k]


@inner
def _release(gram: FloatArray, before: State, m: int, i: int, rate: float, after: State) -> None:
    """Subtract rate · Σ_i Σ_iᵀ from Σ: the common part of reestimating and deleting."""
    towards = before.covariance[i]
    column = np.zeros(len(before.sparsity))
    _add_rows(gram, before.active, towards, m, column)
    shift = rate * before.mean[i]
    for j in range(m):
        for k in range(m):
            after.covariance[j, k] = before.covariance[j, k] - rate * (towards[j] * towards[k])
        after.mean[j] = before.mean[j] - shift * towards[j]
    for k in range(len(column)):
        after.sparsity[k] = before.sparsity[k] + rate * (column[k] * column[k])
        after.quality[k] = before.quality[k] + shift * column[k]


@inner
def _remove(state: State, m: int, gone: int) -> None:
    """Close the gap that an active function leaves."""
    for i in range(m - 1):
        old = i + (i >= gone)
        state.active[i], state.alpha[i], state.mean[i] = state.active[old], state.alpha[old], state.mean[old]
        for k in range(m - 1):
            state.covariance[i, k] = state.covariance[old, k + (k >= gone)]


# --- The loop ----------------------------------------------------------------------------------------------


@compiled
def make_moves(
    gram: FloatArray,
    linear: FloatArray,
    floor: FloatArray,
    rest: Missing,
    start: State,
    shape: ShapePosterior,
    penalty: FloatArray,
    tol: float,
    max_moves: int,
    max_additions: float,
) -> tuple[State, int, IntArray, IntArray, FloatArray, FloatArray]:
    """Make the best move repeatedly while it gains at least `tol`.

    What a candidate is worth to the `shape`, whose memory is used, is set off against its penalty; a
    candidate that is deleted from it cannot come back. Return the last posterior and its number of active
    functions; kinds, candidates, new precisions and gains of the moves.
    """
    n, m = len(linear), len(start.active)
    capacity = n if max_additions >= n - m else m + int(math.ceil(max(max_additions, 0.0)))
    state, after = _with_room(start, capacity), _with_room(start, capacity)
    kinds, candidates = np.empty(max_moves, np.intp), np.empty(max_moves, np.intp)
    alphas, gains = np.empty(max_moves), np.empty(max_moves)
    nothing, gone = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    price = penalty.copy()
    for j in range(n):
        price[j] -= _worth(shape, j)
    made, additions_left = 0, max_additions
    while made < max_moves:
        kind, candidate, alpha, gain = best_move(state, m, floor, price, additions_left > 0.0, nothing)
        if kind == NO_MOVE or gain < tol:
            break
        if rest.missing[candidate]:
            _complete(gram, rest, candidate)
        m_after = apply_move(gram, state, m, kind, candidate, alpha, after)
        drifted = not residual(gram, linear, floor, m_after, after) <= _DRIFT  # NaN included
        if drifted and not posterior(gram, linear, m_after, after):
            break
        state, after, m = after, state, m_after
        additions_left -= kind == ADD
        kinds[made], candidates[made], alphas[made], gains[made] = kind, candidate, alpha, gain
        made += 1
        if kind == DELETE and len(shape.mean) > 0:
            gone[candidate] = True
            _delete_from_shape(shape, gone, candidate)
            for j in range(n):
                price[j] = np.inf if gone[j] else penalty[j] - _worth(shape, j)
    return state, m, kinds[:made], candidates[:made], alphas[:made], gains[:made]


@inner
def _with_room(state: State, capacity: int) -> State:
    """Return a copy with room for more functions."""
    m = len(state.active)
    active, alpha, mean = np.empty(capacity, np.intp), np.empty(capacity), np.empty(capacity)
    covariance = np.empty((capacity, capacity))
    for i in range(m):
        active[i], alpha[i], mean[i] = state.active[i], state.alpha[i], state.mean[i]
        for k in range(m):
            covariance[i, k] = state.covariance[i, k]
    return State(active, alpha, covariance, mean, state.sparsity.copy(), state.quality.copy())
