r"""The standard normal distribution function from operators that all runtimes have in double precision.

The operator Erf is missing in double precision in most runtimes. For :math:`z \ge 0` the tail is

.. math:: \Psi(-z) = e^{-z^2/2}\, (1 - t)\, g(t), \qquad t = \frac{z - c}{z + c} \in [-1, 1),

where :math:`g(t) = \tfrac12 \mathrm{erfcx}(z/\sqrt2)/(1 - t)` varies little: Ψ(-z) falls as
:math:`e^{-z^2/2}/z` does, and 1 - t as 1/z. So g is a polynomial up to rounding, here the one through
Chebyshev points. Its coefficients in powers of t add up to 0.25 in size, so Horner's rule loses no digits.
"""

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import erfcx

from isbor.export.graph.tensors import Tensor, where

__all__ = ["normal_cdf", "normal_tail"]

_CENTRE = 4.0
_DEGREE = 24
_FARTHEST = 40.0  # beyond it, the tail is 0 in double precision


def _coefficients() -> list[float]:
    """Return the coefficients of g, the constant one first."""
    t = chebyshev.chebpts1(_DEGREE + 1)
    z = _CENTRE * (1.0 + t) / (1.0 - t)
    g = 0.5 * erfcx(z / np.sqrt(2.0)) / (1.0 - t)
    coefficients: list[float] = chebyshev.cheb2poly(chebyshev.chebfit(t, g, _DEGREE)).tolist()
    return coefficients


def normal_tail(z: Tensor) -> Tensor:
    """Return Ψ(-|z|)."""
    z = abs(z).at_most(_FARTHEST)
    t = (z - _CENTRE) / (z + _CENTRE)
    *others, highest = _coefficients()
    g = t * highest + others.pop()
    while others:
        g = g * t + others.pop()
    return (-0.5 * (z * z)).exp() * (1.0 - t) * g


def normal_cdf(z: Tensor) -> tuple[Tensor, Tensor]:
    """Return Ψ(z) and Ψ(-z), both accurate in their lower tails."""
    tail = normal_tail(z)
    is_low, rest = z.is_below(0.0), 1.0 - tail
    return where(is_low, tail, rest), where(is_low, rest, tail)
