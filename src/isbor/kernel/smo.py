r"""Sequential minimal optimisation (SMO) of the margin problem (see `isbor.kernel.margins`).

A step changes two variables u and v by the same amount in opposite directions, :math:`s_u\gamma_u
\mathrel{+}= t`, :math:`s_v\gamma_v \mathrel{-}= t`, where :math:`u \in` up and :math:`v \in` down violate the
optimality conditions, :math:`F_v > F_u`. In this direction the dual is a parabola,

.. math:: t\,(F_v - F_u) - \tfrac12 t^2 a_{uv}, \qquad a_{uv} = K_{uu} + K_{vv} - 2 K_{uv}

(K between the rows of the variables), so t is :math:`(F_v - F_u)/a_{uv}` or the distance to the nearest
bound. u is the variable with the lowest F, v the one with the largest gain, :math:`(F_v - F_u)^2/a_{uv}`
(second-order selection of the pair).

Both belong to the same threshold, so that its equality constraint still holds. With linked thresholds, u may
be at threshold j and v at another one, i. The multipliers between the two then absorb the difference,
:math:`\mu_k \mathrel{+}= t` for i < k ≤ j and :math:`\mu_k \mathrel{-}= t` for j < k ≤ i; they must stay
nonnegative.

All thresholds share one score, so a step takes two rows of K and O(N) time, whatever the number of
thresholds. f is updated for all rows. The lists of active variables, among which pairs are selected, are
renewed at every check. A check computes the gap between the primal and the dual objective, P - D, which
bounds the error of both. The solver stops when the gap is below `tol` times P.

The matrix K is computed at once if it fits into the cache. Otherwise the solver works in rounds: the cache
holds the rows whose variables violate the conditions most, steps are made among them until their violation is
a fifth of the violation of all variables, and then other rows are loaded.
"""

import numpy as np

from isbor._core.compiled import compiled
from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.kernel.kernels import Kernel
from isbor.kernel.margins import MarginProblem, MarginSolution

__all__ = ["solve_margins"]

_STEPS_PER_CHECK = 250  # a check takes as long as a few steps
_STEPS_PER_ROUND = 20_000  # at most, with the same rows in the cache
_ROUND_SHARE = 0.2  # share of the violation at which a round ends
_ROWS_AT_ONCE = 256  # rows of the kernel matrix computed together
_MIN_CACHED_ROWS = 64
_ROUNDING = 1e-12  # relative to a score; violations below it are rounding errors


