"""Tables to matrices: the training rows in one canonical form.

A fit must not depend on the order of its rows, and a row of weight 2 must equal the row twice. So rows
are brought into a canonical order before anything is computed or sampled from them: equal (x, y) rows
are merged and their weights added, then rows are ordered by a hash of their values, which is an order
as good as random yet a function of the set of rows alone. Within that order the classes are
interleaved in proportion, so that **every prefix is a stratified random sample**: sampling candidates
or subsamples means taking the first rows.

Features are standardised by the rows' weighted mean and standard deviation; a constant feature says
nothing and gets factor zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from isbor.arrays import FloatArray, IntArray

__all__ = ["Scaling", "TrainingRows", "canonical_rows", "check_finite"]


@dataclass(frozen=True, slots=True)
class Scaling:
    """x → (x - mean) · factor, feature by feature."""

    mean: FloatArray  # (d,)
    factor: FloatArray  # (d,), one over the standard deviation; 0 for a constant feature

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the scaled rows, a new array."""
        Z = X - self.mean
        Z *= self.factor
        # So far out every basis function is zero; beyond, squares would overflow.
        return np.clip(Z, -1e100, 1e100, out=Z)


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Distinct weighted rows in canonical order; each prefix is stratified by label."""

    X: FloatArray  # (n, d) scaled
    y: IntArray  # (n,) labels 0 … r-1, each of which occurs
    weight: FloatArray  # (n,) positive
    source: IntArray  # (n,) a row of the user's table that each row came from

    def __len__(self) -> int:
        return len(self.y)

    def head(self, n: int) -> "TrainingRows":
        """Return the first n rows, a stratified sample, without copying."""
        return TrainingRows(self.X[:n], self.y[:n], self.weight[:n], self.source[:n])

    def in_fewer_dimensions(self) -> "TrainingRows":
        """Return the rows in at most n dimensions, all distances between them as they were.

        n points span no more; with more features than rows this saves nearly all of the work.
        """
        n, d = self.X.shape
        if d <= n:
            return self
        _, triangle = np.linalg.qr(self.X.T)
        return replace(self, X=np.ascontiguousarray(triangle.T))


def check_finite(X: FloatArray, feature_names: Sequence[str] | None, owner: str) -> None:
    """Raise ValueError if X holds NaN or infinity, naming the first such cell and what to do."""
    bad = ~np.isfinite(X)
    if not bad.any():
        return
    row, column = (int(i) for i in np.argwhere(bad)[0])
    found = "NaN" if np.isnan(X[row, column]) else "inf"
    where = f"column {column}" if feature_names is None else f"column {feature_names[column]!r}"
    remedy = (
        "Drop those rows or fill them in, for instance with sklearn.impute.SimpleImputer(add_indicator=True)."
        if found == "NaN"
        else "Replace infinite values, or drop those rows."
    )
    raise ValueError(
        f"X contains NaN or inf in {int(bad.sum())} cell(s), the first ({found}) in row {row}, {where}; "
        f"{owner} needs finite numbers. {remedy}"
    )


def canonical_rows(
    X: FloatArray, y: IntArray, weight: FloatArray, *, salt: int = 0
) -> tuple[TrainingRows, Scaling]:
    """Merge equal rows, drop those of weight zero, order and scale the rest.

    Parameters
    ----------
    X : (n, d), finite
    y : (n,) labels 0 … r-1
    weight : (n,) nonnegative
    salt : chooses among the pseudo-random orders
    """
    kept = np.flatnonzero(weight > 0)
    if len(kept) < len(weight):
        rows, scaling = canonical_rows(X[kept], y[kept], weight[kept], salt=salt)
        return replace(rows, source=kept[rows.source]), scaling
    key = _hash_rows(X, y, salt)
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
    return TrainingRows(X, y[source], merged, source), _standardise(X, merged)


def _hash_rows(X: FloatArray, y: IntArray, salt: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return 64 well-mixed bits of each row (x, y); arithmetic wraps, as hashes do."""
    key = y.astype(np.uint64) + np.uint64(salt)
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
    counts = np.bincount(y)
    starts = np.cumsum(counts) - counts
    rank = np.arange(len(y)) - np.repeat(starts, counts)
    share = rank / np.repeat(counts, counts)
    return by_class[np.argsort(share, kind="stable")]


def _standardise(X: FloatArray, weight: FloatArray) -> Scaling:
    """Standardise the rows in place; safe for values near the limits of floats."""
    share = weight / weight.sum()
    mean = share @ X
    low, high = X.min(axis=0), X.max(axis=0)
    reach = np.maximum(high - mean, mean - low)
    varying = (high > low) & (reach > 0)
    unit = np.where(varying, reach, 1.0)
    X -= mean
    X /= unit
    X[:, ~varying] = 0.0
    spread = np.sqrt(np.einsum("i,ij,ij->j", share, X, X))
    X /= np.where(varying, spread, 1.0)
    factor = np.zeros_like(unit)
    factor[varying] = 1.0 / (unit * spread)[varying]
    return Scaling(mean, factor)
