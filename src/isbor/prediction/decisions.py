"""Decisions: the class with the smallest expected loss.

The expected absolute error is smallest for the median of the predictive distribution. For a single model,
this is the class whose thresholds enclose the mean of the latent score. For other losses, the expected loss
is computed from the class probabilities.
"""

import numpy as np

from isbor._core.types import FloatArray, IntArray
from isbor.model.latent import Latent
from isbor.prediction.costs import Loss, least_expected_loss
from isbor.prediction.probabilities import class_probabilities, normal_scores

__all__ = ["decide", "margins"]


def decide(latent: Latent, thresholds: FloatArray, loss: Loss) -> IntArray:
    """Return the level with the smallest expected loss for each row; ties go to the lower level."""
    if isinstance(loss, str) and loss == "absolute":
        return _medians(latent, thresholds)
    return least_expected_loss(class_probabilities(latent, thresholds), loss)


def _medians(latent: Latent, thresholds: FloatArray) -> IntArray:
    """Return the median level of each row, without lapses."""
    median: IntArray
    if latent.parts or latent.drift is not None:
        below = np.cumsum(class_probabilities(latent.without_lapses(), thresholds)[:, :-1], axis=1)
        median = np.count_nonzero(below < 0.5, axis=1)
    else:
        # b_{k-1} < f ≤ b_k: the number of thresholds strictly below.
        median = np.count_nonzero(latent.thresholds(thresholds) < latent.mean[:, None], axis=1)
    return median


def margins(latent: Latent, thresholds: FloatArray) -> FloatArray:
    """Return the signed distance of the score to the nearer threshold of each level, (n, r).

    The unit is the standard deviation of the latent response.
    """
    z = normal_scores(latent, thresholds)
    return np.minimum(-z[:, :-1], z[:, 1:])
