r"""The gradient of the log evidence in centres, metrics and prior precisions, compiled.

The log evidence L (see `isbor.inference.mode`) depends on the parameters of the functions through their
values Φ, and through the mode (w, b), which depends on Φ. With P the posterior precision of (w, b), Σ = P⁻¹,

.. math::
    dL = \underbrace{\delta^\top d\Phi\, w}_{d\ell}
       - \tfrac12 \operatorname{tr}(\Sigma\, dP)\big|_{w,b}
       + \tau^\top d(w, b), \qquad
    \tau = -\tfrac12 \operatorname{tr}\Big(\Sigma \frac{\partial P}{\partial (w, b)}\Big), \quad
    d(w, b) = \Sigma\, d\nabla_{(w,b)} \ln p(w, b \mid y) .

P is a sum over rows of Laplacians with edge weights c1, c2 and g1 g2 (see `isbor.model.likelihood`), so
tr(ΣP) is a sum of edge weights times posterior variances of differences,

.. math::
    \operatorname{tr}(\Sigma P)
    = \sum_n c_1 V(f - b_k) + c_2 V(f - b_{k-1}) + g_1 g_2 V(b_k - b_{k-1}) + \dots

Beyond second derivatives, only the slopes of the edge weights are needed (third derivatives of ln p, see
there). They are given for noise of standard deviation 1; for noise of standard deviation s, f and b are in
units of s, and the slopes get a factor 1/s³.
With t_n the part of τ that comes from the score of row n, u = Στ, H the curvature and G the mixed
derivatives -∂²ln p/∂f∂b,

.. math::
    \frac{\partial L}{\partial \Phi} = \delta (w + u_w)^\top + (t - H \circ \Phi u_w - G u_b)\, w^\top
        - (H \circ \Phi \Sigma_{ww} + G \Sigma_{bw}),
    \qquad
    \frac{\partial L}{\partial \ln \alpha_m} =
        \tfrac12 \big(1 - \alpha_m (\Sigma_{mm} + w_m^2)\big) - \alpha_m w_m u_m .

The gradients in centres and metrics follow by the chain rule, with one matrix product (the arguments are
linear in (x², x, 1)). The prior precision β of the thresholds and the offsets of the functions are held
fixed, and all rows have the same thresholds. All terms are sums over rows, computed in two passes. The first
keeps Σ_ww φ for the second.
"""

from typing import NamedTuple

import numpy as np

from isbor._core.compiled import inlined, inner
from isbor._core.types import BoolArray, FloatArray
from isbor.inference.compiled_expansion import Block, Sums, likelihood_terms
from isbor.inference.compiled_mode import posterior_covariance
from isbor.model.compiled_basis import parameter_gradient
from isbor.model.compiled_cuts import combined
from isbor.model.compiled_likelihood import Terms

__all__ = ["evidence_gradient"]


class _Covariances(NamedTuple):
    """Posterior covariances of weights and thresholds; the infinite thresholds at both ends have none."""

    weights: FloatArray  # (m, m), Σ_ww
    across: FloatArray  # (r + 1, m), Σ_bw
    between: FloatArray  # (r + 1, r + 1), Σ_bb


class _PerRow(NamedTuple):
    """What the second pass needs of the first, times the weight of the row."""

    slope: FloatArray  # (n,), δ
    upper_curvature: FloatArray  # (n,)
    lower_curvature: FloatArray  # (n,)
    by_trace: FloatArray  # (n,), t
    spread: FloatArray  # (m, n), Σ_ww φ


@inner
def _trace_terms(
    at: Terms, i: int, z1: float, z2: float, v1: float, v2: float, v12: float
) -> tuple[float, float, float]:
    """Return the derivatives of -½ tr(ΣP) of row i in its score and thresholds, for noise of variance 1.

    `v1`, `v2` and `v12` are the posterior variances of f - b_k, f - b_{k-1} and b_k - b_{k-1}, held fixed.
    """
    mean, g1, g2, c1 = at.mean[i], at.upper[i], at.lower[i], at.upper_curvature[i]
    # Zero instead of infinity if there is no threshold: g is zero there.
    above, below = z1 < np.inf, z2 > -np.inf
    e1, e2 = (z1 - mean if above else 0.0), (mean - z2 if below else 0.0)
    variance, tie = 1.0 - c1 - at.lower_curvature[i], g1 * g2
    latent = g1 * (e1 * e1 - variance) * v1 - g2 * (e2 * e2 - variance) * v2 + tie * (e1 - e2) * v12
    upper = (
        (g1 * (1.0 - c1) - (c1 + tie) * e1) * v1
        + (g2 * c1 - tie * e2) * v2
        - (c1 * g2 + tie * g2 + g1 * tie) * v12
    )
    # A common shift of score and thresholds changes nothing, so the three derivatives sum to zero.
    lower = -latent - upper
    return -0.5 * latent, (-0.5 * upper if above else 0.0), (-0.5 * lower if below else 0.0)


