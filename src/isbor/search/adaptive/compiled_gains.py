"""Gains of many functions and their ascent, compiled; `isbor.search.adaptive.gains` derives the formulas.

Functions are evaluated in batches. Their values come from the features that they use, and one matrix product
projects a batch on what the model explains; a second one gives the gradients of the gains. Inner loops run
over a block of rows, in single precision, and are vectorised by the compiler. The interpreter lock is
released.
"""

import math
from typing import NamedTuple

import numpy as np

from isbor._core.compiled import compiled, compiled_sums, inlined, inner_sums
from isbor._core.compiled_maths import exp_single, tanh_single
from isbor._core.types import FloatArray, SingleArray
from isbor.inference.compiled_expansion import Block, likelihood_terms
from isbor.model.compiled_cuts import anchoring, combined, slopes_of_threshold
from isbor.search.adaptive.entries import Entries

__all__ = ["CLIMBING", "TOGETHER", "Fitted", "climb", "fitted_at", "gains_of"]

TOGETHER = 32  # functions whose gains are computed together
CLIMBING = 18  # functions that climb together
_FIRST_STEP, _LONGEST_STEP, _SHORTEST_STEP = 0.2, 1.0, 1e-3
_FASTER, _SLOWER = 1.3, 0.5
_COLLINEAR = 1e-4  # as in `isbor.inference.evidence`, for single precision
_ZERO, _ONE, _TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)


class Fitted(NamedTuple):
    """A model at its mode: what the gain of a further function depends on, with the rows in blocks.

    All blocks have n rows. The last one is filled up with rows of zeros, which add nothing to any sum.
    """

    columns: SingleArray  # (d, blocks, n), the features of the rows
    explained: SingleArray  # (blocks, n, M + r - 1), BΣ^½
    delta: SingleArray  # (blocks, n), δ
    curvature: SingleArray  # (blocks, n), H
    share: SingleArray  # (blocks, n), weights of the rows, summing to one


class _Batch(NamedTuple):
    """Some functions, evaluated."""

    values: SingleArray  # (blocks, m, n), φ minus its mean
    mean: SingleArray  # (m,)
    projected: SingleArray  # (m, M + r - 1), Σ^½ Bᵀφ
    quality: SingleArray  # (m,) Q
    sparsity: SingleArray  # (m,) S; infinite for a function that is collinear with the active ones


@compiled
def fitted_at(
    X: FloatArray,
    block: Block,
    weights: FloatArray,
    edge: FloatArray,
    root: FloatArray,
    shape: tuple[int, int],
) -> Fitted:
    """Return what gains depend on, for a model with some `weights` and thresholds at its mode.

    `edge` holds the thresholds between -∞ and ∞, `root` the root Σ^½, and `shape` the number of blocks of
    rows and their length.
    """
    m, n = block.values.shape
    t = len(edge) - 2
    f = combined(weights, block.values)
    _, _, at = likelihood_terms(block.y, f, block.noise_scale, block.gap_factors, edge)
    vary, sigma, slopes = len(block.gap_factors) > 0, anchoring(t), np.zeros(t)
    towards = np.zeros((m + t, n))  # Bᵀ
    delta, curvature, share = (
        np.zeros(shape, np.float32),
        np.zeros(shape, np.float32),
        np.zeros(shape, np.float32),
    )
    total, bend = block.weight.sum(), np.empty(n)
    for i in range(n):
        k, v, s = block.y[i], block.weight[i], block.noise_scale[i]
        per_square = v / (s * s)
        c1, c2 = per_square * at.upper_curvature[i], per_square * at.lower_curvature[i]
        if k > 0 and not vary:
            towards[m + k - 1, i] = -c2
        if k < t and not vary:
            towards[m + k, i] = -c1
        if k > 0 and vary:
            slopes_of_threshold(k - 1, sigma, block.gap_factors, i, slopes)
            for j in range(t):
                towards[m + j, i] -= c2 * slopes[j]
        if k < t and vary:
            slopes_of_threshold(k, sigma, block.gap_factors, i, slopes)
            for j in range(t):
                towards[m + j, i] -= c1 * slopes[j]
        bend[i] = c1 + c2
        place = i // shape[1], i % shape[1]
        delta[place], curvature[place], share[place] = v * at.mean[i] / s, bend[i], v / total
    for j in range(m):
        for i in range(n):
            towards[j, i] = bend[i] * block.values[j, i]
    explained = np.dot(towards.T, root.T)
    columns = np.zeros((X.shape[1], *shape), np.float32)
    filled = np.zeros((*shape, m + t), np.float32)
    for i in range(n):
        b, k = i // shape[1], i % shape[1]
        for j in range(X.shape[1]):
            columns[j, b, k] = X[i, j]
        for j in range(m + t):
            filled[b, k, j] = explained[i, j]
    return Fitted(columns, filled, delta, curvature, share)


