r"""Encoding of tables: numbers, categories and missing cells become columns of a matrix.

The encoding is learned from the training table. Later tables are encoded in the same way.

===========  =============================================================================================
numeric      One column. A missing cell becomes the training mean. If the training table has missing cells
             in this feature, one more column marks them.
categorical  One 0/1 column for each category that occurs in training; one for missing cells, if training
             has any; one for unseen categories (and missing cells, if training has none). An unseen category
             is thereby equidistant from all known ones.
ordered      As categorical. With three or more categories, one more column holds the rank of the category;
categorical  missing cells and unseen categories get the mean rank.
===========  =============================================================================================

A column of a data frame is categorical if it holds strings or booleans or has a categorical type. Categories
keep their declared order (pandas ``category``, polars ``Enum``); others are sorted. Polars ``Categorical``
and Arrow dictionaries number categories by first appearance, which is not an order, so they are sorted too.
A feature is ordered if it is an ordered pandas categorical or a polars ``Enum``. Arrays hold numbers only.

Nothing is scaled here. `isbor.data.rows` scales the matrix and treats the columns of one categorical feature
(see `feature`) as one. A row of weight 2 counts as two equal rows; a row of weight zero does not affect the
encoding.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isbor._core.types import FloatArray, IntArray
from isbor.data.category_warnings import warn_of_categories
from isbor.data.cells import Missing, cells_of, check_numbers, column_name, read_again, read_table
from isbor.data.features import check_number
from isbor.data.frames import UNSEEN, Category, as_numbers, as_positions
from isbor.data.moments import Moments, steady
from isbor.data.numbers import NumberTable

__all__ = [
    "EncodedTable",
    "TableEncoding",
    "learn_encoding",
    "learn_numbers",
    "learn_table",
    "no_value",
]


@dataclass(frozen=True, slots=True)
class TableEncoding:
    """Encoding of tables as matrices, learned from the training table by `learn_table`.

    Call it with an owner and a table to get the matrix.
    """

    feature_names: tuple[str, ...] | None  # (d,) if the training table has names
    categories: tuple[tuple[Category, ...] | None, ...]  # of each feature; None for a numeric one
    ranked: NDArray[np.bool_]  # (d,) whether a column holds the rank of the category
    fill: FloatArray  # (d,) value of a missing number or rank: the training mean; NaN for other features
    indicator: NDArray[np.bool_]  # (d,) whether a column marks missing cells
    missing: Missing

    @property
    def is_identity(self) -> bool:
        """Whether a table without missing cells is encoded as it is."""
        return not (self.indicator.any() or self._has_categories)

    @property
    def feature(self) -> IntArray:
        """The feature from which each encoded column is made."""
        return np.repeat(np.arange(len(self.categories)), self._widths)

    @property
    def first_column(self) -> IntArray:
        """The first encoded column of each feature."""
        widths = self._widths
        return np.asarray(np.cumsum(widths) - widths)

    @property
    def categorical(self) -> NDArray[np.bool_]:
        """Whether each encoded column is a 0/1 column of a categorical feature."""
        marks = [
            np.arange(width) != (len(categories) if ranked else -1)
            if categories is not None
            else np.zeros(width, bool)
            for categories, ranked, width in zip(self.categories, self.ranked, self._widths, strict=True)
        ]
        return np.concatenate(marks)

    @property
    def scale_group(self) -> IntArray:
        """For each 0/1 column of a categorical feature, the feature, whose columns share a scale; else -1."""
        return np.where(self.categorical, self.feature, -1)

    @property
    def unseen_column(self) -> IntArray:
        """For each column of a categorical feature, the column that marks unseen categories; else -1.

        It is the last column of its feature.
        """
        last = np.cumsum(self._widths) - 1
        is_categorical = [categories is not None for categories in self.categories]
        return np.repeat(np.where(is_categorical, last, -1), self._widths)

    @property
    def keys(self) -> tuple[tuple[int, str, Category | None], ...]:
        """What each encoded column stands for: the feature, and what of it."""
        keys: list[tuple[int, str, Category | None]] = []
        for j, categories in enumerate(self.categories):
            keys += [(j, "number", None)] if categories is None else [(j, "is", c) for c in categories]
            keys += [(j, "rank", None)] if self.ranked[j] else []
            keys += [(j, "missing", None)] if self.indicator[j] else []
            keys += [] if categories is None else [(j, "unseen", None)]
        return tuple(keys)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns, such as "age", "age missing", "color=red" and "color unseen"."""
        names: list[str] = []
        for j, categories in enumerate(self.categories):
            # Default names are those of scikit-learn.
            name = f"x{j}" if self.feature_names is None else self.feature_names[j]
            names += [name] if categories is None else [f"{name}={category}" for category in categories]
            names += [f"{name} rank"] if self.ranked[j] else []
            names += [f"{name} missing"] if self.indicator[j] else []
            names += [] if categories is None else [f"{name} unseen"]
        return tuple(names)

    def __call__(self, owner: str, X: object) -> FloatArray:
        """Encode a table with the same features as the training table, as (n, number of encoded columns).

        Parameters
        ----------
        owner : str
            What messages name, see `learn_table`.
        X : data frame or array-like of shape (n, d)
        """
        columns = read_again(owner, X, self.missing, self.feature_names, self.categories)
        if not isinstance(columns, list):
            return self.encode(columns)
        cells = np.empty((len(columns[0].cells), len(columns)))
        for j, (column, categories) in enumerate(zip(columns, self.categories, strict=True)):
            where = column_name(self.feature_names, j)
            cells[:, j] = (
                as_numbers(column, where) if categories is None else as_positions(column, categories, where)
            )
        return self.encode(cells)

    def rows(self, owner: str, X: object) -> "EncodedTable | FloatArray":
        """Encode a table, one of numbers not before its rows are asked for."""
        table = NumberTable.of(X)
        if table is None or table.names != self.feature_names or self._has_categories:
            return self(owner, X)
        check_number(table.shape[1], len(self.categories), owner)
        check_numbers(owner, table, self.missing)
        return EncodedTable(self, owner, table)

    @property
    def _has_categories(self) -> bool:
        return any(categories is not None for categories in self.categories)

    @property
    def _widths(self) -> IntArray:
        """Number of encoded columns of each feature."""
        own = np.array([1 if categories is None else len(categories) + 1 for categories in self.categories])
        return own + self.ranked + self.indicator

    def encode(self, cells: FloatArray) -> FloatArray:
        """Encode a table of numbers, with NaN for missing cells and positions for categories."""
        absent = np.isnan(cells)
        if self.is_identity:
            return np.where(absent, self.fill, cells) if absent.any() else cells
        widths = self._widths
        matrix = np.zeros((len(cells), widths.sum()))
        for j, (stop, categories) in enumerate(zip(np.cumsum(widths), self.categories, strict=True)):
            start = stop - widths[j]
            if categories is None:
                matrix[:, start] = np.where(absent[:, j], self.fill[j], cells[:, j])
                marks = start + 1
            else:
                seen = np.flatnonzero(cells[:, j] >= 0)  # neither missing nor unseen
                matrix[seen, start + cells[seen, j].astype(np.intp)] = 1.0
                marks = start + len(categories) + self.ranked[j]
                if self.ranked[j]:
                    matrix[:, marks - 1] = self.fill[j]
                    matrix[seen, marks - 1] = cells[seen, j]
                unseen = np.flatnonzero(~(cells[:, j] >= 0) & ~(absent[:, j] & self.indicator[j]))
                matrix[unseen, self.unseen_column[start]] = 1.0
            if self.indicator[j]:
                matrix[:, marks] = absent[:, j]
        return matrix

    def decoded(self, matrix: FloatArray) -> FloatArray:
        """Return the cells of encoded training rows: the inverse of `encode`."""
        cells, first, widths = np.empty((len(matrix), len(self.categories))), self.first_column, self._widths
        for j, categories in enumerate(self.categories):
            own = matrix[:, first[j] : first[j] + widths[j]]
            if categories is None:
                cells[:, j] = (
                    np.where(own[:, -1] == 1.0, np.nan, own[:, 0]) if self.indicator[j] else own[:, 0]
                )
            else:
                known = own[:, : len(categories)]
                absent = ~known.any(axis=1)
                cells[:, j] = np.where(absent, np.nan, known.argmax(axis=1) if len(categories) else np.nan)
        return cells


