r"""Sequential minimal optimisation of the margin problem (see `isbor.solvers.margins`).

A step moves two variables u and v by the same amount in opposite directions, :math:`s_u\gamma_u \mathrel{+}=
t`, :math:`s_v\gamma_v \mathrel{-}= t`, where :math:`u \in` up and :math:`v \in` down violate the conditions
of optimality, :math:`F_v > F_u`. Along this direction the dual is a parabola,

.. math:: t\,(F_v - F_u) - \tfrac12 t^2 a_{uv}, \qquad a_{uv} = K_{uu} + K_{vv} - 2 K_{uv}

(K between the variables' rows), so t is :math:`(F_v - F_u)/a_{uv}` or the way to the nearest bound. u is the
variable of the lowest F, v the one that gains most with it, :math:`(F_v - F_u)^2/a_{uv}` (second-order choice
of the pair).

Both belong to one threshold, whose equality is kept so. Linked thresholds allow more: with u at threshold j
and v at i, the multipliers between the two take up the difference, :math:`\mu_k \mathrel{+}= t` for i < k ≤ j
and :math:`\mu_k \mathrel{-}= t` for j < k ≤ i, which must stay nonnegative.

All thresholds share one score, so a step costs two rows of K and O(N), whatever their number. f is kept for
all rows; only the lists of variables that are looked at shrink, and are made anew at every check. A check
computes the gap between the primal and the dual objective, P - D, which bounds the error of both: the
solution is good when it is below a share of P.

The matrix K is computed at once if it fits into the cache. If not, rows are computed when they are needed,
together with others that are likely to be, and those that were used longest ago make room.
"""

import numpy as np
from numba import njit

from isbor.arrays import FloatArray, IntArray
from isbor.inputs import TrainingRows
from isbor.kernels import Kernel
from isbor.solvers.margins import MarginProblem, MarginSolution

__all__ = ["solve_margins"]

_STEPS_A_CHECK = 250  # a check costs about as much as a few steps
_STEPS_AT_ONCE = 20_000  # between two moments at which the work can be interrupted
_ROWS_AT_ONCE = 32  # of the kernel, when one is missing

_ROUNDING = 1e-12  # of a score: violations below it are none

# Why `_run` returned.
_CONVERGED, _MISSING_ROW, _PAUSED = 0, 1, 2


