r"""The sparse model: a few basis functions, and the Laplace approximation of the posterior of their weights.

At a row where the centred functions have the values φ, the latent score is Gaussian with mean φ·w and
variance

.. math:: v = \phi^\top (\Gamma_{ww} + A)^{-1} \phi ,

the variance given the thresholds. (The weights' block of the joint covariance would include the common shift
of scores and thresholds, on which predictions do not depend.)
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from isbor._core.linalg import factorise
from isbor._core.parallel import Workers
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.inference.expansion import Columns, columns_of
from isbor.inference.mode import Mode, find_mode_at_rows, log_evidence
from isbor.inference.noise import noise_scale_of
from isbor.model.basis import Functions
from isbor.model.latent import Latent

__all__ = ["SparseModel", "fit_weights"]


@dataclass(frozen=True)
class SparseModel:
    """Basis functions with the mode of their weights."""

    functions: Functions  # m of them
    mode: Mode
    log_evidence: float
    n_rows: int  # distinct rows to which the model was fitted
    noise_weights: FloatArray | None = None  # (m,) of the functions in the log noise scale, if it varies

    def __len__(self) -> int:
        return len(self.functions)

    def objective(self, size_prior: float) -> float:
        """Return the log evidence minus the size-prior penalty of all functions."""
        return self.log_evidence - size_prior * float(self.functions.cost.sum())

    @cached_property
    def whitening(self) -> FloatArray:
        """The matrix W, (m, m), with v = ‖W φ‖²."""
        m = len(self)
        return factorise(self.mode.expansion.precision[:m, :m] + np.diag(self.mode.alpha)).whitening()

    def latent(self, prepared: FloatArray, scale: float = 1.0) -> Latent:
        """Return the latent score at prepared rows, with score and noise multiplied by `scale`."""
        phi = self.functions(prepared)
        whitened = phi @ (scale * self.whitening).T
        variance: FloatArray = np.einsum("ij,ij->i", whitened, whitened)
        weights = self.noise_weights
        noise_scale = np.ones(len(phi)) if weights is None else noise_scale_of(phi, weights)
        return Latent(phi @ (scale * self.mode.weights), variance, (scale * noise_scale) ** 2)


def fit_weights(
    rows: TrainingRows,
    functions: Functions,
    alpha: FloatArray,
    weights: FloatArray,
    thresholds: FloatArray,
    workers: Workers,
    noise_scale: FloatArray | None = None,
    *,
    columns: Columns | None = None,
    tol: float = 1e-8,
) -> SparseModel:
    """Fit the weights of given functions with given prior precisions, from a starting point.

    `noise_scale`, (n,), is the standard deviation of each row's noise; None means 1. `columns` are the values
    of the functions, if they are known, and `tol` is the Newton decrement at which the mode counts as found.
    """
    columns = columns_of(rows, functions, workers) if columns is None else columns
    mode = find_mode_at_rows(rows, columns, alpha, weights, thresholds, workers, noise_scale, tol=tol)
    return SparseModel(functions, mode, log_evidence(mode), len(rows))
