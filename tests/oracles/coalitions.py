"""Shapley values by their definition: all coalitions of features, every score computed anew."""

from math import factorial

import numpy as np


def shapley_values(score, rows, background, share, feature):
    """Return the contributions, (n, d), of the features of encoded rows.

    `score` maps rows to scores, `feature` says which feature each column is of, and `share` is that of each
    row of the background.
    """
    d = int(feature.max()) + 1
    value = {}
    for coalition in range(2**d):
        own = (coalition >> feature & 1).astype(bool)
        mixed = np.where(own, rows[:, None], background[None])
        value[coalition] = score(mixed.reshape(-1, rows.shape[1])).reshape(len(rows), -1) @ share
    phi = np.zeros((len(rows), d))
    for j in range(d):
        for coalition in range(2**d):
            if not coalition >> j & 1:
                size = coalition.bit_count()
                weight = factorial(size) * factorial(d - size - 1) / factorial(d)
                phi[:, j] += weight * (value[coalition | 1 << j] - value[coalition])
    return phi