@inner
def _trace_slopes(
    block: Block, weights: FloatArray, edge: FloatArray, covariances: _Covariances, tau: FloatArray
) -> _PerRow:
    """Add the block to τ, (m + r-1,), and return what the second pass needs."""
    m_all, n = block.values.shape
    t = len(edge) - 2
    f = combined(weights, block.values)
    spread = np.dot(covariances.weights, block.values)
    towards = np.dot(covariances.across, block.values)
    variance = np.zeros(n)
    for m in range(m_all):
        for i in range(n):
            variance[i] += spread[m, i] * block.values[m, i]
    slope, upper, lower, by_trace = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    between = covariances.between
    z1, z2, at = likelihood_terms(block.y, f, block.noise_scale, block.gap_factors, edge)
    for i in range(n):
        k, v, s = block.y[i], block.weight[i], block.noise_scale[i]
        v1 = variance[i] - 2.0 * towards[k + 1, i] + between[k + 1, k + 1]
        v2 = variance[i] - 2.0 * towards[k, i] + between[k, k]
        v12 = between[k + 1, k + 1] + between[k, k] - 2.0 * between[k, k + 1]
        by_score, by_upper, by_lower = _trace_terms(at, i, z1[i], z2[i], v1, v2, v12)
        factor = v / (s * s * s)
        by_trace[i] = factor * by_score
        if k < t:
            tau[m_all + k] += factor * by_upper
        if k > 0:
            tau[m_all + k - 1] += factor * by_lower
        slope[i] = v * at.mean[i] / s
        upper[i] = v * at.upper_curvature[i] / (s * s)
        lower[i] = v * at.lower_curvature[i] / (s * s)
    by_weight = np.dot(block.values, by_trace)
    for m in range(m_all):
        tau[m] += by_weight[m]
    return _PerRow(slope, upper, lower, by_trace, spread)


@inner
def _by_argument(
    block: Block,
    per_row: _PerRow,
    weights: FloatArray,
    across: FloatArray,
    pull: FloatArray,
    ramp: BoolArray,
    offset: FloatArray,
) -> FloatArray:
    """Return the derivatives of the log evidence in the arguments of the functions, (m, n).

    `pull` is u = Στ.
    """
    m_all, n = block.values.shape
    t = len(pull) - m_all
    # -H, and the mixed derivatives with each threshold; those with the infinite ones are zero.
    bend, mixed = np.empty(n), np.zeros((t + 2, n))
    by_score = combined(pull[:m_all], block.values)
    for i in range(n):
        k, upper, lower = block.y[i], per_row.upper_curvature[i], per_row.lower_curvature[i]
        bend[i], mixed[k + 1, i], mixed[k, i] = -(upper + lower), upper, lower
        total = per_row.by_trace[i] + bend[i] * by_score[i]
        if k < t:
            total += upper * pull[m_all + k]
        if k > 0:
            total += lower * pull[m_all + k - 1]
        by_score[i] = total
    by: FloatArray = np.dot(across.T, mixed)
    for m in range(m_all):
        w, moved, o, row = weights[m], weights[m] + pull[m], offset[m], by[m]
        spread, values = per_row.spread[m], block.values[m]
        for i in range(n):
            row[i] += per_row.slope[i] * moved + by_score[i] * w + bend[i] * spread[i]
        if ramp[m]:
            for i in range(n):
                row[i] *= 1.0 - (values[i] + o) * (values[i] + o)
        else:
            for i in range(n):
                row[i] *= values[i] + o
    return by


@inlined
def evidence_gradient(
    block: Block,
    powers: FloatArray,
    centres: FloatArray,
    metric: FloatArray,
    ramp: BoolArray,
    offset: FloatArray,
    alpha: FloatArray,
    theta: FloatArray,
    sums: Sums,
    beta: float,
) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
    """Return the gradient in centres, metric, (m, d) each, and ln α, and whether functions are resolved.

    θ = (w, b) is the mode, and `sums` are those of the expansion there; `powers` are those of the rows.
    """
    m, t = len(alpha), len(theta) - len(alpha)
    prior, edge = np.empty(m + t), np.empty(t + 2)
    weights = theta[:m]
    for i in range(m):
        prior[i] = alpha[i]
    edge[0], edge[t + 1] = -np.inf, np.inf
    for k in range(t):
        prior[m + k], edge[k + 1] = beta, theta[m + k]
    covariance, resolved = posterior_covariance(sums.precision, prior)
    if not resolved:
        return centres, metric, alpha, False
    across, between = np.zeros((t + 2, m)), np.zeros((t + 2, t + 2))
    inside, tau = np.empty((m, m)), np.zeros(m + t)
    for i in range(m):
        for k in range(m):
            inside[i, k] = covariance[i, k]
    for i in range(t):
        for k in range(m):
            across[i + 1, k] = covariance[m + i, k]
        for k in range(t):
            between[i + 1, k + 1] = covariance[m + i, m + k]
    per_row = _trace_slopes(block, weights, edge, _Covariances(inside, across, between), tau)
    pull = np.dot(covariance, tau)
    by = _by_argument(block, per_row, weights, across, pull, ramp, offset)
    by_centre, by_metric = parameter_gradient(centres, metric, ramp, np.dot(by, powers.T))
    by_log_alpha = np.empty(m)
    for k in range(m):
        w = weights[k]
        by_log_alpha[k] = 0.5 * (1.0 - alpha[k] * (inside[k, k] + w * w)) - alpha[k] * w * pull[k]
    return by_centre, by_metric, by_log_alpha, True