@compiled_sums
def gains_of(fitted: Fitted, entries: Entries, begin: int, end: int) -> FloatArray:
    """Return the gains of the functions from `begin` to `end`, (end - begin,)."""
    gains = np.empty(end - begin)
    for first in range(begin, end, TOGETHER):
        batch = _new_batch(fitted, min(TOGETHER, end - first))
        _evaluate(fitted, entries, first, batch)
        for j in range(len(batch.mean)):
            gains[first - begin + j] = _gain(batch, j)
    return gains


@compiled_sums
def climb(fitted: Fitted, entries: Entries, width: FloatArray, begin: int, end: int, n_steps: int) -> None:
    """Move each function from `begin` to `end` to the best point that it visits in some steps of Rprop.

    `width`, (k,), is how far a step of 1 moves the centre of each entry.
    """
    for first in range(begin, end, CLIMBING):
        _climb_together(fitted, entries, width, first, min(first + CLIMBING, end), n_steps)


@inlined
def _climb_together(
    fitted: Fitted, entries: Entries, width: FloatArray, begin: int, end: int, n_steps: int
) -> None:
    batch = _new_batch(fitted, end - begin)
    by_value = np.empty_like(batch.values)
    first, centre, metric = entries.first, entries.centre, entries.metric
    best_centre, best_metric = centre.copy(), metric.copy()
    by_centre, by_metric = np.empty_like(centre), np.empty_like(metric)
    shift, growth = np.zeros_like(centre), np.zeros_like(metric)  # the signs of the last moves
    shift_step, growth_step = np.full_like(centre, _FIRST_STEP), np.full_like(metric, _FIRST_STEP)
    highest = np.full(end - begin, -np.inf)
    for n in range(n_steps + 1):
        _evaluate(fitted, entries, begin, batch)
        for j in range(end - begin):
            gain = _gain(batch, j)
            if gain > highest[j]:
                highest[j] = gain
                for k in range(first[begin + j], first[begin + j + 1]):
                    best_centre[k], best_metric[k] = centre[k], metric[k]
        if n == n_steps:
            break
        _write_slopes(fitted, entries, begin, batch, by_value, by_centre, by_metric)
        for m in range(begin, end):
            for k in range(first[m], first[m + 1]):
                shift[k], shift_step[k] = _rprop(by_centre[k], shift[k], shift_step[k])
                growth[k], growth_step[k] = _rprop(by_metric[k], growth[k], growth_step[k])
                centre[k] += shift[k] * shift_step[k] * width[k]
                if entries.ramp[m]:
                    metric[k] += growth[k] * growth_step[k] * max(abs(metric[k]), 0.1)
                else:
                    metric[k] *= math.exp(growth[k] * growth_step[k])
                if metric[k] == 0.0:
                    metric[k] = 1e-6  # zero would mean "not used"
    for k in range(first[begin], first[end]):
        centre[k], metric[k] = best_centre[k], best_metric[k]


@inner_sums
def _rprop(slope: float, direction: float, step: float) -> tuple[float, float]:
    """Return the next direction and step; a parameter whose slope has changed its sign rests once."""
    turned = np.sign(slope) * direction
    if turned < 0.0:
        return 0.0, max(_SLOWER * step, _SHORTEST_STEP)
    return np.sign(slope), min(_FASTER * step, _LONGEST_STEP) if turned > 0.0 else step


@inner_sums
def _new_batch(fitted: Fitted, size: int) -> _Batch:
    n_blocks, n, n_explained = fitted.explained.shape
    return _Batch(
        np.empty((n_blocks, size, n), np.float32),
        np.empty(size, np.float32),
        np.empty((size, n_explained), np.float32),
        np.empty(size, np.float32),
        np.empty(size, np.float32),
    )


