"""A table as two features that are shown and others that are held fixed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isbor._core.types import FloatArray, IntArray
from isbor.data.encoding import TableEncoding
from isbor.data.frames import data_frame, read_column
from isbor.plots.common import shorten

__all__ = ["TwoFeatures"]

_MARGIN = 0.02  # of the range of the rows, on each side of the grid
_MOST_ROWS = 200  # to compare features with
_MOST_HELD = 3  # features whose values the note gives
_NAME_LENGTH = 24


@dataclass(frozen=True, slots=True)
class TwoFeatures:
    """Two numeric features of a table, and the values at which the others are held."""

    names: list[str]  # of the two
    columns: IntArray  # (2,) where they stand among the encoded columns
    rows: FloatArray  # (n_shown, 2) rows in which neither is missing
    is_shown: NDArray[np.bool_]  # (n,) which rows these are
    typical_row: FloatArray  # (n_columns,) an encoded row: means, and most frequent categories
    held: str  # where the others are held, in words

    @classmethod
    def of(cls, estimator: Any, X: object, features: Sequence[int | str] | None) -> "TwoFeatures":
        """Read a table; None chooses the two features that matter most to the fitted model."""
        table: TableEncoding = estimator._encoding
        encoded = table(estimator, X)
        missing = _missing_cells(X)
        names = list(table.feature_names or [f"x{number}" for number in range(len(table.categories))])
        if features is None:
            numbers = _most_relevant(estimator, encoded, missing, names)
        else:
            numbers = _numbers(features, names)
            _check_numeric(numbers, names, table)
        columns = np.searchsorted(table.feature, numbers)  # the value comes before the mark of missing cells
        is_shown: NDArray[np.bool_] = ~np.any(missing[:, numbers], axis=1)
        if not is_shown.any():
            raise ValueError(
                f"X has no row in which both {names[numbers[0]]!r} and {names[numbers[1]]!r} are present; at "
                "least one is needed. Give two other numeric features as `features`."
            )
        typical_row = _typical_row(encoded, missing, table)
        return cls(
            names=[names[number] for number in numbers],
            columns=columns,
            rows=encoded[np.ix_(is_shown, columns)],
            is_shown=is_shown,
            typical_row=typical_row,
            held=_held(typical_row, encoded, numbers, table),
        )

    def grid(self, resolution: int) -> tuple[FloatArray, FloatArray]:
        """Return a grid over the range of the rows and a little more."""
        low, high = self.rows.min(axis=0), self.rows.max(axis=0)
        margin = np.where(high > low, _MARGIN * (high - low), 0.5)
        axes = np.linspace(low - margin, high + margin, resolution)
        xx, yy = np.meshgrid(axes[:, 0], axes[:, 1])
        return xx, yy

    def encoded(self, xx: FloatArray, yy: FloatArray) -> FloatArray:
        """Return the points of a grid as encoded rows, the other features held fixed."""
        points = np.tile(self.typical_row, (xx.size, 1))
        points[:, self.columns] = np.stack([xx.ravel(), yy.ravel()], axis=1)
        return points


# --- Which two --------------------------------------------------------------------------------------------


def _numbers(features: Sequence[int | str], names: list[str]) -> list[int]:
    """Return the features as column numbers, checked."""
    found = f"features is {features!r}; "
    if len(features) != 2 or len(set(features)) != 2:
        raise ValueError(f"{found}two different columns are needed, for instance (0, 1).")
    columns = [
        names.index(f) if isinstance(f, str) and f in names else f  # an unknown name stays, to be refused
        for f in features
    ]
    if not all(isinstance(column, int | np.integer) and 0 <= column < len(names) for column in columns):
        raise ValueError(
            f"{found}the model has {len(names)} feature(s), {names}. Give two of them by name or by number, "
            f"from 0 to {len(names) - 1}."
        )
    return [int(column) for column in columns]


def _check_numeric(numbers: list[int], names: list[str], table: TableEncoding) -> None:
    """Raise ValueError if a feature that is to be an axis was a category in training."""
    for number in numbers:
        categories = table.categories[number]
        if categories is not None:
            numeric = [name for name, other in zip(names, table.categories, strict=True) if other is None]
            raise ValueError(
                f"{names[number]!r} held categories in training, such as {list(categories[:3])}; both axes "
                f"need numbers. The numeric features are {numeric}: give two of them as `features`, or turn "
                "the category into a number before fit."
            )


def _most_relevant(
    estimator: Any, encoded: FloatArray, missing: NDArray[np.bool_], names: list[str]
) -> list[int]:
    """Return the two most relevant numeric features that vary, in the order of the columns."""
    table: TableEncoding = estimator._encoding
    values = encoded[:, np.searchsorted(table.feature, np.arange(len(names)))]
    usable = [
        number
        for number, categories in enumerate(table.categories)
        if categories is None and len(np.unique(values[~missing[:, number], number])) > 1
    ]
    if len(usable) < 2:
        raise ValueError(
            f"X has {len(usable)} numeric feature(s) that vary, {[names[number] for number in usable]}; two "
            "are needed, one for each axis. Fit the model to more numeric features, or pass rows in which "
            "they vary."
        )
    relevance = getattr(estimator, "feature_relevance_", None)
    if relevance is None:
        relevance = _effects(estimator, encoded, usable)
    order = np.argsort(-np.asarray(relevance)[usable], kind="stable")
    return sorted(usable[place] for place in order[:2])


def _effects(estimator: Any, encoded: FloatArray, numbers: list[int]) -> FloatArray:
    """Return how much the score changes, in mean square, when a feature is taken from another row."""
    feature = estimator._encoding.feature
    rows = encoded[:: -(-len(encoded) // _MOST_ROWS)]
    score = estimator._encoded_latent(rows)
    effects = np.zeros(feature[-1] + 1)
    for number in numbers:
        exchanged = rows.copy()
        # From the other half of the table, because neighbours may be alike.
        exchanged[:, feature == number] = np.roll(rows[:, feature == number], len(rows) // 2, axis=0)
        effects[number] = np.mean((estimator._encoded_latent(exchanged) - score) ** 2)
    return effects


# --- Where the others are held ----------------------------------------------------------------------------


def _missing_cells(X: object) -> NDArray[np.bool_]:
    """Return which cells are missing, (n, d), in a table that a model accepts."""
    frame = data_frame(X)
    if frame is None:
        return np.isnan(np.asarray(X, dtype=np.float64))
    cells = [read_column(column, column.name).cells for column in frame.iter_columns()]
    return np.isnan(np.stack(cells, axis=1))


def _typical_row(encoded: FloatArray, missing: NDArray[np.bool_], table: TableEncoding) -> FloatArray:
    """Return an encoded row of means and most frequent categories, missing cells aside."""
    row = np.empty(encoded.shape[1])
    for number, categories in enumerate(table.categories):
        own = table.feature == number
        present = ~missing[:, number]
        cells = encoded[np.ix_(present, own)] if present.any() else encoded[:, own]
        if categories is None:
            row[own] = cells.mean(axis=0)
        else:
            patterns, counts = np.unique(cells, axis=0, return_counts=True)
            row[own] = patterns[np.argmax(counts)]
    return row


def _held(row: FloatArray, encoded: FloatArray, shown: list[int], table: TableEncoding) -> str:
    """Say where the features are held that are not shown and not constant; "" if there are none."""
    varying = np.unique(table.feature[(encoded != encoded[:1]).any(axis=0)])
    others = [number for number in varying.tolist() if number not in shown]
    if not others:
        return ""
    is_number = [table.categories[number] is None for number in others]
    where = ["mean"] * any(is_number) + ["most frequent category"] * (not all(is_number))
    values = [_value(row, number, table) for number in others[:_MOST_HELD]]
    more = f" and {len(others) - _MOST_HELD} more" if len(others) > _MOST_HELD else ""
    return f"Others at their {' or '.join(where)}: {', '.join(values)}{more}"


def _value(row: FloatArray, number: int, table: TableEncoding) -> str:
    """Return the value of a feature in an encoded row, such as "age=38.5" or "color=red"."""
    own = np.flatnonzero(table.feature == number)
    if table.categories[number] is None:
        value = row[own[0]]
        digits = f"{value:,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.3g}"
        return f"{shorten(table.names[own[0]], _NAME_LENGTH)}={digits}"
    # Of the columns of a category, the first that is 1 is the level's, or marks that it has none.
    return shorten(table.names[own[np.argmax(row[own] == 1.0)]], _NAME_LENGTH)
