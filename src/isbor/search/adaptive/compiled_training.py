"""The steps of joint training, compiled: gradients on batches, and Adam's steps along them.

`isbor.search.adaptive.training` derives the formulas. A function uses few features, so its argument is
computed from these alone, for all rows of a batch at once: inner loops run over the rows of the batch, in
single precision, and are vectorised by the compiler. The interpreter lock is released.

All functions are stored one after the other: entry k, of `first[m]` ≤ k < `first[m + 1]`, is what function m
has for feature `column[k]`. Parameters are one vector: scales λ and shifts τ of all entries, weights of all
functions in the score and in each sum of the shape, the middle of the thresholds and the logarithms of the
gaps.
"""

import math
from typing import NamedTuple

import numpy as np

from isbor._core.compiled import compiled_sums, inlined, inner, inner_sums
from isbor._core.compiled_maths import exp_single
from isbor._core.types import BoolArray, FloatArray, IntArray, SingleArray
from isbor.inference.compiled_expansion import likelihood_terms
from isbor.model.compiled_cuts import SATURATION, anchoring, saturated, shape_of_rows

__all__ = ["Batches", "Layout", "gradient", "train"]

_MOMENTUM, _SQUARES = 0.9, 0.99  # decay of the means of gradients and their squares
_WARM_UP = 0.05  # share of the steps in which the step length rises
_RATE_STEPS = 10  # steps after which the factors of the step length are computed again
_ONE, _TWO = np.float32(1.0), np.float32(2.0)


class Layout(NamedTuple):
    """The functions in training: what stays as it is."""

    first: IntArray  # (m + 1,) first entry of each function
    column: IntArray  # (k,) column of each entry
    ramp: BoolArray  # (m,)
    centre: SingleArray  # (k,) z at the start
    metric: SingleArray  # (k,) θ at the start
    moving: SingleArray  # (k,) change of the centre for a unit of τ
    scaling: SingleArray  # (k,) for a ramp, change of θ for a unit of λ
    reach: SingleArray  # (k,) change of the argument for a unit of τ, about
    offset: SingleArray  # (m,) mean of each function over the rows
    deviation: SingleArray  # (m,) its standard deviation
    slope: SingleArray  # (m,) root mean square of its derivative in its argument
    n_sums: int  # sums of the shape, K: none, the noise, or the noise and patterns of gaps
    patterns: FloatArray  # (K-1, r-2), c
    weight_decay: float  # precision of the weights' prior, per row
    shape_decay: FloatArray  # (K,) the same for the weights of the shape, of functions of height 1
    lapse: float  # ε
    height: SingleArray  # (m,) height of each function in units of its standard deviation, squared


class Batches(NamedTuple):
    """The rows, and which of them each step uses."""

    X: SingleArray  # (n, d)
    y: IntArray  # (n,)
    weight: SingleArray  # (n,) with mean 1
    chosen: IntArray  # (steps, batch)


@inner_sums
def _place(layout: Layout, vector: SingleArray, centre: SingleArray, metric: SingleArray) -> None:
    """Write the present centres and metrics of all entries."""
    n = len(layout.column)
    for m in range(len(layout.ramp)):
        begin, end = layout.first[m], layout.first[m + 1]
        for k in range(begin, end):
            if layout.ramp[m]:  # it has one shift, the first one
                metric[k] = layout.metric[k] + layout.scaling[k] * vector[k]
                centre[k] = layout.centre[k] + layout.moving[k] * vector[n + begin]
            else:
                metric[k] = layout.metric[k] * np.exp(_TWO * vector[k])
                centre[k] = layout.centre[k] + layout.moving[k] * vector[n + k]


