"""The sums of one block of rows, compiled; `isbor.inference.expansion` and `shape` derive them.

Functions have the values φ, (m, n): the values of one function are contiguous, so loops over rows are
vectorised. Each function adds its block to `Sums`, which start at zero.
"""

import math
from typing import NamedTuple

import numpy as np

from isbor._core.compiled import compiled, inner
from isbor._core.compiled_blas import add_symmetric_product
from isbor._core.types import FloatArray, IntArray
from isbor.model.compiled_cuts import (
    SATURATION,
    anchoring,
    combined,
    edges_of_rows,
    saturated,
    shape_of_rows,
    slopes_of_threshold,
)
from isbor.model.compiled_likelihood import Terms, new_terms, probit_terms

__all__ = [
    "Block",
    "Sums",
    "add_block",
    "add_shape_block",
    "clear",
    "latent_moments",
    "likelihood_terms",
    "new_sums",
]


_TILE = 32  # rows and columns of a matrix that are copied together


class Block(NamedTuple):
    """Some rows."""

    values: FloatArray  # (m, n), φ
    y: IntArray  # (n,)
    weight: FloatArray  # (n,)
    noise_scale: FloatArray  # (n,)
    gap_factors: FloatArray  # (r-2, n), or (0, n) if all rows have the same thresholds


class Sums(NamedTuple):
    """Sums over rows."""

    totals: FloatArray  # (4,): ln p, weight, score, squared score
    gradient: FloatArray  # (m + r-1,)
    precision: FloatArray  # (m + r-1, m + r-1)


@compiled
def new_sums(size: int) -> Sums:
    """Return sums for so many parameters, all zero."""
    return Sums(np.zeros(4), np.zeros(size), np.zeros((size, size)))


@inner
def clear(sums: Sums) -> None:
    """Set all sums to zero."""
    size = len(sums.gradient)
    for i in range(4):
        sums.totals[i] = 0.0
    for i in range(size):
        sums.gradient[i] = 0.0
        for k in range(size):
            sums.precision[i, k] = 0.0


@compiled
def latent_moments(totals: FloatArray) -> tuple[float, float]:
    """Return the weighted mean and variance of the scores."""
    mean = totals[2] / totals[1]
    return mean, max(totals[3] / totals[1] - mean * mean, 0.0)


@inner
def likelihood_terms(
    y: IntArray, score: FloatArray, noise_scale: FloatArray, gap_factors: FloatArray, edge: FloatArray
) -> tuple[FloatArray, FloatArray, Terms]:
    """Return z1 and z2 of each row, and the terms of its likelihood; all in units of its noise scale."""
    n = len(y)
    z1, z2, gap, terms = np.empty(n), np.empty(n), np.empty(n), new_terms(n)
    low, high, width = edges_of_rows(y, edge, gap_factors)
    for i in range(n):
        unit = 1.0 / noise_scale[i]
        z1[i], z2[i], gap[i] = (high[i] - score[i]) * unit, (low[i] - score[i]) * unit, width[i] * unit
    probit_terms(z1, z2, gap, terms)
    return z1, z2, terms


@inner
def _add_gram(values: FloatArray, curvature: FloatArray, n_first: int, precision: FloatArray) -> None:
    """Add the weighted inner products of the functions to the first rows and columns of the precision.

    Of functions after the first `n_first`, those with themselves and with the first ones are added.
    """
    m_all, n = values.shape
    scaled, root = np.empty((m_all, n)), np.empty(n)
    for i in range(n):
        root[i] = math.sqrt(curvature[i])
    for m in range(m_all):
        for i in range(n):
            scaled[m, i] = root[i] * values[m, i]
    add_symmetric_product(scaled[:n_first], precision)
    for first in range(0, n_first, _TILE):  # the other triangle is the same
        for last in range(first, n_first, _TILE):
            for m in range(last, min(last + _TILE, n_first)):
                for k in range(first, min(first + _TILE, m)):
                    precision[k, m] = precision[m, k]
    if n_first < m_all:
        products = np.dot(scaled[:n_first], scaled[n_first:].T)
        for k in range(n_first):
            for m in range(n_first, m_all):
                precision[k, m] += products[k, m - n_first]
                precision[m, k] += products[k, m - n_first]
    for m in range(n_first, m_all):
        precision[m, m] += np.dot(scaled[m], scaled[m])


