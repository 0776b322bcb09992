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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from isbor._core.types import FloatArray, IntArray
from isbor._core.warnings import warn_user
from isbor.data.features import check_names, check_number, feature_names
from isbor.data.frames import (
    UNSEEN,
    Category,
    Column,
    as_numbers,
    as_positions,
    data_frame,
    holds_numbers,
    read_column,
)

__all__ = [
    "Columns",
    "Missing",
    "TableEncoding",
    "learn_encoding",
    "learn_table",
    "read_again",
    "read_table",
    "warn_of_identifier",
]

Missing: TypeAlias = Literal["auto", "indicator", "error"]

_FEW_ROWS = 20  # with fewer, one category per row is nothing unusual

# The columns of a table as they were read; a matrix if all are numeric.
Columns: TypeAlias = list[Column] | FloatArray


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
            where = _column(self.feature_names, j)
            cells[:, j] = (
                as_numbers(column, where) if categories is None else as_positions(column, categories, where)
            )
        return self.encode(cells)

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
    if missing not in get_args(Missing):
        choices = ", ".join(map(repr, get_args(Missing)))
        raise ValueError(f"missing is {missing!r}; one of {choices} is needed.")
    names, columns = read_table(owner, X, missing)
    categories: tuple[tuple[Category, ...] | None, ...]
    if isinstance(columns, list):
        cells = np.stack([column.cells for column in columns], axis=1)
        categories = tuple(column.categories for column in columns)
        ranked = np.array([column.ordered for column in columns])
    else:
        cells = columns
        categories = (None,) * cells.shape[1]
        ranked = np.zeros(cells.shape[1], dtype=np.bool_)
    weight = np.ones(len(cells)) if weight is None else weight
    counts = weight > 0.0
    categories = tuple(_occurring(of_feature, cells[:, j], counts) for j, of_feature in enumerate(categories))
    for j, of_feature in enumerate(categories):
        warn_of_identifier(of_feature, int(np.count_nonzero(counts)), _column(names, j))
    encoding = learn_encoding(names, categories, ranked, cells, weight, missing)
    return encoding, encoding.encode(cells)


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
            fill[j] = fill_of_empty if is_empty else _mean(column, weight, _column(names, j))
    return TableEncoding(names, categories, ranked, fill, indicator, missing)


def read_table(owner: str, X: object, missing: Missing) -> tuple[tuple[str, ...] | None, Columns]:
    """Read and check a table; return the names of its features, if it has any, and its columns."""
    frame = data_frame(X)
    names = feature_names(frame)
    if frame is None or holds_numbers(frame):
        columns: Columns = _numeric_cells(X, owner)
    else:
        columns = _read_columns(frame, names, owner)
    _check_columns(columns, names, owner, missing, is_frame=frame is not None)
    return names, columns


def read_again(
    owner: str,
    X: object,
    missing: Missing,
    names: tuple[str, ...] | None,
    categories: tuple[tuple[Category, ...] | None, ...],
) -> Columns:
    """Read and check a table that has the features of an earlier one, with these names and categories."""
    frame = data_frame(X)
    first = next((j for j, of_feature in enumerate(categories) if of_feature is not None), None)
    if frame is None and first is not None:
        raise ValueError(
            f"X is of type {type(X).__name__}; {owner} was fitted to a data frame with categories in "
            f"{_column(names, first)}. Pass a data frame with the same columns."
        )
    check_names(feature_names(frame), names, owner)
    columns: Columns
    if frame is None or (holds_numbers(frame) and first is None):
        columns = cells = _numeric_cells(X, owner)
        check_number(cells.shape[1], len(categories), owner)
    else:
        check_number(frame.shape[1], len(categories), owner)
        columns = _read_columns(frame, names, owner)
    _check_columns(columns, names, owner, missing, is_frame=frame is not None)
    return columns


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


