"""The features of a stream of tables, as far as they are known: kinds, categories, and their order.

A table that comes in batches may bring a category that no batch had before. So the cells of its rows are kept
as numbers that stay valid: a category has its position in order of first occurrence, and later categories are
appended. The encoding (`isbor.data.encoding`) is learned anew from kept cells, as often as needed. It is the
one that `learn_table` would learn from these rows, with categories in their order.

A feature whose cells were all missing so far has no kind yet; the first batch with a value decides.
"""

import zlib
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from isbor._core.types import BoolArray, FloatArray, IntArray
from isbor.data.category_warnings import warn_of_categories
from isbor.data.cells import Missing, cells_of, column_name, read_again, read_table
from isbor.data.encoding import TableEncoding, learn_encoding
from isbor.data.frames import UNSEEN, Category, Column, as_numbers, as_positions, categories_of

__all__ = ["Schema"]

Categories = tuple[Category, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """Names, kinds and categories of d features."""

    names: tuple[str, ...] | None
    categories: tuple[Categories | None, ...]  # in order of first occurrence; None for a numeric feature
    declared: tuple[Categories | None, ...]  # all categories in the order of the column's type, if any
    ordered: BoolArray  # (d,) whether the type says that categories are ordered
    empty: BoolArray  # (d,) whether all cells so far were missing
    missing: Missing

    @classmethod
    def of(cls, owner: str, X: object, missing: Missing) -> tuple[Self, FloatArray]:
        """Return what the first table says of its features, and its cells, (n, d)."""
        names, columns = read_table(owner, X, missing)
        if not isinstance(columns, list):
            n_features = columns.shape[1]
            nothing, no = (None,) * n_features, np.zeros(n_features, np.bool_)
            return cls(names, nothing, nothing, no, _is_empty(columns), missing), columns
        cells = cells_of(columns)
        schema = cls(
            names,
            tuple(column.categories for column in columns),
            tuple(column.declared for column in columns),
            np.array([column.ordered for column in columns]),
            _is_empty(cells),
            missing,
        )
        return schema, cells

    @classmethod
    def of_encoding(cls, encoding: TableEncoding) -> Self:
        """Return what the encoding of a table says of its features; its cells are those that it decodes."""
        n_features = len(encoding.categories)
        empty = np.zeros(n_features, np.bool_)
        known = encoding.categories
        return cls(encoding.feature_names, known, known, encoding.ranked, empty, encoding.missing)

    def read(self, owner: str, X: object) -> tuple["Schema", FloatArray]:
        """Return the schema after a further table, and the cells of this table."""
        columns = read_again(owner, X, self.missing, self.names, self._settled)
        if not isinstance(columns, list):
            columns = [Column(None, cells) for cells in columns.T]
        features = [self._with(j, column) for j, column in enumerate(columns)]
        cells = np.stack([cells for *_, cells in features], axis=1)
        schema = replace(
            self,
            categories=tuple(categories for categories, _, _ in features),
            declared=tuple(declared for _, declared, _ in features),
            ordered=np.where(self.empty, [column.ordered for column in columns], self.ordered),
            empty=self.empty & _is_empty(cells),
        )
        return schema, cells

    @property
    def _settled(self) -> tuple[Categories | None, ...]:
        """The categories of the features whose kind is known."""
        return tuple(
            None if empty else known for known, empty in zip(self.categories, self.empty, strict=True)
        )

    def _with(self, j: int, column: Column) -> tuple[Categories | None, Categories | None, FloatArray]:
        """Return categories and declared order of feature j after a further column, and its cells."""
        known, where = self.categories[j], self._where(j)
        if self.empty[j]:
            return column.categories, column.declared, column.cells
        if known is None:
            return None, None, as_numbers(column, where)
        as_positions(column, known, where)  # refuses categories of another kind
        have = set(known)
        grown = (*known, *(category for category in categories_of(column) if category not in have))
        declared = self.declared[j]
        if column.declared is not None:
            declared = _merged(declared or (), column.declared, bool(self.ordered[j]), where)
        return grown, declared, as_positions(column, grown, where)

    def contents(self, cells: FloatArray) -> FloatArray:
        """Return numbers that say what the cells hold, whenever their categories occurred first."""
        said = cells.copy()
        said[np.isnan(said)] = np.nan  # one of many
        for j, known in enumerate(self.categories):
            if known is not None:
                marks = np.array([zlib.crc32(f"{type(c).__name__}:{c}".encode()) for c in known], np.float64)
                present = np.flatnonzero(~np.isnan(cells[:, j]))
                said[present, j] = marks[cells[present, j].astype(np.intp)]
        return said

    def compacted(self, cells: FloatArray) -> tuple["Schema", FloatArray]:
        """Return the schema with the categories that occur in kept cells only, and the cells renumbered."""
        categories, declared, cells = list(self.categories), list(self.declared), cells.copy()
        for j, known in enumerate(self.categories):
            if known is not None:
                kept = self._occurring(j, cells)
                place = np.full(len(known), UNSEEN)
                place[kept] = np.arange(len(kept))
                cells[:, j] = _placed(place, cells[:, j])
                categories[j] = occurring = tuple(known[position] for position in kept)
                order, have = self.declared[j], set(occurring)
                declared[j] = None if order is None else tuple(c for c in order if c in have)
        return replace(self, categories=tuple(categories), declared=tuple(declared)), cells

    def encoding(self, cells: FloatArray, weight: FloatArray) -> TableEncoding:
        """Learn the encoding from kept cells, (n, d), with positive weights."""
        categories = tuple(
            None if known is None else self._in_order(j, self._occurring(j, cells))
            for j, known in enumerate(self.categories)
        )
        for j, of_feature in enumerate(categories):
            warn_of_categories(of_feature, len(cells), self._where(j), ordered=bool(self.ordered[j]))
        placed = self._placed(categories, cells)
        return learn_encoding(
            self.names, categories, self.ordered, placed, weight, self.missing, fill_of_empty=0.0
        )

    def encoded(self, encoding: TableEncoding, cells: FloatArray) -> FloatArray:
        """Return cells encoded; categories that the encoding does not know are unseen ones."""
        return encoding.encode(self._placed(encoding.categories, cells))

    def is_covered(self, encoding: TableEncoding, cells: FloatArray) -> bool:
        """Whether the encoding has columns for all that occurs in the cells."""
        if np.any(np.isnan(cells).any(axis=0) & ~encoding.indicator):
            return False
        for j, (known, encoded) in enumerate(zip(self.categories, encoding.categories, strict=True)):
            if (known is None) != (encoded is None):
                return False
            if known is not None and encoded is not None:
                have = set(encoded)
                if any(known[position] not in have for position in self._occurring(j, cells)):
                    return False
        return True

    def _occurring(self, j: int, cells: FloatArray) -> IntArray:
        """Return the positions of the categories of feature j that occur."""
        column = cells[:, j]
        return np.unique(column[~np.isnan(column)]).astype(np.intp)

    def _in_order(self, j: int, positions: IntArray) -> Categories:
        known = self.categories[j] or ()
        occurring, declared = [known[position] for position in positions], self.declared[j]
        if declared is None:
            return tuple(sorted(occurring))
        place = {category: i for i, category in enumerate(declared)}
        # Numbers may come without the type that declared them; those that it lacks come last.
        return tuple(sorted(occurring, key=lambda c: (place.get(c, len(place)), c)))

    def _placed(self, categories: tuple[Categories | None, ...], cells: FloatArray) -> FloatArray:
        """Return the cells with positions among these categories."""
        placed = cells.copy()
        for j, (known, wanted) in enumerate(zip(self.categories, categories, strict=True)):
            if known is not None and wanted is not None:
                position = {category: float(i) for i, category in enumerate(wanted)}
                places = np.array([position.get(category, UNSEEN) for category in known])
                placed[:, j] = _placed(places, cells[:, j])
        return placed

    def _where(self, j: int) -> str:
        return column_name(self.names, j)


def _is_empty(cells: FloatArray) -> BoolArray:
    """Return which columns have missing cells only."""
    return np.asarray(np.isnan(cells).all(axis=0))


def _placed(places: FloatArray, positions: FloatArray) -> FloatArray:
    """Return the places of positions, NaN for missing cells."""
    placed = np.full(len(positions), np.nan)
    present = np.flatnonzero(~np.isnan(positions))
    placed[present] = places[positions[present].astype(np.intp)]
    return placed


def _merged(known: Categories, further: Categories, is_ordered: bool, where: str) -> Categories:
    """Return an order of all categories: a further one comes after the one that it follows."""
    have = set(known)
    shared = [category for category in further if category in have]
    if is_ordered and shared != [category for category in known if category in set(shared)]:
        raise ValueError(
            f"X holds ordered categories in {where} in the order {list(further)}; in earlier batches it was "
            f"{list(known)}. Declare them in one order."
        )
    merged = list(known)
    for before, category in zip((None, *further[:-1]), further, strict=True):
        if category not in have:
            merged.insert(0 if before is None else merged.index(before) + 1, category)
    return tuple(merged)
