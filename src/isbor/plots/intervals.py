r"""Confidence intervals of frequencies.

The intervals are Wilson's. With frequency :math:`p` of :math:`n` outcomes and :math:`z` the normal quantile,

.. math:: \frac{p + z^2/2n \pm z \sqrt{p(1-p)/n + z^2/4n^2}}{1 + z^2/n}.

Source: Brown, Cai & DasGupta, "Interval estimation for a binomial proportion", Statistical Science, 2001.
"""

import numpy as np
from scipy.special import ndtri

from isbor._core.types import FloatArray, IntArray

__all__ = ["wilson"]


def wilson(
    frequency: FloatArray, count: FloatArray | IntArray, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of Wilson's interval."""
    spread = ndtri((1 + confidence) / 2) ** 2 / count
    centre = frequency + spread / 2
    half = np.sqrt(spread * (frequency * (1 - frequency) + spread / 4))
    # The bounds are exact up to rounding.
    lower: FloatArray = np.clip((centre - half) / (1 + spread), 0.0, frequency)
    upper: FloatArray = np.clip((centre + half) / (1 + spread), frequency, 1.0)
    return lower, upper