@inner_sums
def _evaluate(fitted: Fitted, entries: Entries, begin: int, batch: _Batch) -> None:
    """Evaluate the functions from `begin` on, as many as the batch has places for."""
    n_blocks, size, n = batch.values.shape
    square = np.empty(size, np.float32)
    for j in range(size):
        mean = _ZERO
        for b in range(n_blocks):
            phi, share = batch.values[b, j], fitted.share[b]
            _write_values(fitted, entries, begin + j, b, phi)
            for i in range(n):
                mean += share[i] * phi[i]
        quality, curved = _ZERO, _ZERO
        for b in range(n_blocks):
            phi, delta, curvature = batch.values[b, j], fitted.delta[b], fitted.curvature[b]
            for i in range(n):
                phi[i] -= mean
                quality += delta[i] * phi[i]
                curved += curvature[i] * phi[i] * phi[i]
        batch.mean[j], batch.quality[j], square[j] = mean, quality, curved
    _project(fitted, batch)
    for j in range(size):
        sparsity = square[j]
        for k in range(batch.projected.shape[1]):
            sparsity -= batch.projected[j, k] * batch.projected[j, k]
        resolved = sparsity > _COLLINEAR * max(square[j], 1e-30)
        batch.sparsity[j] = sparsity if resolved else np.inf


@inner_sums
def _write_values(fitted: Fitted, entries: Entries, m: int, b: int, phi: SingleArray) -> None:
    """Write function m at block b of the rows."""
    for i in range(len(phi)):
        phi[i] = _ZERO
    for k in range(entries.first[m], entries.first[m + 1]):
        x = fitted.columns[entries.column[k], b]
        z, theta = np.float32(entries.centre[k]), np.float32(entries.metric[k])
        if entries.ramp[m]:
            for i in range(len(phi)):
                phi[i] += theta * (x[i] - z)
        else:
            for i in range(len(phi)):
                phi[i] -= theta * (x[i] - z) * (x[i] - z)
    if entries.ramp[m]:
        for i in range(len(phi)):
            phi[i] = tanh_single(phi[i])
    else:
        for i in range(len(phi)):
            phi[i] = exp_single(phi[i])


@inner_sums
def _project(fitted: Fitted, batch: _Batch) -> None:
    """Write the projections of the centred values."""
    projected = batch.projected
    product = np.empty_like(projected)
    np.dot(batch.values[0], fitted.explained[0], projected)
    for b in range(1, len(batch.values)):
        np.dot(batch.values[b], fitted.explained[b], product)
        for j in range(projected.shape[0]):
            for k in range(projected.shape[1]):
                projected[j, k] += product[j, k]


@inner_sums
def _gain(batch: _Batch, j: int) -> float:
    """Return the gain of adding; for x < 1, where it is zero, a negative value that increases with x."""
    x = float(batch.quality[j] * batch.quality[j] / batch.sparsity[j])
    return 0.5 * (x - 1.0 - math.log(x)) if x > 1.0 else 0.5 * (x - 1.0)


@inner_sums
def _write_slopes(
    fitted: Fitted,
    entries: Entries,
    begin: int,
    batch: _Batch,
    by_value: SingleArray,
    by_centre: FloatArray,
    by_metric: FloatArray,
) -> None:
    """Write the gradients of the gains in the entries; `by_value` is scratch memory like the values."""
    n_blocks, size, n = batch.values.shape
    for b in range(n_blocks):
        np.dot(batch.projected, fitted.explained[b].T, by_value[b])
    for j in range(size):
        ramp, mean = entries.ramp[begin + j], batch.mean[j]
        quality, sparsity = batch.quality[j], batch.sparsity[j]
        x = quality * quality / sparsity
        rate = _ONE - _ONE / x if x > _ONE else _ONE
        by_quality, by_sparsity = rate * quality / sparsity, rate * x / sparsity
        total = _ZERO
        for b in range(n_blocks):
            by, phi = by_value[b, j], batch.values[b, j]
            delta, curvature = fitted.delta[b], fitted.curvature[b]
            for i in range(n):
                by[i] = by_sparsity * (by[i] - curvature[i] * phi[i]) + by_quality * delta[i]
                total += by[i]
        entries_of = range(entries.first[begin + j], entries.first[begin + j + 1])
        for k in entries_of:
            by_centre[k], by_metric[k] = 0.0, 0.0
        for b in range(n_blocks):
            by, phi, share = by_value[b, j], batch.values[b, j], fitted.share[b]
            by_argument = _ZERO
            for i in range(n):
                value = phi[i] + mean
                # The mean, which is subtracted, depends on all values: hence the total.
                by[i] = (by[i] - total * share[i]) * (_ONE - value * value if ramp else value)
                by_argument += by[i]
            for k in entries_of:
                column, z = fitted.columns[entries.column[k], b], np.float32(entries.centre[k])
                linear, square = _ZERO, _ZERO
                for i in range(n):
                    linear += by[i] * (column[i] - z)
                    square += by[i] * (column[i] - z) * (column[i] - z)
                by_centre[k] += entries.metric[k] * (-by_argument if ramp else _TWO * linear)
                by_metric[k] += linear if ramp else -square
