r"""Gaussian processes with ordered labels: the model, and Gaussian approximations of the posterior.

The score has a Gaussian process prior, and the score plus noise of variance 1 is cut by thresholds,

.. math::
    f \sim \mathrm{GP}(0, k), \qquad k(x, x') = a^2 \exp\Big(-\sum_d \theta_d (x_d - x'_d)^2\Big), \qquad
    p(y = k \mid f) = \Psi(b_k - f) - \Psi(b_{k-1} - f) .

The noise variance is fixed at 1, because (a, b, σ) → (ca, cb, cσ) does not change the model. The amplitude a
is learned instead.

The posterior of the scores f at the n rows is approximated by a Gaussian: the prior times one Gaussian factor
per row, :math:`\exp(\nu_i f_i - \tfrac12 s_i f_i^2)`. `isbor.gp.laplace` and `isbor.gp.ep` differ in their
choice of (s, ν). With S = diag s and

.. math:: B = I + S^{1/2} K S^{1/2}, \qquad R = S^{1/2} B^{-1} S^{1/2} = (K + S^{-1})^{-1},

the posterior has mean Kα, α = ν - RKν, and covariance K - KRK. All eigenvalues of B are at least 1, so a
singular K (equal rows, or a constant kernel) does no harm. At a new row,

.. math::
    \mu_* = k_*^\top \alpha, \qquad v_* = k_{**} - \big\|L^{-1} S^{1/2} k_*\big\|^2, \qquad B = L L^\top .

The gradient of the approximate log evidence in K is the symmetric matrix

.. math:: M = \tfrac12 \big((\alpha + u)(\alpha + u)^\top - u u^\top - R\big),

where u accounts for the change of the mode in Laplace's approximation and is zero for expectation
propagation. With G = M∘K,

.. math::
    \frac{\partial}{\partial \ln a} = 2 \sum_{ij} G_{ij}, \qquad
    \frac{\partial}{\partial \ln \theta_d} = -\theta_d \sum_{ij} G_{ij} (x_{id} - x_{jd})^2
    = -2 \theta_d \Big(\sum_i x_{id}^2 \sum_j G_{ij} - \sum_i x_{id} (GX)_{id}\Big),

with one product GX for all features. All computations take O(n³) time and O(n²) memory.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import blas

from isbor._core import lapack
from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import Scaling, TrainingRows
from isbor.model.latent import Latent

__all__ = [
    "Covariance",
    "Evidence",
    "Inference",
    "ProcessPosterior",
    "Process",
    "negative_squared_distances",
    "process_posterior",
    "sum_by_threshold",
]


def negative_squared_distances(X: FloatArray, Z: FloatArray) -> FloatArray:
    """Return minus the squared distances between two sets of rows, shape (n, m)."""
    values: FloatArray = (2.0 * X) @ Z.T
    values -= np.einsum("ij,ij->i", X, X)[:, None]
    values -= np.einsum("ij,ij->i", Z, Z)
    np.minimum(values, 0.0, out=values)  # rounding may make a squared distance negative
    return values


@dataclass(frozen=True, slots=True)
class Covariance:
    """k(x, x') = a² exp(-Σ θ_d (x_d - x'_d)²)."""

    amplitude: float  # a
    scales: FloatArray  # (d,) θ

    def __call__(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        """Return the covariances between two sets of rows, shape (n, m)."""
        root = np.sqrt(self.scales)
        values = negative_squared_distances(X * root, Z * root)
        np.exp(values, out=values)
        values *= self.amplitude**2
        return values

    def gram(self, X: FloatArray) -> FloatArray:
        """Return the covariances of all pairs of rows, shape (n, n)."""
        values = self(X, X)
        np.fill_diagonal(values, self.amplitude**2)
        return values

    def gradient(self, X: FloatArray, gram: FloatArray, by_gram: FloatArray) -> tuple[float, FloatArray]:
        """Convert the lower triangle of a symmetric gradient in the Gram matrix to one in (ln a, ln θ)."""
        pairs = by_gram * gram.T  # symmetric; transposed to the memory order of by_gram
        diagonal = np.einsum("ii->i", pairs)
        trace = float(diagonal.sum())
        diagonal[:] = 0.0  # a row has no distance to itself
        ends = pairs.sum(axis=0) + pairs.sum(axis=1)
        squares = ends @ X**2 - 2.0 * np.einsum("ij,ij->j", X, pairs @ X)
        return 2.0 * (float(ends.sum()) + trace), -2.0 * self.scales * squares


@dataclass(frozen=True, slots=True)
class ProcessPosterior:
    """The prior of the scores of n rows times a factor exp(ν f - ½ s f²) for each."""

    precision: FloatArray  # (n,) s, nonnegative
    linear: FloatArray  # (n,) ν
    coef: FloatArray  # (n,) α: the mean is Kα
    lower: FloatArray  # (n, n) Cholesky factor of B = I + S½ K S½

    @property
    def half_log_determinant(self) -> float:
        """½ ln|B|."""
        # Copied: of a strided array, the logarithms of NumPy 1 depend in the last bit on where memory lies.
        return float(np.log(np.diag(self.lower).copy()).sum())

    def inverse(self) -> FloatArray:
        """Return the lower triangle of B⁻¹ with zeros above, a new array."""
        return lapack.inverse_from_factor(self.lower)

    def reduce(self, vector: FloatArray) -> FloatArray:
        """Return R · vector."""
        root = np.sqrt(self.precision)
        return root * lapack.solve(self.lower, root * vector)

    def gradient(self, inverse: FloatArray, shift: FloatArray | None = None) -> FloatArray:
        """Return the lower triangle of the gradient M in K with zeros above; `shift` is u.

        `inverse`, the lower triangle of B⁻¹, is overwritten.
        """
        root = np.sqrt(self.precision)
        inverse *= root
        inverse *= -0.5 * root[:, None]
        coef = self.coef if shift is None else self.coef + shift
        result: FloatArray = blas.dsyr(0.5, coef, lower=1, a=inverse, overwrite_a=1)
        if shift is not None:
            result = blas.dsyr(-0.5, shift, lower=1, a=result, overwrite_a=1)
        return result


def process_posterior(gram: FloatArray, precision: FloatArray, linear: FloatArray) -> ProcessPosterior:
    """Return the posterior with these factors."""
    root = np.sqrt(precision)
    scaled = gram * root
    scaled *= root[:, None]
    np.einsum("ii->i", scaled)[:] += 1.0
    lower = lapack.factorise_lower(scaled.T)  # symmetric, and the transpose has contiguous columns
    solution = lapack.solve(lower, root * (gram @ linear))
    return ProcessPosterior(precision, linear, linear - root * solution, lower)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The approximate log evidence of the labels, with its gradient."""

    posterior: ProcessPosterior
    log_evidence: float
    by_gram: FloatArray  # (n, n) lower triangle of the symmetric gradient in K, zeros above
    by_thresholds: FloatArray  # (r-1,) gradient in b


