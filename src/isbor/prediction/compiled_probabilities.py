r"""Class probabilities from Gaussian scores, compiled; `isbor.prediction.probabilities` defines them.

With thresholds in units of the response, :math:`z_k`, each row needs one tail of the normal distribution for
each threshold, :math:`t_k = \Psi(-|z_k|)`: the probability of a class is the difference of two tails on one
side of the mean, or 1 minus the tails on both sides. No digits are lost far from the mean.
"""

import numpy as np

from isbor._core.compiled import compiled
from isbor._core.types import FloatArray
from isbor.model.compiled_likelihood import upper_tail

__all__ = ["add_class_probabilities"]

_CHUNK = 256  # rows that are evaluated together; their numbers fit into the caches


@compiled
def add_class_probabilities(
    total: FloatArray, mean: FloatArray, scale: FloatArray, thresholds: FloatArray, share: float, lapse: float
) -> None:
    """Add a share of the class probabilities at n rows to `total`, (n, r).

    The score has a mean and the response a standard deviation, `scale`, at each row. `thresholds` are those
    of each row, (n, r-1), or of all, (1, r-1). The share `lapse` of the labels is drawn at random.
    """
    n, n_levels = total.shape
    step = 1 if len(thresholds) > 1 else 0
    certain, anything = share * (1.0 - lapse), share * lapse / n_levels
    z, tail = np.empty(2 * _CHUNK), np.empty(2 * _CHUNK)  # lower edges of a class, then upper
    for begin in range(0, n, _CHUNK):
        size = min(_CHUNK, n - begin)
        low, high = 0, _CHUNK
        for i in range(size):
            z[low + i], tail[low + i] = -1.0, 0.0
        for k in range(n_levels):
            for i in range(size):
                if k < n_levels - 1:
                    row = begin + i
                    z[high + i] = (thresholds[step * row, k] - mean[row]) / scale[row]
                else:
                    z[high + i] = np.inf
            for i in range(size):
                tail[high + i] = upper_tail(abs(z[high + i]))
            for i in range(size):
                below, above = tail[low + i], tail[high + i]
                across = below - above if z[low + i] > 0.0 else 1.0 - below - above
                p = across if z[high + i] > 0.0 else above - below
                total[begin + i, k] += certain * max(p, 0.0) + anything
            low, high = high, low
