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
from isbor._core.compiled_maths import exp_double, fma, log_double
from isbor._core.types import FloatArray
from isbor.model.likelihood import LOG_SQRT_2PI, NODE_WEIGHTS, NODES

__all__ = ["Terms", "new_terms", "probit_terms", "upper_tail"]

_NARROW = 0.1  # largest change of the log density across an interval that is evaluated by quadrature
_CHUNK = 256  # rows that are evaluated together; their numbers fit into the caches
_FARTHEST = 1e6  # an edge beyond is as good as none
_NO_TAIL = 37.5  # the normal distribution has next to nothing beyond, 5e-308
_CENTRE, _SHIFT = 4.0, 1.5
# Where the numbers of a chunk are. They are all in one array: with several, the compiler would have to check
# that none overlaps another, and gives up on vectorising.
_NEAR, _GAP, _MIRRORED, _MEAN, _BEYOND, _AT_NEAR, _AT_FAR, _BY_NEAR, _BY_FAR, _LOG_P, _FACTOR = range(
    0, 11 * _CHUNK, _CHUNK
)
_N_PARTS = 11
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
        total = fma(total, t, _EXCESS[k])
    return total / (a + _SHIFT)


@inner
def upper_tail(a: float) -> float:
    """Return the probability that a standard normal variable is beyond a ≥ 0; 0 from 37.5 on."""
    near = min(a, _NO_TAIL)
    mills = 1.0 / (near + _excess(near))
    tail: float = exp_double(-0.5 * near * near) * mills / _ROOT_2PI
    return tail if near < _NO_TAIL else 0.0


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
def _tail_terms(work: FloatArray, n: int) -> None:
    """Compute the terms of n rows from their near edges and gaps; `ln p` is completed later."""
    for i in range(n):
        near, gap = work[_NEAR + i], work[_GAP + i]
        density, share = exp_double(-0.5 * near * near), exp_double(-gap * (near + 0.5 * gap))
        a = abs(near)
        beyond = _excess(a)
        mills = 1.0 / (a + beyond)
        # Below zero, 1/n(a) is at most e^700: there the tail is everything.
        negative = _ROOT_2PI / max(density, 1e-300) - mills
        ratio = mills if near > 0.0 else negative
        first_mean = a + beyond if near > 0.0 else 1.0 / negative  # without the far edge
        first = beyond if near > 0.0 else first_mean + a
        far = min(near + gap, _FARTHEST)
        far_excess = _excess(far)
        far_mills = 1.0 / (far + far_excess)
        part = share * far_mills / ratio
        rest = 1.0 - part
        cut = part * (min(gap, 2.0 * _FARTHEST) + far_excess - first) / rest
        work[_MEAN + i], work[_BEYOND + i] = first_mean - cut, first - cut
        work[_AT_NEAR + i] = first_mean / rest
        work[_AT_FAR + i] = part * (far + far_excess) / rest
        # What is beyond the two edges, if zero is between them.
        outside = density / _ROOT_2PI * (mills + share * far_mills)
        inside = 1.0 - outside
        work[_LOG_P + i] = mills * rest if near > 0.0 else inside
        # ln(1 - x) = ln(u) x/(1 - u) for u = 1 - x as it is rounded, and -x if that is 1
        work[_FACTOR + i] = outside / (1.0 - inside) if inside < 1.0 else -outside


@inner
def _finish(work: FloatArray, n: int) -> None:
    """Complete ln p, compute the curvatures, and exchange what is of the upper and of the lower edge."""
    for i in range(n):
        near, log_p, factor = work[_NEAR + i], log_double(work[_LOG_P + i]), work[_FACTOR + i]
        tail = log_p - 0.5 * near * near - LOG_SQRT_2PI
        between = log_p * factor if log_p < 0.0 else factor
        work[_LOG_P + i] = tail if near > 0.0 else between
    for i in range(n):
        near, gap = work[_NEAR + i], work[_GAP + i]
        if gap * max(1.0, near + 0.5 * gap) < _NARROW:
            log_p, at_near, at_far, beyond = _by_quadrature(near, gap)
            work[_LOG_P + i], work[_MEAN + i], work[_BEYOND + i] = log_p, near + beyond, beyond
            work[_AT_NEAR + i], work[_AT_FAR + i] = at_near, at_far
    for i in range(n):
        beyond, at_near, at_far = work[_BEYOND + i], work[_AT_NEAR + i], work[_AT_FAR + i]
        by_near, by_far = at_near * beyond, at_far * (min(work[_GAP + i], 2.0 * _FARTHEST) - beyond)
        too_much = max(by_near + by_far, 1.0)  # at most 1 but for rounding
        by_near /= too_much
        by_far /= too_much
        mirrored = work[_MIRRORED + i] > 0.0
        work[_MEAN + i] = -work[_MEAN + i] if mirrored else work[_MEAN + i]
        work[_AT_NEAR + i] = at_far if mirrored else at_near
        work[_AT_FAR + i] = at_near if mirrored else at_far
        work[_BY_NEAR + i] = by_far if mirrored else by_near
        work[_BY_FAR + i] = by_near if mirrored else by_far


@inner
def _copy(work: FloatArray, part: int, to: FloatArray, begin: int, n: int) -> None:
    for i in range(n):
        to[begin + i] = work[part + i]


@inner
def probit_terms(z1: FloatArray, z2: FloatArray, gap: FloatArray, terms: Terms) -> None:
    """Compute the terms of intervals from z2 to z1 = z2 + gap, one of which may be infinite.

    The gap is given as well, because the difference z1 - z2 may lose digits.
    """
    work = np.empty(_N_PARTS * _CHUNK)
    for begin in range(0, len(z1), _CHUNK):
        n = min(_CHUNK, len(z1) - begin)
        for i in range(n):
            low, high, width = z2[begin + i], z1[begin + i], gap[begin + i]
            mirrored = high + low < 0.0
            near = -high if mirrored else low
            work[_MIRRORED + i] = 1.0 if mirrored else 0.0
            work[_NEAR + i], work[_GAP + i] = near, width
        _tail_terms(work, n)
        _finish(work, n)
        _copy(work, _LOG_P, terms.log_p, begin, n)
        _copy(work, _MEAN, terms.mean, begin, n)
        _copy(work, _AT_FAR, terms.upper, begin, n)
        _copy(work, _AT_NEAR, terms.lower, begin, n)
        _copy(work, _BY_FAR, terms.upper_curvature, begin, n)
        _copy(work, _BY_NEAR, terms.lower_curvature, begin, n)
