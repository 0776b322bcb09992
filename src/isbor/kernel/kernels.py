r"""Kernels of scaled rows, and scores that are weighted sums of kernels.

========  ===========================================================
rbf       :math:`\exp(-\gamma \|x - z\|^2)`
linear    :math:`x^\top z`
poly      :math:`(\gamma\, x^\top z + c_0)^p`
========  ===========================================================

For a precomputed kernel, the "rows" are rows of the matrix of kernel values with all training rows, and an
anchor is one of its columns.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from isbor._core.types import FloatArray
from isbor.data.rows import Scaling, TrainingRows
from isbor.model.latent import Latent

__all__ = ["CutScore", "Kernel", "KernelMachine", "KernelName"]

KernelName: TypeAlias = Literal["rbf", "linear", "poly", "precomputed"]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel with its parameters."""

    name: KernelName
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    def __call__(self, X: FloatArray, anchors: TrainingRows) -> FloatArray:
        """Return the kernel between scaled rows and anchors, shape (n, m)."""
        values: FloatArray
        if len(anchors) == 0:  # the score is constant
            values = np.empty((len(X), 0))
        elif self.name == "rbf":
            values = rbf_kernel(X, anchors.X, self.gamma)
        elif self.name == "linear":
            values = linear_kernel(X, anchors.X)
        elif self.name == "poly":
            values = polynomial_kernel(X, anchors.X, self.degree, self.gamma, self.coef0)
        else:
            values = X[:, anchors.source]
        return values

    def gram(self, rows: TrainingRows) -> FloatArray:
        """Return the kernel between all pairs of rows, symmetric up to rounding, shape (n, n)."""
        values = self(rows.X, rows)
        return 0.5 * (values + values.T) if self.name == "precomputed" else values

    def diagonal(self, rows: TrainingRows) -> FloatArray:
        """Return the kernel of each row with itself, (n,)."""
        if self.name == "rbf":
            return np.ones(len(rows))
        if self.name == "precomputed":
            return rows.X[np.arange(len(rows)), rows.source]
        squares: FloatArray = np.einsum("ij,ij->i", rows.X, rows.X)
        return squares if self.name == "linear" else (self.gamma * squares + self.coef0) ** self.degree


@dataclass(frozen=True, slots=True)
class CutScore:
    """A fitted machine without probabilities: a weighted sum of n kernels, cut by thresholds."""

    coef: FloatArray  # (n,) weights of the kernels at the rows
    thresholds: FloatArray  # (r-1,) ascending
    n_iter: int


@dataclass(frozen=True, slots=True)
class KernelMachine:
    """The score f(x) = Σ coef_i k(x_i, x), without uncertainty."""

    scaling: Scaling
    kernel: Kernel
    anchors: TrainingRows  # (m,) rows x_i with a nonzero coefficient
    coef: FloatArray  # (m,)

    @property
    def n_functions(self) -> int:
        """Number of kernel values evaluated for one row."""
        return len(self.coef)

    def latent(self, X: FloatArray) -> Latent:
        """Return the score at encoded rows, in arbitrary units."""
        f = self.kernel(self.scaling(X), self.anchors) @ self.coef
        return Latent(f, np.zeros(len(f)), np.ones(len(f)))
