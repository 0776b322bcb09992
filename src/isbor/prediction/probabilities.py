r"""From the latent score to class probabilities.

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

**Drift.** What functions do far outside the training rows is an accident: bumps fade, ramps go on. So if a
column that the score depends on is outside the range of the training rows by e times the width of the range,

.. math:: P''(y = k) = (1 - u)\, P'(y = k) + u\, \bar p_k, \qquad u = 1 - \exp(-e^2/8),

with the base rates :math:`\bar p`, the class frequencies in training. A row that is hardly outside, as some
new rows always are, hardly changes: with e = 0.1, u is 0.001.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from isbor._core.types import FloatArray, IntArray
from isbor.model.latent import Latent
from isbor.model.likelihood import ordinal_probit
from isbor.prediction.compiled_probabilities import add_class_probabilities

__all__ = [
    "class_probabilities",
    "lapse_after",
    "log_class_probabilities",
    "log_label_probabilities",
    "normal_scores",
    "with_lapses",
]


def lapse_after(total_weight: float) -> float:
    """Return the share of labels assumed to be drawn at random, after training on rows of a total weight."""
    return 1.0 / (total_weight + 2.0)


def class_probabilities(latent: Latent, thresholds: FloatArray) -> FloatArray:
    """Return P(y = k) for each row and level, shape (n, r)."""
    total = np.zeros((len(latent.mean), len(thresholds) + 1))
    if latent.parts:
        for part, share in zip(latent.parts, latent.shares, strict=True):
            _add_share(total, part, thresholds, share)
    else:
        _add_share(total, latent, thresholds, 1.0)
    if latent.drift is None:
        return total
    u = latent.drift.share[:, None]
    drifted: FloatArray = (1.0 - u) * total + u * latent.drift.base_rates
    return drifted


def _add_share(total: FloatArray, model: Latent, thresholds: FloatArray, share: float) -> None:
    """Add a share of the class probabilities of a single model."""
    mean, edges = np.ascontiguousarray(model.mean), np.ascontiguousarray(model.thresholds(thresholds))
    add_class_probabilities(total, mean, model.response_scale, edges, share, model.lapse)


def log_class_probabilities(latent: Latent, thresholds: FloatArray) -> FloatArray:
    """Return ln P(y = k), accurate far into the tails, shape (n, r)."""
    n, n_levels = len(latent.mean), len(thresholds) + 1
    of_levels = [log_label_probabilities(latent, thresholds, np.full(n, k)) for k in range(n_levels)]
    return np.stack(of_levels, axis=1)


def log_label_probabilities(latent: Latent, thresholds: FloatArray, y: IntArray) -> FloatArray:
    """Return ln P(y = y_i) of the level y_i of each row, (n,): the same as ln P(y = k) at these levels."""
    if latent.drift is not None:
        inside = log_label_probabilities(replace(latent, drift=None), thresholds, y)
        return _drifted(inside, np.log(latent.drift.base_rates[y]), latent.drift.share)
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
    if latent.drift is not None:
        inside = normal_scores(replace(latent, drift=None), thresholds)
        outside = latent.drift.share > 0.0
        if outside.any():
            u = latent.drift.share[outside, None]
            base = np.cumsum(latent.drift.base_rates)[:-1]
            below = _drifted(log_ndtr(inside[outside, 1:-1]), np.log(base), u)
            above = _drifted(log_ndtr(-inside[outside, 1:-1]), np.log1p(-base), u)
            inside = inside.copy()
            inside[outside, 1:-1] = _normal_score(below, above)
        return inside
    if not latent.parts:
        return latent.standardised_edges(thresholds)
    z = [part.standardised_edges(thresholds)[:, 1:-1] for part in latent.parts]
    below, above = (_log_mixture([log_ndtr(sign * some) for some in z], latent) for sign in (1.0, -1.0))
    ends = (0.0, 0.0), (-np.inf, np.inf)
    return np.pad(_normal_score(below, above), ((0, 0), (1, 1)), constant_values=ends)


def _normal_score(below: FloatArray, above: FloatArray) -> FloatArray:
    """Return Ψ⁻¹(p) from ln p and ln(1 - p), whichever is smaller: the other is rounded to 0 in the tails."""
    score: FloatArray = np.where(below < above, ndtri_exp(below), -ndtri_exp(above))
    return score


def _drifted(log_p: FloatArray, log_base: FloatArray, u: FloatArray) -> FloatArray:
    """Return the logarithm of (1 - u) p + u p̄."""
    with np.errstate(divide="ignore"):
        drifted: FloatArray = np.logaddexp(log_p + np.log1p(-u), log_base + np.log(u))
    return drifted


def _log_mixture(log_p: Sequence[FloatArray], latent: Latent) -> FloatArray:
    """Return the logarithm of the average of the parts' probabilities."""
    shares = np.reshape(latent.shares, (-1,) + (1,) * log_p[0].ndim)
    mixed: FloatArray = logsumexp(np.stack(log_p), axis=0, b=shares)
    return mixed


def with_lapses(probabilities: FloatArray, lapse: float) -> FloatArray:
    """Return the probabilities if a share of labels is drawn at random."""
    mixed: FloatArray = (1.0 - lapse) * probabilities + lapse / probabilities.shape[1]
    return mixed
