r"""Gains of many proposed functions; the best proposals are improved one by one before selection.

Adding a function φ to a model at its mode gains ½(x - 1 - ln x) with x = Q²/S (see
`isbor.inference.evidence`), where

.. math:: Q = \phi^\top \delta, \qquad S = \phi^\top (H - B \Sigma B^\top) \phi, \qquad B = (H\Phi,\, G) .

So the gains of hundreds of proposals take one product with the N × (M + r - 1) matrix B, and their gradients
in the values of φ another one. The proposals with the highest gain minus penalty are kept. Each is improved
on its own by a few ascent steps in its centre and scales, by the signs of the gradient (Rprop).

Gains must be computed on the rows of the model. Late in a search, useful functions gain about ten nats. But
on a sample of one row in k, any function seems to gain about k times a χ² variable by chance, and the best of
hundreds is mostly chance. Single precision suffices for proposals and halves the time.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isbor._core.linalg import factorise
from isbor._core.parallel import Workers
from isbor._core.types import FloatArray, SingleArray
from isbor.data.rows import TrainingRows
from isbor.inference.expansion import columns_of
from isbor.inference.mode import posterior_precision
from isbor.inference.sparse import SparseModel
from isbor.model.basis import Functions, monomials
from isbor.model.likelihood import edges, ordinal_probit, scatter_edges
from isbor.search.ascent import typical_widths

__all__ = ["Directions", "Gains", "best_candidates"]

_BATCH = 32  # proposals evaluated together; fits into the caches
_FIRST_STEP, _LONGEST_STEP, _SHORTEST_STEP = 0.2, 1.0, 1e-3
_FASTER, _SLOWER = 1.3, 0.5
_COLLINEAR = 1e-4  # as in `isbor.inference.evidence`, for single precision
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
    return _climb(gains, proposals.take(order).followed_by(unsifted), n_steps, workers)


@dataclass(frozen=True, slots=True)
class Directions:
    """Q and S of the columns themselves, from which the gain of any linear function follows."""

    quality: FloatArray  # (d,)
    sparsity: FloatArray  # (d, d)

    @classmethod
    def of(cls, gains: "Gains") -> "Directions":
        """Compute Q and S of the columns."""
        d = len(gains.powers) // 2
        columns = gains.powers[d : 2 * d].astype(np.float64)
        columns -= (columns @ gains.share)[:, None]
        explained = columns @ gains.explained.T
        sparsity = (columns * gains.curvature) @ columns.T - explained @ explained.T
        return cls(columns @ gains.delta, sparsity)

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

    powers: SingleArray  # (2d + 1, n), (x², x, 1) of the rows
    explained: SingleArray  # (M + r - 1, n), Σ^½ Bᵀ
    delta: SingleArray  # (n,) δ
    curvature: SingleArray  # (n,) H
    share: SingleArray  # (n,) weights of the rows, summing to one

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
        phi = columns_of(rows, model.functions, workers)(slice(None))
        edge = edges(mode.thresholds)
        at = ordinal_probit(phi @ mode.weights, edge[y], edge[y + 1], scale=noise_scale)
        curvature = weight * at.curvature
        mixed = np.zeros((len(y), t + 2))
        scatter_edges(mixed, y, -weight * at.lower_curvature, -weight * at.upper_curvature)
        towards = np.hstack([curvature[:, None] * phi, mixed[:, 1:-1]])
        explained = factorise(posterior_precision(mode)).whitening() @ towards.T
        parts = (monomials(rows.X), explained, weight * at.slope, curvature, weight / weight.sum())
        return cls(*(part.astype(np.float32) for part in parts))

    def values(self, functions: Functions, workers: Workers) -> FloatArray:
        """Return the gain of adding each function alone, (m,); negative if it would not be added."""

        def batch(part: slice) -> SingleArray:
            return _gain(self._ratio(functions.take(part).at(self.powers)).x)

        return np.concatenate([np.zeros(0), *workers.map(batch, _batches(len(functions)))])

    def slopes(self, functions: Functions, workers: Workers) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gains, (m,), and their gradients in centres and metric, (m, d) each."""

        def batch(part: slice) -> tuple[SingleArray, SingleArray]:
            of_part = functions.take(part)
            values = of_part.at(self.powers)
            slopes = of_part.slopes(values)
            ratio = self._ratio(values)
            slopes *= self._by_value(ratio)
            return _gain(ratio.x), slopes @ self.powers.T

        parts = list(workers.map(batch, _batches(len(functions))))
        by_coefficient = np.concatenate([part[1] for part in parts]).astype(np.float64)
        centres, metric = functions.parameter_gradient(by_coefficient)
        return np.concatenate([part[0] for part in parts]).astype(np.float64), centres, metric

    def _ratio(self, values: SingleArray) -> "_Ratio":
        """Return Q²/S of functions from their values without offsets, (m, n), which are overwritten."""
        values -= (values @ self.share)[:, None]
        projected = values @ self.explained.T
        quality = values @ self.delta
        curved = values * self.curvature
        square = np.einsum("ij,ij->i", curved, values)
        sparsity = square - np.einsum("ij,ij->i", projected, projected)
        resolved = sparsity > _COLLINEAR * np.maximum(square, 1e-30)
        s: SingleArray = np.where(resolved, sparsity, np.inf).astype(np.float32)
        x: SingleArray = quality**2 / s
        return _Ratio(x, quality, s, curved, projected)

    def _by_value(self, ratio: "_Ratio") -> SingleArray:
        """Return the derivatives of the gains in the values of the functions, (m, n)."""
        x = ratio.x
        rate: SingleArray = np.where(x > 1.0, 1.0 - 1.0 / np.maximum(x, 1.0), 1.0).astype(np.float32)
        by_quality = rate * ratio.quality / ratio.sparsity
        by_sparsity = rate * x / ratio.sparsity
        by_projection: SingleArray = by_sparsity[:, None] * ratio.projected
        by_value: SingleArray = by_projection @ self.explained
        by_value += np.outer(by_quality, self.delta)
        by_value -= by_sparsity[:, None] * ratio.curved
        by_value -= np.outer(by_value.sum(axis=1), self.share)  # the functions are centred
        return by_value


