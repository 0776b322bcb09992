"""The sums of one block of rows, compiled; `isbor.inference.expansion` and `shape` derive them.

Functions have the values φ, (m, n): the values of one function are contiguous, so loops over rows are
vectorised. Each function adds its block to `Sums`, which start at zero.
"""

import math
from typing import NamedTuple

import numpy as np

from isbor._core.compiled import compiled, inner
from isbor._core.compiled_blas import add_symmetric_product, write_symmetric_product
from isbor._core.types import FloatArray, IntArray
from isbor.model.compiled_cuts import (
    SATURATION,
    anchoring,
    combined,
    edges_of_rows,
    middle_and_gaps,
    saturated,
    shape_of_rows,
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
_SINGLE_ROWS = 512  # rows whose inner products are summed in single precision


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
def _mirror(n: int, matrix: FloatArray) -> None:
    """Copy the lower triangle of the first rows and columns to the upper one."""
    for first in range(0, n, _TILE):
        for last in range(first, n, _TILE):
            for m in range(last, min(last + _TILE, n)):
                for k in range(first, min(first + _TILE, m)):
                    matrix[k, m] = matrix[m, k]


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
    _mirror(n_first, precision)
    if n_first < m_all:
        products = np.dot(scaled[:n_first], scaled[n_first:].T)
        for k in range(n_first):
            for m in range(n_first, m_all):
                precision[k, m] += products[k, m - n_first]
                precision[m, k] += products[k, m - n_first]
    for m in range(n_first, m_all):
        precision[m, m] += np.dot(scaled[m], scaled[m])


@inner
def _add_single_gram(values: FloatArray, curvature: FloatArray, precision: FloatArray) -> None:
    """Add the weighted inner products of the functions, computed in single precision from some rows each."""
    m_all, n = values.shape
    products = np.empty((m_all, m_all), np.float32)
    for begin in range(0, n, _SINGLE_ROWS):
        size = min(_SINGLE_ROWS, n - begin)
        scaled, root = np.empty((m_all, size), np.float32), np.empty(size)
        of_rows = curvature[begin : begin + size]
        for i in range(size):
            root[i] = math.sqrt(of_rows[i])
        for m in range(m_all):
            phi, to = values[m, begin : begin + size], scaled[m]
            for i in range(size):
                to[i] = root[i] * phi[i]
        write_symmetric_product(scaled, products)
        for m in range(m_all):
            for k in range(m + 1):
                precision[m, k] += products[m, k]
    _mirror(m_all, precision)


@inner
def _add_thresholds(
    block: Block, at: Terms, gradient: FloatArray, precision: FloatArray, mixed: FloatArray
) -> None:
    """Add what belongs to the thresholds alone, and write the mixed derivatives in f and each threshold.

    Threshold j, of 0 … t-1, is the upper edge of class j and the lower edge of class j + 1. `gradient` and
    `precision` are those of the thresholds; `mixed` is (t, n).
    """
    t = len(mixed)
    for i in range(len(block.y)):
        k, s = block.y[i], block.noise_scale[i]
        per_unit = block.weight[i] / s
        per_square = per_unit / s
        tie = per_square * at.upper[i] * at.lower[i]
        if k > 0:
            c2 = per_square * at.lower_curvature[i]
            mixed[k - 1, i] = -c2
            gradient[k - 1] -= per_unit * at.lower[i]
            precision[k - 1, k - 1] += c2 + tie
        if k < t:
            c1 = per_square * at.upper_curvature[i]
            mixed[k, i] = -c1
            gradient[k] += per_unit * at.upper[i]
            precision[k, k] += c1 + tie
            if k > 0:
                precision[k, k - 1] -= tie
                precision[k - 1, k] -= tie


@inner
def _add_middle_and_gaps(
    block: Block, at: Terms, gradient: FloatArray, precision: FloatArray, mixed: FloatArray
) -> None:
    """Do the same as `_add_thresholds` for the middle of the thresholds and the gaps, which have factors.

    The derivative of threshold k is 1 in the middle, and σ_kg times the gap's factor in gap g. The upper and
    the lower edge of a class differ by one gap, so the tie between them concerns this one alone.
    """
    t, n = mixed.shape
    sigma, edges = anchoring(t), np.zeros((t, 2 * n))  # derivatives of both edges, times roots of curvatures
    up, down = np.empty(n), np.empty(n)
    for i in range(n):
        k, s = block.y[i], block.noise_scale[i]
        per_unit = block.weight[i] / s
        per_square = per_unit / s
        c1, c2 = per_square * at.upper_curvature[i], per_square * at.lower_curvature[i]
        edges[0, i], edges[0, n + i] = math.sqrt(c1), math.sqrt(c2)
        mixed[0, i] = -(c1 + c2)
        up[i], down[i] = per_unit * at.upper[i], per_unit * at.lower[i]
        gradient[0] += up[i] - down[i]
        if 0 < k < t:
            factor = block.gap_factors[k - 1, i]
            precision[k, k] += per_square * at.upper[i] * at.lower[i] * factor * factor
    for g in range(t - 1):
        # Where there is no edge, all of its terms are zero.
        for i in range(n):
            k, factor = block.y[i], block.gap_factors[g, i]
            high, low = sigma[min(k, t - 1), g] * factor, sigma[max(k - 1, 0), g] * factor
            root1, root2 = edges[0, i], edges[0, n + i]
            edges[g + 1, i], edges[g + 1, n + i] = root1 * high, root2 * low
            mixed[g + 1, i] = -(root1 * root1 * high + root2 * root2 * low)
            gradient[g + 1] += up[i] * high - down[i] * low
    products = np.dot(edges, edges.T)
    for j in range(t):
        for h in range(t):
            precision[j, h] += products[j, h]


@compiled
def add_block(
    block: Block, weights: FloatArray, edge: FloatArray, n_first: int, single: bool, sums: Sums
) -> FloatArray:
    """Add the expansion of the log likelihood, and return the curvature of each row.

    `edge` holds the thresholds between -∞ and ∞. See `_add_gram` for `n_first`. If `single`, inner products
    of functions, which are all first, are computed in single precision.
    """
    m_all, n = block.values.shape
    t = len(edge) - 2
    f = combined(weights, block.values)
    curvature = np.empty(n)
    mixed = np.zeros((t + 1, n))  # the slope in f, then the mixed derivatives
    totals, gradient, precision = sums
    _, _, at = likelihood_terms(block.y, f, block.noise_scale, block.gap_factors, edge)
    for i in range(n):
        v, s = block.weight[i], block.noise_scale[i]
        totals[0] += v * at.log_p[i]
        totals[1] += v
        totals[2] += v * f[i]
        totals[3] += v * f[i] * f[i]
        curvature[i] = v / (s * s) * (at.upper_curvature[i] + at.lower_curvature[i])
        mixed[0, i] = v * at.mean[i] / s
    if single:
        _add_single_gram(block.values, curvature, precision)
    else:
        _add_gram(block.values, curvature, n_first, precision)
    vary = len(block.gap_factors) > 0
    slope, square = np.zeros(t), np.zeros((t, t))
    if vary:
        _add_middle_and_gaps(block, at, slope, square, mixed[1:])
    else:
        _add_thresholds(block, at, slope, square, mixed[1:])
    products = np.dot(mixed, block.values.T)
    tied = products[1:]
    if vary:
        to_thresholds = middle_and_gaps(t)
        slope, tied = np.dot(slope, to_thresholds), np.dot(to_thresholds.T, tied)
        square = np.dot(np.dot(to_thresholds.T, square), to_thresholds)
    for k in range(t):
        gradient[m_all + k] += slope[k]
        for j in range(t):
            precision[m_all + k, m_all + j] += square[k, j]
    for m in range(m_all):
        gradient[m] += products[0, m]
        for k in range(t):
            precision[m, m_all + k] += tied[k, m]
            precision[m_all + k, m] += tied[k, m]
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
    f, predictors = combined(weights, block.values), np.dot(shape_weights, block.values)
    for k in range(len(shape_weights)):
        for i in range(n):
            predictors[k, i] = saturated(predictors[k, i])
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
    _add_single_gram(block.values, curvature, precision)
    products = np.dot(slope, block.values.T)
    for m in range(len(block.values)):
        gradient[m] += products[0, m]
