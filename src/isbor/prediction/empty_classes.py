"""Thresholds for classes without training rows."""

import numpy as np
from scipy.special import ndtri

from isbor._core.types import FloatArray, IntArray

__all__ = ["insert_empty_levels", "places_of_thresholds"]


_SHARE_OF_GAP = 0.25  # of a class, that empty ones next to it take at most, on either side


def insert_empty_levels(
    thresholds: FloatArray,
    observed: IntArray,
    n_levels: int,
    *,
    total_weight: float,
    responses: FloatArray,
    noise_scale: float = 1.0,
) -> FloatArray:
    """Return thresholds for all levels, including those without training rows.

    `thresholds` separate the observed levels. An empty level gets probability p = 1/(total_weight + n_levels)
    where it is most likely. Between two observed levels, this is at the threshold that it splits. At an end,
    it is at the training row nearest to it; `responses`, (n, 2), are the means and standard deviations of the
    latent responses of the training rows, and `noise_scale` is the standard deviation of the noise. All empty
    levels together get at most a quarter.
    """
    # At least 1e-9, so that the thresholds differ in floating point.
    p = min(max(1.0 / (total_weight + n_levels), 1e-9), 0.25 / n_levels)
    mean, scale = responses.T
    below, above = int(observed[0]), n_levels - 1 - int(observed[-1])
    pieces = [
        [min(np.min(mean + z * scale), thresholds[0] + noise_scale * z)]
        for z in ndtri(p * np.arange(1, below + 1))
    ]
    # A class of very little weight may be narrower than an empty one would be; thresholds stay in order.
    gaps = np.concatenate([[np.inf], np.diff(thresholds), [np.inf]])
    room = _SHARE_OF_GAP * np.minimum(gaps[:-1], gaps[1:])
    for threshold, empty, most in zip(thresholds, np.diff(observed) - 1, room, strict=True):
        z = noise_scale * ndtri(0.5 + p * (np.arange(empty + 1) - 0.5 * empty))
        pieces.append(threshold + z * (1.0 if z[-1] <= most else most / z[-1]))
    pieces += [
        [max(np.max(mean - z * scale), thresholds[-1] - noise_scale * z)]
        for z in ndtri(p * np.arange(above, 0, -1))
    ]
    return np.concatenate(pieces)


def places_of_thresholds(observed: IntArray, n_levels: int) -> IntArray:
    """Return the number of the fitted threshold that each threshold of `insert_empty_levels` comes from."""
    below, above = int(observed[0]), n_levels - 1 - int(observed[-1])
    last = len(observed) - 2
    between = np.repeat(np.arange(last + 1), np.diff(observed))
    return np.concatenate([np.zeros(below, dtype=np.intp), between, np.full(above, last)])
