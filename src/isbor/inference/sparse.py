r"""The sparse model: a few basis functions, and the Laplace approximation of the posterior of their weights.

At a row where the centred functions have the values φ, the latent score is Gaussian with mean φ·w and
variance

.. math:: v = \phi^\top (\Gamma_{ww} + A)^{-1} \phi ,

the variance given the thresholds. (The weights' block of the joint covariance would include the common shift
of scores and thresholds, on which predictions do not depend.)
"""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from isbor._core.linalg import UnresolvedError, factorise
from isbor._core.parallel import Workers
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.inference.expansion import Columns, columns_of
from isbor.inference.mode import Mode, find_mode_at_rows, log_evidence
from isbor.inference.shape import ShapeModel
from isbor.model.basis import Functions
from isbor.model.cuts import RowShape, row_thresholds
from isbor.model.latent import Latent

__all__ = ["SparseModel", "fit_weights"]

_ROUGH = 1.0  # Newton decrement at which a mode counts as found, in nats


@dataclass(frozen=True)
class SparseModel:
    """Basis functions with the mode of their weights."""

    functions: Functions  # m of them
    mode: Mode
    log_evidence: float
    n_rows: int  # distinct rows to which the model was fitted
    shape_weights: FloatArray | None = None  # (K, m) of the functions in the shape of the response
    shape_model: ShapeModel | None = None  # if what functions are worth to the shape counts

    def __len__(self) -> int:
        return len(self.functions)

    def objective(self, size_prior: float) -> float:
        """Return the log evidence minus the penalties of all functions."""
        of_shape = 0.0 if self.shape_model is None else self.shape_model.log_evidence
        return self.log_evidence + of_shape - size_prior * float(self.functions.cost.sum())

    @cached_property
    def whitening(self) -> FloatArray:
        """The matrix W, (m, m), with v = ‖W φ‖²."""
        m = len(self)
        return factorise(self.mode.expansion.precision[:m, :m] + np.diag(self.mode.alpha)).whitening()

    def latent(self, prepared: FloatArray) -> Latent:
        """Return the latent score at prepared rows."""
        phi = self.functions(prepared)
        whitened = phi @ self.whitening.T
        variance: FloatArray = np.einsum("ij,ij->i", whitened, whitened)
        mean, shape = phi @ self.mode.weights, self._shape(phi)
        offsets = None
        if len(shape.gap_factors):
            offsets = row_thresholds(self.mode.thresholds, shape) - self.mode.thresholds
        return Latent(mean, variance, shape.noise_scale**2, offsets=offsets)

    def _shape(self, phi: FloatArray) -> RowShape:
        if self.shape_weights is None:
            return RowShape.constant(len(phi))
        return RowShape.of(np.ascontiguousarray(phi.T), self.shape_weights, len(self.mode.thresholds))


def fit_weights(
    rows: TrainingRows,
    functions: Functions,
    alpha: FloatArray,
    weights: FloatArray,
    thresholds: FloatArray,
    workers: Workers,
    shape: RowShape | None = None,
    *,
    columns: Columns | None = None,
    rough: bool = False,
) -> SparseModel:
    """Fit the weights of given functions with given prior precisions, from a starting point.

    `shape` is the noise and the factors of the gaps of each row; None means noise 1 and factors 1. `columns`
    are the values of the functions, if they are known. If `rough`, the mode is found to about a
    nat, by Newton steps in single precision unless functions are collinear in it. The expansion there is
    exact: moves on one in single precision would soon meet a singular posterior.
    """
    columns = columns_of(rows, functions, workers) if columns is None else columns
    find = partial(find_mode_at_rows, rows, columns, alpha, weights, thresholds, workers, shape)
    if rough:
        try:
            mode = find(tol=_ROUGH, single=len(functions) > 0)  # BLAS refuses empty products
        except UnresolvedError:
            mode = find(tol=_ROUGH)
    else:
        mode = find()
    return SparseModel(functions, mode, log_evidence(mode), len(rows))
