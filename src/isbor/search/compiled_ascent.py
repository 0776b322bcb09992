"""L-BFGS for the log evidence in the parameters of all functions, compiled.

The parameters p are zero at the start. Each entry of metric and centres may depend on one of them, and
several entries may depend on the same one. The last m parameters are the changes of ln α.

A step goes along the direction of L-BFGS, at first as far as the approximation of the Hessian suggests. It is
shortened until the log evidence rises enough (Armijo's condition). A point at which the evidence cannot be
computed counts as too far.
"""

import math
from typing import NamedTuple

import numpy as np

from isbor._core.compiled import compiled, inlined, inner
from isbor._core.compiled_linalg import product
from isbor._core.types import BoolArray, FloatArray, IntArray
from isbor.inference.compiled_expansion import Block
from isbor.inference.compiled_gradient import evidence_gradient
from isbor.inference.compiled_mode import laplace_terms, mode_of_block
from isbor.model.compiled_basis import values_at

__all__ = ["Problem", "climb"]

_MEMORY = 20  # pairs of steps and changes of the gradient
_TOO_FAR = 30.0  # larger parameters are not tried
_ENOUGH = 1e-4  # share of the rise that the slope promises
_MAX_TRIALS = 8  # along one direction
_LITTLE = 1e-9  # relative rise at which an ascent ends


class Problem(NamedTuple):
    """What stays as it is in an ascent."""

    powers: FloatArray  # (2d + 1, n) of the rows
    y: IntArray  # (n,)
    weight: FloatArray  # (n,)
    noise_scale: FloatArray  # (n,)
    centres: FloatArray  # (m, d) at the start
    metric: FloatArray  # (m, d) at the start
    ramp: BoolArray  # (m,)
    offset: FloatArray  # (m,)
    alpha: FloatArray  # (m,) at the start
    metric_parameter: IntArray  # (m, d) parameter that changes each scale or slope; -1 for none
    centre_parameter: IntArray  # (m, d) the same for the centres
    width: FloatArray  # (m, d) change of the centre for a unit of its parameter
    beta: float  # prior precision of the thresholds
    mode_tol: float  # Newton decrement at which a mode counts as found


