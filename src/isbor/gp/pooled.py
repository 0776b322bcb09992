r"""Expectation propagation for labels that share scores.

Labels of equal rows x have the same score, so n distinct rows have n scores, however many labels there are.
Each label i, of the row :math:`x_i` and with weight :math:`v_i`, has a Gaussian factor
:math:`t_i(f) = \exp(\nu_i f - \tfrac12 s_i f^2)` that approximates its likelihood. The factor counts v times,
as if the label occurred v times: the posterior (see `isbor.gp.process`) is that with the factors

.. math:: S_x = \sum_{i: x_i = x} v_i s_i, \qquad N_x = \sum_{i: x_i = x} v_i \nu_i .

**Factors.** If the score of a row has the posterior mean m and variance Σ, the cavity of a label is the
posterior without one occurrence of its factor, or without all of it if its weight is below 1,

.. math::
    \frac1c = \frac1\Sigma - \min(v, 1)\, s, \qquad \frac\mu c = \frac m\Sigma - \min(v, 1)\, \nu,

and the new factor is such that the cavity times the factor has the same mean and variance as the cavity times
the likelihood. The likelihood is an ordinal probit with noise variance 1 + c in the cavity mean. With its
slope g and curvature h,

.. math:: s = \frac{h}{1 - ch}, \qquad \nu = \frac{g + h\mu}{1 - ch} .

So no weight needs quadrature, in contrast to `isbor.gp.ep`, where a row of weight v has one factor for the
power of its likelihood. For weights of 1 and distinct rows, both are the same.

**Evidence.** The factors are normalised such that they agree with the likelihoods in their cavities:

.. math::
    L = \sum_i v_i \Big(\ln \hat Z_i + \tfrac12 \ln(1 + s_i c_i)
        - \frac{2 \mu_i \nu_i + c_i \nu_i^2 - s_i \mu_i^2}{2 (1 + s_i c_i)}\Big)
        - \tfrac12 \ln|B| + \tfrac12 N^\top m .

For weights of at least 1 it is stationary in the factors, so its gradient is that for fixed factors and
cavities: ½ (ααᵀ - R) in K, and :math:`\sum_i v_i\, \partial \ln \hat Z_i / \partial b` in a threshold.

**Iteration.** All factors are renewed at once, then the posterior. If the mismatch between the means and
variances of the posterior and those with a likelihood grows, all later steps are half as long.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from isbor._core import lapack
from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.gp.process import Evidence, ProcessPosterior, process_posterior, sum_by_threshold
from isbor.model.likelihood import Derivatives, edges, ordinal_probit

__all__ = ["LEAST_VARIANCE", "Factors", "PooledEvidence", "PooledRows", "pooled_evidence", "score_moments"]

LEAST_VARIANCE = 1e-12  # of a score, as a share of its prior variance: a rounding error
_WEAKEST = 1e-10  # smallest precision of a factor
_SHORTEST_STEP = 0.2
_DIGITS_LOST = 1e-8  # of SΣ, from which a variance is computed in another way
_FIRST_PRECISION = 0.1  # of the factors before the first round


@dataclass(frozen=True, slots=True)
class PooledRows:
    """Distinct rows, and labels that refer to them."""

    X: FloatArray  # (n, d) distinct rows, in the order of their first labels
    first: IntArray  # (n,) the first label of each row, as its position in the training rows
    row: IntArray  # (m,) the row of each label
    y: IntArray  # (m,) labels 0 … r-1
    weight: FloatArray  # (m,)

    @classmethod
    def of(cls, rows: TrainingRows) -> Self:
        """Pool the labels of equal rows."""
        _, first, place = np.unique(rows.X, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        number = np.empty_like(order)
        number[order] = np.arange(len(order))
        return cls(rows.X[first[order]], first[order], number[place.ravel()], rows.y, rows.weight)

    def __len__(self) -> int:
        return len(self.X)

    def head(self, n: int) -> "PooledRows":
        """Return the first n distinct rows with all their labels.

        A sample of labels instead would leave out those that contradict others of the same row.
        """
        if n >= len(self):
            return self
        own = self.row < n
        return PooledRows(self.X[:n], self.first[:n], self.row[own], self.y[own], self.weight[own])


@dataclass(frozen=True, slots=True)
class Factors:
    """The factor exp(ν f - ½ s f²) of each label."""

    precision: FloatArray  # (m,) s
    linear: FloatArray  # (m,) ν

    @classmethod
    def weak(cls, n_labels: int) -> "Factors":
        """Return factors to start from if nothing is known."""
        return cls(np.full(n_labels, _FIRST_PRECISION), np.zeros(n_labels))

    @classmethod
    def in_cavities(
        cls, mean: FloatArray, variance: FloatArray, y: IntArray, thresholds: FloatArray
    ) -> "Factors":
        """Return the factors of labels whose scores are otherwise known to be N(mean, variance)."""
        return _matching(mean, variance, _likelihood(mean, variance, y, thresholds))

    def scaled(self, unit: float) -> "Factors":
        """Return the factors of the score multiplied by `unit`."""
        return Factors(self.precision / unit**2, self.linear / unit)

    def towards(self, other: "Factors", step: float) -> "Factors":
        """Return the factors on the way to others; a step of 1 leads to them."""
        return Factors(
            (1.0 - step) * self.precision + step * other.precision,
            (1.0 - step) * self.linear + step * other.linear,
        )


@dataclass(frozen=True, slots=True)
class PooledEvidence(Evidence):
    """The approximate log evidence, with its gradient and the factors of the labels."""

    factors: Factors


def pooled_evidence(
    gram: FloatArray,
    rows: PooledRows,
    thresholds: FloatArray,
    start: Factors,
    *,
    tol: float = 1e-2,
    max_rounds: int = 40,
) -> PooledEvidence:
    """Return the approximate log evidence by expectation propagation, with its gradient.

    The iteration ends if the mismatch is below `tol`, in units of the posterior standard deviation.
    """
    factors, step, before = start, 1.0, np.inf
    for _ in range(max_rounds):
        at = _round(gram, rows, thresholds, factors)
        if at.mismatch < tol:
            break
        step = max(0.5 * step, _SHORTEST_STEP) if at.mismatch > before else step
        before, used = at.mismatch, factors
        factors = factors.towards(at.factors, step)
    else:
        factors = used
    inverse = lapack.self_product(at.inverse_lower)
    v, likelihood = rows.weight, at.likelihood
    return PooledEvidence(
        at.posterior,
        at.log_evidence,
        at.posterior.gradient(inverse),
        sum_by_threshold(rows.y, v * likelihood.upper, -v * likelihood.lower),
        factors,
    )


def score_moments(
    covariances: FloatArray, prior_variance: float, posterior: ProcessPosterior
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of the score at other rows, given their covariances with the n rows."""
    mean = covariances @ posterior.coef
    scaled = covariances * np.sqrt(posterior.precision)
    whitened = lapack.whiten(posterior.lower, scaled.T)
    variance = prior_variance - np.einsum("ij,ij->j", whitened, whitened)
    return mean, np.maximum(variance, LEAST_VARIANCE * prior_variance)