def solve_margins(
    problem: MarginProblem,
    kernel: Kernel,
    rows: TrainingRows,
    *,
    tol: float,
    max_iter: int,
    cache_bytes: float,
) -> MarginSolution:
    """Solve the problem until the gap is at most `tol` times the primal objective."""
    n = len(rows)
    n_thresholds = problem.n_thresholds
    n_slots = max(int(cache_bytes // (8 * n)), _MIN_CACHED_ROWS)
    whole = n_slots >= n or kernel.name == "precomputed"
    cache = kernel.gram(rows) if whole else np.empty((n_slots, n))
    slot = np.arange(n) if whole else np.full(n, -1)  # position of each row in the cache
    diagonal = kernel.diagonal(rows)

    row, sign, bound = problem.row, problem.sign, problem.bound
    starts = np.searchsorted(problem.threshold, np.arange(n_thresholds + 1))
    gamma = np.zeros(len(problem))
    f, coef = np.zeros(n), np.zeros(n)
    links = np.zeros(n_thresholds + 1)
    active, counts = np.arange(len(problem)), np.diff(starts)
    bounds = np.empty((2, n_thresholds))
    n_steps = 0
    while True:
        primal, dual = _objectives(row, sign, bound, starts, problem.linked, gamma, f, coef, links, bounds)
        violation, _ = _worst(bounds, links, problem.linked, 0, n_thresholds)
        is_exact = violation <= _ROUNDING * (1.0 + np.max(np.abs(bounds)))
        converged = primal - dual <= tol * primal or is_exact
        if converged or n_steps >= max_iter:
            break
        if not whole:
            _fill(cache, slot, _violations(problem, gamma, f, bounds), kernel, rows)
        _activate(row, sign, bound, starts, problem.linked, gamma, f, bounds, slot, active, counts)
        n_steps += _run(
            row,
            problem.threshold,
            sign,
            bound,
            starts,
            problem.linked,
            cache,
            slot,
            diagonal,
            gamma,
            f,
            coef,
            links,
            active,
            counts,
            bounds,
            violation,
            0.0 if whole else _ROUND_SHARE * violation,
            min(max_iter - n_steps, _STEPS_PER_CHECK if whole else _STEPS_PER_ROUND),
        )
    return MarginSolution(
        coef=coef,
        thresholds=_thresholds(bounds[0], bounds[1], links, problem.linked),
        n_iter=n_steps,
        gamma=gamma,
        links=links[:n_thresholds],
        objective=dual,
        gap=primal - dual,
        converged=converged,
    )


def _violations(problem: MarginProblem, gamma: FloatArray, f: FloatArray, bounds: FloatArray) -> FloatArray:
    """Return the largest violation of each row by variables in "up" and by those in "down", (2, n)."""
    s = problem.sign
    value = f[problem.row] - s
    low, high = bounds[:, problem.threshold]
    rises = np.where(s > 0.0, gamma < problem.bound, gamma > 0.0)
    falls = np.where(s > 0.0, gamma > 0.0, gamma < problem.bound)
    violations = np.full((2, len(f)), -np.inf)
    np.maximum.at(violations[0], problem.row, np.where(rises, low - value, -np.inf))
    np.maximum.at(violations[1], problem.row, np.where(falls, value - high, -np.inf))
    return violations


def _fill(
    cache: FloatArray, slot: IntArray, violations: FloatArray, kernel: Kernel, rows: TrainingRows
) -> None:
    """Load the rows with the largest violations into the cache: half of them of "up", half of "down"."""
    n_slots = len(cache)
    needed = np.zeros(len(rows), dtype=np.bool_)
    for of_side in violations:
        needed[np.argsort(-of_side, kind="stable")[: n_slots // 2]] = True
    slot[~needed] = -1
    taken = np.zeros(n_slots, dtype=np.bool_)
    taken[slot[slot >= 0]] = True
    free, absent = np.flatnonzero(~taken), np.flatnonzero(needed & (slot < 0))
    for start in range(0, len(absent), _ROWS_AT_ONCE):
        some = absent[start : start + _ROWS_AT_ONCE]
        places = free[start : start + len(some)]
        cache[places] = kernel(rows.X[some], rows)
        slot[some] = places


@compiled
def _thresholds(low: FloatArray, high: FloatArray, links: FloatArray, linked: bool) -> FloatArray:
    """Return the middle of the interval that the conditions allow for each threshold.

    Linked thresholds are in order. If a link has a positive multiplier, its two thresholds are equal and
    share one interval.
    """
    n = len(low)
    lower, upper = low.copy(), high.copy()
    if linked:
        for j in range(1, n):
            lower[j] = max(lower[j], lower[j - 1])
        for j in range(n - 2, -1, -1):
            upper[j] = min(upper[j], upper[j + 1])
        for j in range(n - 2, -1, -1):
            if links[j + 1] > 0.0:
                lower[j] = lower[j + 1]
        for j in range(1, n):
            if links[j] > 0.0:
                upper[j] = upper[j - 1]
    middle = 0.5 * (lower + upper)
    if linked:
        for j in range(1, n):
            middle[j] = max(middle[j], middle[j - 1])
    return middle


@compiled
def _run(
    row: IntArray,
    threshold: IntArray,
    sign: FloatArray,
    bound: FloatArray,
    starts: IntArray,
    linked: bool,
    cache: FloatArray,
    slot: IntArray,
    diagonal: FloatArray,
    gamma: FloatArray,
    f: FloatArray,
    coef: FloatArray,
    links: FloatArray,
    active: IntArray,
    counts: IntArray,
    bounds: FloatArray,
    violation: float,
    goal: float,
    max_steps: int,
) -> int:
    """Make steps among the active variables until their violation is at most `goal`; return their number.

    All arrays of the state are changed in place. `active` lists, from `starts[j]` on, the `counts[j]` active
    variables of threshold j. `violation` is the largest violation of all variables.
    """
    n_thresholds = len(starts) - 1
    lowest = np.empty(n_thresholds, dtype=np.int64)
    n_steps = 0
    while True:
        target = max(0.5 * violation, goal)
        violation = 0.0
        # Linked thresholds form one group; others are visited in turn.
        for group in range(1 if linked else n_thresholds):
            j_first, j_last = (0, n_thresholds) if linked else (group, group + 1)
            visited = False
            while True:
                for j in range(j_first, j_last):
                    _scan(j, row, sign, bound, starts, gamma, f, active, counts, bounds, lowest)
                here, first = _worst(bounds, links, linked, j_first, j_last)
                if not visited:
                    violation = max(violation, here)
                    visited = True
                if here <= max(target, _ROUNDING * (1.0 + abs(bounds[1, first]))):
                    break
                if n_steps >= max_steps:
                    return n_steps

                # The partner with the largest gain.
                u = lowest[first]
                iu = row[u]
                value_u = f[iu] - sign[u]
                kernel_u = cache[slot[iu]]
                best, v = 0.0, -1
                for i in range(j_first, j_last):
                    if _max_step(links, i, first) <= 0.0:
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
                kernel_v = cache[slot[iv]]

                # The step to the top of the parabola, or to the nearest bound.
                room_u = bound[u] - gamma[u] if sign[u] > 0.0 else gamma[u]
                room_v = gamma[v] if sign[v] > 0.0 else bound[v] - gamma[v]
                bend = diagonal[iu] + diagonal[iv] - 2.0 * kernel_u[iv]
                t = (f[iv] - sign[v] - value_u) / max(bend, _ROUNDING)
                t = min(t, min(room_u, room_v))
                j, i = threshold[u], threshold[v]
                if i > j:
                    t = min(t, _max_step(links, i, j))
                gamma[u] = _snapped(gamma[u] + t * sign[u], bound[u])
                gamma[v] = _snapped(gamma[v] - t * sign[v], bound[v])
                for k in range(i + 1, j + 1):
                    links[k] += t
                for k in range(j + 1, i + 1):
                    links[k] = links[k] - t if links[k] > t else 0.0
                if iu != iv:
                    coef[iu] += t
                    coef[iv] -= t
                    for k in range(len(f)):
                        f[k] += t * (kernel_u[k] - kernel_v[k])
                n_steps += 1
        if violation <= max(goal, _ROUNDING * (1.0 + np.max(np.abs(bounds)))):
            return n_steps


@compiled
def _scan(
    j: int,
    row: IntArray,
    sign: FloatArray,
    bound: FloatArray,
    starts: IntArray,
    gamma: FloatArray,
    f: FloatArray,
    active: IntArray,
    counts: IntArray,
    bounds: FloatArray,
    lowest: IntArray,
) -> None:
    """Find the bounds that the variables of threshold j put on it, and the variable with the lowest F."""
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


@compiled
def _worst(
    bounds: FloatArray, links: FloatArray, linked: bool, j_first: int, j_last: int
) -> tuple[float, int]:
    """Return the largest violation at a range of thresholds, and the threshold of its variable in "up"."""
    worst, first = -np.inf, j_first
    for j in range(j_first, j_last):
        for i in range(j_first, j_last):
            if i == j or (linked and _max_step(links, i, j) > 0.0):
                violation = bounds[0, i] - bounds[1, j]
                if violation > worst:
                    worst, first = violation, j
    return worst, first


@compiled
def _snapped(value: float, bound: float) -> float:
    """Return the value, or the bound if the difference is a rounding error.

    A variable that is off its bound only by rounding would determine a threshold that is really free.
    """
    if value <= _ROUNDING * bound:
        return 0.0
    return bound if value >= (1.0 - _ROUNDING) * bound else value


@compiled
def _max_step(links: FloatArray, i: int, j: int) -> float:
    """Return the largest step from threshold i to j that keeps the multipliers in between nonnegative."""
    step = np.inf
    for k in range(j + 1, i + 1):
        step = min(step, links[k])
    return step


@compiled
def _objectives(
    row: IntArray,
    sign: FloatArray,
    bound: FloatArray,
    starts: IntArray,
    linked: bool,
    gamma: FloatArray,
    f: FloatArray,
    coef: FloatArray,
    links: FloatArray,
    bounds: FloatArray,
) -> tuple[float, float]:
    """Compute the bounds of the thresholds from all variables; return the primal and dual objectives."""
    for j in range(len(starts) - 1):
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
    for j in range(len(starts) - 1):
        for v in range(starts[j], starts[j + 1]):
            total += gamma[v]
            # s(f - b) = 1 + s(F - b), so the slack is -s(F - b).
            slack_cost += bound[v] * max(0.0, -sign[v] * (f[row[v]] - sign[v] - middle[j]))
    energy = 0.5 * np.dot(coef, f)
    return energy + slack_cost, total - energy


@compiled
def _activate(
    row: IntArray,
    sign: FloatArray,
    bound: FloatArray,
    starts: IntArray,
    linked: bool,
    gamma: FloatArray,
    f: FloatArray,
    bounds: FloatArray,
    slot: IntArray,
    active: IntArray,
    counts: IntArray,
) -> None:
    """List the active variables: those near the bounds whose rows are in the cache."""
    lowest, highest = bounds[1].min(), bounds[0].max()
    for j in range(len(starts) - 1):
        end = starts[j]
        low, high = (highest, lowest) if linked else (bounds[0, j], bounds[1, j])
        room = max(0.1, low - high)
        for v in range(starts[j], starts[j + 1]):
            if slot[row[v]] < 0:
                continue
            value = f[row[v]] - sign[v]
            rises = gamma[v] < bound[v] if sign[v] > 0.0 else gamma[v] > 0.0
            falls = gamma[v] > 0.0 if sign[v] > 0.0 else gamma[v] < bound[v]
            if (rises and value < low + room) or (falls and value > high - room):
                active[end] = v
                end += 1
        counts[j] = end - starts[j]
