r"""The evidence as a function of one prior precision at a time, in Gram space.

Around a point θ0 = (w0, b0), the log likelihood is approximated by the quadratic with gradient g and
precision Γ. The thresholds are always in the model, with prior precision β, so they are integrated out once:

.. math::
    G = \Gamma_{ww} - \Gamma_{wb}(\Gamma_{bb} + \beta)^{-1}\Gamma_{bw}, \qquad
    h = G w_0 + g_w - \Gamma_{wb}(\Gamma_{bb} + \beta)^{-1} (g_b - \beta b_0) .

What remains is a linear Gaussian model in the weights. For the active set A with precisions α,

.. math::
    \Sigma = (G_{AA} + \operatorname{diag}\alpha)^{-1}, \quad \mu = \Sigma h_A, \quad
    Q_j = h_j - G_{jA}\mu, \quad S_j = G_{jj} - G_{jA}\Sigma G_{Aj},

and its log evidence, up to a constant, is ½ h_A·μ + ½ ln|diag α| + ½ ln|Σ|. As a function of one precision,
it is maximal at :math:`\alpha_j = s_j^2/(q_j^2 - s_j)` if :math:`q_j^2 > s_j`, else at infinity (the function
is deleted). Here s = S, q = Q for a function outside the model, and s = 1/Σ_jj - α_j, q = μ_j/Σ_jj for one
inside. (αS/(α - S) equals s in exact arithmetic but cancels if α is small.)

The gains of the three moves, exact for the quadratic model, with a size-prior penalty of c nats per function
(ln p(M) = -cM; c may differ between functions):

.. math::
    \text{add} &: \tfrac12 (Q^2/S - 1 - \ln(Q^2/S)) - c \\
    \text{reestimate} &: \tfrac12\ln\frac{\alpha'}{\alpha} - \tfrac12\ln(1 + (\alpha' - \alpha)\Sigma_{jj})
        - \tfrac12\frac{(\alpha' - \alpha)\mu_j^2}{1 + (\alpha' - \alpha)\Sigma_{jj}} \\
    \text{delete} &: -\tfrac12(\mu_j^2/\Sigma_{jj} + \ln(\alpha\Sigma_{jj})) + c

Each move changes Σ by a matrix of rank one. μ, S and Q of all n candidates are updated in O(nM).

Source: Tipping & Faul, Fast marginal likelihood maximisation for sparse Bayesian models (2003);
symbols in docs/notation.md.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isbor._core.linalg import factorise
from isbor._core.trace import MoveKind
from isbor._core.types import FloatArray, IntArray
from isbor.inference.expansion import Expansion

__all__ = [
    "GramModel",
    "WeightPosterior",
    "Move",
    "add",
    "apply_move",
    "best_move",
    "weight_posterior",
    "delete",
    "gram_model",
    "optimal_precision",
    "reestimate",
    "residual",
    "rounding_floor",
]

# A candidate is collinear with the active functions to working precision if less than this share of its
# square lies outside their span: the rest is rounding error.
_COLLINEAR = 1e-10
# A candidate is constant to working precision if its mean square after centring is below this: functions
# have values up to 1, so the rest is the rounding error of centring.
_CONSTANT = 1e-14


@dataclass(frozen=True, slots=True)
class GramModel:
    """The quadratic model of the log likelihood for n candidates, thresholds integrated out."""

    gram: FloatArray  # (n, n), G
    linear: FloatArray  # (n,), h
    floor: FloatArray  # (n,), values of S below this are rounding errors


@dataclass(frozen=True, slots=True)
class WeightPosterior:
    """The posterior of the m active weights, and sparsity S and quality Q of all n candidates."""

    active: IntArray  # (m,) candidates in the model
    alpha: FloatArray  # (m,)
    covariance: FloatArray  # (m, m), Σ
    mean: FloatArray  # (m,), μ
    sparsity: FloatArray  # (n,), S
    quality: FloatArray  # (n,), Q


@dataclass(frozen=True, slots=True)
class Move:
    """A change of one prior precision."""

    kind: MoveKind
    candidate: int
    alpha: float  # the new precision; infinite for a deletion
    gain: float  # of the objective, in nats


def gram_model(expansion: Expansion) -> GramModel:
    """Integrate the thresholds out of a second-order expansion."""
    n = len(expansion.weights)
    cross = expansion.precision[:n, n:]
    beta = expansion.threshold_precision
    inside = expansion.precision[n:, n:] + beta * np.eye(len(expansion.thresholds))
    projected = factorise(inside).solve(cross.T)
    floor = rounding_floor(np.diag(expansion.precision)[:n], float(expansion.precision[n:, n:].sum()))
    gram = expansion.precision[:n, :n] - cross @ projected
    gram = 0.5 * (gram + gram.T)
    slope = expansion.gradient[n:] - beta * expansion.thresholds
    gradient = expansion.gradient[:n] - projected.T @ slope
    return GramModel(gram, gram @ expansion.weights + gradient, floor)


def rounding_floor(square: FloatArray, total_curvature: float) -> FloatArray:
    """Return the sparsity S below which a candidate differs from the active functions only by rounding.

    `square` is the diagonal of Γ_ww, and `total_curvature` its value for a function equal to 1.
    """
    return np.maximum(_COLLINEAR * square, _CONSTANT * total_curvature)


def weight_posterior(model: GramModel, active: IntArray, alpha: FloatArray) -> WeightPosterior:
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


def residual(model: GramModel, state: WeightPosterior) -> float:
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


def optimal_precision(s: FloatArray, q: FloatArray) -> FloatArray:
    """Return the precision that maximises the evidence, infinite if the function should be deleted."""
    excess = q**2 - s
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(excess > 0.0, s**2 / np.where(excess > 0.0, excess, 1.0), np.inf)


def best_move(
    state: WeightPosterior,
    floor: FloatArray,
    *,
    penalty: float | FloatArray = 0.0,
    may_add: bool = True,
    excluded: Collection[int] = (),
) -> Move | None:
    """Return the move with the largest gain; None if there is no possible move.

    Ties go to the lowest candidate. Candidates with a sparsity below `floor` (see `rounding_floor`) and the
    `excluded` ones are skipped. `penalty` is the size-prior penalty in nats: one number, or one for each
    candidate.
    """
    penalties = np.broadcast_to(np.asarray(penalty, dtype=np.float64), state.sparsity.shape)
    skipped = np.fromiter(excluded, dtype=np.intp)
    best: Move | None = None
    if may_add:
        best = _best_addition(state, floor, penalties, skipped)
    inside = _best_inside(state, penalties, skipped)
    if best is None or (inside is not None and inside.gain >= best.gain):
        best = inside
    return best


def _best_addition(
    state: WeightPosterior, floor: FloatArray, penalty: FloatArray, excluded: IntArray
) -> Move | None:
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


def _best_inside(state: WeightPosterior, penalty: FloatArray, excluded: IntArray) -> Move | None:
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


def _without(state: WeightPosterior, left_out: NDArray[np.bool_]) -> WeightPosterior:
    """Return the marginal posterior of some of the active weights."""
    kept = np.flatnonzero(~left_out)
    return replace(
        state,
        active=state.active[kept],
        alpha=state.alpha[kept],
        covariance=state.covariance[np.ix_(kept, kept)],
        mean=state.mean[kept],
    )


def apply_move(model: GramModel, state: WeightPosterior, move: Move) -> WeightPosterior:
    """Return the posterior after a move."""
    if move.kind == "add":
        return add(model, state, move.candidate, move.alpha)
    if move.kind == "delete":
        return delete(model, state, move.candidate)
    return reestimate(model, state, move.candidate, move.alpha)


def add(model: GramModel, state: WeightPosterior, j: int, alpha: float) -> WeightPosterior:
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


def reestimate(model: GramModel, state: WeightPosterior, j: int, alpha: float) -> WeightPosterior:
    """Change the precision of active candidate j."""
    i = _position(state, j)
    change = alpha - state.alpha[i]
    rate = change / (1.0 + change * state.covariance[i, i])
    alphas = state.alpha.copy()
    alphas[i] = alpha
    return replace(_release(model, state, i, rate), alpha=alphas)


def delete(model: GramModel, state: WeightPosterior, j: int) -> WeightPosterior:
    """Delete active candidate j from the model."""
    i = _position(state, j)
    state = _release(model, state, i, 1.0 / state.covariance[i, i])
    return _without(state, np.arange(len(state.active)) == i)


def _position(state: WeightPosterior, j: int) -> int:
    return int(np.flatnonzero(state.active == j)[0])


def _release(model: GramModel, state: WeightPosterior, i: int, rate: float) -> WeightPosterior:
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
