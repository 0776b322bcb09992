r"""How far predicted probabilities may be from the true ones: the bands around them.

At a row, the true :math:`P(y \le k)` is :math:`\Psi(\eta_k)` for unknown :math:`\eta`. Either the model is
right, up to what it may not know, or a smooth process that selects nothing (`isbor.gp.reference`) is right:

.. math::
    \eta \sim N(m, C + b B) \;\text{ with probability } 1 - w, \qquad
    \eta \sim N(\mu, C) \;\text{ with probability } w .

* **m**: such that the predicted probabilities are the mean of the true ones, if the model is right. Let
  :math:`\pi_k = \Psi^{-1}(P(y \le k))` be the normal scores of the predicted ones. Then
  :math:`m_k = \sqrt{1 + (C + b B)_{kk}}\; \pi_k`.
* **μ, C**: mean and covariance of η by the process: score, thresholds and noise given the data. C grows far
  from them.
* **B**: the disagreement between the models of an average, the covariance of their :math:`\pi` (in units of
  η). Searches that found different functions show what the choice of functions leaves open. The process
  knows of a part of that; so where they agree better than it is sure, B counts little:
  :math:`b = \operatorname{tr} B / (\operatorname{tr} B + \operatorname{tr} C)`.
* **w**: the posterior probability of the process beside the model,

  .. math:: w = \frac{E_{ref}}{E_{ref} + E},

  from the evidence of both; for a sparse model less the price of its functions. Where the model explains the
  labels much better than a smooth process, w is zero. Where the process does, such as beside a model of
  constant noise if the noise varies, the errors of the model are not random: the truth is where the process
  is, on one side of the prediction.

Both cases together have

.. math::
    \mathrm{E}\, \eta = m + w \delta, \qquad
    V = C + (1 - w)\, b B + w (1 - w)\, \delta \delta^\top, \qquad \delta = \mu - m .

**Shape.** V itself is an estimate: of process and noise, widths and amplitudes are fitted. In units of an
estimated standard deviation, errors have longer tails than a Gaussian, and more of them are small. So η has
Student's t distribution with 8 degrees of freedom, with this mean and covariance. (The means of the true
probabilities change by less than .005 if V is less than 1, and by .011 at V = 3.)

The band of a class probability, a difference of two :math:`\Psi(\eta_k)`, has the quantiles of 512 draws of η
that cover this distribution evenly (a Sobol sequence, the same for all rows), and always contains the
prediction. The standard deviation of the score is the root mean square of its distance from the reported one,
from :math:`V + w^2 \delta \delta^\top`.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtr, ndtri
from scipy.stats import chi2, qmc, t

from isbor._core.types import FloatArray, IntArray
from isbor.gp.reference import ReferenceProcess
from isbor.model.latent import Latent
from isbor.prediction.empty_classes import places_of_thresholds
from isbor.prediction.probabilities import class_probabilities, normal_scores, with_lapses

__all__ = [
    "N_DRAWS",
    "Reference",
    "even_draws",
    "probability_bands",
    "probability_draws",
    "score_std",
]

N_DRAWS = 512
_DEGREES = 8.0  # of freedom
_LARGEST = 1e3  # of a normal score


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference process beside a model, and its posterior probability."""

    process: ReferenceProcess
    share: float  # w
    # Thresholds next to classes without training rows are not fitted.
    fitted: IntArray  # (K,) thresholds that the process has
    places: IntArray  # (r-1,) of each threshold, the fitted one with which it varies

    @classmethod
    def beside(
        cls, process: ReferenceProcess, log_evidence: float, observed: IntArray, n_levels: int
    ) -> "Reference":
        """Return the reference of a model with this log evidence; `observed` are the levels with rows."""
        gaps = np.diff(observed)
        fitted = observed[:-1] + (gaps - 1) // 2
        share = float(expit(process.log_evidence - log_evidence))
        return cls(process, share, fitted, places_of_thresholds(observed, n_levels))


