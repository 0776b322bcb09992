"""Training rows in one canonical form: distinct, weighted, scaled, in an order of their own.

A fit must not depend on the order of its rows, and a row of weight 2 must equal the row twice. So rows
are brought into a canonical order before anything is computed or sampled from them: equal (x, y) rows
are merged and their weights added, then rows are ordered by a hash of their values, which is an order
as good as random yet a function of the set of rows alone. Within that order the classes are
interleaved in proportion, so that **every prefix is a stratified random sample**: sampling candidates
or subsamples means taking the first rows.

Features are standardised by the rows' weighted mean and standard deviation; a constant feature says
nothing and gets factor zero. The columns of a category are scaled together, so that the mean squared
distance between two rows is that of any other feature, 2: then a rare level is no further away than others,
nor is one that training rows do not have.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isbor._core.types import FloatArray, IntArray
from isbor.data.folds import rank_in_class

__all__ = ["Scaling", "TrainingRows", "canonical_rows"]

# Of a column of smaller numbers, one over the standard deviation may be beyond the largest float.
_TINY = 2.0**-900


@dataclass(frozen=True, slots=True)
class Scaling:
    """x → (x - mean) · lift · factor, column by column."""

    mean: FloatArray  # (d,)
    lift: FloatArray  # (d,), 1; for a column of tiny numbers, perhaps subnormal, a large power of two
    factor: FloatArray  # (d,), one over the standard deviation of lift · x; 0 for a constant feature
    varying: NDArray[np.bool_]  # (d,) whether training rows differ there

    @classmethod
    def identity(cls, n_columns: int) -> "Scaling":
        """Return the scaling that leaves rows as they are."""
        ones = np.ones(n_columns)
        return cls(np.zeros(n_columns), ones, ones, ones.astype(np.bool_))

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
        # So far out every basis function is zero; beyond, squares would overflow.
        return np.clip(Z, -1e100, 1e100, out=Z)

    def inverse(self, Z: FloatArray) -> FloatArray:
        """Return unscaled rows; a constant feature takes its constant."""
        return self.mean + Z / np.where(self.factor > 0.0, self.factor, np.inf) / self.lift


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Distinct weighted rows in canonical order; each prefix is stratified by label."""

    X: FloatArray  # (n, d) scaled
    y: IntArray  # (n,) labels 0 … r-1, each of which occurs
    weight: FloatArray  # (n,) positive
    source: IntArray  # (n,) a row of the user's table that each row came from

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_levels(self) -> int:
        """Number of levels, r."""
        return int(self.y.max()) + 1

    @property
    def total_weight(self) -> float:
        """Weight of all rows."""
        return float(self.weight.sum())

    def prefix_size(self, n: int) -> int:
        """Return n, or as many rows as a prefix needs to hold every level."""
        return max(n, 4 * self.n_levels)

    def head(self, n: int) -> "TrainingRows":
        """Return the first n rows, a stratified sample, without copying."""
        return self.take(slice(n))

    def take(self, chosen: IntArray | slice) -> "TrainingRows":
        """Return some of the rows; in ascending order their prefixes stay stratified."""
        return TrainingRows(self.X[chosen], self.y[chosen], self.weight[chosen], self.source[chosen])

    def in_fewer_dimensions(self) -> "TrainingRows":
        """Return the rows in at most n dimensions, all distances between them as they were.

        n points span no more; with more features than rows this saves nearly all of the work. Columns in
        which no row differs go as well.
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
    X: FloatArray, y: IntArray, weight: FloatArray, *, seed: int = 0, category: IntArray | None = None
) -> tuple[TrainingRows, Scaling]:
    """Merge equal rows, drop those of weight zero, order and scale the rest.

    Parameters
    ----------
    X : (n, d), finite
    y : (n,) labels 0 … r-1
    weight : (n,) nonnegative
    seed : chooses among the pseudo-random orders
    category : (d,) the number of the category that a column belongs to, -1 for a column of its own
    """
    kept = np.flatnonzero(weight > 0)
    if len(kept) < len(weight):
        rows, scaling = canonical_rows(X[kept], y[kept], weight[kept], seed=seed, category=category)
        return replace(rows, source=kept[rows.source]), scaling
    key = _hash_rows(X, y, seed)
    # Equal rows by weight, so that their sum does not depend on the order they came in.
    order = np.lexsort((weight, key))
    # Equal rows have equal keys; rows of equal keys are compared.
    same = (key[order[1:]] == key[order[:-1]]) & (y[order[1:]] == y[order[:-1]])
    twins = np.flatnonzero(same)
    same[twins] = (X[order[twins + 1]] == X[order[twins]]).all(axis=1)
    first = np.flatnonzero(np.concatenate(([True], ~same)))
    merged = np.add.reduceat(weight[order], first)
    source = np.minimum.reduceat(order, first)

    interleaved = _interleave(y[source])
    source, merged = source[interleaved], merged[interleaved]
    X = X[source]
    scaling = _standardise(X, merged, category)
    return TrainingRows(X, y[source], merged, source), scaling


def _hash_rows(X: FloatArray, y: IntArray, seed: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return 64 well-mixed bits of each row (x, y); arithmetic wraps, as hashes do."""
    key = y.astype(np.uint64) + np.uint64(seed)
    for column in X.T:
        if column.min() == column.max():
            continue  # a constant feature must not matter, not even here
        # Adding 0.0 turns -0.0, which compares equal to 0.0, into it.
        key += (column + 0.0).view(np.uint64)
        key += np.uint64(0x9E3779B97F4A7C15)
        # The finaliser of the generator splitmix64.
        for shift, multiplier in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            key ^= key >> np.uint64(shift)
            key *= np.uint64(multiplier)
        key ^= key >> np.uint64(31)
    return key


def _interleave(y: IntArray) -> IntArray:
    """Return an order in which each prefix holds the classes in proportion, each at least once early on."""
    by_class = np.argsort(y, kind="stable")
    share = rank_in_class(y) / np.bincount(y)[y]
    return by_class[np.argsort(share[by_class], kind="stable")]


def _standardise(X: FloatArray, weight: FloatArray, category: IntArray | None) -> Scaling:
    """Standardise the rows in place; safe for values near the limits of floats."""
    share = weight / weight.sum()
    low, high = X.min(axis=0), X.max(axis=0)
    is_tiny = (high > low) & (np.maximum(high, -low) < _TINY)
    lift = np.where(is_tiny, 1.0 / _TINY, 1.0)
    if is_tiny.any():
        X *= lift  # exact, as lift is a power of two
        low, high = low * lift, high * lift
    mean = (share @ X) / lift
    centre = mean * lift
    reach = np.maximum(high - centre, centre - low)
    varying = (high > low) & (reach > 0)
    unit = np.where(varying, reach, 1.0)
    X -= centre
    X /= unit
    X[:, ~varying] = 0.0
    variance = np.einsum("i,ij,ij->j", share, X, X)
    if category is not None:
        for number in np.unique(category[category >= 0]):
            columns = np.flatnonzero((category == number) & varying)
            # In the units that the columns have been divided by, which are not all the same.
            variance[columns] = np.sum(variance[columns] * unit[columns] ** 2) / unit[columns] ** 2
    spread = np.sqrt(variance)
    X /= np.where(varying, spread, 1.0)
    factor = np.zeros_like(unit)
    factor[varying] = 1.0 / (unit * spread)[varying]
    if category is not None:
        for number in np.unique(category[(category >= 0) & varying]):
            of_category = category == number
            factor[of_category & ~varying] = factor[of_category & varying][0]
    return Scaling(mean, lift, factor, varying)