@dataclass(frozen=True, slots=True)
class _Ratio:
    """Q²/S of m functions, and its parts."""

    x: SingleArray  # (m,)
    quality: SingleArray  # (m,) Q
    sparsity: SingleArray  # (m,) S; infinite for a function that is collinear with the active ones
    curved: SingleArray  # (m, n), Hφ
    projected: SingleArray  # (m, M + r - 1), Σ^½ Bᵀφ


def _gain(x: SingleArray) -> SingleArray:
    """Return the gain of adding; for x < 1, where it is zero, a negative value that increases with x."""
    return np.where(x > 1.0, 0.5 * (x - 1.0 - np.log(np.maximum(x, 1.0))), 0.5 * (x - 1.0))


def _batches(count: int) -> list[slice]:
    return [slice(i, min(i + _BATCH, count)) for i in range(0, count, _BATCH)]


def _climb(gains: Gains, functions: Functions, n_steps: int, workers: Workers) -> Functions:
    """Return the functions after some ascent steps, each at the best point visited."""
    used, ramp = functions.metric != 0.0, functions.ramp[:, None]
    width = typical_widths(functions)
    here = best = functions
    highest = np.full(len(functions), -np.inf)
    steps = [np.full(used.shape, _FIRST_STEP) for _ in range(2)]
    directions = [np.zeros(used.shape) for _ in range(2)]
    for _ in range(n_steps):
        gain, by_centre, by_metric = gains.slopes(here, workers)
        best = _where(gain > highest, here, best)
        highest = np.maximum(gain, highest)
        slopes = by_centre * used, np.where(ramp, by_metric, by_metric * here.metric) * used
        for slope, direction, step in zip(slopes, directions, steps, strict=True):
            turned = np.sign(slope) * direction
            step *= np.where(turned > 0, _FASTER, np.where(turned < 0, _SLOWER, 1.0))
            np.clip(step, _SHORTEST_STEP, _LONGEST_STEP, out=step)
            direction[:] = np.where(turned < 0, 0.0, np.sign(slope))
        shift, growth = directions[0] * steps[0], directions[1] * steps[1]
        tilted = here.metric + growth * np.maximum(np.abs(here.metric), 0.1)
        metric = np.where(ramp, tilted, here.metric * np.exp(growth))
        metric = np.where(used & (metric == 0.0), 1e-6, metric)  # zero would mean "not used"
        here = replace(here, centres=here.centres + shift * width * used, metric=metric)
    if n_steps:
        best = _where(gains.values(here, workers) > highest, here, best)
    return best


def _where(condition: NDArray[np.bool_], yes: Functions, no: Functions) -> Functions:
    chosen = condition[:, None]
    return replace(
        no,
        centres=np.where(chosen, yes.centres, no.centres),
        metric=np.where(chosen, yes.metric, no.metric),
    )