def probability_bands(
    latent: Latent, thresholds: FloatArray, reference: Reference, rows: FloatArray, coverage: float
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the bands of all class probabilities at encoded rows, two arrays (n, r)."""
    draws = probability_draws(latent, thresholds, reference, rows)
    tail = 0.5 - 0.5 * coverage
    low, high = np.quantile(draws, [tail, 1.0 - tail], axis=1)
    lapse = latent.parts[0].lapse if latent.parts else latent.lapse
    predicted = class_probabilities(latent, thresholds)
    return np.minimum(with_lapses(low, lapse), predicted), np.maximum(with_lapses(high, lapse), predicted)


def probability_draws(
    latent: Latent, thresholds: FloatArray, reference: Reference, rows: FloatArray
) -> FloatArray:
    """Return draws of all class probabilities at encoded rows, without lapses, (n, q, r).

    Draw q goes the same way at all rows: errors at different rows are taken to go together.
    """
    law = _law_of_truth(latent, thresholds, reference, rows)
    # Rounding may make an eigenvalue of V negative.
    size, vectors = np.linalg.eigh(law.covariance)
    root = (vectors * np.sqrt(np.maximum(size, 0.0))[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    eta = law.mean[:, None, :] + np.einsum("nkj,qj->nqk", root, even_draws(len(thresholds)))
    below = np.maximum.accumulate(ndtr(eta), axis=2)
    draws: FloatArray = np.diff(below, axis=2, prepend=0.0, append=1.0)
    return draws


def score_std(latent: Latent, thresholds: FloatArray, reference: Reference, rows: FloatArray) -> FloatArray:
    """Return the standard deviation of the score from the middle of the thresholds, (n,)."""
    law = _law_of_truth(latent, thresholds, reference, rows)
    V = law.covariance + law.shift[:, :, None] * law.shift[:, None, :]
    n = len(thresholds)
    middle = np.zeros(n)
    np.add.at(middle, [(n - 1) // 2, n // 2], 0.5)
    std: FloatArray = np.sqrt(np.maximum(V @ middle @ middle, 0.0) * latent.noise_variance)
    return std


def _normal_scores(latent: Latent, thresholds: FloatArray) -> FloatArray:
    scores = normal_scores(latent, thresholds)[:, 1:-1]
    return np.clip(scores, -_LARGEST, _LARGEST)


class _Law(NamedTuple):
    """Mean and covariance of η at n rows."""

    mean: FloatArray  # (n, r-1)
    covariance: FloatArray  # (n, r-1, r-1)
    shift: FloatArray  # (n, r-1) of the mean from the prediction, w δ


def _law_of_truth(latent: Latent, thresholds: FloatArray, reference: Reference, rows: FloatArray) -> _Law:
    fitted, places, w = reference.fitted, reference.places, reference.share
    scores = _normal_scores(latent, thresholds)
    mean, C = reference.process.law(rows)
    B = np.zeros_like(C)
    if latent.parts:
        of_parts = np.stack(
            [part.standardised_edges(thresholds)[:, 1:-1][:, fitted] for part in latent.parts]
        )
        of_parts = np.clip(of_parts, -_LARGEST, _LARGEST)
        unit = np.sqrt(1.0 + np.einsum("nkk->nk", C))
        apart = (of_parts - np.tensordot(latent.shares, of_parts, axes=1)) * unit
        B = np.einsum("j,jnk,jnl->nkl", latent.shares, apart, apart)
        trace, of_process = (np.einsum("nkk->n", some) for some in (B, C))
        B *= (trace / (trace + of_process))[:, None, None]
    own = np.sqrt(1.0 + np.einsum("nkk->nk", C + B)[:, places]) * scores
    distance = mean - own[:, fitted]
    V = C + (1.0 - w) * B + w * (1.0 - w) * distance[:, :, None] * distance[:, None, :]
    shift = w * distance[:, places]
    return _Law(own + shift, V[:, places[:, None], places], shift)


@lru_cache(maxsize=32)
def even_draws(n: int) -> FloatArray:
    """Return draws that cover Student's t distribution of covariance I in n dimensions evenly, (q, n)."""
    even = qmc.Sobol(n + 1, scramble=False).random(N_DRAWS) + 0.5 / N_DRAWS
    # The first point is in the corner of all dimensions, and should not have the largest scale as well.
    scale = np.sqrt(1.0 / chi2.ppf((even[:, -1:] + 0.5) % 1.0, _DEGREES))
    # Each dimension has the quantiles of the distribution, in the order of these draws.
    rank = np.argsort(np.argsort(scale * ndtri(even[:, :-1]), axis=0), axis=0)
    draws: FloatArray = t.ppf((rank + 0.5) / N_DRAWS, _DEGREES) * np.sqrt(1.0 - 2.0 / _DEGREES)
    return draws
