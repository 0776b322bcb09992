"""The steps of joint training, compiled: gradients on batches, and Adam's steps along them.

`isbor.search.adaptive.training` derives the formulas. A function uses few features, so its argument is
computed from these alone, for all rows of a batch at once: inner loops run over the rows of the batch, in
single precision, and are vectorised by the compiler. The interpreter lock is released.

All functions are stored one after the other: entry k, of `first[m]` ≤ k < `first[m + 1]`, is what function m
has for feature `column[k]`. Parameters are one vector: scales λ and shifts τ of all entries, weights and
noise weights of all functions, the first threshold and the logarithms of the gaps.
"""

import math
from typing import NamedTuple

import numpy as np

from isbor._core.compiled import compiled_sums, inlined, inner, inner_sums
from isbor._core.compiled_maths import exp_single
from isbor._core.types import BoolArray, IntArray, SingleArray
from isbor.inference.compiled_expansion import likelihood_terms
from isbor.inference.noise import MAX_LOG_SCALE

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
    varying_noise: bool
    weight_decay: float  # precision of the weights' prior, per row
    noise_decay: float  # the same for the noise weights


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
    score: SingleArray,
    log_scale: SingleArray,
    thresholds: SingleArray,
    varying_noise: bool,
    by_threshold: SingleArray,
) -> None:
    """Replace scores and log scales by the gradients in them; write the gradient in the thresholds.

    Likelihoods of narrow intervals cancel, so they are in double precision.
    """
    n, t = len(y), len(thresholds)
    edge, by_edge = np.empty(t + 2), np.zeros(t + 2)
    edge[0], edge[-1] = -np.inf, np.inf
    edge[1] = thresholds[0]
    for k in range(1, t):
        edge[k + 1] = edge[k] + math.exp(thresholds[k])
    f, scale = np.empty(n), np.ones(n)
    for i in range(n):
        f[i] = score[i]
        if varying_noise:
            scale[i] = math.exp(min(max(float(log_scale[i]), -MAX_LOG_SCALE), MAX_LOG_SCALE))
    z1, z2, at = likelihood_terms(y, f, scale, edge)
    for i in range(n):
        k, v = y[i], float(share[i])
        score[i] = v * at.mean[i] / scale[i]
        by_edge[k] -= v * at.lower[i] / scale[i]
        by_edge[k + 1] += v * at.upper[i] / scale[i]
        # Zero instead of infinity if there is no threshold.
        by_scale = (z2[i] * at.lower[i] if k > 0 else 0.0) - (z1[i] * at.upper[i] if k < t else 0.0)
        log_scale[i] = v * by_scale if abs(log_scale[i]) < MAX_LOG_SCALE else 0.0
    after = 0.0
    for k in range(t - 1, -1, -1):  # a gap moves all thresholds above it
        after += by_edge[k + 1]
        by_threshold[k] = after if k == 0 else after * math.exp(thresholds[k])


@inlined
def gradient(
    layout: Layout, vector: SingleArray, X: SingleArray, y: IntArray, share: SingleArray, by: SingleArray
) -> None:
    """Write the gradient of the log posterior per row to `by`, from a batch X, (d, rows)."""
    n, m_all, size = len(layout.column), len(layout.ramp), len(y)
    centre, metric = np.empty(n, np.float32), np.empty(n, np.float32)
    _place(layout, vector, centre, metric)
    weights, noise_weights = vector[2 * n : 2 * n + m_all], vector[2 * n + m_all : 2 * n + 2 * m_all]
    values = np.empty((m_all, size), np.float32)
    score, log_scale = np.zeros(size, np.float32), np.zeros(size, np.float32)
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
        w, u = weights[m] / layout.deviation[m], noise_weights[m] / layout.deviation[m]
        for i in range(size):
            score[i] += w * (phi[i] - layout.offset[m])
            log_scale[i] += u * (phi[i] - layout.offset[m])
    _likelihood(
        y, share, score, log_scale, vector[2 * n + 2 * m_all :], layout.varying_noise, by[2 * n + 2 * m_all :]
    )
    by_argument = np.empty(size, np.float32)
    for m in range(m_all):
        phi, offset = values[m], layout.offset[m]
        w, u = weights[m] / layout.deviation[m], noise_weights[m] / layout.deviation[m]
        by_weight, by_noise = np.float32(0.0), np.float32(0.0)
        for i in range(size):
            by_weight += score[i] * (phi[i] - offset)
            by_noise += log_scale[i] * (phi[i] - offset)
        by[2 * n + m] = by_weight / layout.deviation[m] - layout.weight_decay * weights[m]
        by[2 * n + m_all + m] = by_noise / layout.deviation[m] - layout.noise_decay * noise_weights[m]
        if not layout.varying_noise:
            by[2 * n + m_all + m] = 0.0
            u = np.float32(0.0)
        for i in range(size):
            slope = _ONE - phi[i] * phi[i] if layout.ramp[m] else phi[i]
            by_argument[i] = (w * score[i] + u * log_scale[i]) * slope
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
