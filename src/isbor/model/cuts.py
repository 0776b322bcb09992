r"""Thresholds and noise that vary with the row.

One latent score with constant thresholds and constant noise shifts all cumulative probabilities together
(parallel lines). Here the functions of the score also describe how the response of a row is cut,

.. math::
    P(y \le k \mid x) = \Psi\Big(\frac{b_k(x) - f(x)}{s(x)}\Big), \qquad
    b_k(x) = a + \sum_l \sigma_{kl}\, g_l\, e_l(x) .

:math:`g_l = b_{l+1} - b_l` are the gaps of the common thresholds b, and :math:`e_l(x) > 0` are factors of the
gaps at a row, so thresholds are in order at every row. The middle of the thresholds, a, is the same for all
rows: the middle one, or half of the way between the two middle ones. :math:`\sigma_{kl}` is the part of gap l
that lies on the way from there to threshold k, negative if the way goes down. Thus reversing the order of
the classes gives the same model.

The logarithms of noise and gaps are sums of the functions of the score, the *shape* of the response,

.. math::
    \ln s(x) = \sum_m u_{0m} \phi_m(x), \qquad
    \ln e_l(x) = \sum_{q \ge 1} c_{ql}\, t_q(x), \qquad t_q(x) = \sum_m u_{qm} \phi_m(x) .

A common factor of all gaps would be noise over again, so the patterns :math:`c_q` are orthogonal to it:
polynomials in l of degree q, of mean 0 and mean square 1. Degree 1 widens the upper classes and narrows the
lower ones, degree 2 widens the end classes. With r classes, r - 3 of them make the model general: any
probabilities that vary with the row can be written in this way. At most three are used. All functions are
centred, so noise and gaps have their common values at the average row. The sums saturate at ±3 (they are
replaced by 3 tanh(t/3)), because they mean nothing far from all training rows.

For given shape, an edge of a row is linear in b, with the derivatives

.. math:: \frac{\partial b_k(x)}{\partial b_i} = a_i + \sigma_{k,i-1} e_{i-1}(x) - \sigma_{ki} e_i(x),

where :math:`a_i` is 1 for the middle threshold, or ½ for each of the two middle ones. So ln p remains concave
in weights and thresholds.
"""

from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np

from isbor._core.types import FloatArray
from isbor.model.compiled_cuts import shape_of_values, thresholds_of_rows

__all__ = ["RowShape", "Varying", "gap_patterns", "n_shape_sums", "row_thresholds"]

Varying: TypeAlias = Literal["nothing", "noise", "thresholds"]  # what varies with the row besides the score

_MAX_PATTERNS = 3


@dataclass(frozen=True, slots=True)
class RowShape:
    """How the response of each of n rows is cut: the noise, and the factors of the gaps."""

    noise_scale: FloatArray  # (n,) standard deviation of the noise, s
    gap_factors: FloatArray  # (r-2, n), e; (0, n) if all rows have the same thresholds

    @classmethod
    def constant(cls, n: int) -> Self:
        """Return the shape with noise of variance 1 and the same thresholds for all of n rows."""
        return cls(np.ones(n), np.empty((0, n)))

    @classmethod
    def of(cls, values: FloatArray, weights: FloatArray, n_thresholds: int) -> Self:
        """Return the shape at rows where the functions have these values, (m, n); `weights` are u, (K, m)."""
        weights = np.ascontiguousarray(weights)  # a selection of functions may have another layout
        return cls(*shape_of_values(values, weights, gap_patterns(n_thresholds, len(weights) - 1)))

    def __getitem__(self, rows: slice) -> "RowShape":
        return RowShape(self.noise_scale[rows], np.ascontiguousarray(self.gap_factors[:, rows]))


def gap_patterns(n_thresholds: int, count: int | None = None) -> FloatArray:
    """Return the patterns c, (count, r-2); by default, as many as are used for so many thresholds."""
    n_gaps = max(n_thresholds - 1, 0)
    most = min(max(n_gaps - 1, 0), _MAX_PATTERNS)
    count = most if count is None else count
    if count <= 0:
        return np.empty((0, n_gaps))
    place = np.arange(n_gaps) - 0.5 * (n_gaps - 1)
    basis, _ = np.linalg.qr(np.vander(place, count + 1, increasing=True))
    basis *= np.sign(basis[-1])  # the last gap grows with each pattern
    return np.ascontiguousarray(np.sqrt(n_gaps) * basis.T[1:])


def n_shape_sums(varying: Varying, n_thresholds: int) -> int:
    """Return the number of sums of the shape, K."""
    if varying == "thresholds":
        return 1 + len(gap_patterns(n_thresholds))
    return 1 if varying == "noise" else 0


def row_thresholds(thresholds: FloatArray, shape: RowShape) -> FloatArray:
    """Return the thresholds at each row, (n, r-1)."""
    if not len(shape.gap_factors):
        return np.broadcast_to(thresholds, (len(shape.noise_scale), len(thresholds)))
    return thresholds_of_rows(thresholds, shape.gap_factors)
