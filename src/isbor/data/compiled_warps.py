"""Interpolation between the knots of a warp, compiled; `isbor.data.warps` says what warps are."""

import numpy as np

from isbor._core.compiled import compiled
from isbor._core.types import FloatArray

__all__ = ["interpolated"]


_CHUNK = 64  # values whose knots are searched for side by side


@compiled
def interpolated(values: FloatArray, knots: FloatArray, warped: FloatArray) -> FloatArray:
    """Return the piecewise linear function through increasing knots, constant outside, at some values."""
    n, last = len(values), len(knots) - 1
    result = np.empty(n)
    slope = np.empty(last)
    for k in range(last):
        slope[k] = (warped[k + 1] - warped[k]) / (knots[k + 1] - knots[k])
    below = np.empty(_CHUNK, np.int64)  # of each value, the knot below it is one of `length`, from here on
    for first in range(0, n, _CHUNK):
        size = min(_CHUNK, n - first)
        for i in range(size):
            below[i] = 0
        length = last
        while length > 1:
            half = length >> 1
            for i in range(size):
                middle = below[i] + half
                below[i] = middle if knots[middle] <= values[first + i] else below[i]
            length -= half
        for i in range(size):
            x, k = values[first + i], below[i]
            within = warped[k] + slope[k] * (x - knots[k])
            from_below = within if x > knots[0] else warped[0]
            result[first + i] = from_below if x < knots[last] else warped[last]
    return result