class Inference(Protocol):
    """An approximation of the posterior of the scores; `start` is one for similar parameters."""

    def __call__(
        self,
        gram: FloatArray,
        rows: TrainingRows,
        thresholds: FloatArray,
        start: ProcessPosterior | None = None,
        /,
    ) -> Evidence:
        """Return the evidence of the labels of the rows."""


def sum_by_threshold(y: IntArray, by_upper: FloatArray, by_lower: FloatArray) -> FloatArray:
    """Sum the contributions of rows to the upper and to the lower threshold of their class, (r-1,)."""
    return np.asarray(np.bincount(y, by_upper)[:-1] + np.bincount(y, by_lower)[1:], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Process:
    """The fitted latent score: a Gaussian at every row."""

    scaling: Scaling
    X: FloatArray  # (n, d) training rows, scaled
    covariance: Covariance
    posterior: ProcessPosterior
    lapse: float  # share of labels assumed to be drawn at random, ε

    @property
    def n_functions(self) -> int:
        """Number of covariances evaluated for one row."""
        return len(self.X)

    def latent(self, X: FloatArray) -> Latent:
        """Return the latent score at encoded rows."""
        values = self.covariance(self.scaling(X), self.X)
        mean = values @ self.posterior.coef
        values *= np.sqrt(self.posterior.precision)
        whitened = lapack.whiten(self.posterior.lower, values.T)
        variance = self.covariance.amplitude**2 - np.einsum("ij,ij->j", whitened, whitened)
        return Latent(mean, np.maximum(variance, 0.0), np.ones(len(mean)), self.lapse)

    def slopes(self, scaled: FloatArray) -> FloatArray:
        """Return the slopes of the score along each scaled column at scaled rows, (n, d)."""
        pull = self.covariance(scaled, self.X) * self.posterior.coef
        slopes: FloatArray = (
            2.0 * self.covariance.scales * (pull @ self.X - scaled * pull.sum(axis=1)[:, None])
        )
        return slopes
