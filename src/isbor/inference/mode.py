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

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, cast

import numpy as np
from scipy.special import ndtri

from isbor._core.linalg import UnresolvedError, add_diagonal, factorise
from isbor._core.parallel import Workers, row_blocks
from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.inference import compiled_mode
from isbor.inference.compiled_mode import (
    ACCEPTED,
    DONE,
    HOPELESS,
    MAX_STEPS,
    NEAR,
    TOO_LONG,
    UNRESOLVED,
    judge,
    laplace_terms,
    longest_ordered_step,
    mode_of_block,
    new_search,
    next_trial,
)
from isbor.inference.expansion import Columns, Expansion, block_of, expand, expansion_at
from isbor.model.cuts import RowShape

__all__ = [
    "TOL",
    "Mode",
    "Point",
    "search_for_mode",
    "thresholds_given_weights",
    "find_mode",
    "find_mode_at_rows",
    "log_evidence",
    "posterior_covariance",
    "posterior_precision",
    "starting_thresholds",
]

TOL = 1e-8  # Newton decrement at which a mode counts as found, in nats


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


class Point(NamedTuple):
    """Where the log likelihood is to be expanded."""

    weights: FloatArray  # (m,)
    thresholds: FloatArray  # (r-1,)
    roughly: bool  # whether inner products in single precision will do


def search_for_mode(
    alpha: FloatArray,
    weights: FloatArray,
    thresholds: FloatArray,
    *,
    tol: float = TOL,
    max_steps: int = MAX_STEPS,
    begins_roughly: bool = False,
) -> Generator[Point, Expansion, Mode]:
    """Maximise the posterior of (w, b) by damped Newton steps; yield points, and receive their expansions.

    If it `begins_roughly`, rough expansions do as long as the Newton decrement is above `NEAR`.

    Stops when the Newton decrement, twice the increase that the quadratic model predicts, is below `tol`, or
    when no step increases the objective. If the decrement is so small that the quadratic model is accurate,
    a step that does not increase the objective fails because of rounding, so shorter ones are not tried.
    """
    m = len(alpha)
    newton = new_search(alpha, weights, thresholds)
    n_steps, roughly = 0, begins_roughly
    while True:
        point = newton.trial.copy()
        trial = yield Point(point[:m], point[m:], roughly)
        verdict = judge(newton, trial.log_likelihood)
        if verdict == TOO_LONG:
            continue
        if verdict == ACCEPTED:
            here, is_rough = trial, roughly
        is_over = verdict == HOPELESS or n_steps == max_steps
        if not is_over:
            beta = here.threshold_precision
            status = next_trial(newton, here.log_likelihood, here.gradient, here.precision, beta, tol)
            if status == UNRESOLVED:
                raise UnresolvedError
            is_over = status == DONE
        if is_over:
            if is_rough:
                here = yield Point(here.weights, here.thresholds, False)
            return Mode(alpha, here)
        if newton.numbers[1] <= NEAR:  # the Newton decrement
            roughly = False
        n_steps += 1


def find_mode(
    expand_at: Callable[[FloatArray, FloatArray], Expansion],
    alpha: FloatArray,
    weights: FloatArray,
    thresholds: FloatArray,
    *,
    tol: float = TOL,
    max_steps: int = MAX_STEPS,
    expand_roughly_at: Callable[[FloatArray, FloatArray], Expansion] | None = None,
) -> Mode:
    """Maximise the posterior of (w, b), see `search_for_mode`.

    `expand_roughly_at`, if given, is used far from the mode.
    """
    begins_roughly = expand_roughly_at is not None
    search = search_for_mode(
        alpha, weights, thresholds, tol=tol, max_steps=max_steps, begins_roughly=begins_roughly
    )
    expand_roughly_at = expand_roughly_at or expand_at
    point = next(search)
    while True:
        expand_there = expand_roughly_at if point.roughly else expand_at
        try:
            point = search.send(expand_there(point.weights, point.thresholds))
        except StopIteration as end:
            return cast(Mode, end.value)


def find_mode_at_rows(
    rows: TrainingRows,
    columns: Columns,
    alpha: FloatArray,
    weights: FloatArray,
    thresholds: FloatArray,
    workers: Workers,
    shape: RowShape | None = None,
    *,
    held_precision: float | None = None,
    tol: float = TOL,
    single: bool = False,
) -> Mode:
    """Find the mode for functions with the values `columns` at the rows; in one go, if these are one block.

    `shape` is the noise and the factors of the gaps of each row; None means noise 1 and factors 1.
    `held_precision` is β, if it is held fixed. `tol` is the Newton decrement at which the mode
    counts as found. If `single`, inner products of functions are computed in single precision far from it.
    """
    m = len(alpha)
    blocks = row_blocks(len(rows), m)
    if len(blocks) > 1:

        def expand_at(w: FloatArray, b: FloatArray, roughly: bool = False) -> Expansion:
            here = expand(rows, columns, w, b, workers, shape, single=roughly)
            return replace(here, held_precision=held_precision)

        roughly = partial(expand_at, roughly=True) if single else None
        return find_mode(expand_at, alpha, weights, thresholds, tol=tol, expand_roughly_at=roughly)

    workers.check()
    block = block_of(columns(blocks[0]), rows, blocks[0], shape)
    held = np.nan if held_precision is None else held_precision
    theta, sums, resolved = mode_of_block(block, alpha, weights, thresholds, held, tol, single)
    if not resolved:
        raise UnresolvedError
    return Mode(alpha, replace(expansion_at(theta[:m], theta[m:], sums), held_precision=held_precision))


def thresholds_given_weights(expansion: Expansion, weights: FloatArray) -> tuple[FloatArray, float]:
    """Return the best thresholds for other weights in the quadratic model, and the step length taken.

    The step length is less than 1 if the full step would put the thresholds out of order.
    """
    n = len(expansion.weights)
    beta = np.full(len(expansion.thresholds), expansion.threshold_precision)
    slope = expansion.gradient[n:] - beta * expansion.thresholds
    pull = slope - expansion.precision[n:, :n] @ (weights - expansion.weights)
    direction = factorise(add_diagonal(expansion.precision[n:, n:], beta)).solve(pull)
    step = longest_ordered_step(expansion.thresholds, direction)
    return expansion.thresholds + step * direction, step


def posterior_precision(mode: Mode) -> FloatArray:
    """Return P, the posterior precision of (w, b) at the mode."""
    return add_diagonal(mode.expansion.precision, _prior_precision(mode.expansion, mode.alpha))


def posterior_covariance(mode: Mode) -> FloatArray:
    """Return Σ, the posterior covariance of (w, b) at the mode."""
    here = mode.expansion
    covariance, resolved = compiled_mode.posterior_covariance(
        here.precision, _prior_precision(here, mode.alpha)
    )
    if not resolved:
        raise UnresolvedError
    return covariance


def log_evidence(mode: Mode) -> float:
    """Return the Laplace approximation of ln p(y | α)."""
    here = mode.expansion
    theta = np.concatenate([mode.weights, mode.thresholds])
    terms, resolved = laplace_terms(here.precision, _prior_precision(here, mode.alpha), theta)
    if not resolved:
        raise UnresolvedError
    return here.log_likelihood + float(terms)


def _prior_precision(expansion: Expansion, alpha: FloatArray) -> FloatArray:
    m = len(alpha)
    prior = np.empty(m + len(expansion.thresholds))
    prior[:m] = alpha
    prior[m:] = expansion.threshold_precision
    return prior
