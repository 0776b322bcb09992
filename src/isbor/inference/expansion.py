r"""The second-order expansion of the log likelihood, computed in one pass over the rows.

At weights w and thresholds b, for all n basis functions (active or proposed),

.. math::
    \ell = \sum_i v_i \ln p_i, \qquad g = \nabla_{(w,b)} \ell, \qquad \Gamma = -\nabla^2_{(w,b)} \ell,

with :math:`v_i` the weights of the rows. These are sums over rows, so blocks of rows are evaluated in any
number of threads and added. Each block takes one evaluation of the functions, one of the likelihood and two
matrix products. It is then discarded: nothing of size N × n is stored.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from isbor._core.parallel import Workers, row_blocks
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.model.likelihood import edges, ordinal_probit, scatter_edges

__all__ = ["Basis", "Columns", "Expansion", "columns_of", "expand", "streamed"]


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
        """Return the values at a block of rows, a new array (n, m)."""


# Up to this many values (128 MB) are stored while several passes need them.
_MAX_KEPT_VALUES = 16_000_000


@dataclass(frozen=True, slots=True)
class _Computed:
    basis: Basis
    rows: TrainingRows

    def __len__(self) -> int:
        return len(self.basis)

    def __call__(self, block: slice) -> FloatArray:
        return self.basis(self.rows.X[block])


@dataclass(frozen=True, slots=True)
class _Kept:
    values: FloatArray

    def __len__(self) -> int:
        return int(self.values.shape[1])

    def __call__(self, block: slice) -> FloatArray:
        return self.values[block].copy(order="K")


def streamed(rows: TrainingRows, basis: Basis) -> Columns:
    """Return columns that are computed again in each pass."""
    return _Computed(basis, rows)


def columns_of(rows: TrainingRows, basis: Basis, workers: Workers) -> Columns:
    """Return columns for several passes: computed once and stored, if they are not too many."""
    computed = _Computed(basis, rows)
    m = len(basis)
    if len(rows) * m > _MAX_KEPT_VALUES:
        return computed
    values = np.empty((m, len(rows))).T
    blocks = row_blocks(len(rows), m)
    for block, part in zip(blocks, workers.map(computed, blocks), strict=True):
        values[block] = part
    return _Kept(values)


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

    @property
    def threshold_precision(self) -> float:
        """Prior precision β of the thresholds: 1 / variance of the latent response (score plus noise)."""
        if self.held_precision is not None:
            return self.held_precision
        return 1.0 / (1.0 + self.latent_variance)


def expand(
    rows: TrainingRows,
    columns: Columns,
    weights: FloatArray,
    thresholds: FloatArray,
    workers: Workers,
    noise_scale: FloatArray | None = None,
) -> Expansion:
    """Expand the log likelihood of the rows around (weights, thresholds).

    `noise_scale`, (n,), is the standard deviation of each row's noise; None means 1.
    """
    n, t = len(columns), len(thresholds)
    edge = edges(thresholds)

    def block_sums(block: slice) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        phi = columns(block)
        y, v = rows.y[block], rows.weight[block]
        f = phi @ weights
        scale = None if noise_scale is None else noise_scale[block]
        at = ordinal_probit(f, edge[y], edge[y + 1], scale=scale)
        # Columns: the gradient in f, then the mixed derivatives in f and each threshold. Edges 0 and t + 1
        # are infinite: their columns are zero and are dropped.
        mixed = np.zeros((len(y), t + 3))
        mixed[:, 0] = v * at.slope
        scatter_edges(mixed[:, 1:], y, -v * at.lower_curvature, -v * at.upper_curvature)
        products = (mixed.T @ phi).T
        # ∂/∂b and the three edge weights of the likelihood's Laplacian, summed by class.
        by_class = np.empty((5, t + 1))
        tie = at.upper * at.lower
        summands = (at.upper, at.lower, at.upper_curvature, at.lower_curvature, tie)
        for k, summand in enumerate(summands):
            by_class[k] = np.bincount(y, v * summand, minlength=t + 1)
        phi *= np.sqrt(v * at.curvature)[:, None]
        sums = np.array([v @ at.log_p, v.sum(), v @ f, v @ f**2])
        return sums, products[:, 0], products[:, 2:-1], by_class, phi.T @ phi

    sums = np.zeros(4)
    g = np.zeros(n)
    cross = np.zeros((n, t))
    by_class = np.zeros((5, t + 1))
    gram = np.zeros((n, n))
    for part in workers.map(block_sums, row_blocks(len(rows), n)):
        sums += part[0]
        g += part[1]
        cross += part[2]
        by_class += part[3]
        gram += part[4]

    upper, lower, upper_curvature, lower_curvature, tie = by_class
    precision = np.empty((n + t, n + t))
    precision[:n, :n] = gram
    precision[:n, n:] = cross
    precision[n:, :n] = cross.T
    # Threshold k is the upper edge of class k and the lower edge of class k + 1.
    precision[n:, n:] = (
        np.diag(upper_curvature[:-1] + tie[:-1] + lower_curvature[1:] + tie[1:])
        - np.diag(tie[1:-1], 1)
        - np.diag(tie[1:-1], -1)
    )
    gradient = np.concatenate([g, upper[:-1] - lower[1:]])
    log_likelihood, total, first, second = sums.tolist()
    mean = first / total
    variance = max(second / total - mean**2, 0.0)
    return Expansion(weights, thresholds, log_likelihood, gradient, precision, mean, variance)
