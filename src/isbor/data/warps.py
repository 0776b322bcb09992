r"""Monotone warps of features: the normal quantile of a value's rank.

With heavy tails or outliers, most rows lie in a small part of a feature's range. The normal quantile of the
rank,

.. math:: x \mapsto \Psi^{-1}(\text{share of training rows below } x),

has no such tails, whatever the scale of the feature. Neither the feature nor its warp is always the better
input, and different functions may need different ones. So both are offered, and functions with their own
metrics may use either; the evidence decides.

A warp is stored as a piecewise linear function through at most 200 quantiles. It is increasing on the range
of the training rows and constant outside.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from isbor._core.types import BoolArray, FloatArray, IntArray
from isbor.data.compiled_warps import interpolated
from isbor.data.rows import Scaling, TrainingRows

__all__ = ["Preparation", "Warp", "prepare"]

_MAX_KNOTS = 200
_SMALLEST_SHARE = 1e-9
_STEEPEST = 1e6  # slope that counts: between two nearly equal values, it may be beyond the largest number


@dataclass(frozen=True, slots=True)
class Warp:
    """An increasing function of one column."""

    knots: FloatArray  # increasing values of the column
    warped: FloatArray  # their images, increasing; mean 0 and variance 1 over the training rows

    def __call__(self, column: FloatArray) -> FloatArray:
        """Return the warped values."""
        return interpolated(np.ascontiguousarray(column), self.knots, self.warped)

    def slope(self, column: FloatArray) -> FloatArray:
        """Return the slopes at these values; zero outside the range of the training rows."""
        with np.errstate(over="ignore"):
            steps = np.minimum(np.diff(self.warped) / np.diff(self.knots), _STEEPEST)
        place = np.searchsorted(self.knots, column, side="right")
        slopes: FloatArray = np.concatenate([[0.0], steps, [0.0]])[place]
        return slopes

    def inverse(self, warped: FloatArray) -> FloatArray:
        """Return the values with these images, within the range of the training rows."""
        return np.interp(warped, self.warped, self.knots)

    @classmethod
    def learn(cls, column: FloatArray, weight: FloatArray) -> "Warp | None":
        """Learn the warp of a column with weighted rows; None if all ranks are equal."""
        values, place = np.unique(column, return_inverse=True)
        # Summed in order of weight, so that the order of rows does not matter.
        order = np.argsort(weight, kind="stable")
        total = np.bincount(place[order], weight[order])
        share = (np.cumsum(total) - 0.5 * total) / total.sum()
        # A value of almost no weight would have an infinite quantile, or the same one as its neighbour.
        warped = ndtri(np.clip(share, _SMALLEST_SHARE, 1.0 - _SMALLEST_SHARE))
        distinct = np.flatnonzero(np.diff(warped, prepend=-np.inf) > 0)
        values, warped = values[distinct], warped[distinct]
        total = np.add.reduceat(total, distinct)
        if len(values) < 2:
            return None
        mean = total @ warped / total.sum()
        spread = np.sqrt(total @ (warped - mean) ** 2 / total.sum())
        warped = (warped - mean) / spread
        if len(values) > _MAX_KNOTS:
            grid = np.linspace(warped[0], warped[-1], _MAX_KNOTS)
            chosen = np.unique(np.searchsorted(warped, grid, side="left"))
            values, warped = values[chosen], warped[chosen]
        return cls(values, warped)


@dataclass(frozen=True, slots=True)
class Preparation:
    """Maps encoded rows to the inputs of basis functions: scaled columns, and warps of some of them."""

    scaling: Scaling
    source: IntArray  # (p,) the scaled column of each prepared column
    warps: tuple[Warp | None, ...]  # (p,) None for a plain column

    @classmethod
    def plain(cls, scaling: Scaling) -> "Preparation":
        """Return the preparation that only scales, with the columns in the order of the scaling.

        Sums over columns have the same roundings then, wherever these stand in the table. Columns of factor
        zero are left out.
        """
        source = scaling.order
        if scaling.factor.any():
            source = source[scaling.factor[source] > 0.0]
        return cls(scaling, source, (None,) * len(source))

    def of_rows(self, rows: TrainingRows) -> TrainingRows:
        """Return the prepared training rows of scaled ones."""
        return replace(rows, X=self.widen(rows.X))

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the prepared rows of encoded ones, a new array of shape (n, p)."""
        return self.widen(self.scaling(X))

    def widen(self, scaled: FloatArray) -> FloatArray:
        """Return the prepared rows of scaled ones."""
        wide = np.take(scaled, self.source, axis=1)
        for p, warp in enumerate(self.warps):
            if warp is not None:
                wide[:, p] = warp(scaled[:, self.source[p]])
        return wide

    def with_all_columns(self) -> "Preparation":
        """Return the preparation extended to every column with a nonzero scaling factor."""
        missing = np.setdiff1d(np.flatnonzero(self.scaling.factor > 0.0), self.source)
        if not len(missing):
            return self
        source = np.concatenate([self.source, missing])
        return replace(self, source=source, warps=(*self.warps, *(None,) * len(missing)))

    def places_in(self, other: "Preparation") -> tuple[IntArray, IntArray]:
        """Return the columns shared with another preparation of the same table, and their positions there."""
        place = {key: p for p, key in enumerate(other._keys())}
        shared = [(p, place[key]) for p, key in enumerate(self._keys()) if key in place]
        columns, places = np.array(shared, dtype=np.intp).reshape(-1, 2).T
        return columns, places

    def _keys(self) -> list[tuple[int, bool]]:
        """Return a key for each prepared column: its source, and whether it is plain."""
        return [(j, warp is None) for j, warp in zip(self.source.tolist(), self.warps, strict=True)]

    def centres(self, prepared: FloatArray, used: BoolArray) -> FloatArray:
        """Return centres in the units of the encoded table.

        If a function uses a column and its warp, the plain column counts. Unused columns take their mean.
        """
        scaled = np.zeros((len(prepared), len(self.scaling.mean)))
        for plain in (False, True):
            for p, (j, warp) in enumerate(zip(self.source, self.warps, strict=True)):
                if (warp is None) == plain:
                    column = prepared[:, p] if warp is None else warp.inverse(prepared[:, p])
                    scaled[:, j] = np.where(used[:, p], column, scaled[:, j])
        return self.scaling.inverse(scaled)


def prepare(rows: TrainingRows, scaling: Scaling, warpable: BoolArray) -> tuple[TrainingRows, Preparation]:
    """Return the prepared training rows, and the preparation for other rows.

    Columns are in the order of `scaling`, so that proposals do not depend on where they stand in the table.
    `warpable`, (d,), marks the columns that may be warped. Constant columns are left out, and a column with
    two values is not warped.
    """
    source: list[int] = []
    warps: list[Warp | None] = []
    columns = scaling.order
    if scaling.varying.any():
        columns = columns[scaling.varying[columns]]
    for j in columns.tolist():
        source.append(j)
        warps.append(None)
        column = rows.X[:, j]
        if warpable[j] and len(np.unique(column[:1000])) > 2:
            warp = Warp.learn(column, rows.weight)
            if warp is not None:
                source.append(j)
                warps.append(warp)
    preparation = Preparation(scaling, np.array(source), tuple(warps))
    return preparation.of_rows(rows), preparation
