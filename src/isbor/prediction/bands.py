r"""How far predicted probabilities may be from the true ones: the bands around them.

At a row, the true :math:`P(y \le k)` is :math:`\Psi(\eta_k)` for unknown :math:`\eta`. What is known of η is
a Gaussian with covariance V whose mean is such that the predicted probabilities are the mean of the true
ones:

.. math::
    \eta \sim N(m, V), \qquad m_k = \sqrt{1 + V_{kk}}\; \pi_k, \qquad \pi_k = \Psi^{-1}(P(y \le k)),

since :math:`\mathrm{E}\, \Psi(\eta_k) = \Psi(m_k / \sqrt{1 + V_{kk}})`. So `predict_proba`, bands and the
standard deviation of the score belong to one distribution, and wider bands do not change a prediction.

.. math::
    V = C + \frac{\operatorname{tr} B}{\operatorname{tr} B + \operatorname{tr} C}\, B
        + w\, \delta \delta^\top .

* **C**: what a smooth process that selects nothing does not know (`isbor.gp.reference`): score, thresholds
  and noise given the data. It grows far from them.
* **B**: the disagreement between the models of an average, the covariance of their :math:`\pi` (in units of
  η). Searches that found different functions show what the choice of functions leaves open. The process
  knows of a part of that; so where they agree better than it is sure, B counts little.
* **δ**: the distance of the model from the process,
  :math:`\delta_k = \sqrt{1 + C_{kk}}\,(\pi^{ref}_k - \pi_k)`. If the process were right, the error of the
  prediction would have mean δ and covariance C, so the mean square :math:`C + \delta\delta^\top`. How far it
  may be right is its posterior probability beside the model,

  .. math:: w = \frac{E_{ref}}{E_{ref} + E},

  from the evidence of both; for a sparse model less the price of its functions. Where the model explains the
  labels much better than a smooth process, w is zero.

The band of a class probability, a difference of two :math:`\Psi(\eta_k)`, has the quantiles of 512 draws of η
that cover the Gaussian evenly (a Sobol sequence, the same for all rows), and always contains the prediction.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import expit, ndtr, ndtri
from scipy.stats import qmc

from isbor._core.types import FloatArray, IntArray
from isbor.gp.reference import ReferenceProcess
from isbor.model.latent import Latent
from isbor.prediction.empty_classes import places_of_thresholds
from isbor.prediction.probabilities import class_probabilities, normal_scores, with_lapses

__all__ = ["N_DRAWS", "Reference", "even_draws", "probability_bands", "score_std"]

N_DRAWS = 512
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
    score = _normal_scores(latent, thresholds)
    V = _covariance(latent, thresholds, score, reference, rows)
    mean = np.sqrt(1.0 + np.einsum("nkk->nk", V)) * score
    # Rounding may make an eigenvalue of V negative.
    size, vectors = np.linalg.eigh(V)
    root = (vectors * np.sqrt(np.maximum(size, 0.0))[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    eta = mean[:, None, :] + np.einsum("nkj,qj->nqk", root, even_draws(len(thresholds)))
    below = np.maximum.accumulate(ndtr(eta), axis=2)
    draws = np.diff(below, axis=2, prepend=0.0, append=1.0)
    tail = 0.5 - 0.5 * coverage
    low, high = np.quantile(draws, [tail, 1.0 - tail], axis=1)
    lapse = latent.parts[0].lapse if latent.parts else latent.lapse
    predicted = class_probabilities(latent, thresholds)
    return np.minimum(with_lapses(low, lapse), predicted), np.maximum(with_lapses(high, lapse), predicted)


def score_std(latent: Latent, thresholds: FloatArray, reference: Reference, rows: FloatArray) -> FloatArray:
    """Return the standard deviation of the score from the middle of the thresholds, (n,)."""
    score = _normal_scores(latent, thresholds)
    V = _covariance(latent, thresholds, score, reference, rows)
    n = len(thresholds)
    middle = np.zeros(n)
    np.add.at(middle, [(n - 1) // 2, n // 2], 0.5)
    std: FloatArray = np.sqrt(np.maximum(V @ middle @ middle, 0.0) * latent.noise_variance)
    return std


def _normal_scores(latent: Latent, thresholds: FloatArray) -> FloatArray:
    scores = normal_scores(latent, thresholds)[:, 1:-1]
    return np.clip(scores, -_LARGEST, _LARGEST)


def _covariance(
    latent: Latent, thresholds: FloatArray, score: FloatArray, reference: Reference, rows: FloatArray
) -> FloatArray:
    """Return V, (n, r-1, r-1)."""
    fitted, places = reference.fitted, reference.places
    mean, covariance = reference.process.law(rows)
    unit = np.sqrt(1.0 + np.einsum("nkk->nk", covariance))
    distance = mean - unit * score[:, fitted]
    V: FloatArray = covariance + reference.share * distance[:, :, None] * distance[:, None, :]
    if latent.parts:
        of_parts = np.stack(
            [part.standardised_edges(thresholds)[:, 1:-1][:, fitted] for part in latent.parts]
        )
        of_parts = np.clip(of_parts, -_LARGEST, _LARGEST)
        apart = (of_parts - np.tensordot(latent.shares, of_parts, axes=1)) * unit
        B = np.einsum("j,jnk,jnl->nkl", latent.shares, apart, apart)
        trace, of_process = (np.einsum("nkk->n", some) for some in (B, covariance))
        V += (trace / (trace + of_process))[:, None, None] * B
    return V[:, places[:, None], places]


@lru_cache(maxsize=32)
def even_draws(n: int) -> FloatArray:
    """Return draws from N(0, I) in n dimensions that cover it evenly, (q, n)."""
    draws: FloatArray = ndtri(qmc.Sobol(n, scramble=False).random(N_DRAWS) + 0.5 / N_DRAWS)
    return draws
