r"""Orders and roundings that depend on what a table says, not on how it was stored.

A fit draws rows and features in a pseudo-random order. If that order came from the bits of the numbers, a
change in the last digit would draw everything anew, and where several models fit about equally well, the fit
would find another one. So the order comes from positions on a grid,

.. math:: q = \operatorname{round}\big(2^{20} \operatorname{asinh}((x - c) / s)\big),

which is a millionth of the spread of a column wide in its middle, and a millionth of the number in its tails.
The unit s is the power of two next to the interquartile range, and c the multiple of s next to the median, so
neither is changed by a small change of the data, and rarely by a few more rows. Numbers that differ by
rounding nearly always have the same position; if not, one row changes its place.

**Numbers** themselves are rounded before a fit sees them (`on_grid`). A search makes many choices between
functions that are worth nearly the same, so it magnifies whatever differs, even a last digit. Numbers get
about the same grid, with steps that are powers of two,

.. math:: x \mapsto c + h \operatorname{round}\big((x - c) / h\big), \qquad
    h = 2^{-20} \max\big(s, 2^{\lfloor \log_2 |x - c| \rfloor}\big).

So numbers that need few binary digits, such as whole numbers or the marks of categories, stay what they are.
A relative change of 10⁻¹³ leads to another number for one in some millions. What is rounded in the same way
is the same to the last bit, and so is all that follows.

**Columns** are ordered by the sums of q y and of q over the rows: whole numbers, so the same in any order of
the rows. Ties are broken by a hash of each position together with its row; if that is the same as well, the
columns can be exchanged without changing the table.

**Rows** are ordered by a hash of their positions, with the columns in that order, and of the label. Rows with
the same positions are ordered by a hash of their numbers.

**Large tables** are read block by block, and quartiles and sums over distinct rows cannot be computed so.
Their grids come from means and standard deviations instead (`Grid`), and the hash of a row is one of a sum
over the columns, so that it does not depend on the order of the columns either.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from isbor._core.types import BoolArray, FloatArray, IntArray

__all__ = ["Grid", "Keys", "column_order", "exact_keys", "grid_keys", "on_grid"]

Keys = NDArray[np.uint64]

_STEPS = 2.0**20  # of the grid, in a unit
_FARTHEST = 1e300
_NO_TIE = 1.0 / np.pi  # medians of whole numbers would often be halfway between two multiples of the unit
_EXPONENTS = (-1000.0, 1000.0)  # of the unit
_SMALLEST_UNIT = 2.0 ** _EXPONENTS[0]  # numbers on a finer grid may be too small to be rounded


@dataclass(frozen=True, slots=True)
class Grid:
    """The grids of the columns of a large table."""

    unit: FloatArray  # (d,) s
    centre: FloatArray  # (d,) c
    varying: BoolArray  # (d,) constant columns do not count

    @classmethod
    def of(cls, spread: FloatArray, middle: FloatArray, varying: BoolArray) -> Self:
        """Return the grids of columns with these spreads and middles."""
        varying = varying & (spread > 0.0)
        unit = _unit(np.where(varying, spread, 1.0))
        return cls(unit, _centre(np.where(varying, middle, 0.0), unit), varying)

    def keys(self, X: FloatArray, y: IntArray, seed: int) -> Keys:
        """Return a hash of the positions and the label of each row, whatever the order of the columns."""
        total = np.zeros(len(y), np.uint64)
        signatures = self._signatures()
        for j in np.flatnonzero(self.varying).tolist():
            place = _places(X[:, j], self.unit[j], self.centre[j]).view(np.uint64)
            total += _mixed(place + signatures[j])
        return _mixed(_mixed(y.astype(np.uint64) + np.uint64(seed)) + total)

    def _signatures(self) -> Keys:
        """Return a number for each column that tells it from others, wherever it stands."""
        unit, centre = self.unit.view(np.uint64), (self.centre + 0.0).view(np.uint64)
        return _mixed(_mixed(unit) + centre)


def exact_keys(X: FloatArray, y: IntArray, seed: int, varying: BoolArray | None = None) -> Keys:
    """Return a hash of the numbers and the label of each row; constant columns do not count.

    `varying`, (d,), says which columns are not constant; None: those in which these rows differ.
    """
    varying = X.min(axis=0) < X.max(axis=0) if varying is None else varying
    key = y.astype(np.uint64) + np.uint64(seed)
    for j in np.flatnonzero(varying):
        # Adding 0.0 turns -0.0 into 0.0: they are equal but differ in bits.
        key = _mixed(key + (X[:, j] + 0.0).view(np.uint64))
    return key


def grid_keys(X: FloatArray, y: IntArray, seed: int, order: IntArray) -> Keys:
    """Return a hash of the positions and the label of each row, with the columns in this order."""
    key = y.astype(np.uint64) + np.uint64(seed)
    for j in order:
        if X[:, j].min() < X[:, j].max():
            key = _mixed(key + _positions(X[:, j]).view(np.uint64))
    return key


def column_order(X: FloatArray, y: IntArray, feature: IntArray) -> IntArray:
    """Return the columns in an order that does not depend on where the features stand in the table.

    X, (n, d), has distinct rows (x, y). The columns of one feature, numbered by `feature`, (d,), stay
    together.
    """
    sums = [(int(q @ y), int(q.sum())) for q in map(_positions, X.T)]
    columns = [np.flatnonzero(feature == number) for number in np.unique(feature)]
    keys = [tuple(sums[j] for j in own) for own in columns]
    ties: list[tuple[int, ...]] = [()] * len(keys)
    if len(set(keys)) < len(keys):
        hashes = _hashes_of_columns(X, y)
        ties = [tuple(hashes[j] for j in own) for own in columns]
    ranked = sorted(range(len(keys)), key=lambda k: (keys[k], ties[k]))
    return np.concatenate([columns[k] for k in ranked])


def on_grid(X: FloatArray) -> FloatArray:
    """Return the numbers of each column rounded to its grid, a new array."""
    rounded = X.copy()
    for j, column in enumerate(X.T):
        frame = _frame(column)
        if frame is not None and frame[0] > _SMALLEST_UNIT:
            rounded[:, j] = _rounded(column, *frame)
    return rounded


def _rounded(column: FloatArray, unit: FloatArray, centre: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        distance = (column - centre) / unit
        digits = np.log2(_STEPS) - np.maximum(np.frexp(distance)[1] - 1, 0)
        step = np.exp2(-digits)
        rounded = centre + np.round(distance / step) * step * unit
    return np.where(np.isfinite(rounded), rounded, column)


def _positions(column: FloatArray) -> NDArray[np.int64]:
    """Return the positions of the numbers of a column on its grid."""
    frame = _frame(column)
    return np.zeros(len(column), np.int64) if frame is None else _places(column, *frame)


def _frame(column: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return unit and centre of the grid of a column; None if its numbers are equal."""
    n = len(column)
    low, middle, high = np.partition(column, (n // 4, n // 2, 3 * n // 4))[[n // 4, n // 2, 3 * n // 4]]
    if low == high:
        low, high = column.min(), column.max()
    half = 0.5 * high - 0.5 * low  # of the largest numbers, the difference itself may be infinite
    if half == 0.0:
        return None
    with np.errstate(over="ignore"):
        unit = _unit(2.0 * half)
    return unit, _centre(middle, unit)


def _unit(spread: FloatArray) -> FloatArray:
    """Return the power of two next to each number."""
    return np.asarray(2.0 ** np.clip(np.round(np.log2(spread)), *_EXPONENTS))


def _centre(middle: FloatArray, unit: FloatArray) -> FloatArray:
    """Return the multiple of the unit next to each number."""
    return np.asarray(unit * np.round(middle / unit + _NO_TIE))


def _places(column: FloatArray, unit: FloatArray, centre: FloatArray) -> NDArray[np.int64]:
    """Return the positions of the numbers of a column."""
    with np.errstate(over="ignore"):
        distance = (column - centre) / unit
    positions = np.round(_STEPS * np.arcsinh(np.clip(distance, -_FARTHEST, _FARTHEST)))
    return np.asarray(positions, dtype=np.int64)


def _hashes_of_columns(X: FloatArray, y: IntArray) -> list[int]:
    """Return a hash of each column, of its numbers and the rows in which they stand, in any order."""
    row = _mixed(y.astype(np.uint64))
    for column in X.T:
        if column.min() < column.max():
            row += _mixed(_positions(column).view(np.uint64))
    row = _mixed(row)
    return [int(_mixed(_positions(column).view(np.uint64) + row).sum()) for column in X.T]


def _mixed(key: Keys) -> Keys:
    """Return the keys mixed by the finaliser of the generator splitmix64; integer arithmetic wraps around."""
    key = key + np.uint64(0x9E3779B97F4A7C15)
    for shift, multiplier in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        key ^= key >> np.uint64(shift)
        key *= np.uint64(multiplier)
    key ^= key >> np.uint64(31)
    return key
