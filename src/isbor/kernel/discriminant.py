r"""Kernel discriminant learning: the direction in feature space that orders the classes best.

Along the direction w, classes should be narrow, and the means of adjacent classes far apart and in the right
order:

.. math::
    \min_{w, \rho}\; w^\top S_w w - C\rho \quad\text{such that}\quad w^\top (m_{k+1} - m_k) \ge \rho,
    \quad k = 1 \dots r - 1,

where S_w is the scatter within classes, a mean over rows. With :math:`w = \sum_i \beta_i \varphi(x_i)`, all
terms depend only on the kernel matrix K. Let V be the diagonal matrix of row weights, n_c the weight of class
c, n the total weight, and :math:`s_c = K V 1_c`. Then

.. math::
    S = \frac1n \Big(K V K - \sum_c \frac{s_c s_c^\top}{n_c}\Big) + u\,\bar S\, I, \qquad
    D = \Big[\frac{s_{k+1}}{n_{k+1}} - \frac{s_k}{n_k}\Big]_{k = 1 \dots r - 1},

where the ridge, u times the mean of the diagonal, makes S invertible. The dual has one variable for each pair
of adjacent classes,

.. math:: \min_a\; a^\top Q a, \quad a \ge 0, \; 1^\top a = 1, \qquad Q = D^\top S^{-1} D, \qquad
    \beta = \tfrac C2 S^{-1} D a ,

so C only sets the unit of the score. With Q = RᵀR, this is a nonnegative least squares problem: up to its
length, the solution is the minimum of :math:`\|R a\|^2 + (1^\top a - 1)^2` over a ≥ 0.
"""

import numpy as np
from scipy.linalg import LinAlgError, blas, cho_factor, cho_solve, eigh
from scipy.optimize import nnls

from isbor._core.types import FloatArray, IntArray
from isbor.kernel.kernels import CutScore

__all__ = ["minimum_on_simplex", "solve_discriminant"]


def solve_discriminant(
    gram: FloatArray, y: IntArray, weight: FloatArray, *, ridge: float, weighted_thresholds: bool
) -> CutScore:
    """Return the direction for C = 1, and thresholds between the projected class means.

    A threshold is the mean of two adjacent class means; with `weighted_thresholds`, it is weighted by the
    sizes of the classes, hence nearer to the larger one. Takes O(n³) time and O(n²) memory; `gram` is not
    changed.
    """
    total = weight.sum()
    of_class = np.zeros((len(y), int(y.max()) + 1))
    of_class[np.arange(len(y)), y] = weight
    counts = of_class.sum(axis=0)
    sums = gram @ of_class
    means = sums / counts
    differences = np.diff(means, axis=1)

    # dsyrk computes half of a symmetric product, in half the time. BLAS takes transposes without copying.
    root = gram if np.all(weight == 1.0) else gram * np.sqrt(weight)
    scatter = blas.dsyrk(1.0 / total, root.T, trans=1, lower=1)
    scatter = blas.dsyrk(
        -1.0 / total, (sums / np.sqrt(counts)).T, beta=1.0, c=scatter, trans=1, lower=1, overwrite_c=1
    )
    diagonal = np.einsum("ii->i", scatter)
    mean_square = float(diagonal.mean())
    diagonal += ridge * mean_square if mean_square > 0.0 else 1.0
    try:
        factor = cho_factor(scatter, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        raise ValueError(
            f"The within-class scatter matrix is numerically singular with u={ridge:g}; raise u."
        ) from None
    directions = cho_solve(factor, differences, check_finite=False)
    share = minimum_on_simplex(differences.T @ directions)
    coef = 0.5 * (directions @ share)

    centres = coef @ means
    size = counts if weighted_thresholds else np.ones_like(counts)
    thresholds = (size[1:] * centres[1:] + size[:-1] * centres[:-1]) / (size[1:] + size[:-1])
    return CutScore(coef, np.maximum.accumulate(thresholds), n_iter=1)


def minimum_on_simplex(Q: FloatArray) -> FloatArray:
    """Return the nonnegative a with sum 1 that minimises aᵀQa, for positive semidefinite Q."""
    m = len(Q)
    size = float(np.abs(Q).max())
    if size == 0.0:
        return np.full(m, 1.0 / m)
    values, vectors = eigh(0.5 * (Q + Q.T) / size)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    a, _ = nnls(np.vstack([root, np.ones(m)]), np.append(np.zeros(m), 1.0))
    minimum: FloatArray = a / a.sum()
    return minimum
