r"""Ridge functions as sums of exponentials, which are products over features.

.. math:: g(s) \approx \operatorname{Re} \sum_q c_q e^{\lambda_q s}, \qquad |s| \le L .

**tanh.** From :math:`\tanh s = \int_0^\infty \sin(\omega s) / \sinh(\pi\omega/2)\, d\omega`, by the midpoint
rule with step h, :math:`\omega_q = (q + \frac12) h`. By Poisson's formula, the error of the rule is the sum
over :math:`k \ne 0` of :math:`(-1)^k \tanh(s - k P)` with the period :math:`P = 2\pi/h`: at most
:math:`4 e^{-2(P - L)}`. What frequencies beyond Ω add is at most :math:`3 e^{-\pi\Omega/2}`. Both are below
1e-14 here, with :math:`3.5\, (L + 17)` frequencies.

**Powers.** The integral of Cauchy for the coefficient of :math:`z^p` in :math:`e^{z s}`, by the trapezoidal
rule on a circle of radius :math:`\rho = p/L` with N nodes :math:`\lambda_q`,

.. math:: s^p \approx \frac{p!}{N} \sum_q \lambda_q^{-p} e^{\lambda_q s},

where the error is at most :math:`p!\, p^N / (p + N)!` times :math:`L^p`, and rounding is multiplied by about
:math:`\sqrt{2\pi p}`. A shift is a factor of the coefficients.
"""

from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import NDArray

from isbor.inspection.score import Ridge

__all__ = ["Exponentials", "as_exponentials"]

_MARGIN = 17.0  # P - L
_HIGHEST = 21.5  # Ω
_MOST = 100_000  # frequencies
_NODES = 40  # of the circle, and four more for each degree


@dataclass(frozen=True, slots=True)
class Exponentials:
    """A function of one variable, Re Σ c exp(λ s)."""

    coefficients: NDArray[np.complex128]
    exponents: NDArray[np.complex128]


def as_exponentials(ridge: Ridge, reach: float) -> Exponentials:
    """Return g as a sum of exponentials, for arguments of at most `reach`, without shift."""
    if ridge.degree is None:
        step = 2.0 * np.pi / (reach + _MARGIN)
        count = int(np.ceil(_HIGHEST / step))
        if count > _MOST:
            raise ValueError(
                f"A row lies so far outside the training rows that ramps have arguments of {reach:.3g}; "
                "contributions of more than ten features to one ramp are computed up to about 20,000. Pass "
                "rows within the range of the training rows (see out_of_range)."
            )
        frequency = (np.arange(count) + 0.5) * step
        heights = step / np.sinh(0.5 * np.pi * frequency)
        return Exponentials(_complex(-1j * heights), _complex(1j * frequency))
    degree = ridge.degree
    n = _NODES + 4 * degree
    radius = degree / max(reach + abs(ridge.shift), np.finfo(float).tiny)
    angle = 2.0 * np.pi * np.arange(n) / n
    exponents = _complex(radius * np.exp(1j * angle))
    coefficients = factorial(degree) / n * exponents**-degree * np.exp(exponents * ridge.shift)
    return Exponentials(_complex(coefficients), exponents)


def _complex(values: object) -> NDArray[np.complex128]:
    return np.asarray(values, np.complex128)