def solve_margins(
    problem: MarginProblem,
    kernel: Kernel,
    rows: TrainingRows,
    *,
    tolerance: float,
    max_steps: int,
    cache_bytes: float,
) -> MarginSolution:
    """Solve the problem until the gap is less than a share of the primal objective."""
    n = len(rows)
    n_thresholds = problem.n_thresholds
    n_slots = min(max(int(cache_bytes // (8 * n)), 8), n)
    if n_slots == n:
        cache = kernel.gram(rows)
        slot = np.arange(n)
    else:
        cache = np.empty((n_slots, n))
        slot = np.full(n, -1)
    used = np.zeros(n_slots, dtype=np.int64)  # the step at which a slot was last needed
    owner = np.full(n_slots, -1)
    diagonal = kernel.diagonal(rows)

    starts = np.searchsorted(problem.threshold, np.arange(n_thresholds + 1))
    gamma = np.zeros(len(problem))
    f = np.zeros(n)
    coef = np.zeros(n)
    links = np.zeros(n_thresholds + 1)
    active = np.arange(len(problem))
    counts = np.diff(starts)
    progress = np.zeros(3, dtype=np.int64)  # steps made, the step of the last check, the threshold visited
    levels = np.array([1.0, 0.0])  # the violation that is let be in this round, the largest seen in it
    bounds = np.empty((2, n_thresholds))
    gaps = np.array([np.inf, 0.0, 0.0])  # gap, primal and dual objective
    while True:
        reason, missing = _run(
            problem.row,
            problem.threshold,
            problem.sign,
            problem.bound,
            starts,
            problem.linked,
            cache,
            slot,
            used,
            diagonal,
            gamma,
            f,
            coef,
            links,
            active,
            counts,
            bounds,
            gaps,
            progress,
            levels,
            tolerance,
            min(int(progress[0]) + _STEPS_AT_ONCE, max_steps),
        )
        if reason == _MISSING_ROW:
            _load(missing, problem, kernel, rows, f, bounds, cache, slot, used, owner, int(progress[0]))
        elif reason == _CONVERGED or progress[0] >= max_steps:
            break
    return MarginSolution(
        coef=coef,
        thresholds=_thresholds(bounds[0], bounds[1], links, problem.linked),
        n_iter=int(progress[0]),
        gamma=gamma,
        links=links[:n_thresholds],
        objective=float(gaps[2]),
        gap=float(gaps[0]),
        converged=reason == _CONVERGED,
    )


def _load(
    missing: int,
    problem: MarginProblem,
    kernel: Kernel,
    rows: TrainingRows,
    f: FloatArray,
    bounds: FloatArray,
    cache: FloatArray,
    slot: IntArray,
    used: IntArray,
    owner: IntArray,
    now: int,
) -> None:
    """Compute a row of the kernel, and with it those of other rows that are nearest to their thresholds."""
    middle = bounds.mean(axis=0)
    distance = np.abs(f[problem.row] - problem.sign - middle[problem.threshold])
    nearest = np.full(len(rows), np.inf)
    np.minimum.at(nearest, problem.row, distance)
    nearest[slot >= 0] = np.inf
    nearest[missing] = -1.0
    count = min(_ROWS_AT_ONCE, len(used) // 4)
    wanted = np.argpartition(nearest, count)[:count]
    wanted = wanted[np.isfinite(nearest[wanted])]
    free = np.argpartition(used, len(wanted) - 1)[: len(wanted)]
    evicted = owner[free]
    slot[evicted[evicted >= 0]] = -1
    cache[free] = kernel(rows.X[wanted], rows)
    slot[wanted] = free
    owner[free] = wanted
    used[free] = now + 1  # later than any slot that was never used


@njit(cache=True)
def _thresholds(low, high, links, linked):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return the middles of what the conditions allow; in order where thresholds are linked.

    Thresholds whose link carries a multiplier are equal: they share what all of them allow.
    """
    n = len(low)
    least, most = low.copy(), high.copy()
    if linked:
        for j in range(1, n):
            least[j] = max(least[j], least[j - 1])
        for j in range(n - 2, -1, -1):
            most[j] = min(most[j], most[j + 1])
        for j in range(n - 2, -1, -1):
            if links[j + 1] > 0.0:
                least[j] = least[j + 1]
        for j in range(1, n):
            if links[j] > 0.0:
                most[j] = most[j - 1]
    middle = 0.5 * (least + most)
    if linked:
        for j in range(1, n):
            middle[j] = max(middle[j], middle[j - 1])
    return middle


@njit(cache=True)
def _run(  # type: ignore[no-untyped-def]  # pragma: no cover
    row,
    threshold,
    sign,
    bound,
    starts,
    linked,
    cache,
    slot,
    used,
    diagonal,
    gamma,
    f,
    coef,
    links,
    active,
    counts,
    bounds,
    gaps,
    progress,
    levels,
    tolerance,
    last_step,
):
    """Make steps until the gap closes, a row of the kernel is missing, or the last step is made.

    All arrays of the state are changed in place. `active` lists, from `starts[j]` on, the `counts[j]`
    variables of threshold j that are looked at. Return the reason and the row that is missing.
    """
    n_thresholds = len(starts) - 1
    lowest = np.empty(n_thresholds, dtype=np.int64)
    while True:
        # Thresholds that are linked are one group, others are visited in turn.
        for group in range(progress[2], 1 if linked else n_thresholds):
            progress[2] = group
            j_first, j_last = (0, n_thresholds) if linked else (group, group + 1)
            visited = False
            while True:
                for j in range(j_first, j_last):
                    _look(j, row, sign, bound, starts, gamma, f, active, counts, bounds, lowest)
                violation, first = _worst(bounds, links, linked, j_first, j_last)
                if not visited:
                    levels[1] = max(levels[1], violation)
                    visited = True
                if violation <= max(levels[0], _ROUNDING * (1.0 + abs(bounds[1, first]))):
                    break
                if progress[0] >= last_step:
                    return _PAUSED, -1

                # The partner that gains most.
                u = lowest[first]
                iu = row[u]
                if slot[iu] < 0:
                    return _MISSING_ROW, iu
                used[slot[iu]] = progress[0] + 1
                value_u = f[iu] - sign[u]
                kernel_u = cache[slot[iu]]
                best, v = 0.0, -1
                for i in range(j_first, j_last):
                    if _reach(links, i, first) <= 0.0:
                        continue
                    for k in range(starts[i], starts[i] + counts[i]):
                        w = active[k]
                        falls = gamma[w] > 0.0 if sign[w] > 0.0 else gamma[w] < bound[w]
                        if not falls:
                            continue
                        iw = row[w]
                        distance = f[iw] - sign[w] - value_u
                        if distance <= 0.0:
                            continue
                        bend = diagonal[iu] + diagonal[iw] - 2.0 * kernel_u[iw]
                        gain = distance * distance / max(bend, _ROUNDING)
                        if gain > best:
                            best, v = gain, w
                iv = row[v]
                if slot[iv] < 0:
                    return _MISSING_ROW, iv
                kernel_v = cache[slot[iv]]
                used[slot[iv]] = progress[0] + 1

                # The step, to the top of the parabola or to the nearest bound.
                room_u = bound[u] - gamma[u] if sign[u] > 0.0 else gamma[u]
                room_v = gamma[v] if sign[v] > 0.0 else bound[v] - gamma[v]
                bend = diagonal[iu] + diagonal[iv] - 2.0 * kernel_u[iv]
                t = (f[iv] - sign[v] - value_u) / max(bend, _ROUNDING)
                t = min(t, min(room_u, room_v))
                j, i = threshold[u], threshold[v]
                if i > j:
                    t = min(t, _reach(links, i, j))
                if t == room_u:
                    gamma[u] = bound[u] if sign[u] > 0.0 else 0.0
                else:
                    gamma[u] += t * sign[u]
                if t == room_v:
                    gamma[v] = 0.0 if sign[v] > 0.0 else bound[v]
                else:
                    gamma[v] -= t * sign[v]
                for k in range(i + 1, j + 1):
                    links[k] += t
                for k in range(j + 1, i + 1):
                    links[k] = links[k] - t if links[k] > t else 0.0
                if iu != iv:
                    coef[iu] += t
                    coef[iv] -= t
                    for k in range(len(f)):
                        f[k] += t * (kernel_u[k] - kernel_v[k])
                progress[0] += 1
                if linked and progress[0] - progress[1] >= _STEPS_A_CHECK:
                    break

        nothing_left = levels[1] <= _ROUNDING * (1.0 + np.max(np.abs(bounds)))
        levels[0], levels[1], progress[2] = 0.5 * levels[1], 0.0, 0
        if nothing_left or progress[0] - progress[1] >= _STEPS_A_CHECK:
            progress[1] = progress[0]
            _check(row, sign, bound, starts, linked, gamma, f, coef, links, active, counts, bounds, gaps)
            violation, first = _worst(bounds, links, linked, 0, n_thresholds)
            nothing_left = violation <= _ROUNDING * (1.0 + np.max(np.abs(bounds)))
            if gaps[0] <= tolerance * gaps[1] or nothing_left:
                return _CONVERGED, -1
            levels[0] = 0.5 * violation
            if progress[0] >= last_step:
                return _PAUSED, -1


@njit(cache=True)
def _look(  # type: ignore[no-untyped-def]  # pragma: no cover
    j, row, sign, bound, starts, gamma, f, active, counts, bounds, lowest
):
    """Find what the variables of a threshold demand of it, and the one that is to rise."""
    low, high, at = -np.inf, np.inf, -1
    for k in range(starts[j], starts[j] + counts[j]):
        v = active[k]
        value = f[row[v]] - sign[v]
        rises = gamma[v] < bound[v] if sign[v] > 0.0 else gamma[v] > 0.0
        falls = gamma[v] > 0.0 if sign[v] > 0.0 else gamma[v] < bound[v]
        if rises and value < high:
            high, at = value, v
        if falls and value > low:
            low = value
    bounds[0, j], bounds[1, j], lowest[j] = low, high, at


@njit(cache=True)
def _worst(bounds, links, linked, j_first, j_last):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return the largest violation at some thresholds, and the one of the variable that is to rise."""
    worst, first = -np.inf, j_first
    for j in range(j_first, j_last):
        for i in range(j_first, j_last):
            if i == j or (linked and _reach(links, i, j) > 0.0):
                violation = bounds[0, i] - bounds[1, j]
                if violation > worst:
                    worst, first = violation, j
    return worst, first


@njit(cache=True)
def _reach(links, i, j):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return how far a step from threshold i to threshold j may go, for the multipliers between them."""
    way = np.inf
    for k in range(j + 1, i + 1):
        way = min(way, links[k])
    return way


@njit(cache=True)
def _check(  # type: ignore[no-untyped-def]  # pragma: no cover
    row, sign, bound, starts, linked, gamma, f, coef, links, active, counts, bounds, gaps
):
    """Compute bounds of the thresholds over all variables, the gap, and which variables to look at."""
    n_thresholds = len(starts) - 1
    for j in range(n_thresholds):
        low, high = -np.inf, np.inf
        for v in range(starts[j], starts[j + 1]):
            value = f[row[v]] - sign[v]
            rises = gamma[v] < bound[v] if sign[v] > 0.0 else gamma[v] > 0.0
            falls = gamma[v] > 0.0 if sign[v] > 0.0 else gamma[v] < bound[v]
            if rises and value < high:
                high = value
            if falls and value > low:
                low = value
        bounds[0, j], bounds[1, j] = low, high
    middle = _thresholds(bounds[0], bounds[1], links, linked)
    slack_cost, total = 0.0, 0.0
    least, most = bounds[1].min(), bounds[0].max()
    for j in range(n_thresholds):
        end = starts[j]
        low, high = (most, least) if linked else (bounds[0, j], bounds[1, j])
        room = max(0.1, low - high)
        for v in range(starts[j], starts[j + 1]):
            value = f[row[v]] - sign[v]
            total += gamma[v]
            # s(f - b) = 1 + s(F - b): short of the margin by -s(F - b).
            slack_cost += bound[v] * max(0.0, -sign[v] * (value - middle[j]))
            rises = gamma[v] < bound[v] if sign[v] > 0.0 else gamma[v] > 0.0
            falls = gamma[v] > 0.0 if sign[v] > 0.0 else gamma[v] < bound[v]
            if (rises and value < low + room) or (falls and value > high - room):
                active[end] = v
                end += 1
        counts[j] = end - starts[j]
    energy = 0.5 * np.dot(coef, f)
    gaps[1] = energy + slack_cost
    gaps[2] = total - energy
    gaps[0] = gaps[1] - gaps[2]