@dataclass(frozen=True, slots=True)
class EncodedTable:
    """A table of numbers whose rows are encoded when they are asked for."""

    encoding: TableEncoding
    owner: str  # what messages name
    table: NumberTable

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, rows: slice | IntArray) -> FloatArray:
        """Return some rows, encoded."""
        return self.encoding(self.owner, self.table[rows])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of encoded columns."""
        return len(self.table), len(self.encoding.feature)


def learn_table(
    owner: str, X: object, missing: Missing = "auto", weight: FloatArray | None = None
) -> tuple[TableEncoding, FloatArray]:
    """Learn the encoding of a training table; return the encoding and the encoded matrix.

    If X is a float64 array without missing cells, the matrix is X itself.

    Parameters
    ----------
    owner : str
        What warnings and errors name, such as the class of an estimator.
    X : data frame (pandas, polars, pyarrow, modin) or array-like of shape (n, d)
    missing : {"auto", "indicator", "error"}
        How to treat missing cells (NaN, None, null, masked). "indicator" encodes them. "error" raises an
        error. "auto" encodes them in data frames and raises an error for arrays. Infinite numbers always
        raise an error.
    weight : (n,), nonnegative
        Weights of the rows; 1 by default.

    Examples
    --------
    >>> encoding, matrix = learn_table("ISBOR", [[1.0, 5.0], [3.0, np.nan]], missing="indicator")
    >>> encoding.names
    ('x0', 'x1', 'x1 missing')
    >>> matrix
    array([[1., 5., 0.],
           [3., 5., 1.]])
    >>> encoding("ISBOR", [[np.nan, 7.0]])
    array([[2., 7., 0.]])
    """
    names, columns = read_table(owner, X, missing)
    cells = cells_of(columns)
    categories: tuple[tuple[Category, ...] | None, ...] = (None,) * cells.shape[1]
    ordered = np.zeros(cells.shape[1], dtype=np.bool_)
    if isinstance(columns, list):
        categories = tuple(column.categories for column in columns)
        ordered = np.array([column.ordered for column in columns])
    weight = np.ones(len(cells)) if weight is None else weight
    counts = weight > 0.0
    categories = tuple(_occurring(of_feature, cells[:, j], counts) for j, of_feature in enumerate(categories))
    for j, of_feature in enumerate(categories):
        n_rows, where = int(np.count_nonzero(counts)), column_name(names, j)
        warn_of_categories(of_feature, n_rows, where, ordered=bool(ordered[j]))
    encoding = learn_encoding(names, categories, ordered, cells, weight, missing)
    return encoding, encoding.encode(cells)


def learn_numbers(owner: str, table: NumberTable, missing: Missing, weight: FloatArray) -> TableEncoding:
    """Learn the encoding of a table of numbers as `learn_table` does, block by block."""
    check_numbers(owner, table, missing)
    n, d = table.shape
    moments, absent = Moments.none(d), np.zeros(d, np.bool_)
    for rows in table.blocks():
        cells, of_rows = cells_of(read_table(owner, table[rows], missing)[1]), weight[rows]
        moments = moments.merged(Moments.of(cells, of_rows))
        absent |= np.isnan(cells[of_rows > 0.0]).any(axis=0)
    for j in np.flatnonzero(moments.weight == 0.0).tolist():
        raise no_value(column_name(table.names, j), n)
    fill = np.array(
        [steady(mean, squares) for mean, squares in zip(moments.mean, moments.mean_square, strict=True)]
    )
    return TableEncoding(table.names, (None,) * d, np.zeros(d, np.bool_), fill, absent, missing)


def learn_encoding(
    names: tuple[str, ...] | None,
    categories: tuple[tuple[Category, ...] | None, ...],
    ordered: NDArray[np.bool_],
    cells: FloatArray,
    weight: FloatArray,
    missing: Missing,
    fill_of_empty: float | None = None,
) -> TableEncoding:
    """Learn the encoding of cells, (n, d): numbers, or positions among the categories that occur.

    `ordered`, (d,), says whether categories have an order. `fill_of_empty` takes the place of the mean of a
    feature without any number; None means that there must be one.
    """
    # In ascending order of weight, so that sums do not depend on the order of the rows.
    rows = np.argsort(weight, kind="stable")[np.count_nonzero(weight <= 0.0) :]
    weight = weight[rows]
    ranked, n_features = ordered.copy(), len(categories)
    fill, indicator = np.full(n_features, np.nan), np.zeros(n_features, dtype=np.bool_)
    for j, of_feature in enumerate(categories):
        column = cells[rows, j]
        absent = np.isnan(column)
        indicator[j] = absent.any()
        ranked[j] &= len(of_feature or ()) > 2
        if of_feature is None or ranked[j]:
            is_empty = fill_of_empty is not None and absent.all()
            fill[j] = fill_of_empty if is_empty else _mean(column, weight, column_name(names, j))
    return TableEncoding(names, categories, ranked, fill, indicator, missing)


def _occurring(
    categories: tuple[Category, ...] | None, cells: FloatArray, rows: NDArray[np.bool_]
) -> tuple[Category, ...] | None:
    """Return the categories that occur in `rows`; renumber the cells in place, others become unseen."""
    if categories is None or rows.all():
        return categories
    present = ~np.isnan(cells)
    kept = np.unique(cells[rows & present]).astype(np.intp)
    place = np.full(len(categories), UNSEEN)
    place[kept] = np.arange(len(kept))
    cells[present] = place[cells[present].astype(np.intp)]
    return tuple(categories[position] for position in kept)


def no_value(where: str, n_rows: int) -> ValueError:
    """Return the error for a column without a value."""
    return ValueError(f"X holds no value in {where}: all {n_rows} cells are missing. Drop the column.")


def _mean(cells: FloatArray, weight: FloatArray, where: str) -> float:
    """Return the weighted mean of the present cells; `weight` must ascend.

    A cell repeated twice gives exactly the same sum as one cell of weight 2.
    """
    present = np.flatnonzero(~np.isnan(cells))
    if len(present) == 0:
        raise no_value(where, len(cells))
    cells, weight = cells[present], weight[present]
    if (weight == 1.0).all():
        values, total = np.unique(cells, return_counts=True)
    else:
        values, place = np.unique(cells, return_inverse=True)
        total = np.bincount(place, weight)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.sum(values * total) / total.sum()
        squares = np.sum(np.square(values) * total) / total.sum()
    return steady(mean if np.isfinite(mean) else np.sum(values * (total / total.sum())), squares)