@inner
def _likelihood(
    y: IntArray,
    share: SingleArray,
    sums: SingleArray,
    thresholds: SingleArray,
    patterns: FloatArray,
    lapse: float,
    by_threshold: SingleArray,
) -> None:
    """Replace scores and sums of the shape, (1 + K, n), by the gradients in them.

    The gradient in the middle of the thresholds and the logarithms of the gaps is written to `by_threshold`.
    Likelihoods of narrow intervals cancel, so they are in double precision.
    """
    n, t, n_sums = len(y), len(thresholds), len(sums) - 1
    sigma, gap = anchoring(t), np.empty(t)
    edge, by_edge, by_gap = np.empty(t + 2), np.zeros(t + 2), np.zeros(t)
    edge[0], edge[-1] = -np.inf, np.inf
    for g in range(t - 1):
        gap[g] = math.exp(np.float64(thresholds[g + 1]))
    for k in range(t):
        edge[k + 1] = thresholds[0]
        for g in range(t - 1):
            edge[k + 1] += sigma[k, g] * gap[g]
    f, predictors = np.empty(n), np.zeros((max(n_sums, 1), n))
    for i in range(n):
        f[i] = sums[0, i]
    for q in range(n_sums):
        for i in range(n):
            predictors[q, i] = saturated(float(sums[q + 1, i]))
    scale, factors = shape_of_rows(predictors, patterns)
    z1, z2, at = likelihood_terms(y, f, scale, factors, edge)
    for i in range(n):
        counted = share[i] / (1.0 + lapse * math.exp(min(-at.log_p[i], 700.0)))  # times p/(p + ε)
        k, v = y[i], counted / scale[i]
        up, down = v * at.upper[i], v * at.lower[i]
        sums[0, i] = v * at.mean[i]
        by_edge[k] -= down
        by_edge[k + 1] += up
        if n_sums > 0:
            # Zero instead of infinity if there is no threshold.
            by_scale = (z2[i] * at.lower[i] if k > 0 else 0.0) - (z1[i] * at.upper[i] if k < t else 0.0)
            sums[1, i] = counted * by_scale
        if len(patterns) > 0:
            for q in range(len(patterns)):
                sums[q + 2, i] = 0.0
            for g in range(t - 1):
                by = 0.0
                if k < t:
                    by += up * sigma[k, g]
                if k > 0:
                    by -= down * sigma[k - 1, g]
                by *= gap[g] * factors[g, i]
                by_gap[g] += by
                for q in range(len(patterns)):
                    sums[q + 2, i] += by * patterns[q, g]
        for q in range(n_sums):
            sums[q + 1, i] *= 1.0 - (predictors[q, i] / SATURATION) ** 2
    by_middle = 0.0
    for k in range(t):
        by_middle += by_edge[k + 1]
    by_threshold[0] = by_middle
    for g in range(t - 1):
        if len(patterns) == 0:
            for k in range(t):
                by_gap[g] += gap[g] * sigma[k, g] * by_edge[k + 1]
        by_threshold[g + 1] = by_gap[g]


