r"""The evidence, one basis function at a time, in Gram space.

Around a point θ0 = (w0, b0) the log likelihood is the quadratic with gradient g and precision Γ.
Thresholds are always in the model under a flat prior, so they are integrated out once:

.. math::
    G = \Gamma_{ww} - \Gamma_{wb}\Gamma_{bb}^{-1}\Gamma_{bw}, \qquad
    h = G w_0 + g_w - \Gamma_{wb}\Gamma_{bb}^{-1} g_b .

What remains is a linear Gaussian model in the weights. For the active set A with precisions α,

.. math::
    \Sigma = (G_{AA} + \operatorname{diag}\alpha)^{-1}, \quad \mu = \Sigma h_A, \quad
    Q_j = h_j - G_{jA}\mu, \quad S_j = G_{jj} - G_{jA}\Sigma G_{Aj},

and its log evidence, up to a constant, is
:math:`\tfrac12 h_A^\top \mu + \tfrac12 \ln|\operatorname{diag}\alpha| + \tfrac12 \ln|\Sigma|`. As a function of
one precision it has its maximum at :math:`\alpha_j = s_j^2/(q_j^2 - s_j)` where :math:`q_j^2 > s_j`, and at infinity
(the function leaves) elsewhere; s = S, q = Q outside the model and s = 1/Σ_jj - α_j, q = μ_j/Σ_jj
inside. (αS/(α - S) is the same number in exact arithmetic but cancels where α is small.)

The gains of the three moves, exact for the quadratic model, with c nats of prior per function
(ln p(M) = -cM):

.. math::
    \text{add} &: \tfrac12 (Q^2/S - 1 - \ln(Q^2/S)) - c \\
    \text{reestimate} &: \tfrac12\ln\frac{\alpha'}{\alpha} - \tfrac12\ln(1 + (\alpha' - \alpha)\Sigma_{jj})
        - \tfrac12\frac{(\alpha' - \alpha)\mu_j^2}{1 + (\alpha' - \alpha)\Sigma_{jj}} \\
    \text{delete} &: -\tfrac12(\mu_j^2/\Sigma_{jj} + \ln(\alpha\Sigma_{jj})) + c

Each move changes Σ by a matrix of rank one, and with it μ, S and Q of all n candidates in O(nM).

Source: Tipping & Faul, Fast marginal likelihood maximisation for sparse Bayesian models (2003);
symbols in docs/notation.md.
"""

from dataclasses import dataclass, replace

import numpy as np

from isbor.arrays import FloatArray, IntArray
from isbor.posterior import factorise
from isbor.statistics import Expansion
from isbor.trace import MoveKind

__all__ = [
    "GramModel",
    "Gaussian",
    "Move",
    "add",
    "best_move",
    "condition",
    "delete",
    "gram_model",
    "optimal_precision",
    "quadratic_log_evidence",
    "reestimate",
    "residual",
]

# A candidate whose part outside the span of the active ones has less than this share of its square is
# collinear with them to working precision: what is left of it is rounding.
_COLLINEAR = 1e-10


