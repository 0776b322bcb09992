"""Shapes and edges of rows, compiled; `isbor.model.cuts` derives them."""

import numpy as np

from isbor._core.compiled import compiled, inner
from isbor._core.compiled_maths import exp_double
from isbor._core.types import FloatArray, IntArray

__all__ = [
    "SATURATION",
    "anchoring",
    "combined",
    "edges_of_rows",
    "middle_and_gaps",
    "saturated",
    "shape_of_rows",
    "shape_of_values",
    "slopes_of_threshold",
    "thresholds_of_rows",
]

SATURATION = 3.0  # limit on |ln s| and |t_q|


@inner
def saturated(x: float) -> float:
    """Return L tanh(x/L), with L the limit."""
    return SATURATION * (1.0 - 2.0 / (1.0 + exp_double(min(2.0 / SATURATION * x, 80.0))))


@inner
def combined(weights: FloatArray, values: FloatArray) -> FloatArray:
    """Return Σ_m w_m φ_m at each row."""
    total = np.zeros(values.shape[1])
    for m in range(len(weights)):
        phi, w = values[m], weights[m]
        if w != 0.0:
            for i in range(len(total)):
                total[i] += w * phi[i]
    return total


@inner
def anchoring(t: int) -> FloatArray:
    """Return σ, (t, t-1): the part of each gap on the way from the middle to each threshold."""
    sigma = np.zeros((t, max(t - 1, 0)))
    middle = 0.5 * (t - 1)
    for k in range(t):
        for g in range(t - 1):
            up = min(float(k), g + 1.0) - max(middle, float(g))
            down = min(middle, g + 1.0) - max(float(k), float(g))
            sigma[k, g] = max(up, 0.0) - max(down, 0.0)
    return sigma


@inner
def shape_of_rows(predictors: FloatArray, patterns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return noise scales, (n,), and gap factors, (r-2, n) or (0, n), from saturated ln s and t_q, (K, n)."""
    n, n_patterns = predictors.shape[1], len(patterns)
    n_gaps = patterns.shape[1] if n_patterns else 0
    scale, gaps = np.empty(n), np.zeros((n_gaps, n))
    for i in range(n):
        scale[i] = exp_double(predictors[0, i])
    for g in range(n_gaps):
        factor = gaps[g]
        for q in range(n_patterns):
            c, t = patterns[q, g], predictors[q + 1]
            for i in range(n):
                factor[i] += c * t[i]
        for i in range(n):
            factor[i] = exp_double(factor[i])
    return scale, gaps


@compiled
def shape_of_values(
    values: FloatArray, weights: FloatArray, patterns: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return noise scales and gap factors at rows where the functions have the values φ, (m, n)."""
    predictors = np.empty((len(weights), values.shape[1]))
    for q in range(len(weights)):
        total = combined(weights[q], values)
        for i in range(len(total)):
            predictors[q, i] = saturated(total[i])
    return shape_of_rows(predictors, patterns)


@inner
def edges_of_rows(
    y: IntArray, edge: FloatArray, gaps: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the lower and upper edge of each row's class, and the difference, which may be infinite.

    `edge` holds the common thresholds between -∞ and ∞.
    """
    n, t = len(y), len(edge) - 2
    low, high, width = np.empty(n), np.empty(n), np.empty(n)
    if len(gaps) == 0:
        for i in range(n):
            low[i], high[i] = edge[y[i]], edge[y[i] + 1]
            width[i] = high[i] - low[i]
        return low, high, width
    sigma, middle = anchoring(t), 0.5 * (edge[1 + (t - 1) // 2] + edge[1 + t // 2])
    for i in range(n):
        k, lower, upper = y[i], middle, middle
        for g in range(t - 1):
            gap = (edge[g + 2] - edge[g + 1]) * gaps[g, i]
            if k > 0:
                lower += sigma[k - 1, g] * gap
            if k < t:
                upper += sigma[k, g] * gap
        low[i], high[i] = (lower if k > 0 else -np.inf), (upper if k < t else np.inf)
        # From the gap itself: the difference of the edges may lose digits.
        width[i] = (edge[k + 1] - edge[k]) * gaps[k - 1, i] if 0 < k < t else np.inf
    return low, high, width


@inner
def middle_and_gaps(t: int) -> FloatArray:
    """Return the derivatives of the middle of the thresholds and of the gaps in the thresholds, (t, t)."""
    slopes = np.zeros((t, t))
    slopes[0, (t - 1) // 2] += 0.5
    slopes[0, t // 2] += 0.5
    for g in range(t - 1):
        slopes[g + 1, g], slopes[g + 1, g + 1] = -1.0, 1.0
    return slopes


@inner
def slopes_of_threshold(k: int, sigma: FloatArray, gaps: FloatArray, i: int, slopes: FloatArray) -> None:
    """Write the derivatives of threshold k of row i in the common thresholds."""
    t = len(sigma)
    for j in range(t):
        slope = (0.5 if j == (t - 1) // 2 else 0.0) + (0.5 if j == t // 2 else 0.0)
        if j > 0:
            slope += sigma[k, j - 1] * gaps[j - 1, i]
        if j < t - 1:
            slope -= sigma[k, j] * gaps[j, i]
        slopes[j] = slope


@compiled
def thresholds_of_rows(thresholds: FloatArray, gaps: FloatArray) -> FloatArray:
    """Return all thresholds of each row, (n, r-1)."""
    t, n = len(thresholds), gaps.shape[1]
    sigma, middle = anchoring(t), 0.5 * (thresholds[(t - 1) // 2] + thresholds[t // 2])
    found = np.full((n, t), middle)
    for i in range(n):
        for k in range(t):
            for g in range(t - 1):
                found[i, k] += sigma[k, g] * (thresholds[g + 1] - thresholds[g]) * gaps[g, i]
    return found
