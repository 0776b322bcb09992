"""Cholesky factors of small symmetric matrices, for use inside compiled functions.

As in `isbor._core.linalg`, matrices are scaled to unit diagonal first. One that is not numerically positive
definite is reported by a flag instead of an error. All arrays are C-contiguous, and only the lower triangles
of matrices are read.
"""

import math

import numpy as np

from isbor._core.compiled import inner, inner_sums
from isbor._core.types import FloatArray

__all__ = ["cholesky", "inverse", "log_determinant", "product", "solve", "whitening"]

_SMALL = 64  # rows of a matrix up to which a plain loop is as fast as LAPACK


@inner_sums
def product(a: FloatArray, b: FloatArray, n: int) -> float:
    """Return the scalar product of the first n entries."""
    total = 0.0
    for k in range(n):
        total += a[k] * b[k]
    return total


@inner
def cholesky(matrix: FloatArray, lower: FloatArray, scale: FloatArray) -> bool:
    """Factorise a matrix; return False if it is not numerically positive definite.

    `scale` becomes 1/√diagonal, and the lower triangle of `lower` the factor L of the scaled matrix, LLᵀ.
    `lower` may be the matrix itself.
    """
    n = len(matrix)
    for i in range(n):
        if not 0.0 < matrix[i, i] < np.inf:  # NaN included
            return False
        scale[i] = 1.0 / math.sqrt(matrix[i, i])
    for i in range(n):
        for j in range(i):
            lower[i, j] = matrix[i, j] * scale[i] * scale[j]
    for i in range(n):
        lower[i, i] = 1.0
    return _factorise_by_lapack(lower) if n > _SMALL else _factorise(lower)


@inner
def _factorise(lower: FloatArray) -> bool:
    """Replace the lower triangle of a scaled matrix by its factor."""
    for i in range(len(lower)):
        for j in range(i):
            lower[i, j] = (lower[i, j] - product(lower[i], lower[j], j)) / lower[j, j]
        pivot = lower[i, i] - product(lower[i], lower[i], i)
        if not pivot > 0.0:
            return False
        lower[i, i] = math.sqrt(pivot)
    return True


@inner
def _factorise_by_lapack(lower: FloatArray) -> bool:
    """Replace the lower triangle of a scaled matrix by its factor."""
    try:
        factor = np.linalg.cholesky(lower)
    except Exception:  # compiled code cannot name LinAlgError, the only one that can come
        return False
    for i in range(len(lower)):
        for j in range(i + 1):
            lower[i, j] = factor[i, j]
    return True


@inner
def solve(lower: FloatArray, scale: FloatArray, right: FloatArray) -> FloatArray:
    """Return matrix⁻¹ · right for a vector."""
    n = len(scale)
    solution = np.empty(n)
    for i in range(n):
        solution[i] = (right[i] * scale[i] - product(lower[i], solution, i)) / lower[i, i]
    for i in range(n - 1, -1, -1):
        solution[i] /= lower[i, i]
        for j in range(i):
            solution[j] -= solution[i] * lower[i, j]
        solution[i] *= scale[i]
    return solution


@inner
def whitening(lower: FloatArray, scale: FloatArray) -> FloatArray:
    """Return the lower triangular W with WᵀW = matrix⁻¹, so that xᵀ matrix⁻¹ x = ‖W x‖²."""
    n = len(scale)
    root = np.zeros((n, n))
    for i in range(n):
        for k in range(i):
            factor = lower[i, k]
            for j in range(k + 1):
                root[i, j] -= factor * root[k, j]
        root[i, i] = scale[i]
        for j in range(i + 1):
            root[i, j] /= lower[i, i]
    return root


@inner
def inverse(root: FloatArray, result: FloatArray) -> None:
    """Write matrix⁻¹ = WᵀW to the first rows and columns of `result`, given its `whitening`."""
    n = len(root)
    for i in range(n):
        for j in range(i + 1):
            result[i, j] = 0.0
    for k in range(n):
        for i in range(k + 1):
            factor = root[k, i]
            for j in range(i + 1):
                result[i, j] += factor * root[k, j]
    for i in range(n):
        for j in range(i):
            result[j, i] = result[i, j]


@inner
def log_determinant(lower: FloatArray, scale: FloatArray) -> float:
    """Return ln|matrix|."""
    total = 0.0
    for i in range(len(scale)):
        total += math.log(lower[i, i]) - math.log(scale[i])
    return 2.0 * total