@inner
def _place(problem: Problem, p: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return centres, metric and α for parameters p: factors of the scales of bumps, summands of slopes."""
    centres, metric = problem.centres.copy(), problem.metric.copy()
    m_all, d = centres.shape
    for m in range(m_all):
        for k in range(d):
            i = problem.metric_parameter[m, k]
            if i >= 0 and problem.ramp[m]:
                metric[m, k] += p[i]
            elif i >= 0:
                metric[m, k] *= math.exp(p[i])
            i = problem.centre_parameter[m, k]
            if i >= 0:
                centres[m, k] += problem.width[m, k] * p[i]
    alpha, first = np.empty(m_all), len(p) - m_all
    for m in range(m_all):
        alpha[m] = problem.alpha[m] * math.exp(p[first + m])
    return centres, metric, alpha


@inlined
def _evaluate(problem: Problem, p: FloatArray, mode: FloatArray, slope: FloatArray) -> float:
    """Return the log evidence at p and write its gradient to `slope`; -∞ if it cannot be computed.

    `mode` is where the search for the mode of weights and thresholds begins; it is replaced by the mode.
    """
    for i in range(len(p)):
        if not abs(p[i]) <= _TOO_FAR:  # NaN included
            return -np.inf
    m_all, d = problem.centres.shape
    centres, metric, alpha = _place(problem, p)
    values = values_at(centres, metric, problem.ramp, problem.offset, problem.powers)
    no_gaps = np.empty((0, len(problem.y)))
    block = Block(values, problem.y, problem.weight, problem.noise_scale, no_gaps)
    theta, sums, resolved = mode_of_block(
        block, alpha, mode[:m_all], mode[m_all:], problem.beta, problem.mode_tol, False
    )
    if not resolved:
        return -np.inf
    prior = np.empty(len(theta))
    for i in range(len(theta)):
        prior[i] = alpha[i] if i < m_all else problem.beta
    terms, resolved = laplace_terms(sums.precision, prior, theta)
    if not resolved:
        return -np.inf
    by_centre, by_metric, by_log_alpha, resolved = evidence_gradient(
        block,
        problem.powers,
        centres,
        metric,
        problem.ramp,
        problem.offset,
        alpha,
        theta,
        sums,
        problem.beta,
    )
    if not resolved:
        return -np.inf
    first = len(p) - m_all
    for i in range(first):
        slope[i] = 0.0
    for m in range(m_all):
        for k in range(d):
            i = problem.metric_parameter[m, k]
            if i >= 0:
                slope[i] += by_metric[m, k] * (1.0 if problem.ramp[m] else metric[m, k])
            i = problem.centre_parameter[m, k]
            if i >= 0:
                slope[i] += by_centre[m, k] * problem.width[m, k]
    for m in range(m_all):
        slope[first + m] = by_log_alpha[m]
    for i in range(len(theta)):
        mode[i] = theta[i]
    height: float = sums.totals[0] + terms
    return height


@inner
def _direction(slope: FloatArray, steps: FloatArray, changes: FloatArray, count: int) -> FloatArray:
    """Return the direction of ascent by the last pairs of steps and changes of the slope, in a ring."""
    direction, n = slope.copy(), len(slope)
    n_pairs = min(count, _MEMORY)
    factor = np.empty(_MEMORY)
    for k in range(count - 1, count - 1 - n_pairs, -1):
        s, y = steps[k % _MEMORY], changes[k % _MEMORY]
        factor[k % _MEMORY] = product(s, direction, n) / product(s, y, n)
        _add(direction, -factor[k % _MEMORY], y)
    if count > 0:
        s, y = steps[(count - 1) % _MEMORY], changes[(count - 1) % _MEMORY]
        scale = product(s, y, n) / product(y, y, n)
        for i in range(n):
            direction[i] *= scale
    for k in range(count - n_pairs, count):
        s, y = steps[k % _MEMORY], changes[k % _MEMORY]
        _add(direction, factor[k % _MEMORY] - product(y, direction, n) / product(s, y, n), s)
    return direction


@inner
def _add(total: FloatArray, factor: float, summand: FloatArray) -> None:
    """Add factor · summand."""
    for i in range(len(total)):
        total[i] += factor * summand[i]


@compiled
def climb(
    problem: Problem, n_parameters: int, mode: FloatArray, max_steps: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return centres, metric and α after at most `max_steps` steps; `mode` is replaced by the mode there."""
    n = n_parameters
    p, slope, height = np.zeros(n), np.zeros(n), -np.inf
    trial, trial_slope, trial_mode = np.zeros(n), np.zeros(n), mode.copy()
    steps, changes, count = np.empty((_MEMORY, n)), np.empty((_MEMORY, n)), int(np.intp(0))
    direction, length, rise = p, 1.0, 0.0
    accepted, n_trials, left = 0, 0, max_steps + max_steps // 3 + 2
    while True:
        trial_height = _evaluate(problem, trial, trial_mode, trial_slope)
        if trial_height >= height + _ENOUGH * length * rise:  # the first one is the start itself
            if trial_height == -np.inf:
                break
            step, change = steps[count % _MEMORY], changes[count % _MEMORY]
            for i in range(n):
                step[i], change[i] = trial[i] - p[i], slope[i] - trial_slope[i]
            if product(step, change, n) > 1e-10 * product(change, change, n):
                count += 1
            gained, height = trial_height - height, trial_height
            for i in range(n):
                p[i], slope[i] = trial[i], trial_slope[i]
            for i in range(len(mode)):
                mode[i] = trial_mode[i]
            if gained <= _LITTLE * abs(height) or accepted == max_steps:
                break
            direction = _direction(slope, steps, changes, count)
            rise = product(direction, slope, n)
            length = 1.0 if count > 0 else min(1.0, 1.0 / math.sqrt(max(product(slope, slope, n), 1e-300)))
            accepted, n_trials = accepted + 1, 0
        else:
            # The top of the parabola through the two heights and the slope, but not too near.
            lower = height + length * rise - trial_height
            length *= max(0.1, 0.5 * length * rise / lower) if trial_height > -np.inf else 0.1
        if n_trials == _MAX_TRIALS or left == 0:
            break
        n_trials, left = n_trials + 1, left - 1
        for i in range(n):
            trial[i] = p[i] + length * direction[i]
        for i in range(len(mode)):
            trial_mode[i] = mode[i]
    return _place(problem, p)