@inlined
def gradient(
    layout: Layout, vector: SingleArray, X: SingleArray, y: IntArray, share: SingleArray, by: SingleArray
) -> None:
    """Write the gradient of the log posterior per row to `by`, from a batch X, (d, rows)."""
    n, m_all, size = len(layout.column), len(layout.ramp), len(y)
    centre, metric = np.empty(n, np.float32), np.empty(n, np.float32)
    _place(layout, vector, centre, metric)
    n_sums, after = 1 + layout.n_sums, 2 * n + (1 + layout.n_sums) * m_all
    values = np.empty((m_all, size), np.float32)
    sums = np.zeros((n_sums, size), np.float32)
    for m in range(m_all):
        phi = values[m]
        phi[:] = np.float32(0.0)
        for k in range(layout.first[m], layout.first[m + 1]):
            x, z, theta = X[layout.column[k]], centre[k], metric[k]
            if layout.ramp[m]:
                for i in range(size):
                    phi[i] += theta * (x[i] - z)
            else:
                for i in range(size):
                    phi[i] -= theta * (x[i] - z) * (x[i] - z)
        if layout.ramp[m]:
            for i in range(size):
                fall = exp_single(-_TWO * abs(phi[i]))
                rising = (_ONE - fall) / (_ONE + fall)
                phi[i] = rising if phi[i] > np.float32(0.0) else -rising
        else:
            for i in range(size):
                phi[i] = exp_single(phi[i])
        for q in range(n_sums):
            w, total = vector[2 * n + q * m_all + m] / layout.deviation[m], sums[q]
            for i in range(size):
                total[i] += w * (phi[i] - layout.offset[m])
    _likelihood(y, share, sums, vector[after:], layout.patterns, layout.lapse, by[after:])
    by_argument = np.empty(size, np.float32)
    for m in range(m_all):
        phi, offset = values[m], layout.offset[m]
        for i in range(size):
            by_argument[i] = np.float32(0.0)
        for q in range(n_sums):
            k, total, by_weight = 2 * n + q * m_all + m, sums[q], np.float32(0.0)
            w = vector[k] / layout.deviation[m]
            for i in range(size):
                by_weight += total[i] * (phi[i] - offset)
                by_argument[i] += w * total[i]
            decay = layout.weight_decay if q == 0 else layout.shape_decay[q - 1] * layout.height[m]
            by[k] = by_weight / layout.deviation[m] - decay * vector[k]
        for i in range(size):
            by_argument[i] *= _ONE - phi[i] * phi[i] if layout.ramp[m] else phi[i]
        begin = layout.first[m]
        by_shift = np.float32(0.0)
        for k in range(begin, layout.first[m + 1]):
            x, z = X[layout.column[k]], centre[k]
            total, linear, square = np.float32(0.0), np.float32(0.0), np.float32(0.0)
            for i in range(size):
                total += by_argument[i]
                linear += by_argument[i] * (x[i] - z)
                square += by_argument[i] * (x[i] - z) * (x[i] - z)
            by[n + k] = np.float32(0.0)
            if layout.ramp[m]:
                by[k] = layout.scaling[k] * linear
                by_shift -= layout.moving[k] * metric[k] * total
            else:
                by[k] = -_TWO * metric[k] * square
                by[n + k] = layout.moving[k] * _TWO * metric[k] * linear
        if layout.ramp[m]:
            by[n + begin] = by_shift


@inner_sums
def set_rates(layout: Layout, vector: SingleArray, rate: SingleArray) -> None:
    """Write the factors of the step length of scales and shifts, for the present weights."""
    n = len(layout.column)
    for m in range(len(layout.ramp)):
        effect = abs(vector[2 * n + m]) / layout.deviation[m] * layout.slope[m]
        for k in range(layout.first[m], layout.first[m + 1]):
            reach = layout.reach[k]
            rate[k] = _ONE / max(_ONE, effect * (reach if layout.ramp[m] else reach * reach))
            movable = k == layout.first[m] if layout.ramp[m] else layout.moving[k] != 0.0
            rate[n + k] = _ONE / max(_ONE, effect * reach) if movable else 0.0


@compiled_sums
def train(
    layout: Layout, batches: Batches, vector: SingleArray, rate: SingleArray, step_length: float
) -> None:
    """Change the parameters by one step for each batch."""
    n_steps, size = batches.chosen.shape
    n_columns = batches.X.shape[1]
    by, mean, square = np.zeros_like(vector), np.zeros_like(vector), np.zeros_like(vector)
    X, y = np.empty((n_columns, size), np.float32), np.empty(size, np.int64)
    share = np.empty(size, np.float32)
    for step in range(n_steps):
        for i in range(size):
            row = batches.chosen[step, i]
            y[i], share[i] = batches.y[row], batches.weight[row] / np.float32(size)
            for j in range(n_columns):
                X[j, i] = batches.X[row, j]
        gradient(layout, vector, X, y, share, by)
        if step % _RATE_STEPS == 0:
            set_rates(layout, vector, rate)
        k = step + 1.0
        fall = 0.5 * (1.0 + math.cos(math.pi * k / n_steps))
        length = np.float32(step_length * min(k / (_WARM_UP * n_steps + 1.0), fall) / (1.0 - _MOMENTUM**k))
        unbiased = np.float32(1.0 / (1.0 - _SQUARES**k))
        gain, gain_of_square = np.float32(1.0 - _MOMENTUM), np.float32(1.0 - _SQUARES)
        for i in range(len(vector)):
            mean[i] += gain * (by[i] - mean[i])
            square[i] += gain_of_square * (by[i] * by[i] - square[i])
            vector[i] += length * rate[i] * mean[i] / (np.sqrt(square[i] * unbiased) + np.float32(1e-8))