@compiled
def add_block(block: Block, weights: FloatArray, edge: FloatArray, n_first: int, sums: Sums) -> FloatArray:
    """Add the expansion of the log likelihood, and return the curvature of each row.

    `edge` holds the thresholds between -∞ and ∞. See `_add_gram` for `n_first`.
    """
    m_all, n = block.values.shape
    t = len(edge) - 2
    f = combined(weights, block.values)
    curvature = np.empty(n)
    mixed = np.zeros((t + 1, n))  # the slope in f, then the mixed derivatives in f and each threshold
    totals, gradient, precision = sums
    _, _, at = likelihood_terms(block.y, f, block.noise_scale, block.gap_factors, edge)
    vary = len(block.gap_factors) > 0
    sigma, high, low = anchoring(t), np.zeros(t), np.zeros(t)
    for i in range(n):
        k, v, s = block.y[i], block.weight[i], block.noise_scale[i]
        g1, g2 = at.upper[i], at.lower[i]
        totals[0] += v * at.log_p[i]
        totals[1] += v
        totals[2] += v * f[i]
        totals[3] += v * f[i] * f[i]
        per_square = v / (s * s)
        c1, c2 = per_square * at.upper_curvature[i], per_square * at.lower_curvature[i]
        tie = per_square * g1 * g2
        curvature[i] = c1 + c2
        mixed[0, i] = v * at.mean[i] / s
        if vary:
            # Derivatives of the edges in all thresholds; where there is no edge, c and g are zero.
            slopes_of_threshold(min(k, t - 1), sigma, block.gap_factors, i, high)
            slopes_of_threshold(max(k - 1, 0), sigma, block.gap_factors, i, low)
            for j in range(t):
                mixed[j + 1, i] = -(c1 * high[j] + c2 * low[j])
                gradient[m_all + j] += v * (g1 * high[j] - g2 * low[j]) / s
                for h in range(t):
                    precision[m_all + j, m_all + h] += (
                        c1 * high[j] * high[h]
                        + c2 * low[j] * low[h]
                        + tie * (high[j] - low[j]) * (high[h] - low[h])
                    )
            continue
        # Threshold j, of 0 … t-1, is the upper edge of class j and the lower edge of class j + 1.
        if k > 0:
            j = m_all + k - 1
            mixed[k, i] = -c2
            gradient[j] -= v * g2 / s
            precision[j, j] += c2 + tie
        if k < t:
            j = m_all + k
            mixed[k + 1, i] = -c1
            gradient[j] += v * g1 / s
            precision[j, j] += c1 + tie
            if k > 0:
                precision[j, j - 1] -= tie
                precision[j - 1, j] -= tie
    _add_gram(block.values, curvature, n_first, precision)
    products = np.dot(mixed, block.values.T)
    for m in range(m_all):
        gradient[m] += products[0, m]
        for k in range(t):
            precision[m, m_all + k] += products[k + 1, m]
            precision[m_all + k, m] += products[k + 1, m]
    return curvature


@compiled
def add_shape_block(
    block: Block,
    weights: FloatArray,
    edge: FloatArray,
    shape_weights: FloatArray,
    patterns: FloatArray,
    q: int,
    sums: Sums,
) -> None:
    """Add the expansion in the weights of the shape's sum q; the shape of the block itself is not used."""
    n = block.values.shape[1]
    t = len(edge) - 2
    f, predictors = combined(weights, block.values), np.empty((len(shape_weights), n))
    for k in range(len(shape_weights)):
        total = combined(shape_weights[k], block.values)
        for i in range(n):
            predictors[k, i] = saturated(total[i])
    scale, gaps = shape_of_rows(predictors, patterns)
    curvature, slope, sigma = np.empty(n), np.empty((1, n)), anchoring(t)
    totals, gradient, precision = sums
    z1, z2, at = likelihood_terms(block.y, f, scale, gaps, edge)
    for i in range(n):
        k, v = block.y[i], block.weight[i]
        # Derivatives of z1 and z2; zero if there is no threshold, where g is zero.
        by1, by2 = 0.0, 0.0
        if q == 0:
            by1, by2 = (-z1[i] if k < t else 0.0), (-z2[i] if k > 0 else 0.0)
        else:
            for g in range(t - 1):
                change = patterns[q - 1, g] * (edge[g + 2] - edge[g + 1]) * gaps[g, i] / scale[i]
                if k < t:
                    by1 += sigma[k, g] * change
                if k > 0:
                    by2 += sigma[k - 1, g] * change
        g1, g2 = at.upper[i], at.lower[i]
        bend = at.upper_curvature[i] * by1 * by1 + at.lower_curvature[i] * by2 * by2
        bend += g1 * g2 * (by1 - by2) * (by1 - by2)
        moving = 1.0 - (predictors[q, i] / SATURATION) ** 2
        totals[0] += v * at.log_p[i]
        slope[0, i] = v * moving * (g1 * by1 - g2 * by2)
        curvature[i] = v * moving * moving * bend
    _add_gram(block.values, curvature, len(block.values), precision)
    products = np.dot(slope, block.values.T)
    for m in range(len(block.values)):
        gradient[m] += products[0, m]
