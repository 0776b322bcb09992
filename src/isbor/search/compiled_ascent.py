"""L-BFGS for the log evidence in the parameters of all functions, compiled.

The parameters p are zero at the start. Each entry of metric and centres may depend on one of them, and
several entries may depend on the same one. The last m parameters are the changes of ln α.

A step goes along the direction of L-BFGS, at first as far as the approximation of the Hessian suggests. It is
shortened until the log evidence rises enough (Armijo's condition). A point at which the evidence cannot be
computed counts as too far.
"""

from typing import NamedTuple

import numpy as np

from isbor._core.compiled import compiled
from isbor._core.types import BoolArray, FloatArray, IntArray
from isbor.inference.compiled_expansion import Block
from isbor.inference.compiled_gradient import evidence_gradient
from isbor.inference.compiled_mode import laplace_terms, mode_of_block
from isbor.model.compiled_basis import values_at

__all__ = ["Problem", "climb", "evaluate", "place"]

_MEMORY = 20  # pairs of steps and changes of the gradient
_TOO_FAR = 30.0  # larger parameters are not tried
_ENOUGH = 1e-4  # share of the rise that the slope promises
_MAX_TRIALS = 8  # along one direction
_MAX_NEWTON_STEPS = 50
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


@compiled
def place(problem: Problem, p: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return centres, metric and α for parameters p: factors of the scales of bumps, summands of slopes."""
    centres, metric = problem.centres.copy(), problem.metric.copy()
    m_all, d = centres.shape
    for m in range(m_all):
        for k in range(d):
            i = problem.metric_parameter[m, k]
            if i >= 0 and problem.ramp[m]:
                metric[m, k] += p[i]
            elif i >= 0:
                metric[m, k] *= np.exp(p[i])
            i = problem.centre_parameter[m, k]
            if i >= 0:
                centres[m, k] += problem.width[m, k] * p[i]
    return centres, metric, problem.alpha * np.exp(p[len(p) - m_all :])


@compiled
def evaluate(problem: Problem, p: FloatArray, mode: FloatArray, slope: FloatArray) -> float:
    """Return the log evidence at p and write its gradient to `slope`; -∞ if it cannot be computed.

    `mode` is where the search for the mode of weights and thresholds begins; it is replaced by the mode.
    """
    if np.abs(p).max() > _TOO_FAR:
        return -np.inf
    m_all, d = problem.centres.shape
    centres, metric, alpha = place(problem, p)
    values = values_at(centres, metric, problem.ramp, problem.offset, problem.powers)
    block = Block(values, problem.y, problem.weight, problem.noise_scale)
    theta, sums, resolved = mode_of_block(
        block, alpha, mode[:m_all], mode[m_all:], problem.beta, problem.mode_tol, _MAX_NEWTON_STEPS
    )
    if not resolved:
        return -np.inf
    prior = np.full(len(theta), problem.beta)
    prior[:m_all] = alpha
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
    slope[:] = 0.0
    for m in range(m_all):
        for k in range(d):
            i = problem.metric_parameter[m, k]
            if i >= 0:
                slope[i] += by_metric[m, k] * (1.0 if problem.ramp[m] else metric[m, k])
            i = problem.centre_parameter[m, k]
            if i >= 0:
                slope[i] += by_centre[m, k] * problem.width[m, k]
    slope[len(p) - m_all :] = by_log_alpha
    mode[:] = theta
    height: float = sums.totals[0] + terms
    return height


@compiled
def _direction(slope: FloatArray, steps: FloatArray, changes: FloatArray, count: int) -> FloatArray:
    """Return the direction of ascent by the last pairs of steps and changes of the slope, in a ring."""
    direction = slope.copy()
    n_pairs = min(count, _MEMORY)
    factor = np.empty(_MEMORY)
    for k in range(count - 1, count - 1 - n_pairs, -1):
        s, y = steps[k % _MEMORY], changes[k % _MEMORY]
        factor[k % _MEMORY] = np.dot(s, direction) / np.dot(s, y)
        direction -= factor[k % _MEMORY] * y
    if count:
        s, y = steps[(count - 1) % _MEMORY], changes[(count - 1) % _MEMORY]
        direction *= np.dot(s, y) / np.dot(y, y)
    for k in range(count - n_pairs, count):
        s, y = steps[k % _MEMORY], changes[k % _MEMORY]
        direction += (factor[k % _MEMORY] - np.dot(y, direction) / np.dot(s, y)) * s
    return direction


@compiled
def climb(problem: Problem, n_parameters: int, mode: FloatArray, max_steps: int) -> FloatArray:
    """Return the parameters after at most `max_steps` steps; `mode` is replaced by the mode there."""
    p, slope = np.zeros(n_parameters), np.zeros(n_parameters)
    height = evaluate(problem, p, mode, slope)
    if height == -np.inf:
        return p
    steps, changes = np.empty((_MEMORY, n_parameters)), np.empty((_MEMORY, n_parameters))
    count, left = 0, max_steps + max_steps // 3 + 2
    trial_slope, trial_mode = slope.copy(), mode.copy()
    for _ in range(max_steps):
        direction = _direction(slope, steps, changes, count)
        rise = np.dot(direction, slope)
        length = 1.0 if count else min(1.0, 1.0 / np.sqrt(max(np.dot(slope, slope), 1e-300)))
        found = False
        for _ in range(_MAX_TRIALS):
            if left == 0:
                return p
            left -= 1
            trial = p + length * direction
            trial_mode[:] = mode
            trial_height = evaluate(problem, trial, trial_mode, trial_slope)
            if trial_height >= height + _ENOUGH * length * rise:
                found = True
                break
            # The top of the parabola through the two heights and the slope, but not too near.
            lower = height + length * rise - trial_height
            length *= max(0.1, 0.5 * length * rise / lower) if trial_height > -np.inf else 0.1
        if not found:
            return p
        step, change = trial - p, slope - trial_slope
        if np.dot(step, change) > 1e-10 * np.dot(change, change):
            steps[count % _MEMORY], changes[count % _MEMORY] = step, change
            count += 1
        gained = trial_height - height
        p, height = trial, trial_height
        slope[:], mode[:] = trial_slope, trial_mode
        if gained <= _LITTLE * abs(height):
            return p
    return p
