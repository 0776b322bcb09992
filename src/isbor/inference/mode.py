r"""The mode of weights and thresholds, and the Laplace approximation around it.

The weights have prior precisions α, and the thresholds have a common one,

.. math:: b_k \sim N(0, 1/\beta), \qquad 1/\beta = 1 + \operatorname{Var} f,

the variance of the latent response (score plus noise): thresholds lie in its range. The log posterior of
θ = (w, b),

.. math:: \ln p(\theta \mid y) = \ell(w, b) - \tfrac12 w^\top A w - \tfrac\beta2 b^\top b + \text{const},

is jointly concave because the noise density is log-concave, so Newton's method finds weights and thresholds
together. (β is updated with the scores in each step; the result is a fixed point, the mode for its own β.) A
step is halved until the thresholds stay in order and the objective increases enough. Around the mode,
:math:`\theta \sim N(\hat\theta, P^{-1})` with :math:`P = \Gamma + \mathrm{diag}(\alpha, \beta)`, and

.. math::
    \ln p(y \mid \alpha) \approx \ell - \tfrac12 w^\top A w - \tfrac\beta2 b^\top b
    + \tfrac12 \ln|A| + \tfrac{r-1}2 \ln \beta - \tfrac12 \ln|P| .

The result does not depend on the unit of the score: it is unchanged by (w, b, σ, α, β) → (cw, cb, cσ, α/c²,
β/c²).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from isbor._core.linalg import add_diagonal, factorise
from isbor._core.types import FloatArray, IntArray
from isbor.inference.expansion import Expansion

__all__ = [
    "Mode",
    "thresholds_given_weights",
    "find_mode",
    "log_evidence",
    "posterior_precision",
    "starting_thresholds",
]

_QUADRATIC = 1e-6  # below this Newton decrement, objective and quadratic model differ only by rounding


@dataclass(frozen=True, slots=True)
class Mode:
    """The mode of weights and thresholds given the prior precisions, with the expansion at the mode."""

    alpha: FloatArray  # (m,)
    expansion: Expansion

    @property
    def weights(self) -> FloatArray:
        """Modal weights, (m,)."""
        return self.expansion.weights

    @property
    def thresholds(self) -> FloatArray:
        """Modal thresholds, (r-1,)."""
        return self.expansion.thresholds


def starting_thresholds(y: IntArray, weight: FloatArray) -> FloatArray:
    """Return the thresholds for which a score of zero has the observed class frequencies."""
    counts = np.bincount(y, weight)
    counts += 1e-6 * counts.sum()  # keeps the thresholds of a class with almost no weight apart
    thresholds: FloatArray = ndtri(np.cumsum(counts)[:-1] / counts.sum())
    return thresholds


def find_mode(
    expand_at: Callable[[FloatArray, FloatArray], Expansion],
    alpha: FloatArray,
    weights: FloatArray,
    thresholds: FloatArray,
    *,
    tol: float = 1e-8,
    max_steps: int = 50,
) -> Mode:
    """Maximise the posterior of (w, b) by damped Newton steps.

    Stops when the Newton decrement, twice the increase that the quadratic model predicts, is below `tol`, or
    when no step increases the objective. If the decrement is so small that the quadratic model is accurate,
    a step that does not increase the objective fails because of rounding, so shorter ones are not tried.
    """
    m = len(alpha)
    here = expand_at(weights, thresholds)
    for _ in range(max_steps):
        prior = _prior_precision(here, alpha)
        theta = np.concatenate([here.weights, here.thresholds])
        gradient = here.gradient - prior * theta
        direction = factorise(add_diagonal(here.precision, prior)).solve(gradient)
        decrement = float(gradient @ direction)
        height = here.log_likelihood - 0.5 * float(prior @ theta**2)
        if decrement < max(tol, 1e-14 * abs(height)):  # or below the rounding error of the objective
            break
        step = _longest_ordered_step(here.thresholds, direction[m:])
        for _ in range(1 if decrement < _QUADRATIC else 40):
            moved = theta + step * direction
            trial = expand_at(moved[:m], moved[m:])
            if trial.log_likelihood - 0.5 * float(prior @ moved**2) >= height + 1e-4 * step * decrement:
                break
            step *= 0.5
        else:
            break
        here = trial
    return Mode(alpha, here)


def thresholds_given_weights(expansion: Expansion, weights: FloatArray) -> tuple[FloatArray, float]:
    """Return the best thresholds for other weights in the quadratic model, and the step length taken.

    The step length is less than 1 if the full step would put the thresholds out of order.
    """
    n = len(expansion.weights)
    beta = np.full(len(expansion.thresholds), expansion.threshold_precision)
    slope = expansion.gradient[n:] - beta * expansion.thresholds
    pull = slope - expansion.precision[n:, :n] @ (weights - expansion.weights)
    direction = factorise(add_diagonal(expansion.precision[n:, n:], beta)).solve(pull)
    step = _longest_ordered_step(expansion.thresholds, direction)
    return expansion.thresholds + step * direction, step


def posterior_precision(mode: Mode) -> FloatArray:
    """Return P, the posterior precision of (w, b) at the mode."""
    return add_diagonal(mode.expansion.precision, _prior_precision(mode.expansion, mode.alpha))


def log_evidence(mode: Mode) -> float:
    """Return the Laplace approximation of ln p(y | α)."""
    prior = _prior_precision(mode.expansion, mode.alpha)
    theta = np.concatenate([mode.weights, mode.thresholds])
    return (
        mode.expansion.log_likelihood
        - 0.5 * float(prior @ theta**2)
        + 0.5 * float(np.log(prior).sum())
        - 0.5 * factorise(posterior_precision(mode)).log_determinant
    )


def _prior_precision(expansion: Expansion, alpha: FloatArray) -> FloatArray:
    beta = np.full(len(expansion.thresholds), expansion.threshold_precision)
    return np.concatenate([alpha, beta])


def _longest_ordered_step(thresholds: FloatArray, direction: FloatArray) -> float:
    """Return the largest step of 1, ½, ¼ … after which every gap is at least a tenth of what it was."""
    gaps, change = np.diff(thresholds), np.diff(direction)
    step = 1.0
    while np.any(gaps + step * change < 0.1 * gaps):
        step *= 0.5
    return step
