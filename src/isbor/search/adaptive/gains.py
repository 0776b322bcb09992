r"""Gains of many proposed functions; the best proposals are improved one by one before selection.

Adding a function φ to a model at its mode gains ½(x - 1 - ln x) with x = Q²/S (see
`isbor.inference.evidence`), where

.. math:: Q = \phi^\top \delta, \qquad S = \phi^\top (H - B \Sigma B^\top) \phi, \qquad B = (H\Phi,\, G) .

So the gains of hundreds of proposals take one product with the N × (M + r - 1) matrix B, and their gradients
in the values of φ another one. The proposals with the highest gain minus penalty are kept. Each is improved
on its own by a few ascent steps in its centre and scales, by the signs of the gradient (Rprop).

Gains must be computed on the rows of the model. Late in a search, useful functions gain about ten nats. But
on a sample of one row in k, any function seems to gain about k times a χ² variable by chance, and the best of
hundreds is mostly chance. Single precision suffices for proposals and halves the time. The loops over the
rows are compiled (`isbor.search.adaptive.compiled_gains`).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isbor._core.linalg import factorise
from isbor._core.parallel import Workers
from isbor._core.types import FloatArray, SingleArray
from isbor.data.rows import TrainingRows
from isbor.inference.mode import posterior_precision
from isbor.inference.sparse import SparseModel
from isbor.model.basis import Functions
from isbor.model.likelihood import edges, ordinal_probit, scatter_edges
from isbor.search.adaptive.compiled_gains import Entries, Fitted, climb, gains_of
from isbor.search.ascent import typical_widths

__all__ = ["Directions", "Gains", "best_candidates"]

_BATCH = 32  # proposals evaluated together
_CLIMBING = 18  # functions that climb together
# Multiplications in a matrix product up to which OpenBLAS uses the matrices as they are: twice as fast.
_SMALL_PRODUCT = 1_000_000
_RIDGE = 0.01  # share of the diagonal added before solving for a direction


def best_candidates(
    proposals: Functions,
    unsifted: Functions,
    gains: "Gains",
    *,
    size_prior: float,
    keep: int,
    n_steps: int,
    workers: Workers,
) -> Functions:
    """Return the `keep` best proposals plus all `unsifted`, each refined by a few ascent steps."""
    gain = gains.values(proposals, workers)
    order = np.argsort(size_prior * proposals.cost - gain, kind="stable")[:keep]
    best = proposals.take(order).followed_by(unsifted)
    return gains.climbed(best, n_steps, workers) if n_steps else best


@dataclass(frozen=True, slots=True)
class Directions:
    """Q and S of the columns themselves, from which the gain of any linear function follows."""

    quality: FloatArray  # (d,)
    sparsity: FloatArray  # (d, d)

    @classmethod
    def of(cls, gains: "Gains") -> "Directions":
        """Compute Q and S of the columns."""
        fitted = gains.fitted
        columns = fitted.columns.reshape(len(fitted.columns), -1).astype(np.float64)
        columns -= (columns @ fitted.share.ravel())[:, None]
        explained = columns @ fitted.explained.reshape(columns.shape[1], -1)
        sparsity = (columns * fitted.curvature.ravel()) @ columns.T - explained @ explained.T
        return cls(columns @ fitted.delta.ravel(), sparsity)

    @property
    def strength(self) -> FloatArray:
        """Q²/S of each column alone, (d,)."""
        strength: FloatArray = self.quality**2 / np.maximum(np.diag(self.sparsity), 1e-6)
        return strength

    def best(self, used: NDArray[np.bool_]) -> FloatArray:
        """Return the unit vector with the highest Q²/S for each set of columns, (n, d)."""
        best = np.zeros(used.shape)
        diagonal = np.maximum(np.diag(self.sparsity), 1e-6)
        for k, columns in enumerate(map(np.flatnonzero, used)):
            some = self.sparsity[np.ix_(columns, columns)] + np.diag(_RIDGE * diagonal[columns] + 1.0)
            best[k, columns] = factorise(some).solve(self.quality[columns])
        length = np.sqrt(np.einsum("ij,ij->i", best, best))[:, None]
        return best / np.where(length > 0, length, 1.0)


@dataclass(frozen=True, slots=True)
class Gains:
    """Computes the gain of adding a function to a model, in single precision."""

    fitted: Fitted

    @classmethod
    def of(
        cls,
        rows: TrainingRows,
        model: SparseModel,
        workers: Workers,
        noise_scale: FloatArray | None = None,
    ) -> "Gains":
        """Prepare the gains for a model at its mode.

        `noise_scale`, (n,), is the standard deviation of each row's noise; None means 1.
        """
        mode, weight, y, t = model.mode, rows.weight, rows.y, len(model.mode.thresholds)
        phi = model.functions(rows.X)
        edge = edges(mode.thresholds)
        at = ordinal_probit(phi @ mode.weights, edge[y], edge[y + 1], scale=noise_scale)
        curvature = weight * at.curvature
        mixed = np.zeros((len(y), t + 2))
        scatter_edges(mixed, y, -weight * at.lower_curvature, -weight * at.upper_curvature)
        towards = np.hstack([curvature[:, None] * phi, mixed[:, 1:-1]])
        explained = towards @ factorise(posterior_precision(mode)).whitening().T
        parts = (rows.X, explained, weight * at.slope, curvature, weight / weight.sum())
        columns, *others = (_in_blocks(part, explained.shape[1]) for part in parts)
        return cls(Fitted(np.ascontiguousarray(np.moveaxis(columns, 2, 0)), *others))

    def values(self, functions: Functions, workers: Workers) -> FloatArray:
        """Return the gain of adding each function alone, (m,); negative if it would not be added."""
        entries = _entries(functions)

        def batch(part: slice) -> FloatArray:
            return gains_of(self.fitted, entries, part.start, part.stop)

        return np.concatenate([np.zeros(0), *workers.map(batch, _batches(len(functions), _BATCH))])

    def climbed(self, functions: Functions, n_steps: int, workers: Workers) -> Functions:
        """Return the functions after some ascent steps, each at the best point visited."""
        entries = _entries(functions)

        def batch(part: slice) -> None:
            climb(self.fitted, entries, part.start, part.stop, n_steps)

        for _ in workers.map(batch, _batches(len(functions), _CLIMBING)):
            pass
        used = functions.metric != 0.0
        centres, metric = functions.centres.copy(), functions.metric.copy()
        centres[used], metric[used] = entries.centre, entries.metric
        return replace(functions, centres=centres, metric=metric)


def _in_blocks(values: FloatArray, n_explained: int) -> SingleArray:
    """Return values of the rows, (N, …), in single precision and in blocks of equal length, (blocks, n, …).

    Blocks are so short that the product of a batch of proposals with a block is a small one.
    """
    longest = max(_SMALL_PRODUCT // (_BATCH * n_explained), 128)
    n_blocks = -(-len(values) // longest)
    length = -(-len(values) // n_blocks)
    shape = values.shape[1:]
    blocks = np.zeros((n_blocks * length, *shape), dtype=np.float32)
    blocks[: len(values)] = values
    return blocks.reshape(n_blocks, length, *shape)


def _entries(functions: Functions) -> Entries:
    used = functions.metric != 0.0
    return Entries(
        first=np.concatenate([[0], np.cumsum(used.sum(axis=1))]),
        column=np.ascontiguousarray(np.nonzero(used)[1]),
        ramp=functions.ramp.copy(),
        centre=functions.centres[used],
        metric=functions.metric[used],
        width=typical_widths(functions)[used],
    )


def _batches(count: int, size: int) -> list[slice]:
    return [slice(i, min(i + size, count)) for i in range(0, count, size)]
