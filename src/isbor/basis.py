r"""Radial basis functions centred on rows.

.. math:: \phi_m(x) = \exp(-\gamma \lVert x - z_m \rVert^2) - o_m .

The offset :math:`o_m`, the function's mean over a sample of rows, changes nothing in the model: the
thresholds take up any constant. It is there for the arithmetic and for the posterior. A wide basis
function is nearly constant, and products of nearly equal columns lose the digits that tell them apart;
and uncertain weights of uncentred functions are mostly an uncertain common shift of scores and
thresholds, which no prediction depends on.
"""

from dataclasses import dataclass

import numpy as np

from isbor.arrays import FloatArray, IntArray
from isbor.inputs import TrainingRows

__all__ = ["RadialBasis", "RowDictionary"]


@dataclass(frozen=True, slots=True)
class RadialBasis:
    """Gaussian basis functions of one width, on scaled features."""

    centres: FloatArray  # (m, d)
    gamma: float
    offset: FloatArray  # (m,)

    def __len__(self) -> int:
        return len(self.centres)

    def kernel(self, X: FloatArray) -> FloatArray:
        """Return exp(-γ‖x - z‖²), shape (n, m)."""
        # One product gives -γ(‖x‖² - 2 x·z + ‖z‖²).
        n, d = X.shape
        left = np.empty((n, d + 2))
        left[:, :d] = X
        np.einsum("ij,ij->i", X, X, out=left[:, d])
        left[:, d + 1] = 1.0
        values = left @ self._right()
        if self.gamma > 1e6:  # rounding of the exponent is no longer small beside one
            np.minimum(values, 0.0, out=values)
        return np.exp(values, out=values)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the centred basis functions at the rows of X, shape (n, m)."""
        values = self.kernel(X)
        values -= self.offset
        return values

    def _right(self) -> FloatArray:
        squares = np.einsum("ij,ij->i", self.centres, self.centres)
        return np.vstack(
            [
                2.0 * self.gamma * self.centres.T,
                np.full(len(self), -self.gamma),
                -self.gamma * squares,
            ]
        )


@dataclass(frozen=True, slots=True)
class RowDictionary:
    """All basis functions of one width centred on training rows; a candidate is a row's number."""

    rows: TrainingRows
    gamma: float
    reference: int = 1000  # rows that the offsets are means over

    def basis(self, chosen: IntArray) -> RadialBasis:
        """Return the functions centred on the chosen rows."""
        sample = self.rows.head(self.reference)
        centred = RadialBasis(self.rows.X[chosen], self.gamma, np.zeros(len(chosen)))
        offset = sample.weight @ centred.kernel(sample.X) / sample.weight.sum()
        return RadialBasis(centred.centres, self.gamma, offset)
