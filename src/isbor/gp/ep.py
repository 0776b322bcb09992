r"""Expectation propagation for a Gaussian process with ordered labels.

The likelihood of each row is replaced by a Gaussian factor (s, ν) of `isbor.gp.process`. It is chosen such
that replacing it by the likelihood itself would change neither the mean nor the variance of the row's score.

**Cavity.** Without its own factor, the score of row i is :math:`N(\mu_i, c_i)`. With the diagonal C of
:math:`B^{-1}`, the posterior variance Σ_ii and the coefficients α of the posterior mean,

.. math::
    C_i = \frac1{1 + s_i c_i} = 1 - s_i \Sigma_{ii}, \qquad
    c_i = \frac{\Sigma_{ii}}{C_i} = \frac{1 - C_i}{s_i C_i}, \qquad \mu_i = (K\alpha)_i - c_i \alpha_i .

The second form of c cancels if a factor is weak; then the first form with
:math:`\Sigma_{ii} = s_i^{-1/2} \sum_j (B^{-1})_{ij} s_j^{1/2} K_{ij}` is used.

**Tilted distribution.** This is the cavity times the likelihood to the power of the row's weight. With

.. math::
    \hat Z_i(\mu, c) = \int p_i(f)^{v_i} N(f \mid \mu, c)\, df, \qquad
    g = \frac{\partial \ln \hat Z}{\partial \mu}, \qquad h = -\frac{\partial^2 \ln \hat Z}{\partial \mu^2}

it has mean μ + cg and variance c(1 - ch), and the factor with these moments is

.. math:: s = \frac{h}{1 - ch} \ge 0, \qquad \nu = \frac{g + h\mu}{1 - ch} .

At the fixed point, α = g. For weight 1, the integral is an ordinal probit with noise variance 1 + c; other
weights need quadrature.

**Evidence.** In terms of cavities and coefficients, the approximation of ln p(y) is

.. math::
    L = \sum_i \ln \hat Z_i(\mu_i, c_i) - \tfrac12 \alpha^\top \mu
        - \tfrac12 \ln|B| - \tfrac12 \sum_i \ln C_i .

(It follows from the usual form with ν = α/C + sμ, for which all squares cancel.) It is stationary in the
factors, so its gradient is that for fixed factors and cavities: ½ (ααᵀ - R) in K, and the sum of
:math:`\partial \ln \hat Z_i/\partial b` in a threshold. For one row, L is exact.

**Iteration.** All factors are updated at once, then the posterior. If rows are redundant, this overshoots,
and the mismatch m of means and variances changes sign from round to round. If the next mismatch were λm, a
step of length 1/(1 - λ) would remove it. So this step length is used, estimated from the last two rounds
(Aitken's relaxation).

**Quadrature.** :math:`\phi(f) = v \ln p(f) - (f - \mu)^2/2c` is concave. It bends near its mode, on the scale
given by its curvature there, and where the power of the likelihood falls off: :math:`\sqrt{2 \ln v}` inside
of a threshold, on a scale of 1 over that distance (or 1, for small weights). So the panels of Gauss-Legendre
quadrature are as long as their distance from the nearest of these places, or as its scale. Derivatives are
means under the tilted distribution,

.. math::
    g = v\, \mathrm{E}\delta = \frac{\mathrm{E}f - \mu}{c}, \qquad
    h = v\, \mathrm{E}H - v^2 \operatorname{Var} \delta
        = \frac1c \Big(1 - \frac{\operatorname{Var} f}{c}\Big), \qquad
    \frac{\partial \ln \hat Z}{\partial b_k} = v\, \mathrm{E} g_1 ,

where the second forms are accurate if the likelihood is informative, the first ones if it is not.
"""

from dataclasses import dataclass, fields

import numpy as np
from scipy.linalg import blas

from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.gp.process import Evidence, ProcessPosterior, process_posterior, sum_by_threshold
from isbor.model.likelihood import Derivatives, edges, ordinal_probit

__all__ = ["Tilted", "expectation_propagation", "tilted"]

_PATIENCE = 10  # unsuccessful rounds after which the maximal step length is halved
_SHORTEST_STEP = 0.1  # the iteration ends when the maximal step length is below this
_TOLERANCE = 1e-6  # largest mismatch at convergence
_ROUNDING = 1e-4  # a mismatch this small that no longer decreases is a rounding error
_WEAKEST = 1e-200  # precision of a factor without information; its square root must not underflow

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
_DEPTH = 40.0  # where φ is this far below its peak, the mass is negligible


