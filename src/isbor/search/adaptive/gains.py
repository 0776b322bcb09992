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

from dataclasses import dataclass

import numpy as np

from isbor._core.linalg import factorise
from isbor._core.parallel import Workers
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.inference.expansion import block_of
from isbor.inference.mode import posterior_precision
from isbor.inference.sparse import SparseModel
from isbor.model.cuts import RowShape
from isbor.model.likelihood import edges
from isbor.search.adaptive.compiled_gains import CLIMBING, TOGETHER, Fitted, climb, fitted_at, gains_of
from isbor.search.adaptive.entries import Entries
from isbor.search.ascent import typical_widths

__all__ = ["Directions", "Gains", "best_candidates"]

# Multiplications in a matrix product up to which OpenBLAS uses the matrices as they are: twice as fast.
_SMALL_PRODUCT = 1_000_000
# Columns that are converted to double precision at once.
_FEWEST_COLUMNS = 256
_TILE_CELLS = 4_000_000  # 32 MB


def best_candidates(
    proposals: Entries,
    unsifted: Entries,
    gains: "Gains",
    *,
    size_prior: float,
    keep: int,
    n_steps: int,
    workers: Workers,
) -> Entries:
    """Return the `keep` best proposals plus all `unsifted`, each refined by a few ascent steps."""
    gain = gains.values(proposals, workers)
    order = np.argsort(size_prior * proposals.cost - gain, kind="stable")[:keep]
    best = proposals.take(order).followed_by(unsifted)
    if n_steps:
        gains.climb(best, n_steps, workers)
    return best


@dataclass(frozen=True, slots=True)
class Directions:
    """Q and S of the columns themselves, from which the gain of any linear function follows."""

    quality: FloatArray  # (d,)
    sparsity: FloatArray  # (d, d)

    @classmethod
    def of(cls, gains: "Gains") -> "Directions":
        """Compute Q and S of the columns, in tiles: in double precision, a copy of all would be large."""
        fitted = gains.fitted
        single = fitted.columns.reshape(len(fitted.columns), -1)
        d, n = single.shape
        size = max(_FEWEST_COLUMNS, _TILE_CELLS // n)
        tiles = [slice(first, first + size) for first in range(0, d, size)]

        def centred(tile: slice) -> FloatArray:
            columns = single[tile].astype(np.float64)
            columns -= (columns @ fitted.share.ravel())[:, None]
            return columns

        explained = np.concatenate([centred(tile) @ fitted.explained.reshape(n, -1) for tile in tiles])
        quality, sparsity = np.empty(d), np.empty((d, d))
        for one in tiles:
            columns = centred(one)
            quality[one] = columns @ fitted.delta.ravel()
            columns *= fitted.curvature.ravel()
            for other in tiles:
                sparsity[one, other] = columns @ centred(other).T - explained[one] @ explained[other].T
        return cls(quality, sparsity)


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
        shape: RowShape | None = None,
    ) -> "Gains":
        """Prepare the gains for a model at its mode.

        `shape` is the noise and the factors of the gaps of each row; None means noise 1 and factors 1.
        """
        mode, n = model.mode, len(rows)
        root = factorise(posterior_precision(mode)).whitening()
        block = block_of(np.ascontiguousarray(model.functions(rows.X).T), rows, slice(0, n), shape)
        # Blocks are so short that the product of a batch of proposals with a block is a small one.
        n_blocks = -(-n // max(_SMALL_PRODUCT // (TOGETHER * len(root)), 128))
        size = n_blocks, -(-n // n_blocks)
        return cls(fitted_at(rows.X, block, mode.weights, edges(mode.thresholds), root, size))

    def values(self, functions: Entries, workers: Workers) -> FloatArray:
        """Return the gain of adding each function alone, (m,); negative if it would not be added."""

        def some(part: slice) -> FloatArray:
            return gains_of(self.fitted, functions, part.start, part.stop)

        return np.concatenate([np.zeros(0), *workers.map(some, _parts(functions, 8 * TOGETHER))])

    def climb(self, functions: Entries, n_steps: int, workers: Workers) -> None:
        """Move the functions by some ascent steps, each to the best point visited."""
        width = typical_widths(functions.metric, np.repeat(functions.ramp, np.diff(functions.first)))

        def some(part: slice) -> None:
            climb(self.fitted, functions, width, part.start, part.stop, n_steps)

        for _ in workers.map(some, _parts(functions, 2 * CLIMBING)):
            pass


def _parts(functions: Entries, size: int) -> list[slice]:
    count = functions.n_functions
    return [slice(i, min(i + size, count)) for i in range(0, count, size)]