@dataclass(frozen=True, slots=True)
class GramModel:
    """The quadratic model of the log likelihood over n candidates, thresholds integrated out."""

    gram: FloatArray  # (n, n), G
    linear: FloatArray  # (n,), h
    square: FloatArray  # (n,), the diagonal of Γ_ww: sizes before anything was projected out


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Posterior of the m active weights, and sparsity S and quality Q of all n candidates."""

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
    gain: float  # of the log evidence less the size prior


def gram_model(expansion: Expansion) -> GramModel:
    """Integrate the thresholds out of a second-order expansion."""
    n = len(expansion.weights)
    cross = expansion.precision[:n, n:]
    projected = factorise(expansion.precision[n:, n:]).solve(cross.T)
    square = np.diag(expansion.precision)[:n].copy()
    gram = expansion.precision[:n, :n] - cross @ projected
    gram = 0.5 * (gram + gram.T)
    gradient = expansion.gradient[:n] - projected.T @ expansion.gradient[n:]
    return GramModel(gram, gram @ expansion.weights + gradient, square)


def condition(model: GramModel, active: IntArray, alpha: FloatArray) -> Gaussian:
    """Return the posterior for an active set, from a fresh factorisation."""
    if not len(active):
        empty = np.zeros(0)
        return Gaussian(
            active, alpha, np.zeros((0, 0)), empty, np.diag(model.gram).copy(), model.linear.copy()
        )
    inside = model.gram[np.ix_(active, active)]
    covariance = factorise(inside + np.diag(alpha)).inverse()
    mean = covariance @ model.linear[active]
    columns = model.gram[:, active]
    sparsity = np.diag(model.gram) - np.einsum("ij,ij->i", columns @ covariance, columns)
    quality = model.linear - columns @ mean
    return Gaussian(active, alpha, covariance, mean, sparsity, quality)


def quadratic_log_evidence(model: GramModel, state: Gaussian) -> float:
    """Return the log evidence of the quadratic model, up to a constant of the model."""
    inside = model.gram[np.ix_(state.active, state.active)] + np.diag(state.alpha)
    return 0.5 * float(
        model.linear[state.active] @ state.mean
        + np.log(state.alpha).sum()
        - (factorise(inside).log_determinant if len(state.active) else 0.0)
    )


def residual(model: GramModel, state: Gaussian) -> float:
    """Return how far Σ and μ have drifted: the error of Σ⁻¹μ = h and of ΣΣ⁻¹ = 1 along one vector.

    Relative to the sizes of the terms, so that it reads as a number of lost digits.
    """
    if not len(state.active):
        return 0.0
    columns = model.gram[state.active][:, state.active]
    columns[np.diag_indices_from(columns)] += state.alpha
    size = np.sqrt(np.diag(columns))
    probe = np.where(np.arange(len(size)) % 2, -1.0, 1.0) / size
    mean_error = np.abs(columns @ state.mean - model.linear[state.active]) / size
    covariance_error = np.abs(state.covariance @ (columns @ probe) - probe) * size
    scale = 1.0 + np.abs(state.mean * size).max()
    return float(max(mean_error.max() / scale, covariance_error.max()))


def optimal_precision(s: FloatArray, q: FloatArray) -> FloatArray:
    """Return the precision that maximises the evidence, infinite where the function should leave."""
    excess = q**2 - s
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(excess > 0.0, s**2 / np.where(excess > 0.0, excess, 1.0), np.inf)


def best_move(
    model: GramModel, state: Gaussian, *, size_prior: float = 0.0, may_add: bool = True
) -> Move | None:
    """Return the move of the largest gain, ties to the lowest candidate; None if nothing is possible."""
    best: Move | None = None
    if may_add:
        best = _best_addition(model, state, size_prior)
    if len(state.active):
        inside = _best_inside(state, size_prior)
        if best is None or inside.gain >= best.gain:
            best = inside
    return best


def _best_addition(model: GramModel, state: Gaussian, size_prior: float) -> Move | None:
    s, q = state.sparsity, state.quality
    ratio = np.where(s > _COLLINEAR * model.square, q**2 / np.where(s > 0.0, s, 1.0), 0.0)
    ratio[state.active] = 0.0
    # The gain ½(x - 1 - ln x) rises with x = Q²/S, so the best candidate has the largest ratio.
    j = int(np.argmax(ratio)) if len(ratio) else -1
    if j < 0 or ratio[j] <= 1.0:
        return None
    gain = 0.5 * float(ratio[j] - 1.0 - np.log(ratio[j])) - size_prior
    alpha = float(s[j] / (ratio[j] - 1.0))
    return Move("add", j, alpha, gain)


def _best_inside(state: Gaussian, size_prior: float) -> Move:
    variance, mean, alpha = np.diag(state.covariance), state.mean, state.alpha
    deletion = -0.5 * (mean**2 / variance + np.log(alpha * variance)) + size_prior
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


def add(model: GramModel, state: Gaussian, j: int, alpha: float) -> Gaussian:
    """Take candidate j into the model with precision alpha."""
    towards = state.covariance @ model.gram[state.active, j]
    column = model.gram[:, j] - model.gram[:, state.active] @ towards
    variance = 1.0 / (alpha + state.sparsity[j])
    mean = variance * state.quality[j]
    m = len(state.active)
    covariance = np.empty((m + 1, m + 1))
    covariance[:m, :m] = state.covariance + variance * np.outer(towards, towards)
    covariance[m, :m] = covariance[:m, m] = -variance * towards
    covariance[m, m] = variance
    return Gaussian(
        np.append(state.active, j),
        np.append(state.alpha, alpha),
        covariance,
        np.append(state.mean - mean * towards, mean),
        state.sparsity - variance * column**2,
        state.quality - mean * column,
    )


def reestimate(model: GramModel, state: Gaussian, j: int, alpha: float) -> Gaussian:
    """Give active candidate j another precision."""
    i = _position(state, j)
    change = alpha - state.alpha[i]
    rate = change / (1.0 + change * state.covariance[i, i])
    alphas = state.alpha.copy()
    alphas[i] = alpha
    return replace(_release(model, state, i, rate), alpha=alphas)


def delete(model: GramModel, state: Gaussian, j: int) -> Gaussian:
    """Take active candidate j out of the model."""
    i = _position(state, j)
    state = _release(model, state, i, 1.0 / state.covariance[i, i])
    rest = np.flatnonzero(np.arange(len(state.active)) != i)
    return replace(
        state,
        active=state.active[rest],
        alpha=state.alpha[rest],
        covariance=state.covariance[np.ix_(rest, rest)],
        mean=state.mean[rest],
    )


def _position(state: Gaussian, j: int) -> int:
    return int(np.flatnonzero(state.active == j)[0])


def _release(model: GramModel, state: Gaussian, i: int, rate: float) -> Gaussian:
    """Subtract rate · Σ_i Σ_iᵀ from Σ: the common part of reestimation and deletion."""
    covariance_column = state.covariance[:, i]
    column = model.gram[:, state.active] @ covariance_column
    shift = rate * state.mean[i]
    return replace(
        state,
        covariance=state.covariance - rate * np.outer(covariance_column, covariance_column),
        mean=state.mean - shift * covariance_column,
        sparsity=state.sparsity + rate * column**2,
        quality=state.quality + shift * column,
    )
