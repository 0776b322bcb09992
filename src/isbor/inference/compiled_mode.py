"""Newton's method for the mode, compiled; `isbor.inference.mode` derives it."""

from typing import NamedTuple

import numpy as np

from isbor._core.compiled import compiled, inner
from isbor._core.compiled_linalg import cholesky, inverse, log_determinant, product, solve, whitening
from isbor._core.types import FloatArray
from isbor.inference.compiled_expansion import Block, Sums, add_block, clear, latent_moments, new_sums

__all__ = [
    "ACCEPTED",
    "DONE",
    "GO_ON",
    "HOPELESS",
    "MAX_STEPS",
    "NEAR",
    "TOO_LONG",
    "UNRESOLVED",
    "Newton",
    "judge",
    "laplace_terms",
    "longest_ordered_step",
    "mode_of_block",
    "new_search",
    "next_trial",
    "posterior_covariance",
]

MAX_STEPS = 50  # of a search for a mode
NEAR = 40.0  # Newton decrement in nats above which rough expansions do
_QUADRATIC = 1e-6  # below this Newton decrement, objective and quadratic model differ only by rounding


@inner
def penalty(prior: FloatArray, theta: FloatArray) -> float:
    """Return ½ θᵀ diag(prior) θ."""
    total = 0.0
    for i in range(len(theta)):
        total += prior[i] * theta[i] * theta[i]
    return 0.5 * total


class Newton(NamedTuple):
    """A search for the mode: memory that the functions below write to."""

    alpha: FloatArray  # (m,)
    prior: FloatArray  # (m + r-1,) prior precisions at the present point
    theta: FloatArray  # (m + r-1,) the present point
    direction: FloatArray  # (m + r-1,)
    trial: FloatArray  # (m + r-1,) the next point, if it is accepted
    numbers: FloatArray  # (4,) objective at the present point, Newton decrement, step length, trials left


GO_ON, DONE, UNRESOLVED = 0, 1, 2
ACCEPTED, TOO_LONG, HOPELESS = 0, 1, 2


@compiled
def new_search(alpha: FloatArray, weights: FloatArray, thresholds: FloatArray) -> Newton:
    """Return a search whose first trial is a given point, which is accepted whatever the objective."""
    m, t = len(weights), len(thresholds)
    newton = Newton(alpha, np.zeros(m + t), np.empty(m + t), np.empty(m + t), np.empty(m + t), np.zeros(4))
    for i in range(m):
        newton.trial[i] = weights[i]
    for i in range(t):
        newton.trial[m + i] = thresholds[i]
    newton.numbers[0] = -np.inf
    return newton


@compiled
def next_trial(
    newton: Newton,
    log_likelihood: float,
    gradient: FloatArray,
    precision: FloatArray,
    beta: float,
    tol: float,
) -> int:
    """Compute the direction at the present point, and the first trial along it."""
    prior, theta, direction, m = newton.prior, newton.theta, newton.direction, len(newton.alpha)
    size = len(theta)
    slope, scale = np.empty(size), np.empty(size)
    for i in range(size):
        prior[i] = newton.alpha[i] if i < m else beta
        slope[i] = gradient[i] - prior[i] * theta[i]
    lower = _posterior(precision, prior)
    if not cholesky(lower, lower, scale):
        return UNRESOLVED
    solution = solve(lower, scale, slope)
    for i in range(size):
        direction[i] = solution[i]
    height, decrement = log_likelihood - penalty(prior, theta), product(slope, direction, size)
    if decrement < max(tol, 1e-14 * abs(height)):  # or below the rounding error of the objective
        return DONE
    step = longest_ordered_step(theta[m:], direction[m:])
    numbers = newton.numbers
    numbers[0], numbers[1], numbers[2] = height, decrement, step
    numbers[3] = 1.0 if decrement < _QUADRATIC else 40.0
    for i in range(size):
        newton.trial[i] = theta[i] + step * direction[i]
    return GO_ON


