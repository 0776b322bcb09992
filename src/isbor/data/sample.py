"""A sample of the distinct rows of a table that is read block by block.

Each row has a key, a hash of its values (`isbor.data.order`), so the rows with the smallest keys are a
random sample of the distinct rows: the same one whatever the order of the rows, the blocks they come in, and
how often each occurs. Of each class, a few rows are kept even if the class is rare. A row that stays in the
sample to the end has been in it from its first occurrence on, so its total weight is exact.

Samples of two parts of a table merge to the sample of both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from isbor._core.types import BoolArray, FloatArray, IntArray
from isbor.data.order import Keys

__all__ = ["EncodedRows", "RowSample"]

_OF_EACH_CLASS = 64  # rows kept at least, if there are as many


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Encoded rows of positive weight, not scaled."""

    X: FloatArray  # (n, D)
    y: IntArray  # (n,) labels 0 … r-1
    weight: FloatArray  # (n,)
    number: IntArray  # (n,) row numbers in the table

    def __len__(self) -> int:
        return len(self.y)

    def take(self, chosen: IntArray | BoolArray | slice) -> "EncodedRows":
        """Return the chosen rows."""
        return EncodedRows(self.X[chosen], self.y[chosen], self.weight[chosen], self.number[chosen])

    @classmethod
    def joined(cls, parts: Sequence["EncodedRows"]) -> Self:
        """Return the rows of all parts."""
        return cls(
            np.concatenate([part.X for part in parts]),
            np.concatenate([part.y for part in parts]),
            np.concatenate([part.weight for part in parts]),
            np.concatenate([part.number for part in parts]),
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """Some rows with their keys."""

    rows: EncodedRows
    key: Keys  # (n,)
    exact: Keys  # (n,) hashes of the numbers, which tell rows with the same key apart

    def __len__(self) -> int:
        return len(self.key)

    def take(self, chosen: IntArray | BoolArray) -> "_Part":
        return _Part(self.rows.take(chosen), self.key[chosen], self.exact[chosen])

    def within(self, bounds: "_Bounds | None") -> "_Part":
        """Return the rows that may belong to the sample."""
        if bounds is None:
            return self
        kept = self.key <= bounds.of_all
        for k, bound in bounds.of_classes.items():
            kept |= (self.rows.y == k) & (self.key <= bound)
        kept |= ~np.isin(self.rows.y, list(bounds.of_classes))
        return self.take(kept)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Rows with larger keys do not belong to the sample."""

    of_all: np.uint64
    of_classes: dict[int, np.uint64]  # of classes with enough rows; all rows of other classes belong to it


@dataclass(frozen=True, slots=True)
class RowSample:
    """A sample of distinct rows, and rows that are still to be compared with it."""

    parts: tuple[_Part, ...]
    size: int  # of the sample, without rows of rare classes
    bounds: _Bounds | None = None  # None: it has all distinct rows

    @classmethod
    def of(
        cls, rows: EncodedRows, key: Keys, exact: Keys, size: int, largest: np.uint64 | None = None
    ) -> Self:
        """Return the sample of some rows with these keys.

        Rows with keys above the `largest` one are left out, but for a few of each class.
        """
        part = _Part(rows, key, exact)
        if largest is None or (kept := key <= largest).all():
            return cls((part,), size)
        for k in np.unique(rows.y).tolist():
            own = rows.y == k
            kept |= own & (key <= np.unique(key[own])[:_OF_EACH_CLASS][-1])
        return cls((part.take(kept),), size, _Bounds(largest, {}))

    def merged(self, other: "RowSample") -> "RowSample":
        """Return the sample of the rows of both."""
        mine = tuple(part.within(other.bounds) for part in self.parts)
        parts = (*mine, *(part.within(self.bounds) for part in other.parts))
        both = RowSample(parts, self.size, self.bounds or other.bounds)
        return both.settled() if sum(map(len, parts)) > 2 * self.size else both

    def settled(self) -> "RowSample":
        """Return the sample alone, in the order of its keys."""
        rows = EncodedRows.joined([part.rows for part in self.parts])
        key, exact = (np.concatenate([getattr(p, name) for p in self.parts]) for name in ("key", "exact"))
        order = np.lexsort((rows.weight, exact, key))
        key, exact = key[order], exact[order]
        first = np.flatnonzero(np.concatenate([[True], (key[1:] != key[:-1]) | (exact[1:] != exact[:-1])]))
        weight = np.add.reduceat(rows.weight[order], first)
        number = np.minimum.reduceat(rows.number[order], first)
        y = rows.y[order[first]]
        kept = np.arange(len(first)) < self.size
        bounds = self.bounds
        if not kept.all():
            of_classes: dict[int, np.uint64] = {}
            for k in np.unique(y).tolist():
                own = np.flatnonzero(y == k)[:_OF_EACH_CLASS]
                kept[own] = True
                if len(own) == _OF_EACH_CLASS:
                    of_classes[k] = key[first[own[-1]]]
            if not kept.all():
                bounds = _Bounds(key[first[self.size - 1]], of_classes)
        chosen = order[first[kept]]
        sample = EncodedRows(rows.X[chosen], rows.y[chosen], weight[kept], number[kept])
        return RowSample((_Part(sample, key[first[kept]], exact[first[kept]]),), self.size, bounds)

    @property
    def rows(self) -> EncodedRows:
        """The rows of a settled sample."""
        return self.parts[0].rows

    @property
    def is_complete(self) -> bool:
        """Whether it has all distinct rows."""
        return self.bounds is None
