r"""From the latent score to class probabilities and their credible intervals.

At a new row, the latent score is Gaussian, :math:`f \sim N(\mu, v)`. With noise of standard deviation s (1
unless it varies, see `isbor.model.cuts`),

.. math:: P(y \le k) = \Psi\Big(\frac{b_k - \mu}{\sqrt{s^2 + v}}\Big).

This is monotone in k, so class probabilities are nonnegative and sum to one. The probabilities of an average
of models are the averages of their probabilities. (Averages of their scores are less sure than any of them
where there is little noise.)

**Lapses.** If the classes can be separated, nothing bounds the score, and predicted probabilities reach 0 and
1 in floating point. But after n unsurprising labels, Laplace's rule of succession still gives a surprise
probability 1/(n + 2). So the model assumes that this share of labels, the lapses, is drawn at random,

.. math:: P'(y = k) = (1 - \epsilon) P(y = k) + \epsilon/r, \qquad \epsilon = 1/(n + 2) .

**Temperature.** An average of models can be less sure than the labels justify: where there is hardly any
noise, each of them leaves some of its errors to the noise, but they make different errors. Held-out labels
tell (`isbor.search.temperature`). With temperature T, the standard deviations of the score and of the noise
of each model are multiplied by T; their means stay as they are.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri, ndtri_exp

from isbor._core.types import FloatArray, IntArray
from isbor.model.latent import Latent
from isbor.model.likelihood import ordinal_probit

__all__ = [
    "class_probabilities",
    "credible_intervals",
    "lapse_after",
    "log_class_probabilities",
    "log_label_probabilities",
    "normal_scores",
]


def lapse_after(total_weight: float) -> float:
    """Return the share of labels assumed to be drawn at random, after training on rows of a total weight."""
    return 1.0 / (total_weight + 2.0)


def class_probabilities(latent: Latent, thresholds: FloatArray) -> FloatArray:
    """Return P(y = k) for each row and level, shape (n, r)."""
    if latent.parts:
        of_parts = [class_probabilities(part, thresholds) for part in latent.parts]
        mixed: FloatArray = np.tensordot(latent.shares, of_parts, axes=1)
        return mixed
    z = latent.standardised_edges(thresholds)
    # Above the mean, use the upper tails: the difference of two numbers near 1 would lose digits.
    right = z[:, :-1] > 0.0
    low = np.where(right, -z[:, 1:], z[:, :-1])
    high = np.where(right, -z[:, :-1], z[:, 1:])
    return _with_lapses(ndtr(high) - ndtr(low), latent.lapse)


def log_class_probabilities(latent: Latent, thresholds: FloatArray) -> FloatArray:
    """Return ln P(y = k), accurate far into the tails, shape (n, r)."""
    n, n_levels = len(latent.mean), len(thresholds) + 1
    of_levels = [log_label_probabilities(latent, thresholds, np.full(n, k)) for k in range(n_levels)]
    return np.stack(of_levels, axis=1)


def log_label_probabilities(latent: Latent, thresholds: FloatArray, y: IntArray) -> FloatArray:
    """Return ln P(y = y_i) of the level y_i of each row, (n,): the same as ln P(y = k) at these levels."""
    if latent.parts:
        return _log_mixture([log_label_probabilities(part, thresholds, y) for part in latent.parts], latent)
    edge = np.broadcast_to(latent.edges(thresholds), (len(y), len(thresholds) + 2))
    row = np.arange(len(y))
    log_p = ordinal_probit(latent.mean, edge[row, y], edge[row, y + 1], scale=latent.response_scale).log_p
    if latent.lapse > 0.0:
        log_p = np.logaddexp(log_p + np.log1p(-latent.lapse), np.log(latent.lapse / (len(thresholds) + 1)))
    return log_p


def normal_scores(latent: Latent, thresholds: FloatArray) -> FloatArray:
    """Return Ψ⁻¹(P(y ≤ k)) without lapses, for k from -1 on: (n, r+1), with -∞ and ∞ at both ends.

    For a single model, these are its thresholds in units of the latent response.
    """
    if not latent.parts:
        return latent.standardised_edges(thresholds)
    z = [part.standardised_edges(thresholds)[:, 1:-1] for part in latent.parts]
    below, above = (_log_mixture([log_ndtr(sign * some) for some in z], latent) for sign in (1.0, -1.0))
    # From the smaller of the two probabilities: the other one is rounded to 1 in the tails.
    score = np.where(below < above, ndtri_exp(below), -ndtri_exp(above))
    return np.pad(score, ((0, 0), (1, 1)), constant_values=((0.0, 0.0), (-np.inf, np.inf)))


def _log_mixture(log_p: Sequence[FloatArray], latent: Latent) -> FloatArray:
    """Return the logarithm of the average of the parts' probabilities."""
    shares = np.reshape(latent.shares, (-1,) + (1,) * log_p[0].ndim)
    mixed: FloatArray = logsumexp(np.stack(log_p), axis=0, b=shares)
    return mixed


def credible_intervals(
    latent: Latent, thresholds: FloatArray, coverage: float
) -> tuple[FloatArray, FloatArray]:
    """Return the central credible interval of each class probability, two arrays of shape (n, r).

    P(y = k | f) is uncertain because f is. For the two end classes it is monotone in f; for the others it
    decreases with the distance of f from the middle between the two thresholds. So its quantiles are its
    values at quantiles of f, or of this distance.
    """
    tail = 0.5 - 0.5 * coverage
    unit = np.sqrt(latent.noise_variance)[:, None]
    mean, spread, thresholds = (
        latent.mean[:, None] / unit,
        np.sqrt(latent.variance)[:, None] / unit,
        latent.thresholds(thresholds) / unit,
    )
    middle = 0.5 * (thresholds[:, 1:] + thresholds[:, :-1])
    half = 0.5 * np.diff(thresholds)
    limits = []
    for share in (tail, 1.0 - tail):
        # The lowest class is likely if the score is low, an inner class if the distance is small.
        low = mean + spread * ndtri(1.0 - share)
        high = mean + spread * ndtri(share)
        far = _distance_quantile(mean - middle, spread, 1.0 - share)
        ends = ndtr(thresholds[:, :1] - low), ndtr(high - thresholds[:, -1:])
        inner = ndtr(half - far) - ndtr(-half - far)
        limits.append(_with_lapses(np.hstack([ends[0], inner, ends[1]]), latent.lapse))
    return limits[0], limits[1]


def _with_lapses(probabilities: FloatArray, lapse: float) -> FloatArray:
    mixed: FloatArray = (1.0 - lapse) * probabilities + lapse / probabilities.shape[1]
    return mixed


def _distance_quantile(centre: FloatArray, spread: FloatArray, share: float) -> FloatArray:
    """Return the quantile of |x| for x ~ N(centre, spread²), elementwise, by bisection."""
    low, high = np.zeros_like(centre), np.abs(centre) + 10.0 * spread
    scale = np.where(spread > 0, spread, 1.0)
    for _ in range(60):
        x = 0.5 * (low + high)
        below = ndtr((x - centre) / scale) - ndtr((-x - centre) / scale) < share
        low, high = np.where(below, x, low), np.where(below, high, x)
    return np.where(spread > 0, 0.5 * (low + high), np.abs(centre))