def warn_of_identifier(categories: tuple[Category, ...] | None, n_rows: int, where: str) -> None:
    """Warn if a feature has more categories than half the rows: nothing can be learned from it."""
    if categories is not None and n_rows >= _FEW_ROWS and len(categories) > n_rows / 2:
        warn_user(
            f"X holds {len(categories)} different categories, such as {categories[0]!r}, in {where}, for "
            f"{n_rows} rows. Convert numbers that are stored as text, for example with pandas.to_numeric, "
            "and drop identifiers.",
            UserWarning,
        )


def _numeric_cells(X: object, owner: str) -> FloatArray:
    try:
        if isinstance(X, np.ma.MaskedArray):
            X = np.ma.filled(X.astype(np.float64), np.nan)  # scikit-learn would drop the mask
        checked: FloatArray = check_array(
            X, dtype=np.float64, order="C", ensure_all_finite=False, estimator=owner, input_name="X"
        )
    except ValueError as error:
        if not str(error).startswith("could not convert string to float"):
            raise
        raise ValueError(
            f"{error}: X is an array, and {owner} needs arrays of numbers. Pass a data "
            "frame instead: its columns of strings are treated as categories."
        ) from None
    return checked


def _read_columns(frame: nw.DataFrame[Any], names: Sequence[str] | None, owner: str) -> list[Column]:
    if len(frame) == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={frame.shape}) while a minimum of 1 is required by "
            f"{owner}. Check the filter that made X."
        )
    return [read_column(column, _column(names, j)) for j, column in enumerate(frame.iter_columns())]


def _check_columns(
    columns: Columns, names: Sequence[str] | None, owner: str, missing: Missing, is_frame: bool
) -> None:
    """Raise ValueError if a cell is infinite, or missing where missing cells are not accepted."""
    cells = np.stack([column.cells for column in columns], axis=1) if isinstance(columns, list) else columns
    _check_cells(cells, names, owner, missing, is_frame)


def _check_cells(
    cells: FloatArray, names: Sequence[str] | None, owner: str, missing: Missing, is_frame: bool
) -> None:
    """Raise ValueError if a cell is infinite, or missing where missing cells are not accepted."""
    bad = ~np.isfinite(cells)
    if not bad.any():
        return
    accepted = missing == "indicator" or (missing == "auto" and is_frame)
    if accepted:
        bad = np.isinf(cells)
        if not bad.any():
            return
    row, column = (int(i) for i in np.unravel_index(np.argmax(bad), bad.shape))
    is_missing = np.isnan(cells[row, column])
    remedy = (
        "Drop these rows or impute the values, for example with "
        'sklearn.impute.SimpleImputer(add_indicator=True). Or set missing="indicator" to replace them by the '
        "mean and mark them in an extra column."
        if is_missing
        else "Replace infinite values, or drop these rows."
    )
    raise ValueError(
        f"X contains {'inf' if accepted else 'NaN or inf'} in {np.count_nonzero(bad)} cell(s), the first "
        f"({'NaN' if is_missing else 'inf'}) in row {row}, {_column(names, column)}; {owner} needs finite "
        f"numbers. {remedy}"
    )


def _mean(cells: FloatArray, weight: FloatArray, where: str) -> float:
    """Return the weighted mean of the present cells; `weight` must ascend.

    A cell repeated twice gives exactly the same sum as one cell of weight 2.
    """
    present = np.flatnonzero(~np.isnan(cells))
    if len(present) == 0:
        raise ValueError(f"X holds no value in {where}: all {len(cells)} cells are missing. Drop the column.")
    cells, weight = cells[present], weight[present]
    if (weight == 1.0).all():
        values, total = np.unique(cells, return_counts=True)
    else:
        values, place = np.unique(cells, return_inverse=True)
        total = np.bincount(place, weight)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.sum(values * total) / total.sum()
    return float(mean if np.isfinite(mean) else np.sum(values * (total / total.sum())))


def _column(names: Sequence[str] | None, j: int) -> str:
    return f"column {j}" if names is None else f"column {names[j]!r}"
