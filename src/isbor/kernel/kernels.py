r"""Kernels of scaled rows, and scores that are sums of them.

========  ===========================================================
rbf       :math:`\exp(-\gamma \|x - z\|^2)`
linear    :math:`x^\top z`
poly      :math:`(\gamma\, x^\top z + c_0)^p`
========  ===========================================================

A precomputed kernel has no formula: its "rows" are rows of the matrix of kernel values with all training
rows, and an anchor is one of its columns.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from isbor._core.types import FloatArray
from isbor.data.rows import Scaling, TrainingRows
from isbor.prediction.latent import Latent

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
        if len(anchors) == 0:  # a score that is constant
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
        """Return the kernel between all pairs of rows, symmetric but for rounding, shape (n, n)."""
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
    """What a machine without probabilities learns from n rows: a sum of kernels, cut by thresholds."""

    coef: FloatArray  # (n,) of the kernels at the rows
    thresholds: FloatArray  # (r-1,) in order
    n_iter: int


@dataclass(frozen=True, slots=True)
class KernelMachine:
    """The score f(x) = Σ coef_i k(x_i, x), known exactly."""

    scaling: Scaling
    kernel: Kernel
    anchors: TrainingRows  # (m,) rows x_i whose coefficient is not zero
    coef: FloatArray  # (m,)

    @property
    def n_functions(self) -> int:
        """Number of kernel values a score takes."""
        return len(self.coef)

    def latent(self, X: FloatArray) -> Latent:
        """Return the score at encoded rows, in units of its own."""
        f = self.kernel(self.scaling(X), self.anchors) @ self.coef
        return Latent(f, np.zeros(len(f)), np.ones(len(f)))