def expectation_propagation(
    gram: FloatArray, rows: TrainingRows, thresholds: FloatArray, start: ProcessPosterior | None = None
) -> Evidence:
    """Return the approximate log evidence by expectation propagation, with its gradient."""
    edge = edges(thresholds)
    low, high = edge[rows.y], edge[rows.y + 1]
    precision, linear = (np.full(len(rows), _WEAKEST), np.zeros(len(rows)))
    if start is not None:
        precision, linear = start.precision, start.linear
    longest, step, least, n_unsuccessful = 1.0, 1.0, np.inf, 0
    before: FloatArray | None = None
    while True:
        posterior = process_posterior(gram, precision, linear)
        inverse = posterior.inverse()
        cavity = _cavity(gram, posterior, inverse)
        at = tilted(cavity.mean, cavity.variance, low, high, rows.weight)
        rest = 1.0 - cavity.variance * at.curvature
        mismatch = _mismatch(posterior, cavity, at, rest)
        largest = float(np.abs(mismatch).max())
        least, n_unsuccessful = (largest, 0) if largest < least else (least, n_unsuccessful + 1)
        if n_unsuccessful == _PATIENCE:
            longest, n_unsuccessful = (0.5 * longest if least > _ROUNDING else 0.0), 0
        if largest < _TOLERANCE or longest < _SHORTEST_STEP:
            break
        if before is not None and np.any(before != mismatch):
            change = before - mismatch
            share = step * float(before @ change) / float(change @ change)
            step = min(max(share, 0.2 * longest), longest, 1.5 * step)
        before = mismatch
        precision = (1.0 - step) * precision + step * np.maximum(at.curvature / rest, _WEAKEST)
        linear = (1.0 - step) * linear + step * (at.slope + at.curvature * cavity.mean) / rest
    log_evidence = (
        at.log_z.sum()
        - 0.5 * posterior.coef @ cavity.mean
        - posterior.half_log_determinant
        - 0.5 * np.log(cavity.share).sum()
    )
    return Evidence(
        posterior,
        float(log_evidence),
        posterior.gradient(inverse),
        sum_by_threshold(rows.y, at.upper, -at.lower),
    )


@dataclass(frozen=True, slots=True)
class _Cavity:
    """The score of each row without the row's own factor, each of shape (n,)."""

    mean: FloatArray  # μ
    variance: FloatArray  # c
    share: FloatArray  # C, posterior variance as a share of the cavity variance


def _cavity(gram: FloatArray, posterior: ProcessPosterior, inverse: FloatArray) -> _Cavity:
    """Return the cavities of all rows, given the lower triangle of B⁻¹."""
    root = np.sqrt(posterior.precision)
    share = np.diag(inverse).copy()
    left = blas.dsymv(1.0, inverse * gram.T, root, lower=1) / root
    strong = share < 0.5
    variance = np.where(strong, (1.0 - share) / posterior.precision, left) / share
    mean = gram @ posterior.coef - variance * posterior.coef
    return _Cavity(mean, variance, share)


def _mismatch(posterior: ProcessPosterior, cavity: _Cavity, at: "Tilted", rest: FloatArray) -> FloatArray:
    """Return the differences between tilted and posterior distributions, in mean and variance, (2n,).

    Means are in units of the posterior standard deviation, variances in units of the posterior variance.
    """
    spread = np.sqrt(cavity.variance * cavity.share)
    mean = cavity.variance * (at.slope - posterior.coef) / spread
    return np.concatenate([mean, rest / cavity.share - 1.0])


@dataclass(frozen=True, slots=True)
class Tilted:
    """ln Ẑ of each row and its derivatives in the cavity mean and the thresholds, each of shape (n,)."""

    log_z: FloatArray
    slope: FloatArray  # g = ∂/∂μ
    curvature: FloatArray  # h = -∂²/∂μ²
    upper: FloatArray  # ∂/∂(upper threshold)
    lower: FloatArray  # -∂/∂(lower threshold)


def tilted(
    mean: FloatArray, variance: FloatArray, low: FloatArray, high: FloatArray, weight: FloatArray
) -> Tilted:
    """Return ln ∫ p(f)^weight N(f | mean, variance) df and its derivatives for each row."""
    at = ordinal_probit(mean, low, high, scale=np.sqrt(1.0 + variance))
    result = Tilted(at.log_p, at.slope, at.curvature, at.upper, at.lower)
    powers = np.flatnonzero(weight != 1.0)
    if powers.size:
        integrated = _by_quadrature(_Power(mean, variance, low, high, weight).take(powers))
        for part in fields(Tilted):
            getattr(result, part.name)[powers] = getattr(integrated, part.name)
    return result


