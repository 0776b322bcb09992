r"""The ordinal probit likelihood and its derivatives in the latent score and the thresholds.

(`isbor.search.adaptive.compiled_training` has a compiled twin of the gradient, in single precision.)

Label k means that the latent response, score plus noise, lies between two thresholds. Its probability is

.. math:: p = \Psi(z_1) - \Psi(z_2), \qquad z_1 = (b_k - f)/\sigma, \quad z_2 = (b_{k-1} - f)/\sigma .

Let z be a standard normal variable truncated to (z2, z1), let :math:`g_i = n(z_i)/p` be the density at each
edge divided by p, and let

.. math:: c_1 = g_1\,(z_1 - \mathrm{E} z), \qquad c_2 = g_2\,(\mathrm{E} z - z_2).

None of g1, g2, c1, c2 is negative. For σ = 1 (else divide first derivatives by σ, second ones by σ²), the
first derivatives are

.. math::
    \partial \ln p/\partial f = \mathrm{E} z, \qquad
    \partial \ln p/\partial b_k = g_1, \qquad \partial \ln p/\partial b_{k-1} = -g_2,

and the negated Hessian in (f, b_k, b_{k-1}) is the Laplacian of a triangle with edge weights c1 (f to
b_k), c2 (f to b_{k-1}) and g1 g2 (b_k to b_{k-1}):

.. math::
    \begin{pmatrix} c_1 + c_2 & -c_1 & -c_2 \\ -c_1 & c_1 + g_1 g_2 & -g_1 g_2 \\
                    -c_2 & -g_1 g_2 & c_2 + g_1 g_2 \end{pmatrix}.

A Laplacian with nonnegative weights is positive semidefinite, so ln p is jointly concave. A common shift of f
and b leaves it unchanged. In particular
:math:`H = -\partial^2 \ln p/\partial f^2 = c_1 + c_2 = 1 - \mathrm{Var}\,z`.

Third derivatives. With :math:`e_1 = z_1 - \mathrm{E} z`, :math:`e_2 = \mathrm{E} z - z_2` and V = Var z, the
derivatives of the edge weights in the score are

.. math::
    \partial_f c_1 = g_1 (e_1^2 - V), \qquad \partial_f c_2 = -g_2 (e_2^2 - V), \qquad
    \partial_f (g_1 g_2) = g_1 g_2 (e_1 - e_2),

because the derivative of the mean of any function h of z in the upper end of the interval is
:math:`g_1 (h(z_1) - \mathrm{E} h)`, and likewise for the lower end.

Numerics. p can underflow, and the difference cancels, so p is never computed. By symmetry, the interval is
reflected such that its middle is nonnegative; "near" is then the edge closer to zero, "far" the other one.

* Narrow intervals: 8-node Gauss-Legendre quadrature of the density relative to the middle.
* All others, including the half-lines of the two end classes: with the Mills ratio
  R(a) = erfcx(a/√2) √(π/2), the mean excess of a normal variable beyond a is m(a) = 1/R(a) - a. A share
  π = exp(-gap · middle) R(far)/R(near) of the tail beyond the near edge lies beyond the far edge. Removing it
  leaves E z - near = m(near) - π d/(1 - π) with d = gap + m(far) - m(near). Beyond a = 50, where 1/R(a) - a
  cancels, m is computed by its asymptotic series.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, log_ndtr

from isbor._core.types import FloatArray, IntArray

__all__ = ["Derivatives", "EdgeSlopes", "edge_slopes", "edges", "ordinal_probit", "scatter_edges"]

NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)
# Columns: the mass, and the first moment of the distance from the near edge, in units of half the gap.
_QUADRATURE = np.stack([NODE_WEIGHTS, NODE_WEIGHTS * (1.0 + NODES)], axis=1)
NARROW_EXPONENT = 1.0  # largest change of the log density across a narrow interval
_ASYMPTOTIC = 50.0
LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)


@dataclass(frozen=True, slots=True)
class Derivatives:
    """ln p of each row and the parts of its first and second derivatives, each of shape (n,)."""

    log_p: FloatArray
    slope: FloatArray  # ∂ ln p/∂f
    upper: FloatArray  # ∂ ln p/∂(upper threshold), g1
    lower: FloatArray  # -∂ ln p/∂(lower threshold), g2
    upper_curvature: FloatArray  # ∂² ln p/∂f∂(upper threshold), c1
    lower_curvature: FloatArray  # the same for the lower threshold, c2

    @property
    def curvature(self) -> FloatArray:
        """-∂² ln p/∂f², between 0 and 1/σ²."""
        return self.upper_curvature + self.lower_curvature

    def at_scale(self, scale: float | FloatArray) -> "Derivatives":
        """Return the derivatives in scores and thresholds, given those in scores and thresholds / scale."""
        return Derivatives(
            self.log_p,
            self.slope / scale,
            self.upper / scale,
            self.lower / scale,
            self.upper_curvature / scale**2,
            self.lower_curvature / scale**2,
        )


def edges(thresholds: FloatArray) -> FloatArray:
    """Return the thresholds with ±∞ at both ends: level k lies between edges k and k + 1 (k from 0)."""
    return np.concatenate(([-np.inf], thresholds, [np.inf]))


def scatter_edges(into: FloatArray, y: IntArray, lower: FloatArray, upper: FloatArray) -> None:
    """Write the values of each row's lower and upper edge to the columns of these edges.

    `into`, (n, r + 1) or wider, has one column for each of `edges`; labels are 0 … r-1.
    """
    row = np.arange(len(y))
    into[row, y] = lower
    into[row, y + 1] = upper


@dataclass(frozen=True, slots=True)
class EdgeSlopes:
    """Derivatives of the edge weights in f, each of shape (n,); for noise of variance 1."""

    upper: FloatArray  # of c1
    lower: FloatArray  # of c2
    tie: FloatArray  # of g1 g2


def edge_slopes(at: Derivatives, above: FloatArray, below: FloatArray, variance: FloatArray) -> EdgeSlopes:
    """Return the third derivatives from e1 ("above"), e2 ("below") and V; for noise of variance 1.

    Pass zero for e1 or e2 where the edge is infinite: g is zero there.
    """
    return EdgeSlopes(
        at.upper * (above**2 - variance),
        -at.lower * (below**2 - variance),
        at.upper * at.lower * (above - below),
    )


def ordinal_probit(
    f: FloatArray, lower: FloatArray, upper: FloatArray, *, scale: float | FloatArray | None = None
) -> Derivatives:
    """Return ln p(lower < f + noise ≤ upper) and its derivatives for each row.

    `lower` may be -inf or `upper` may be inf, but not both in one row. `scale` is the standard deviation of
    the noise, 1 by default. Accurate to 1e-8 for |f| ≤ 1e3 and gaps ≥ 1e-8 (in units of the scale).
    """
    if scale is not None:
        return ordinal_probit(f / scale, lower / scale, upper / scale).at_scale(scale)
    z1, z2 = upper - f, lower - f
    mirrored = z1 + z2 < 0.0
    near = np.where(mirrored, -z1, z2)
    # From the thresholds themselves: z1 - z2 loses digits where |f| is large.
    gap = upper - lower
    middle = near + 0.5 * gap
    narrow = gap * np.maximum(1.0, middle) < NARROW_EXPONENT

    log_p, near_density, far_density, excess = (np.empty_like(z1) for _ in range(4))
    for chosen, evaluate in ((narrow, _by_quadrature), (~narrow, _by_tails)):
        rows = np.flatnonzero(chosen)
        if rows.size:
            log_p[rows], near_density[rows], far_density[rows], excess[rows] = evaluate(near[rows], gap[rows])
    near_curvature = near_density * excess
    with np.errstate(invalid="ignore"):  # 0 · ∞ where the far edge is infinite
        far_curvature = np.where(np.isinf(gap), 0.0, far_density * (gap - excess))
    # H = 1 - Var z is at most 1 but for rounding.
    excess_curvature = np.maximum(near_curvature + far_curvature, 1.0)
    near_curvature /= excess_curvature
    far_curvature /= excess_curvature
    slope = near + excess
    return Derivatives(
        log_p,
        np.where(mirrored, -slope, slope),
        np.where(mirrored, near_density, far_density),
        np.where(mirrored, far_density, near_density),
        np.where(mirrored, near_curvature, far_curvature),
        np.where(mirrored, far_curvature, near_curvature),
    )


_Parts = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def _by_quadrature(near: FloatArray, gap: FloatArray) -> _Parts:
    """Return ln p, the densities at both edges and E z - near, for narrow intervals with middle ≥ 0."""
    half = 0.5 * gap
    middle = near + half
    t = half[:, None] * NODES
    density = np.exp(-t * (middle[:, None] + 0.5 * t))
    mass, moment = (density @ _QUADRATURE).T
    log_p = np.log(half * mass) - 0.5 * middle**2 - LOG_SQRT_2PI
    bend = np.exp(-0.5 * half**2) / (half * mass)
    tilt = np.exp(middle * half)
    return log_p, bend * tilt, bend / tilt, half * moment / mass


def _by_tails(near: FloatArray, gap: FloatArray) -> _Parts:
    """Return the same as `_by_quadrature` for wide intervals and half-lines (gap infinite)."""
    mills, excess = _tail(near)
    log_p = log_ndtr(-near)
    near_density = near + excess
    far_density = np.zeros_like(near)
    two_sided = np.flatnonzero(np.isfinite(gap))
    if two_sided.size:
        a, width = near[two_sided], gap[two_sided]
        far = a + width
        far_mills, far_excess = _tail(far)
        share = np.exp(-width * (a + 0.5 * width)) * (far_mills / mills[two_sided])
        rest = 1.0 - share
        log_p[two_sided] += np.log1p(-share)
        near_density[two_sided] /= rest
        far_density[two_sided] = share * (far + far_excess) / rest
        excess[two_sided] -= share * (width + far_excess - excess[two_sided]) / rest
    return log_p, near_density, far_density, excess


def _tail(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the Mills ratio and the mean excess E[z - a | z > a]; below a ≈ -37 these are ∞ and -a."""
    with np.errstate(over="ignore"):
        mills = np.sqrt(0.5 * np.pi) * erfcx(a * np.sqrt(0.5))
    excess = 1.0 / mills - a
    remote = np.flatnonzero(a > _ASYMPTOTIC)
    if remote.size:
        x = a[remote]
        u = 1.0 / x**2
        excess[remote] = (1.0 - u * (2.0 - u * (10.0 - u * (74.0 - u * 706.0)))) / x
    return mills, excess
