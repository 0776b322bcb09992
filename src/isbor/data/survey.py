"""What a fit must know of a table before it can encode its rows, learned block by block.

The survey of a table follows from those of its blocks: labels and their weights, categories, missing cells,
moments of the numbers. It determines the classes, the encoding and the weight of each class, as the whole
table in memory would.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isbor._core.types import BoolArray, FloatArray, LabelArray
from isbor.data.blocks import Block
from isbor.data.category_warnings import warn_of_categories
from isbor.data.cells import Missing, cells_of, column_name, read_table
from isbor.data.encoding import TableEncoding, no_value
from isbor.data.frames import Category, Column
from isbor.data.labels import encode_labels
from isbor.data.moments import Moments, steady
from isbor.data.order import Keys, exact_keys
from isbor.data.weights import nonnegative_weights, weight_sums

__all__ = ["BlockSurvey", "Survey"]

_HASHES = 1000  # by which distinct rows are counted


@dataclass(frozen=True, slots=True)
class _Categories:
    """The categories of a feature that occur in rows of positive weight, with their weights."""

    weight: Mapping[Category, float]
    ordered: bool
    declared: tuple[Category, ...] | None  # all, in the order that the column's type declares

    @classmethod
    def of(cls, column: Column, weight: FloatArray) -> "_Categories | None":
        if column.categories is None:
            return None
        present = np.flatnonzero(~np.isnan(column.cells) & (weight > 0.0))
        places = column.cells[present].astype(np.intp)
        total = np.bincount(places, weight[present], minlength=len(column.categories))
        found = zip(column.categories, total.tolist(), strict=True)
        occurring = {category: share for category, share in found if share > 0.0}
        return cls(occurring, column.ordered, column.declared)

    def merged(self, other: "_Categories") -> "_Categories":
        weight = dict(self.weight)
        for category, share in other.weight.items():
            weight[category] = weight.get(category, 0.0) + share
        same = self.declared == other.declared
        return _Categories(weight, self.ordered and other.ordered and same, self.declared if same else None)

    @property
    def in_order(self) -> tuple[Category, ...]:
        """The categories that occur, in their order."""
        if self.declared is None:
            return tuple(sorted(self.weight))
        return tuple(category for category in self.declared if category in self.weight)


@dataclass(frozen=True, slots=True)
class Survey:
    """Facts about the rows of a table."""

    names: tuple[str, ...] | None  # of the d features, if they have any
    n_rows: int
    classes: LabelArray  # (r,) the classes, lowest first
    order_is_given: bool  # else they are the numbers that occur
    class_weight: FloatArray  # (r,) total sample weight of each
    class_rows: FloatArray  # (r,) number of rows of positive weight of each
    categories: tuple[_Categories | None, ...]  # of each feature; None for a numeric one
    numbers: Moments  # of the numeric features
    missing: BoolArray  # (d,) whether a cell is missing in a row of positive weight
    hashes: Keys  # of the numbers in rows of positive weight, the smallest distinct ones

    @property
    def n_distinct(self) -> float:
        """About the number of rows that differ in a number; rows may differ in categories besides.

        It follows from the k-th smallest hash (Bar-Yossef et al., *Counting distinct elements in a data
        stream*, 2002), with a standard error of 3 %.
        """
        if len(self.hashes) < _HASHES:
            return float(len(self.hashes))
        return (_HASHES - 1) / (float(self.hashes[-1]) * 2.0**-64)

    def merged(self, other: "Survey") -> "Survey":
        """Return the survey of the rows of both."""
        if self.names != other.names or len(self.categories) != len(other.categories):
            raise ValueError(
                f"The features change within the table: {_listed(self)} at first, {_listed(other)} later. "
                "All blocks need the same columns in the same order."
            )
        classes, weight, rows = self._with_classes_of(other)
        return Survey(
            self.names,
            self.n_rows + other.n_rows,
            classes,
            self.order_is_given,
            weight,
            rows,
            tuple(self._categories_of(j, other) for j in range(len(self.categories))),
            self.numbers.merged(other.numbers),
            self.missing | other.missing,
            np.union1d(self.hashes, other.hashes)[:_HASHES],
        )

    def _with_classes_of(self, other: "Survey") -> tuple[LabelArray, FloatArray, FloatArray]:
        both = {self.classes.dtype.kind, other.classes.dtype.kind}
        if np.array_equal(self.classes, other.classes) and both & {"b"} in (set(), both):
            weight, rows = self.class_weight + other.class_weight, self.class_rows + other.class_rows
            return self.classes, weight, rows
        if self.order_is_given or other.order_is_given or "b" in both:
            raise ValueError(
                f"The labels change within the table: {self.classes.tolist()} at first, "
                f"{other.classes.tolist()} later. List all classes, lowest first, in classes=."
            )
        classes = np.unique(np.concatenate([self.classes, other.classes]))
        weight, rows = np.zeros((2, len(classes)))
        for some in (self, other):
            places = np.searchsorted(classes, some.classes)
            weight[places] += some.class_weight
            rows[places] += some.class_rows
        return classes, weight, rows

    def _categories_of(self, j: int, other: "Survey") -> _Categories | None:
        mine, theirs = self.categories[j], other.categories[j]
        if mine is not None and theirs is not None:
            return mine.merged(theirs)
        for kinds, some in ((mine, other), (theirs, self)):
            if kinds is not None and kinds.weight and some.numbers.weight[j] > 0.0:
                raise ValueError(
                    f"X holds numbers in some blocks and categories, such as {next(iter(kinds.weight))!r}, "
                    f"in others, in {column_name(self.names, j)}. Convert the column to one type."
                )
        # A block without a value in this column may have any type.
        own = mine if mine is not None else theirs
        holds_numbers = self.numbers.weight[j] + other.numbers.weight[j] > 0.0
        return None if holds_numbers else own

    def encoding(self, missing: Missing) -> TableEncoding:
        """Return the encoding of the table."""
        d = len(self.categories)
        ranked, fill = np.zeros(d, np.bool_), np.full(d, np.nan)
        categories: list[tuple[Category, ...] | None] = []
        for j, found in enumerate(self.categories):
            where = column_name(self.names, j)
            if found is None:
                if self.numbers.weight[j] == 0.0:
                    raise no_value(where, self.n_rows)
                categories.append(None)
                fill[j] = steady(self.numbers.mean[j], self.numbers.mean_square[j])
                continue
            in_order = found.in_order
            warn_of_categories(in_order, self.n_rows, where, ordered=found.ordered)
            categories.append(in_order)
            ranked[j] = found.ordered and len(in_order) > 2
            if ranked[j]:
                weight = np.array([found.weight[category] for category in in_order])
                rank = np.arange(len(weight))
                fill[j] = steady(weight @ rank / weight.sum(), weight @ rank**2 / weight.sum())
        return TableEncoding(self.names, tuple(categories), ranked, fill, self.missing, missing)

    def moments(self, encoding: TableEncoding) -> Moments:
        """Return the moments of the encoded columns; those that are no numbers count as 0 and 1 alike."""
        of = self.numbers
        all_rows = np.full(len(self.categories), float(self.class_weight.sum()))
        return Moments(
            *(
                self._of_columns(part, other, encoding)
                for part, other in (
                    (all_rows, 1.0),
                    (of.mean, 0.0),
                    (of.squares, 1.0),
                    (of.low, 0.0),
                    (of.high, 1.0),
                )
            )
        )

    def _of_columns(self, of_features: FloatArray, other: float, encoding: TableEncoding) -> FloatArray:
        """Return a number for each encoded column: that of its feature for numbers, else another one."""
        numeric = np.array([found is None for found in encoding.categories])
        result = np.full(len(encoding.feature), other)
        result[encoding.first_column[numeric]] = of_features[numeric]
        return result


@dataclass(frozen=True, slots=True)
class BlockSurvey:
    """Makes the survey of a block."""

    owner: str  # what messages name
    missing: Missing
    classes: object = None  # all classes, lowest first, if they are given
    label: ClassVar[str] = "survey"

    def __call__(self, block: Block) -> Survey:
        """Return the survey of a block."""
        labels = encode_labels(block.y, self.classes)
        names, columns = read_table(self.owner, block.X, self.missing)
        cells = cells_of(columns)
        if len(cells) != len(labels.codes):
            raise ValueError(
                f"X has {len(cells)} rows and y has {len(labels.codes)} labels; one label for each row is "
                "needed."
            )
        weight = nonnegative_weights(block.weight, len(cells))
        categories: list[_Categories | None] = [None] * cells.shape[1]
        if isinstance(columns, list):
            categories = [_Categories.of(column, weight) for column in columns]
        is_number = np.array([found is None for found in categories])
        numbers = Moments.of(np.where(is_number, cells, np.nan), weight)
        return Survey(
            names,
            len(cells),
            labels.classes,
            labels.given_order,
            weight_sums(labels.codes, weight, len(labels.classes)),
            weight_sums(labels.codes, (weight > 0.0).astype(np.float64), len(labels.classes)),
            tuple(categories),
            numbers,
            np.asarray(np.isnan(cells[weight > 0.0]).any(axis=0)),
            _hashes(cells[weight > 0.0], is_number),
        )


def _hashes(cells: FloatArray, is_number: BoolArray) -> Keys:
    """Return the smallest distinct hashes of the numbers in some rows."""
    hashes = exact_keys(cells, np.zeros(len(cells), np.intp), 0, is_number)
    return np.unique(hashes)[:_HASHES]


def _listed(survey: Survey) -> str:
    return f"{len(survey.categories)} columns" if survey.names is None else ", ".join(survey.names)
