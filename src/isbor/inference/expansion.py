r"""The second-order expansion of the log likelihood, computed in one pass over the rows.

At weights w and thresholds b, for all n basis functions (active or proposed),

.. math::
    \ell = \sum_i v_i \ln p_i, \qquad g = \nabla_{(w,b)} \ell, \qquad \Gamma = -\nabla^2_{(w,b)} \ell,

with :math:`v_i` the weights of the rows. These are sums over rows, so blocks of rows are evaluated in any
number of threads and added. Each block takes one evaluation of the functions, one of the likelihood and two
matrix products. It is then discarded: nothing of size N × n is stored.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from isbor._core.parallel import Workers, row_blocks
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.inference.compiled_expansion import Block, Sums, add_block, latent_moments, new_sums
from isbor.model.cuts import RowShape
from isbor.model.likelihood import edges

__all__ = [
    "Basis",
    "Columns",
    "Expansion",
    "Later",
    "block_of",
    "columns_of",
    "expand",
    "expand_partly",
    "expansion_at",
    "streamed",
    "summed",
]


class Basis(Protocol):
    """Functions of a row."""

    def __len__(self) -> int:
        """Return the number of functions, m."""

    def __call__(self, X: FloatArray, /) -> FloatArray:
        """Return the values at the rows (n, d), a new array (n, m)."""


class Columns(Protocol):
    """The values of m functions at the training rows."""

    def __len__(self) -> int:
        """Return the number of functions, m."""

    def __call__(self, block: slice, /) -> FloatArray:
        """Return the values at a block of rows, (m, n), not to be changed."""


# Up to this many values (64 MB) are stored while several passes need them.
_MAX_KEPT_VALUES = 8_000_000
# Up to this many values (8 MB) stay in the caches of a processor.
_MAX_CACHED_VALUES = 1_000_000


@dataclass(frozen=True, slots=True)
class _Computed:
    basis: Basis
    rows: TrainingRows

    def __len__(self) -> int:
        return len(self.basis)

    def __call__(self, block: slice) -> FloatArray:
        return np.ascontiguousarray(self.basis(self.rows.X[block]).T)


@dataclass(frozen=True, slots=True)
class _Kept:
    n_functions: int
    blocks: dict[int, FloatArray]  # by the first row of each block

    def __len__(self) -> int:
        return self.n_functions

    def __call__(self, block: slice) -> FloatArray:
        return self.blocks[block.start]


def streamed(rows: TrainingRows, basis: Basis) -> Columns:
    """Return columns that are computed again in each pass."""
    return _Computed(basis, rows)


def columns_of(rows: TrainingRows, basis: Basis, workers: Workers) -> Columns:
    """Return columns for several passes: computed once and stored, if they are not too many."""
    computed = _Computed(basis, rows)
    m = len(basis)
    if len(rows) * m > _MAX_KEPT_VALUES:
        return computed
    blocks = row_blocks(len(rows), m)
    values = workers.map(computed, blocks)
    return _Kept(m, {block.start: part for block, part in zip(blocks, values, strict=True)})


@dataclass(frozen=True, slots=True)
class Expansion:
    """Second-order expansion of the log likelihood at a point (w, b)."""

    weights: FloatArray  # (n,) w
    thresholds: FloatArray  # (r-1,) b
    log_likelihood: float
    gradient: FloatArray  # (n + r-1,), weights first
    precision: FloatArray  # (n + r-1, n + r-1), Γ
    latent_mean: float  # weighted mean of the rows' latent scores
    latent_variance: float  # weighted variance of the rows' latent scores
    held_precision: float | None = None  # β, if it is held fixed
    later: "Later | None" = None  # if some inner products are not in Γ yet

    @property
    def threshold_precision(self) -> float:
        """Prior precision β of the thresholds: 1 / variance of the latent response (score plus noise)."""
        if self.held_precision is not None:
            return self.held_precision
        return 1.0 / (1.0 + self.latent_variance)


def block_of(values: FloatArray, rows: TrainingRows, block: slice, shape: RowShape | None) -> Block:
    """Return a block of rows for compiled functions, with the values of the functions, (m, n)."""
    y = rows.y[block]
    of_block = RowShape.constant(len(y)) if shape is None else shape[block]
    return Block(values, y, rows.weight[block], of_block.noise_scale, of_block.gap_factors)


def expand(
    rows: TrainingRows,
    columns: Columns,
    weights: FloatArray,
    thresholds: FloatArray,
    workers: Workers,
    shape: RowShape | None = None,
    *,
    single: bool = False,
) -> Expansion:
    """Expand the log likelihood of the rows around (weights, thresholds).

    `shape` is the noise and the factors of the gaps of each row; None means noise 1 and factors 1. If
    `single`, inner products of functions are computed in single precision.
    """
    edge = edges(thresholds)

    def add(block: slice, sums: Sums) -> None:
        part = block_of(columns(block), rows, block, shape)
        add_block(part, weights, edge, len(columns), single, sums)

    sums = summed(add, rows, len(columns), len(columns) + len(thresholds), workers)
    return expansion_at(weights, thresholds, sums)


@dataclass(frozen=True, slots=True)
class Later:
    """What it takes to compute inner products Σ_i H_i φ_j φ_k that are not in Γ."""

    n_first: int  # those with the first functions are in Γ
    values: FloatArray  # (n, N), φ at all rows
    curvature: FloatArray  # (N,), H


def expand_partly(
    rows: TrainingRows,
    basis: Basis,
    n_first: int,
    weights: FloatArray,
    thresholds: FloatArray,
    workers: Workers,
    shape: RowShape | None = None,
) -> Expansion:
    """Expand like `expand`, but compute inner products with the first functions only, if rows are few.

    Most inner products of candidates with each other are never needed. The others are computed one by one, as
    long as the values of all functions fit into the caches.
    """
    n = len(basis)
    if n == n_first or n * len(rows) > _MAX_CACHED_VALUES:
        return expand(rows, streamed(rows, basis), weights, thresholds, workers, shape)
    edge = edges(thresholds)
    values, curvature = np.empty((n, len(rows))), np.empty(len(rows))

    def add(block: slice, sums: Sums) -> None:
        of_block = np.ascontiguousarray(basis(rows.X[block]).T)
        part = block_of(of_block, rows, block, shape)
        values[:, block], curvature[block] = of_block, add_block(part, weights, edge, n_first, False, sums)

    sums = summed(add, rows, n, n + len(thresholds), workers)
    return replace(expansion_at(weights, thresholds, sums), later=Later(n_first, values, curvature))


def expansion_at(weights: FloatArray, thresholds: FloatArray, sums: Sums) -> Expansion:
    """Return the expansion at a point, given the sums over rows."""
    mean, variance = latent_moments(sums.totals)
    log_likelihood = float(sums.totals[0])
    return Expansion(weights, thresholds, log_likelihood, sums.gradient, sums.precision, mean, variance)


def summed(
    add: Callable[[slice, Sums], None], rows: TrainingRows, n_functions: int, size: int, workers: Workers
) -> Sums:
    """Return the sums over all rows, for `size` parameters, of what `add` adds for a block of rows."""

    def sums_of(block: slice) -> Sums:
        sums = new_sums(size)
        add(block, sums)
        return sums

    parts = workers.map(sums_of, row_blocks(len(rows), n_functions))
    total = next(parts)
    for part in parts:
        for whole, summand in zip(total, part, strict=True):
            whole += summand
    return total