@compiled
def judge(newton: Newton, log_likelihood: float) -> int:
    """Go to the trial if the objective is high enough there, else prepare a trial half as far."""
    numbers = newton.numbers
    height, decrement, step, left = numbers[0], numbers[1], numbers[2], numbers[3]
    enough = height + 1e-4 * step * decrement
    if height == -np.inf or log_likelihood - penalty(newton.prior, newton.trial) >= enough:
        for i in range(len(newton.theta)):
            newton.theta[i] = newton.trial[i]
        return ACCEPTED
    if left <= 1.0:
        return HOPELESS
    numbers[2], numbers[3] = 0.5 * step, left - 1.0
    for i in range(len(newton.theta)):
        newton.trial[i] = newton.theta[i] + 0.5 * step * newton.direction[i]
    return TOO_LONG


@compiled
def mode_of_block(
    block: Block,
    alpha: FloatArray,
    weights: FloatArray,
    thresholds: FloatArray,
    held_precision: float,
    tol: float,
    single: bool,
) -> tuple[FloatArray, Sums, bool]:
    """Find the mode for rows in one block: its point, the sums there, and whether functions are resolved.

    `held_precision` is β, if it is held fixed, else NaN. If `single`, sums far from the mode are computed in
    single precision, see `add_block`.
    """
    newton = new_search(alpha, weights, thresholds)
    m, size = len(alpha), len(newton.theta)
    here, trial = new_sums(size), new_sums(size)
    edge = np.empty(size - m + 2)
    edge[0], edge[-1] = -np.inf, np.inf
    n_steps, is_far, is_rough = 0, single, False
    while True:
        for k in range(m, size):
            edge[k - m + 1] = newton.trial[k]
        clear(trial)
        add_block(block, newton.trial[:m], edge, m, is_far, trial)
        verdict = judge(newton, trial.totals[0])
        if verdict == TOO_LONG:
            continue
        if verdict == ACCEPTED:
            here, trial, is_rough = trial, here, is_far
        is_over = verdict == HOPELESS or n_steps == MAX_STEPS
        if not is_over:
            beta = held_precision if held_precision > 0.0 else 1.0 / (1.0 + latent_moments(here.totals)[1])
            status = next_trial(newton, here.totals[0], here.gradient, here.precision, beta, tol)
            if status == UNRESOLVED:
                return newton.theta, here, False
            is_over = status == DONE
        if is_over:
            if is_rough:
                for k in range(m, size):
                    edge[k - m + 1] = newton.theta[k]
                clear(here)
                add_block(block, newton.theta[:m], edge, m, False, here)
            return newton.theta, here, True
        is_far = is_far and newton.numbers[1] > NEAR
        n_steps += 1


@inner
def _posterior(precision: FloatArray, prior: FloatArray) -> FloatArray:
    """Return the posterior precision P."""
    posterior = precision.copy()
    for i in range(len(prior)):
        posterior[i, i] += prior[i]
    return posterior


@compiled
def laplace_terms(precision: FloatArray, prior: FloatArray, theta: FloatArray) -> tuple[float, bool]:
    """Return ln p(y | α) - ℓ by the Laplace approximation, and whether the functions are resolved."""
    lower, scale = _posterior(precision, prior), np.empty(len(prior))
    if not cholesky(lower, lower, scale):
        return 0.0, False
    total = -penalty(prior, theta) - 0.5 * log_determinant(lower, scale)
    for i in range(len(prior)):
        total += 0.5 * np.log(prior[i])
    return total, True


@compiled
def posterior_covariance(precision: FloatArray, prior: FloatArray) -> tuple[FloatArray, bool]:
    """Return Σ = P⁻¹, and whether the functions are resolved."""
    lower, scale = _posterior(precision, prior), np.empty(len(prior))
    if not cholesky(lower, lower, scale):
        return lower, False
    covariance = np.empty(precision.shape)
    inverse(whitening(lower, scale), covariance)
    return covariance, True


@compiled
def longest_ordered_step(thresholds: FloatArray, direction: FloatArray) -> float:
    """Return the largest step of 1, ½, ¼ … after which every gap is at least a tenth of what it was."""
    step = 1.0
    for k in range(len(thresholds) - 1):
        gap, change = thresholds[k + 1] - thresholds[k], direction[k + 1] - direction[k]
        while gap + step * change < 0.1 * gap:
            step *= 0.5
    return step
