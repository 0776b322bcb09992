"""Small dense linear algebra: Cholesky factors of matrices whose entries differ widely in size."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from isbor._core.types import FloatArray

__all__ = ["Factor", "UnresolvedError", "add_diagonal", "factorise"]


@dataclass(frozen=True, slots=True)
class Factor:
    """Cholesky factor of a positive definite matrix, scaled to unit diagonal first.

    The weights of wide and narrow functions, and the thresholds, have precisions of very different sizes.
    After scaling, this does not affect the factorisation.
    """

    lower: FloatArray
    scale: FloatArray  # (n,), 1/√diagonal

    def solve(self, right: FloatArray) -> FloatArray:
        """Return matrix⁻¹ · right for a vector or a matrix."""
        scale = self.scale if right.ndim == 1 else self.scale[:, None]
        solution: FloatArray = cho_solve((self.lower, True), right * scale, check_finite=False)
        return solution * scale

    def inverse(self) -> FloatArray:
        """Return the inverse matrix."""
        return self.solve(np.eye(len(self.scale)))

    def whitening(self) -> FloatArray:
        """Return the lower triangular W with WᵀW = matrix⁻¹, so that xᵀ matrix⁻¹ x = ‖W x‖²."""
        if not len(self.scale):
            return np.eye(0)
        root: FloatArray = solve_triangular(self.lower, np.diag(self.scale), lower=True)
        return root

    @property
    def log_determinant(self) -> float:
        """Return ln|matrix|."""
        # The diagonal is copied: with old NumPy the last bit of a strided logarithm depends on where it lies.
        return float(2.0 * (np.log(np.diag(self.lower).copy()).sum() - np.log(self.scale).sum()))


class UnresolvedError(ArithmeticError):
    """The functions of a model are collinear to working precision where the likelihood has curvature.

    As a model fits better, the curvature concentrates on the rows near thresholds. Functions that differ on
    all rows may coincide on these. Such a model cannot be distinguished from a smaller one.
    """

    def __init__(self, message: str = "The precision matrix is singular to working precision.") -> None:
        super().__init__(message)


def factorise(matrix: FloatArray) -> Factor:
    """Factorise a symmetric matrix; raise `UnresolvedError` if it is not numerically positive definite."""
    diagonal = np.diag(matrix)
    if not np.all(diagonal > 0.0):  # NaN included
        raise UnresolvedError("A weight or threshold has no curvature.")
    scale = 1.0 / np.sqrt(diagonal)
    try:
        lower, _ = cho_factor(matrix * scale * scale[:, None], lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        raise UnresolvedError from None
    return Factor(lower, scale)


def add_diagonal(matrix: FloatArray, diagonal: FloatArray) -> FloatArray:
    """Return a copy of the matrix with `diagonal` added to its diagonal."""
    result = matrix.copy()
    result[np.diag_indices_from(result)] += diagonal
    return result
