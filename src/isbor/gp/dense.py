"""A fitted Gaussian process as a sum of functions, so that it can be averaged with sparse models.

The posterior mean of the score is a sum of functions centred on all rows, one for each row and part of the
covariance, with weights w = a² α for a part of variance a². Its variance is that of the process.

The prior of α = K⁻¹f has the precision matrix K. So the precision of one of its elements, given the others,
is the prior variance of the score, and that of the weight w is the same divided by a⁴.
"""

from dataclasses import dataclass

import numpy as np

from isbor._core.types import FloatArray
from isbor.gp.pooled import PooledRows, score_moments
from isbor.gp.process import ProcessPosterior
from isbor.gp.two_scales import TwoScalesFit
from isbor.model.basis import Functions
from isbor.model.latent import Latent

__all__ = ["DenseModel", "DenseMode", "Moments", "dense_model"]


@dataclass(frozen=True, slots=True)
class Moments:
    """The latent score over the training rows."""

    latent_mean: float
    latent_variance: float


@dataclass(frozen=True, slots=True)
class DenseMode:
    """What an average of models needs to know of a Gaussian process: the same as of a sparse model's mode."""

    thresholds: FloatArray  # (r-1,)
    weights: FloatArray  # (m,) of the functions
    alpha: FloatArray  # (m,) prior precision of each weight, given the weights of the other rows
    expansion: Moments


@dataclass(frozen=True, slots=True)
class DenseModel:
    """A Gaussian process over the scaled columns; the counterpart of `isbor.inference.sparse.SparseModel`."""

    functions: Functions  # m = 2n of them: the smooth part of the covariance with each row, then the local
    variances: tuple[float, ...]  # of the parts
    posterior: ProcessPosterior
    mode: DenseMode
    log_evidence: float

    def __len__(self) -> int:
        return len(self.functions)

    def objective(self, size_prior: float) -> float:
        """Return the log evidence: no function was selected, so none has a price."""
        return self.log_evidence

    def latent(self, prepared: FloatArray) -> Latent:
        """Return the latent score at prepared rows."""
        n = len(self) // len(self.variances)
        parts = [slice(k * n, (k + 1) * n) for k in range(len(self.variances))]
        # The functions of one part have one metric, and are evaluated together.
        covariances = sum(
            variance * self.functions.take(part)(prepared)
            for part, variance in zip(parts, self.variances, strict=True)
        )
        mean, variance = score_moments(np.asarray(covariances), sum(self.variances), self.posterior)
        return Latent(mean, variance, np.ones(len(mean)))


def dense_model(rows: PooledRows, fit: TwoScalesFit) -> DenseModel:
    """Return the fitted process as a sum of functions."""
    parts = fit.parameters.smooth, fit.parameters.local
    n, posterior = len(rows), fit.evidence.posterior
    m = len(parts) * n
    functions = Functions(
        centres=np.tile(rows.X, (len(parts), 1)),
        metric=np.repeat([part.scales for part in parts], n, axis=0),
        ramp=np.zeros(m, dtype=np.bool_),
        offset=np.zeros(m),
        origin=np.tile(rows.first, len(parts)),
        cost=np.ones(m),
    )
    variances = tuple(part.amplitude**2 for part in parts)
    weights = np.concatenate([variance * posterior.coef for variance in variances])
    score = (fit.parameters.gram(rows.X) @ posterior.coef)[rows.row]
    share = rows.weight / rows.weight.sum()
    mean = float(share @ score)
    moments = Moments(mean, float(share @ (score - mean) ** 2))
    alpha = np.repeat([sum(variances) / variance**2 for variance in variances], n)
    mode = DenseMode(fit.parameters.thresholds, weights, alpha, moments)
    return DenseModel(functions, variances, posterior, mode, fit.evidence.log_evidence)
