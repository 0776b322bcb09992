r"""Functions carried over to another preparation of the same features.

When the rows of a stream are scaled and warped anew, a function stays what it is as far as it can. Let a be
the slope of the new values of a column in the old ones. Then :math:`\theta (x - z)^2` keeps its value with
θ/a², and :math:`\theta (x - z)` with θ/a.

* **Plain columns**: old and new values are affine functions of the same numbers, so this is exact.
* **Warped columns** are piecewise linear functions of the numbers. The centre moves to the new value of its
  number, and a is the ratio of the differences over the width of the function: exact for an affine change.
* **Columns that are gone**, such as those of a category that no kept row has: the function loses them, and is
  dropped if none is left.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from isbor._core.types import BoolArray, FloatArray, IntArray
from isbor.data.encoding import TableEncoding
from isbor.data.rows import Scaling
from isbor.data.warps import Preparation, Warp
from isbor.model.basis import Functions

__all__ = ["Prepared", "carried"]

_SLOPES = (0.1, 10.0)  # limits of a
_WIDTHS = (0.05, 1.0)  # limits of the width over which a warp's slope is taken


@dataclass(frozen=True, slots=True)
class Prepared:
    """How the tables of a stream are encoded, scaled and warped at some time."""

    encoding: TableEncoding
    preparation: Preparation

    def keys(self) -> list[Hashable]:
        """Return what each prepared column stands for, whatever its place."""
        of_encoded = self.encoding.keys
        preparation = self.preparation
        pairs = zip(preparation.source.tolist(), preparation.warps, strict=True)
        return [(of_encoded[j], warp is None) for j, warp in pairs]


def carried(functions: Functions, before: Prepared, after: Prepared) -> tuple[Functions, BoolArray]:
    """Return the functions in the new columns, and which of the old ones they are, (m,)."""
    new_place = {key: p for p, key in enumerate(after.keys())}
    m, n_columns = len(functions), len(after.preparation.source)
    centres, metric = np.zeros((2, m, n_columns))
    for old, key in enumerate(before.keys()):
        new = new_place.get(key)
        if new is None:
            continue
        used = np.flatnonzero(functions.metric[:, old])
        ramp, theta = functions.ramp[used], functions.metric[used, old]
        width = np.clip(1.0 / np.sqrt(2.0 * np.abs(theta)), *_WIDTHS)
        z, slope = _moved(
            functions.centres[used, old],
            width,
            _column(before.preparation, old),
            _column(after.preparation, new),
        )
        centres[used, new] = z
        metric[used, new] = theta / np.where(ramp, slope, slope**2)
    kept: BoolArray = (metric != 0.0).any(axis=1)
    moved = replace(functions, centres=centres, metric=metric)
    return moved.take(kept), kept


@dataclass(frozen=True, slots=True)
class _Column:
    """A prepared column: a warp, or none, of (x - mean) · unit."""

    mean: float
    unit: float
    warp: Warp | None


def _column(preparation: Preparation, place: int) -> _Column:
    scaling: Scaling = preparation.scaling
    j: IntArray = preparation.source[place]
    return _Column(
        float(scaling.mean[j]), float(scaling.lift[j] * scaling.factor[j]), preparation.warps[place]
    )


def _moved(z: FloatArray, width: FloatArray, one: _Column, other: _Column) -> tuple[FloatArray, FloatArray]:
    """Return centres in the other column, and slopes of its values in those of the first one."""
    if one.unit <= 0.0 or other.unit <= 0.0:
        return z, np.ones(len(z))
    ratio, shift = other.unit / one.unit, (one.mean - other.mean) * other.unit

    def rescaled(scaled: FloatArray) -> FloatArray:
        return scaled * ratio + shift

    if one.warp is None or other.warp is None:
        return rescaled(z), np.full(len(z), ratio)
    of, to = one.warp, other.warp
    low, high = of.warped[0], of.warped[-1]
    inside = np.clip(z, low, high)
    left, right = np.clip(inside - width, low, high), np.clip(inside + width, low, high)
    values = [to(rescaled(of.inverse(point))) for point in (left, inside, right)]
    slope = np.clip((values[2] - values[0]) / np.maximum(right - left, 1e-300), *_SLOPES)
    return values[1] + (z - inside) * slope, slope
