r"""Tables to matrices: numbers, categories and missing cells as columns of numbers.

What a training table holds decides what its columns become, and every later table is read the same way:

=============  ===========================================================================================
a number       one column; a missing cell takes the mean of the column's values in training, and a column
               that marks such cells is added if the training table has any
a category     a column of zeros and ones for each level that occurs in training, one for missing cells if
               the training table has any, and one for levels that are new, or a missing cell where training
               had none: it is as far from all levels as they are from each other
an ordered     the same, and a column with the place of the level among those of training, if they are three
category       or more; where it has none, the mean place
=============  ===========================================================================================

Categories are the columns of a data frame that hold strings or booleans, or are declared categorical. Their
levels stand in the order they are declared in (pandas ``category``, polars ``Enum``), else sorted; polars
``Categorical`` and Arrow dictionaries are numbered by appearance, which is no order, and are sorted. Ordered
are those of pandas that say so, and polars ``Enum``. Arrays hold numbers only.

Nothing here is scaled: `isbor.data.rows` does that, and treats the columns of one category (`feature` says
which they are) as one feature. A row of weight 2 is the row twice, and one of weight zero is as if it came
later.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from isbor._core.types import FloatArray, IntArray
from isbor._core.warnings import warn_user
from isbor.data.frames import (
    UNSEEN,
    Column,
    Level,
    as_numbers,
    as_positions,
    data_frame,
    holds_numbers,
    read_column,
)

__all__ = ["Missing", "TableEncoding", "learn_table"]

Missing: TypeAlias = Literal["auto", "indicator", "error"]

_FEW_ROWS = 20  # of so many each may well have its own level


@dataclass(frozen=True, slots=True)
class TableEncoding:
    """How the tables that a model is fitted to, and predicts from, become matrices of numbers.

    Made by `learn_table`; called with an estimator and a table, it returns the matrix.
    """

    feature_names: tuple[str, ...] | None  # of the d features, if the training table named them
    levels: tuple[tuple[Level, ...] | None, ...]  # of each feature; None for numbers
    ranked: NDArray[np.bool_]  # (d,) whether a column holds the places of the feature's levels
    fill: FloatArray  # (d,) what a missing number or place becomes: the mean in training; else NaN
    indicator: NDArray[np.bool_]  # (d,) whether a column marks the feature's missing cells
    missing: Missing

    @property
    def is_identity(self) -> bool:
        """Whether a table without missing cells is its own encoding."""
        return not (self.indicator.any() or self._has_categories)

    @property
    def feature(self) -> IntArray:
        """The feature that each encoded column comes from."""
        return np.repeat(np.arange(len(self.levels)), self._widths)

    @property
    def categorical(self) -> NDArray[np.bool_]:
        """Whether each encoded column marks a level, or a missing cell, of a category."""
        marks = [
            np.arange(width) != (len(levels) if ranked else -1)
            if levels is not None
            else np.zeros(width, bool)
            for levels, ranked, width in zip(self.levels, self.ranked, self._widths, strict=True)
        ]
        return np.concatenate(marks)

    @property
    def unseen_column(self) -> IntArray:
        """The encoded column that marks unseen categories, for each column of a category; -1 for numbers.

        It is the last column of its feature.
        """
        last = np.cumsum(self._widths) - 1
        of_category = [levels is not None for levels in self.levels]
        return np.repeat(np.where(of_category, last, -1), self._widths)

    @property
    def names(self) -> tuple[str, ...]:
        """What to call each encoded column: "age", "age missing", "color=red", "color unseen"."""
        names: list[str] = []
        for j, levels in enumerate(self.levels):
            # Features without names are called as scikit-learn does.
            name = f"x{j}" if self.feature_names is None else self.feature_names[j]
            names += [name] if levels is None else [f"{name}={level}" for level in levels]
            names += [f"{name} rank"] if self.ranked[j] else []
            names += [f"{name} missing"] if self.indicator[j] else []
            names += [] if levels is None else [f"{name} unseen"]
        return tuple(names)

    def __call__(self, estimator: BaseEstimator, X: object) -> FloatArray:
        """Return the matrix, shape (n, number of encoded columns), of a table like that of training.

        Parameters
        ----------
        estimator : BaseEstimator
            The one this encoding was learned for; scikit-learn compares the features with those it has seen.
        X : data frame or array-like of shape (n, d)
        """
        owner = type(estimator).__name__
        frame = data_frame(X)
        if not self._has_categories and (frame is None or holds_numbers(frame)):
            cells = _numeric_cells(estimator, X, reset=False)
            _check_cells(cells, self.feature_names, owner, self.missing, is_frame=frame is not None)
        elif frame is None:
            first = next(j for j, levels in enumerate(self.levels) if levels is not None)
            raise ValueError(
                f"X is of type {type(X).__name__}; {owner} was fitted to a data frame whose "
                f"{_column(self.feature_names, first)} held categories. "
                "Pass a data frame with the same columns."
            )
        else:
            columns = _read_columns(estimator, X, frame, reset=False)
            cells = np.stack([column.cells for column in columns], axis=1)
            _check_cells(cells, self.feature_names, owner, self.missing, is_frame=True)
            for j, (column, levels) in enumerate(zip(columns, self.levels, strict=True)):
                where = _column(self.feature_names, j)
                cells[:, j] = (
                    as_numbers(column, where) if levels is None else as_positions(column, levels, where)
                )
        return self._encode(cells)

    @property
    def _has_categories(self) -> bool:
        return any(levels is not None for levels in self.levels)

    @property
    def _widths(self) -> IntArray:
        """Number of columns that each feature becomes."""
        levels = np.array([1 if levels is None else len(levels) + 1 for levels in self.levels])
        return levels + self.ranked + self.indicator

    def _encode(self, cells: FloatArray) -> FloatArray:
        """Return the matrix of a table in which NaN is missing and a level is its position."""
        absent = np.isnan(cells)
        if self.is_identity:
            return np.where(absent, self.fill, cells) if absent.any() else cells
        widths = self._widths
        matrix = np.zeros((len(cells), widths.sum()))
        for j, (stop, levels) in enumerate(zip(np.cumsum(widths), self.levels, strict=True)):
            start = stop - widths[j]
            if levels is None:
                matrix[:, start] = np.where(absent[:, j], self.fill[j], cells[:, j])
                marks = start + 1
            else:
                seen = np.flatnonzero(cells[:, j] >= 0)  # neither missing nor unseen
                matrix[seen, start + cells[seen, j].astype(np.intp)] = 1.0
                marks = start + len(levels) + self.ranked[j]
                if self.ranked[j]:
                    matrix[:, marks - 1] = self.fill[j]
                    matrix[seen, marks - 1] = cells[seen, j]
                unseen = np.flatnonzero(~(cells[:, j] >= 0) & ~(absent[:, j] & self.indicator[j]))
                matrix[unseen, self.unseen_column[start]] = 1.0
            if self.indicator[j]:
                matrix[:, marks] = absent[:, j]
        return matrix


def learn_table(
    estimator: BaseEstimator, X: object, missing: Missing = "auto", weight: FloatArray | None = None
) -> tuple[TableEncoding, FloatArray]:
    """Return how tables like X become matrices, and the matrix of X.

    Sets the estimator's `n_features_in_` and `feature_names_in_`, as scikit-learn does. If X is an array of
    float64 without missing cells, the matrix is X itself.

    Parameters
    ----------
    estimator : BaseEstimator
    X : data frame (pandas, polars, pyarrow, modin) or array-like of shape (n, d)
    missing : {"auto", "indicator", "error"}
        What to do with missing cells (NaN, None, null, masked): "indicator" encodes them, "error" refuses
        them, and "auto" encodes them in data frames and refuses them in arrays. Infinite numbers are always
        refused.
    weight : (n,), not negative
        Of the rows; 1 by default.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> model = BaseEstimator()
    >>> encoding, matrix = learn_table(model, [[1.0, 5.0], [3.0, np.nan]], missing="indicator")
    >>> encoding.names
    ('x0', 'x1', 'x1 missing')
    >>> matrix
    array([[1., 5., 0.],
           [3., 5., 1.]])
    >>> encoding(model, [[np.nan, 7.0]])
    array([[2., 7., 0.]])
    """
    if missing not in get_args(Missing):
        choices = ", ".join(map(repr, get_args(Missing)))
        raise ValueError(f"missing is {missing!r}; one of {choices} is needed.")
    frame = data_frame(X)
    levels: tuple[tuple[Level, ...] | None, ...]
    if frame is None or holds_numbers(frame):
        cells = _numeric_cells(estimator, X, reset=True)
        levels = (None,) * cells.shape[1]
        ranked = np.zeros(cells.shape[1], dtype=np.bool_)
    else:
        columns = _read_columns(estimator, X, frame, reset=True)
        cells = np.stack([column.cells for column in columns], axis=1)
        levels = tuple(column.levels for column in columns)
        ranked = np.array([column.ordered for column in columns])
    names = _feature_names(estimator)
    _check_cells(cells, names, type(estimator).__name__, missing, is_frame=frame is not None)
    weight = np.ones(len(cells)) if weight is None else weight
    counts = weight > 0.0
    levels = tuple(_occurring(of_feature, cells[:, j], counts) for j, of_feature in enumerate(levels))
    rows = np.argsort(weight, kind="stable")[np.count_nonzero(~counts) :]  # sums depend on their order
    weight = weight[rows]
    fill, indicator = np.full(len(levels), np.nan), np.zeros(len(levels), dtype=np.bool_)
    for j, of_feature in enumerate(levels):
        column, where = cells[rows, j], _column(names, j)
        indicator[j] = np.isnan(column).any()
        ranked[j] &= len(of_feature or ()) > 2
        if of_feature is None or ranked[j]:
            fill[j] = _mean(column, weight, where)
        _warn_of_identifier(of_feature, len(weight), where)
    encoding = TableEncoding(names, levels, ranked, fill, indicator, missing)
    return encoding, encoding._encode(cells)


def _occurring(
    levels: tuple[Level, ...] | None, cells: FloatArray, rows: NDArray[np.bool_]
) -> tuple[Level, ...] | None:
    """Return the levels that some rows have, and count the cells by them, in place; others become new."""
    if levels is None or rows.all():
        return levels
    present = ~np.isnan(cells)
    kept = np.unique(cells[rows & present]).astype(np.intp)
    place = np.full(len(levels), UNSEEN)
    place[kept] = np.arange(len(kept))
    cells[present] = place[cells[present].astype(np.intp)]
    return tuple(levels[position] for position in kept)


def _warn_of_identifier(levels: tuple[Level, ...] | None, n_rows: int, where: str) -> None:
    """Warn of a category in which most rows have levels of their own: nothing can be learned from it."""
    if levels is not None and n_rows >= _FEW_ROWS and len(levels) > n_rows / 2:
        warn_user(
            f"X holds {len(levels)} different levels, such as {levels[0]!r}, in {where}, of {n_rows} rows. "
            "Convert numbers that are stored as text, for instance with pandas.to_numeric, and drop "
            "identifiers.",
            UserWarning,
        )


def _numeric_cells(estimator: BaseEstimator, X: object, *, reset: bool) -> FloatArray:
    try:
        if isinstance(X, np.ma.MaskedArray):
            X = np.ma.filled(X.astype(np.float64), np.nan)  # scikit-learn would drop the mask
        checked: FloatArray = validate_data(
            estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=False, order="C"
        )
    except ValueError as error:
        if not str(error).startswith("could not convert string to float"):
            raise
        raise ValueError(
            f"{error}: X is an array, and in arrays {type(estimator).__name__} needs numbers. Pass a data "
            "frame, where columns of strings are categories."
        ) from None
    return checked


def _read_columns(
    estimator: BaseEstimator, X: object, frame: nw.DataFrame[Any], *, reset: bool
) -> list[Column]:
    validate_data(estimator, X, reset=reset, skip_check_array=True)  # the names and number of columns
    if len(frame) == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={frame.shape}) while a minimum of 1 is required by "
            f"{type(estimator).__name__}. Check the filter that made X."
        )
    names = _feature_names(estimator)
    return [read_column(column, _column(names, j)) for j, column in enumerate(frame.iter_columns())]


def _check_cells(
    cells: FloatArray, names: Sequence[str] | None, owner: str, missing: Missing, is_frame: bool
) -> None:
    """Raise ValueError if there are infinite cells, or missing ones that are not accepted."""
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
        "Drop those rows or fill them in, for instance with sklearn.impute.SimpleImputer(add_indicator=True)."
        ' Or set missing="indicator": the mean takes their place, and a column of its own marks them.'
        if is_missing
        else "Replace infinite values, or drop those rows."
    )
    raise ValueError(
        f"X contains {'inf' if accepted else 'NaN or inf'} in {np.count_nonzero(bad)} cell(s), the first "
        f"({'NaN' if is_missing else 'inf'}) in row {row}, {_column(names, column)}; {owner} needs finite "
        f"numbers. {remedy}"
    )


def _mean(cells: FloatArray, weight: FloatArray, where: str) -> float:
    """Return the mean of the cells that are present; weights ascend. A repeated cell is one of weight 2."""
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


def _feature_names(estimator: BaseEstimator) -> tuple[str, ...] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def _column(names: Sequence[str] | None, j: int) -> str:
    return f"column {j}" if names is None else f"column {names[j]!r}"