@dataclass(frozen=True, slots=True)
class _Power:
    """φ(f) = v ln p(f) - (f - μ)²/2c of n rows."""

    mean: FloatArray
    variance: FloatArray
    low: FloatArray
    high: FloatArray
    weight: FloatArray

    def take(self, chosen: IntArray) -> "_Power":
        """Return the chosen rows, possibly with repetitions."""
        return _Power(*(getattr(self, part.name)[chosen] for part in fields(self)))

    def at(self, f: FloatArray) -> Derivatives:
        """Return ln p and its derivatives."""
        return ordinal_probit(f, self.low, self.high)

    def exponent(self, f: FloatArray, at: Derivatives) -> FloatArray:
        """Return φ."""
        return self.weight * at.log_p - 0.5 * (f - self.mean) ** 2 / self.variance


def _by_quadrature(power: _Power) -> Tilted:
    """Return the same as `tilted`, for any weights."""
    mode, width = _mode(power)
    peak = power.exponent(mode, power.at(mode))
    row, left, length = _panels(power, mode, width, peak)
    f = (left[:, None] + length[:, None] * (0.5 + 0.5 * _NODES)).ravel()
    row = np.repeat(row, len(_NODES))
    nodes = power.take(row)
    at = nodes.at(f)
    mass = np.exp(nodes.exponent(f, at) - peak[row]) * (0.5 * length[:, None] * _NODE_WEIGHTS).ravel()
    total = np.bincount(row, mass)
    mass /= total[row]

    def average(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(row, mass * values), dtype=np.float64)

    c, weight = power.variance, power.weight
    f -= mode[row]
    away = average(f)
    spread = average((f - away[row]) ** 2)
    mean_slope = average(at.slope)
    slope_spread = average((at.slope - mean_slope[row]) ** 2)
    informative = spread < 0.99 * c
    slope = np.where(informative, (away + mode - power.mean) / c, weight * mean_slope)
    curvature = np.where(
        informative,
        (1.0 - spread / c) / c,
        # The likelihood is log-concave, so the curvature is not negative.
        np.maximum(weight * average(at.curvature) - weight**2 * slope_spread, 0.0),
    )
    return Tilted(
        np.log(total) + peak - 0.5 * np.log(2.0 * np.pi * c),
        slope,
        curvature,
        weight * average(at.upper),
        weight * average(at.lower),
    )


def _mode(power: _Power) -> tuple[FloatArray, FloatArray]:
    """Return the modes of φ, accurate to a tenth of their widths, and the widths, 1/√curvature.

    Newton steps are used, and bisection if they would leave the interval known to contain the mode. The mode
    lies between the cavity mean and the point to which the slope there leads (the slope decreases with the
    distance), and the likelihood does not pull it beyond a threshold.
    """
    mean, c, weight = power.mean, power.variance, power.weight
    mode = mean
    at = power.at(mode)
    pulled = mean + c * weight * at.slope
    lower = np.maximum(np.minimum(mean, pulled), np.minimum(mean, power.low))
    upper = np.minimum(np.maximum(mean, pulled), np.maximum(mean, power.high))
    while True:
        slope = weight * at.slope - (mode - mean) / c
        width = 1.0 / np.sqrt(weight * at.curvature + 1.0 / c)
        step = slope * width**2
        lower, upper = np.where(slope > 0.0, mode, lower), np.where(slope < 0.0, mode, upper)
        if np.all((np.abs(step) <= 0.1 * width) | (upper - lower <= 0.1 * width)):
            return mode, width
        mode = mode + step
        mode = np.where((mode > lower) & (mode < upper), mode, 0.5 * (lower + upper))
        at = power.at(mode)


def _panels(
    power: _Power, mode: FloatArray, width: FloatArray, peak: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the row, the left end and the length of each panel.

    Panels go from the mode outwards on both sides, as far as a Gaussian of variance c has any mass.
    """
    inset = np.sqrt(2.0 * np.log(np.maximum(power.weight, 1.0)))
    grain = 0.5 / np.maximum(inset, 1.0)
    places = np.stack([mode, power.low + inset, power.high - inset])
    units = np.stack([width, grain, grain])
    reach = np.sqrt(2.0 * _DEPTH * power.variance)
    row, side = np.tile(np.arange(len(mode)), 2), np.repeat([-1.0, 1.0], len(mode))
    here = mode[row]
    rows, inner_ends, outer_ends = [], [], []
    while row.size:
        ahead = side * (places[:, row] - here)
        unit = units[:, row]
        there = here + side * np.where(ahead > 0.0, 0.5 * (unit + ahead), unit - ahead).min(axis=0)
        rows.append(row)
        inner_ends.append(here)
        outer_ends.append(there)
        within = np.abs(there - mode[row]) < reach[row]
        row, side, here = row[within], side[within], there[within]
    row, inner, outer = np.concatenate(rows), np.concatenate(inner_ends), np.concatenate(outer_ends)
    part = power.take(row)
    massive = part.exponent(inner, part.at(inner)) > peak[row] - _DEPTH
    row, inner, outer = row[massive], inner[massive], outer[massive]
    return row, np.minimum(inner, outer), np.abs(outer - inner)
