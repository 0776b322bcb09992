r"""The gradient of the log evidence in centres, metrics and prior precisions.

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
fixed. All terms are sums over rows, computed in two passes over blocks.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isbor._core.linalg import factorise
from isbor._core.parallel import Workers, row_blocks
from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.inference.expansion import Columns
from isbor.inference.mode import Mode, posterior_precision
from isbor.model.basis import Functions, monomials
from isbor.model.likelihood import Derivatives, edge_slopes, edges, ordinal_probit, scatter_edges

__all__ = ["EvidenceGradient", "evidence_gradient"]


@dataclass(frozen=True, slots=True)
class EvidenceGradient:
    """Derivatives of the log evidence in the parameters of each function."""

    centres: FloatArray  # (m, d)
    metric: FloatArray  # (m, d)
    log_alpha: FloatArray  # (m,)


def evidence_gradient(
    rows: TrainingRows,
    functions: Functions,
    columns: Columns,
    mode: Mode,
    workers: Workers,
    noise_scale: FloatArray | None = None,
) -> EvidenceGradient:
    """Return the gradient of the log evidence at a mode; `columns` are the values of the functions.

    `noise_scale`, (n,), is the standard deviation of each row's noise; None means 1.
    """
    m, t = len(functions), len(mode.thresholds)
    w, edge = mode.weights, edges(mode.thresholds)
    covariance = factorise(posterior_precision(mode)).inverse()
    inside = covariance[:m, :m]
    # The infinite thresholds at both ends have no variance: their terms vanish.
    across = np.zeros((m, t + 2))
    across[:, 1:-1] = covariance[:m, m:]
    between = np.zeros((t + 2, t + 2))
    between[1:-1, 1:-1] = covariance[m:, m:]

    def first(block: slice) -> tuple[FloatArray, FloatArray, _Rows]:
        phi = columns(block)
        y, v = rows.y[block], rows.weight[block]
        scale = 1.0 if noise_scale is None else noise_scale[block]
        f = phi @ w
        z1, z2 = (edge[y + 1] - f) / scale, (edge[y] - f) / scale
        unit = ordinal_probit(f / scale, edge[y] / scale, edge[y + 1] / scale)
        variance = np.einsum("ij,ij->i", phi @ inside, phi)
        slopes = _slopes(unit, z1, z2, y, variance, phi @ across, between)
        for slope in slopes:
            slope *= v / scale**3
        by_threshold = np.zeros(t)
        by_threshold += np.bincount(y, slopes.upper, minlength=t + 1)[:-1]
        by_threshold += np.bincount(y, slopes.lower, minlength=t + 1)[1:]
        at = unit.at_scale(scale)
        per_row = _Rows(v * at.slope, v * at.upper_curvature, v * at.lower_curvature, slopes.latent)
        return phi.T @ slopes.latent, by_threshold, per_row

    tau = np.zeros(m + t)
    blocks = row_blocks(len(rows), 2 * m)
    kept: dict[int, _Rows] = {}
    for block, (by_weight, by_threshold, per_row) in zip(blocks, workers.map(first, blocks), strict=True):
        tau[:m] += by_weight
        tau[m:] += by_threshold
        kept[block.start] = per_row
    u = covariance @ tau
    u_w, u_b = u[:m], np.concatenate([[0.0], u[m:], [0.0]])
    # ∂L/∂Φ = left · right. The columns of `left` are -HΦ, the mixed derivatives with each threshold, the
    # slope δ, and the factor of w.
    right = np.vstack([inside, across.T, w + u_w, w])

    def second(block: slice) -> FloatArray:
        phi = columns(block)
        y, per_row = rows.y[block], kept[block.start]
        upper, lower = per_row.upper_curvature, per_row.lower_curvature
        left = np.zeros((len(y), m + t + 4), order="F")
        np.multiply(phi, -(upper + lower)[:, None], out=left[:, :m])
        scatter_edges(left[:, m:], y, lower, upper)
        left[:, -2] = per_row.slope
        left[:, -1] = per_row.by_trace + left[:, :m] @ u_w + upper * u_b[y + 1] + lower * u_b[y]
        by_value = right.T @ left.T
        phi += functions.offset
        by_value *= functions.slopes(phi.T)
        product: FloatArray = by_value @ monomials(rows.X[block]).T
        return product

    by_coefficient = np.zeros((m, 2 * rows.X.shape[1] + 1))
    for part in workers.map(second, blocks):
        by_coefficient += part
    centres, metric = functions.parameter_gradient(by_coefficient)
    alpha = mode.alpha
    log_alpha = 0.5 * (1.0 - alpha * (np.diag(inside) + w**2)) - alpha * w * u_w
    return EvidenceGradient(centres, metric, log_alpha)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Values of each row that the second pass needs, times the weight of the row."""

    slope: FloatArray  # δ
    upper_curvature: FloatArray
    lower_curvature: FloatArray
    by_trace: FloatArray  # t


class _Slopes(NamedTuple):
    """Derivatives of -½ tr(ΣP) in the score and the two thresholds of each row, each of shape (n,)."""

    latent: FloatArray
    upper: FloatArray
    lower: FloatArray


def _slopes(
    at: Derivatives,
    z1: FloatArray,
    z2: FloatArray,
    y: IntArray,
    variance: FloatArray,
    covariance: FloatArray,
    between: FloatArray,
) -> _Slopes:
    """Return the derivatives for noise of variance 1, with the posterior (co)variances held fixed."""
    row = np.arange(len(y))
    v1 = variance - 2.0 * covariance[row, y + 1] + between[y + 1, y + 1]
    v2 = variance - 2.0 * covariance[row, y] + between[y, y]
    v12 = between[y + 1, y + 1] + between[y, y] - 2.0 * between[y, y + 1]
    g1, g2, c1 = at.upper, at.lower, at.upper_curvature
    # Zero instead of infinity if there is no threshold: g is zero there.
    above, below = np.isfinite(z1), np.isfinite(z2)
    e1 = np.where(above, z1 - at.slope, 0.0)
    e2 = np.where(below, at.slope - z2, 0.0)
    tie = g1 * g2
    slopes = edge_slopes(at, e1, e2, 1.0 - c1 - at.lower_curvature)
    latent = slopes.upper * v1 + slopes.lower * v2 + slopes.tie * v12
    upper = (
        (g1 * (1.0 - c1) - (c1 + tie) * e1) * v1
        + (g2 * c1 - tie * e2) * v2
        - (c1 * g2 + tie * g2 + g1 * tie) * v12
    )
    # A common shift of score and thresholds changes nothing, so the three derivatives sum to zero.
    lower = -latent - upper
    return _Slopes(-0.5 * latent, np.where(above, -0.5 * upper, 0.0), np.where(below, -0.5 * lower, 0.0))
