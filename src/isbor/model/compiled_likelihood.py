r"""The ordinal probit likelihood of many rows, compiled; `isbor.model.likelihood` derives it.

The formulas are the same as there, but all rows take the same path, so that loops over rows are vectorised.

**Tails.** The mean excess of a normal variable beyond a ≥ 0, m(a), falls smoothly from √(2/π) to zero like
1/a. So (a + 3/2) m(a) is approximated by a polynomial in t = (a - 4)/(a + 4), which runs from -1 to 1.
Nothing cancels in the Mills ratio R(a) = 1/(a + m(a)). For a < 0, with n the density,

.. math:: R(a) = 1/n(a) - R(-a), \qquad m(a) = 1/R(a) - a .

**ln p.** If the near edge a is positive, :math:`\ln p = \ln (R(a)(1 - \pi)) - a^2/2 - \ln\sqrt{2\pi}`. If
not, p is 1 minus what lies beyond the two edges, and the logarithm is computed such that it is accurate even
if that is nearly nothing.

Narrow intervals, of which the formulas for tails lose digits, are evaluated by quadrature, one by one.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import erfcx

from isbor._core.compiled import inner
from isbor._core.compiled_maths import exp_double, log_double
from isbor._core.types import FloatArray
from isbor.model.likelihood import LOG_SQRT_2PI, NODE_WEIGHTS, NODES

__all__ = ["Terms", "new_terms", "probit_terms"]

_NARROW = 0.1  # largest change of the log density across an interval that is evaluated by quadrature
_CHUNK = 512  # rows that are evaluated together; their numbers fit into the caches
_FARTHEST = 1e6  # an edge beyond is as good as none
_CENTRE, _SHIFT = 4.0, 1.5
_ROOT_2PI = math.sqrt(2.0 * math.pi)


def _excess_polynomial(degree: int) -> FloatArray:
    """Return the coefficients of the polynomial, the highest power first."""
    t = chebyshev.chebpts1(degree + 1)
    a = _CENTRE * (1.0 + t) / (1.0 - t)
    rest = a.copy()
    for k in range(300, 1, -1):  # Laplace's continued fraction, 1/R(a) = a + 1/(a + 2/(a + 3/…))
        rest = a + k / rest
    near = 1.0 / (np.sqrt(0.5 * np.pi) * erfcx(a * np.sqrt(0.5))) - a
    excess = np.where(a > 2.0, 1.0 / rest, near)
    series = chebyshev.chebfit(t, (a + _SHIFT) * excess, degree)
    return np.ascontiguousarray(chebyshev.cheb2poly(series)[::-1])


_EXCESS = _excess_polynomial(26)


class Terms(NamedTuple):
    """ln p of each row and the parts of its derivatives, for noise of variance 1, each of shape (n,)."""

    log_p: FloatArray
    mean: FloatArray  # E z
    upper: FloatArray  # g1
    lower: FloatArray  # g2
    upper_curvature: FloatArray  # c1
    lower_curvature: FloatArray  # c2


@inner
def new_terms(n: int) -> Terms:
    """Return terms of n rows, not computed yet."""
    return Terms(np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n))


@inner
def _excess(a: float) -> float:
    """Return the mean excess beyond a ≥ 0."""
    t = (a - _CENTRE) / (a + _CENTRE)
    total: float = _EXCESS[0]
    for k in range(1, 27):
        total = total * t + _EXCESS[k]
    return total / (a + _SHIFT)


@inner
def _by_quadrature(near: float, gap: float) -> tuple[float, float, float, float]:
    """Return ln p, the densities at both edges and E z - near, for a narrow interval with middle ≥ 0."""
    half = 0.5 * gap
    middle = near + half
    mass, moment = 0.0, 0.0
    for k in range(len(NODES)):
        t = half * NODES[k]
        density = NODE_WEIGHTS[k] * math.exp(-t * (middle + 0.5 * t))
        mass += density
        moment += density * (1.0 + NODES[k])
    log_p = math.log(half * mass) - 0.5 * middle * middle - LOG_SQRT_2PI
    bend = math.exp(-0.5 * half * half) / (half * mass)
    tilt = math.exp(middle * half)
    return log_p, bend * tilt, bend / tilt, half * moment / mass


@inner
def probit_terms(z1: FloatArray, z2: FloatArray, gap: FloatArray, terms: Terms) -> None:
    """Compute the terms of intervals from z2 to z1 = z2 + gap, one of which may be infinite.

    The gap is given as well, because the difference z1 - z2 may lose digits.
    """
    near, share, density = np.empty(_CHUNK), np.empty(_CHUNK), np.empty(_CHUNK)
    excess, factor, power = np.empty(_CHUNK), np.empty(_CHUNK), np.empty(_CHUNK)
    exponent = power.view(np.int64)
    log_p, mean = terms.log_p, terms.mean
    at_near, at_far = terms.lower, terms.upper  # densities at the edges over p
    for begin in range(0, len(z1), _CHUNK):
        n = min(_CHUNK, len(z1) - begin)
        for i in range(n):
            low, high, width = z2[begin + i], z1[begin + i], gap[begin + i]
            near[i] = -high if high + low < 0.0 else low
            density[i] = -0.5 * near[i] * near[i]
            share[i] = -width * (near[i] + 0.5 * width)
        exp_double(density[:n], exponent[:n], power[:n])
        exp_double(share[:n], exponent[:n], power[:n])
        for i in range(n):
            k = begin + i
            a = abs(near[i])
            beyond = _excess(a)
            mills = 1.0 / (a + beyond)
            # Below zero, 1/n(a) is at most e^700: there the tail is everything.
            negative = _ROOT_2PI / max(density[i], 1e-300) - mills
            ratio = mills if near[i] > 0.0 else negative
            first_mean = a + beyond if near[i] > 0.0 else 1.0 / negative  # without the far edge
            first = beyond if near[i] > 0.0 else first_mean + a
            far = min(near[i] + gap[k], _FARTHEST)
            far_excess = _excess(far)
            far_mills = 1.0 / (far + far_excess)
            part = share[i] * far_mills / ratio
            rest = 1.0 - part
            cut = part * (min(gap[k], 2.0 * _FARTHEST) + far_excess - first) / rest
            mean[k], excess[i] = first_mean - cut, first - cut
            at_near[k] = first_mean / rest
            at_far[k] = part * (far + far_excess) / rest
            # What is beyond the two edges, if zero is between them.
            outside = density[i] / _ROOT_2PI * (mills + share[i] * far_mills)
            inside = 1.0 - outside
            log_p[k] = mills * rest if near[i] > 0.0 else inside
            # ln(1 - x) = ln(u) x/(1 - u) for u = 1 - x as it is rounded, and -x if that is 1
            factor[i] = outside / (1.0 - inside) if inside < 1.0 else -outside
        log_double(log_p[begin : begin + n], exponent[:n], power[:n])
        for i in range(n):
            k = begin + i
            tail = log_p[k] - 0.5 * near[i] * near[i] - LOG_SQRT_2PI
            between = log_p[k] * factor[i] if log_p[k] < 0.0 else factor[i]
            log_p[k] = tail if near[i] > 0.0 else between
        for i in range(n):
            k = begin + i
            if gap[k] * max(1.0, near[i] + 0.5 * gap[k]) < _NARROW:
                log_p[k], at_near[k], at_far[k], excess[i] = _by_quadrature(near[i], gap[k])
                mean[k] = near[i] + excess[i]
        for i in range(n):
            k = begin + i
            mirrored = z1[k] + z2[k] < 0.0
            near_curvature = at_near[k] * excess[i]
            far_curvature = at_far[k] * (min(gap[k], 2.0 * _FARTHEST) - excess[i])
            too_much = max(near_curvature + far_curvature, 1.0)  # at most 1 but for rounding
            near_curvature /= too_much
            far_curvature /= too_much
            by_near, by_far = at_near[k], at_far[k]
            mean[k] = -mean[k] if mirrored else mean[k]
            terms.upper[k] = by_near if mirrored else by_far
            terms.lower[k] = by_far if mirrored else by_near
            terms.upper_curvature[k] = near_curvature if mirrored else far_curvature
            terms.lower_curvature[k] = far_curvature if mirrored else near_curvature
