"""Training rows in canonical form: distinct, weighted, scaled, in canonical order.

A fit must not depend on the order of its rows, and a row of weight 2 must count as two equal rows. So rows
are first brought into a canonical form. Numbers are rounded to a grid, a millionth of the spread of their
column wide, so that last digits do not matter. Equal (x, y) rows are merged and their weights added. The rows
are then sorted by a hash of their values, an order that looks random but depends only on the set of rows, and
not on the order of the columns (`isbor.data.order`). Finally the classes are
interleaved in proportion, so that **every prefix is a stratified random sample**: to sample candidates or
rows means to take the first ones.

Features are standardised by the weighted mean and standard deviation of the rows; a constant feature gets
factor zero. The columns of a categorical feature share one factor, such that the mean squared distance
between two rows in this feature is 2, as for any other feature. So rare and unseen categories are not
farther away than others.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from isbor._core.types import BoolArray, FloatArray, IntArray
from isbor.data.folds import rank_in_class
from isbor.data.order import Keys, column_order, exact_keys, grid_keys, on_grid

__all__ = ["Scaling", "TrainingRows", "canonical_rows", "merged_by_key"]

_REFERENCE_ROWS = 1000
# Of a column of smaller numbers, one over the standard deviation may be beyond the largest float.
_TINY = 2.0**-900


@dataclass(frozen=True, slots=True)
class Scaling:
    """x → (x - mean) · lift · factor, column by column; and the order in which columns are drawn."""

    mean: FloatArray  # (d,)
    lift: FloatArray  # (d,), 1; for a column of tiny numbers, perhaps subnormal, a large power of two
    factor: FloatArray  # (d,), one over the standard deviation of lift · x; 0 for a constant feature
    varying: BoolArray  # (d,) whether the column is not constant in training
    order: IntArray  # (d,) the columns in an order that does not depend on where they stand in the table

    @classmethod
    def identity(cls, n_columns: int) -> "Scaling":
        """Return the scaling that does nothing."""
        ones = np.ones(n_columns)
        return cls(np.zeros(n_columns), ones, ones, ones.astype(np.bool_), np.arange(n_columns))

    @property
    def spread(self) -> FloatArray:
        """Standard deviation of each column, (d,); infinite for a constant feature."""
        with np.errstate(divide="ignore"):
            return 1.0 / self.factor / self.lift

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the scaled rows, a new array."""
        with np.errstate(over="ignore"):
            Z = X - self.mean
            if np.any(self.lift != 1.0):
                Z *= self.lift
            Z *= self.factor
        # Every basis function is zero that far out, and squares of larger numbers would overflow.
        return np.clip(Z, -1e100, 1e100, out=Z)

    def inverse(self, Z: FloatArray) -> FloatArray:
        """Return the rows in the original units; a constant feature takes its constant value."""
        return self.mean + Z / np.where(self.factor > 0.0, self.factor, np.inf) / self.lift


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Distinct weighted rows in canonical order; each prefix is stratified by label."""

    X: FloatArray  # (n, d) scaled
    y: IntArray  # (n,) labels 0 … r-1, each of which occurs
    weight: FloatArray  # (n,) positive
    source: IntArray  # (n,) row number in the user's table; of merged rows, the first

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_levels(self) -> int:
        """Number of levels, r."""
        return int(self.y.max()) + 1

    @property
    def total_weight(self) -> float:
        """Total weight of the rows."""
        return float(self.weight.sum())

    def prefix_size(self, n: int) -> int:
        """Return n, or more if a prefix needs more rows to hold every level."""
        return max(n, 4 * self.n_levels)

    @property
    def reference(self) -> "TrainingRows":
        """A sample of 1,000 rows, from which typical sizes of functions are computed."""
        return self.head(_REFERENCE_ROWS)

    @property
    def varying(self) -> BoolArray:
        """Columns in which the rows of the reference sample differ, (d,)."""
        varying: BoolArray = np.ptp(self.reference.X, axis=0) > 0
        return varying

    def head(self, n: int) -> "TrainingRows":
        """Return the first n rows, a stratified sample, without copying."""
        return self.take(slice(n))

    def take(self, chosen: IntArray | slice) -> "TrainingRows":
        """Return the chosen rows; if `chosen` ascends, their prefixes are stratified too."""
        return TrainingRows(self.X[chosen], self.y[chosen], self.weight[chosen], self.source[chosen])

    def in_fewer_dimensions(self) -> "TrainingRows":
        """Return the rows in at most n dimensions, with the same distances between them.

        n points span at most n dimensions, so with many more features than rows this saves most of the
        work. Constant columns are dropped as well.
        """
        varying = np.ptp(self.X, axis=0) > 0.0
        rows = self
        if varying.any() and not varying.all():
            rows = replace(self, X=np.ascontiguousarray(self.X[:, varying]))
        n, d = rows.X.shape
        if d <= n:
            return rows
        _, triangle = np.linalg.qr(rows.X.T)
        return replace(rows, X=np.ascontiguousarray(triangle.T))


def canonical_rows(
    X: FloatArray,
    y: IntArray,
    weight: FloatArray,
    *,
    seed: int = 0,
    feature: IntArray | None = None,
    group: IntArray | None = None,
) -> tuple[TrainingRows, Scaling]:
    """Drop rows of weight zero, round the others, merge equal ones, and order and scale them.

    Parameters
    ----------
    X : (n, d), finite
    y : (n,) labels 0 … r-1
    weight : (n,) nonnegative
    seed : selects one of the pseudo-random orders
    feature : (d,) the feature of each column; None if each is one
    group : (d,) columns with the same number ≥ 0 belong to one categorical feature; -1 for others
    """
    # Rows are copied only where there are others than these: a copy may take gigabytes.
    source, merged = _merged_rows(X, y, weight, seed)
    first = np.argsort(source)
    source, merged = source[first], merged[first]
    given = X if len(source) == len(X) else X[source]
    X, y = on_grid(given), y[source]
    # Rows that differ by rounding are equal now.
    distinct, total = _merged_rows(X, y, merged, seed)
    if len(distinct) < len(given):
        given, X, y, source = given[distinct], X[distinct], y[distinct], source[distinct]
        distinct = np.arange(len(given))
    columns = column_order(given, y, np.arange(X.shape[1]) if feature is None else feature)
    by_key = np.argsort(grid_keys(given, y, seed, columns)[distinct], kind="stable")
    by_key = by_key[_interleave(y[distinct[by_key]])]
    order, merged = distinct[by_key], total[by_key]
    X, y, source = X[order], y[order], source[order]
    scaling = _standardise(X, merged, columns, group)
    return TrainingRows(X, y, merged, source), scaling


def _merged_rows(X: FloatArray, y: IntArray, weight: FloatArray, seed: int) -> tuple[IntArray, FloatArray]:
    """Return one of each set of equal rows of positive weight, and their total weights.

    Their order depends on nothing but the set of rows.
    """
    kept = np.flatnonzero(weight > 0)
    if len(kept) < len(weight):
        source, merged = _merged_rows(X[kept], y[kept], weight[kept], seed)
        return kept[source], merged
    key = exact_keys(X, y, seed)
    return merged_by_key(key, y, weight, lambda one, other: (X[one] == X[other]).all(axis=1))


def merged_by_key(
    key: Keys, y: IntArray, weight: FloatArray, are_equal: Callable[[IntArray, IntArray], BoolArray]
) -> tuple[IntArray, FloatArray]:
    """Return one of each set of equal rows, in the order of their keys, and their total weights.

    `are_equal` says of pairs of rows with the same key and label whether their numbers are equal.
    """
    # Equal rows are sorted by weight, so that the sum of weights does not depend on the input order.
    order = np.lexsort((weight, key))
    # Equal rows have equal keys, but not vice versa: rows with equal keys are compared.
    same = (key[order[1:]] == key[order[:-1]]) & (y[order[1:]] == y[order[:-1]])
    twins = np.flatnonzero(same)
    same[twins] = are_equal(order[twins + 1], order[twins])
    first = np.flatnonzero(np.concatenate(([True], ~same)))
    return np.minimum.reduceat(order, first), np.add.reduceat(weight[order], first)


def _interleave(y: IntArray) -> IntArray:
    """Return an order in which each prefix has the classes in proportion, and every class occurs early."""
    by_class = np.argsort(y, kind="stable")
    share = rank_in_class(y) / np.bincount(y)[y]
    return by_class[np.argsort(share[by_class], kind="stable")]


def _columns(X: FloatArray) -> Iterator[FloatArray]:
    """Yield the columns, each by itself: the roundings of its sums do not depend on the other columns."""
    return (np.ascontiguousarray(column) for column in X.T)


def _standardise(X: FloatArray, weight: FloatArray, order: IntArray, group: IntArray | None) -> Scaling:
    """Standardise the rows in place; works for values near the limits of floating point."""
    share = weight / weight.sum()
    low, high = X.min(axis=0), X.max(axis=0)
    is_tiny = (high > low) & (np.maximum(high, -low) < _TINY)
    lift = np.where(is_tiny, 1.0 / _TINY, 1.0)
    if is_tiny.any():
        X *= lift  # exact, as lift is a power of two
        low, high = low * lift, high * lift
    mean = np.array([share @ column for column in _columns(X)]) / lift
    centre = mean * lift
    reach = np.maximum(high - centre, centre - low)
    varying = (high > low) & (reach > 0)
    unit = np.where(varying, reach, 1.0)
    X -= centre
    X /= unit
    X[:, ~varying] = 0.0
    variance = np.array([share @ column**2 for column in _columns(X)])
    if group is not None:
        for number in np.unique(group[group >= 0]):
            columns = np.flatnonzero((group == number) & varying)
            # The columns have been divided by different units.
            variance[columns] = np.sum(variance[columns] * unit[columns] ** 2) / unit[columns] ** 2
    spread = np.sqrt(variance)
    X /= np.where(varying, spread, 1.0)
    factor = np.zeros_like(unit)
    factor[varying] = 1.0 / (unit * spread)[varying]
    if group is not None:
        for number in np.unique(group[(group >= 0) & varying]):
            own = group == number
            factor[own & ~varying] = factor[own & varying][0]
    return Scaling(mean, lift, factor, varying, order)