@dataclass(frozen=True, slots=True)
class _Round:
    posterior: ProcessPosterior  # with the factors before the round
    inverse_lower: FloatArray  # (n, n) inverse of the Cholesky factor of B
    likelihood: Derivatives  # of the labels, in their cavities
    factors: Factors  # after the round
    mismatch: float
    log_evidence: float


def _round(gram: FloatArray, rows: PooledRows, thresholds: FloatArray, factors: Factors) -> _Round:
    """Compute the posterior with these factors, and renew the factors."""
    v, s, nu, n = rows.weight, factors.precision, factors.linear, len(rows)
    total: FloatArray = np.bincount(rows.row, v * s, minlength=n).astype(np.float64)
    linear: FloatArray = np.bincount(rows.row, v * nu, minlength=n).astype(np.float64)
    posterior = process_posterior(gram, total, linear)
    inverse_lower = lapack.inverse_of_lower(posterior.lower)
    share = np.einsum("ij,ij->j", inverse_lower, inverse_lower)  # the diagonal of B⁻¹, which is 1 - SΣ
    row_variance = np.minimum((1.0 - share) / total, np.diag(gram))
    faint = share > 1.0 - _DIGITS_LOST  # rows whose own labels say hardly anything
    if faint.any():
        whitened = inverse_lower @ (np.sqrt(total)[:, None] * gram[:, faint])
        prior = np.diag(gram)[faint]
        known = prior - np.einsum("ij,ij->j", whitened, whitened)
        row_variance[faint] = np.maximum(known, LEAST_VARIANCE * prior)
    row_mean = gram @ posterior.coef
    mean, variance = row_mean[rows.row], row_variance[rows.row]
    removed = np.minimum(v, 1.0)
    c = 1.0 / (1.0 / variance - removed * s)
    mu = c * (mean / variance - removed * nu)
    likelihood = _likelihood(mu, c, rows.y, thresholds)
    renewed = _matching(mu, c, likelihood)
    grown = 1.0 + s * c
    # With its own factor in place of the likelihood, a label would have these moments.
    expected, spread = (mu + c * nu) / grown, c / grown
    mismatch = np.maximum(
        np.abs(mu + c * likelihood.slope - expected) / np.sqrt(spread),
        np.abs((1.0 - c * likelihood.curvature) * grown - 1.0),
    )
    normalised = likelihood.log_p + 0.5 * np.log(grown)
    normalised -= 0.5 * (2.0 * mu * nu + c * nu**2 - s * mu**2) / grown
    log_evidence = float(v @ normalised) - posterior.half_log_determinant + 0.5 * float(linear @ row_mean)
    return _Round(posterior, inverse_lower, likelihood, renewed, float(mismatch.max()), log_evidence)


def _likelihood(mean: FloatArray, variance: FloatArray, y: IntArray, thresholds: FloatArray) -> Derivatives:
    """Return ln ∫ p(y | f) N(f | mean, variance) df and its derivatives for each label."""
    edge = edges(thresholds)
    return ordinal_probit(mean, edge[y], edge[y + 1], scale=np.sqrt(1.0 + variance))


def _matching(mean: FloatArray, variance: FloatArray, likelihood: Derivatives) -> Factors:
    """Return the factors with which cavities have the same moments as with the likelihoods."""
    rest = 1.0 - variance * likelihood.curvature
    return Factors(
        np.maximum(likelihood.curvature / rest, _WEAKEST),
        (likelihood.slope + likelihood.curvature * mean) / rest,
    )
