"""Labels of which only a range is known, as pairs (lower, upper).

"2 or 3" is the pair (2, 3), "at least 4" is (4, None), and the label 2 itself is (2, 2). The order of the
labels is found as in `isbor.data.labels`, from the ends that are given.

>>> found = read_intervals([(1, 1), (2, 3), (4, None), (None, 2)])
>>> found.classes.tolist(), found.lower.tolist(), found.upper.tolist()
([1, 2, 3, 4], [0, 1, 3, 0], [0, 2, 3, 1])
"""

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from isbor._core.types import BoolArray, IntArray, LabelArray
from isbor.data.label_tables import label_table
from isbor.data.labels import declared_order, encode_labels, is_missing

__all__ = ["OrderedIntervals", "read_intervals"]


@dataclass(frozen=True, slots=True)
class OrderedIntervals:
    """Runs of neighbouring labels as positions in their order."""

    classes: LabelArray  # (r,) all levels, lowest first, in the labels' own type
    lower: IntArray  # (n,) position of the lowest label that a row may have
    upper: IntArray  # (n,) and of the highest
    given_order: bool  # whether the order was given; else classes are the numbers that occur

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def inside(self) -> BoolArray:
        """Whether a row may have a class, (n, r)."""
        levels = np.arange(len(self.classes))
        return (levels >= self.lower[:, None]) & (levels <= self.upper[:, None])


def read_intervals(y: object, classes: object = None) -> OrderedIntervals:
    """Return the order of the labels and the positions between which each row's label lies.

    Parameters
    ----------
    y : array-like or data frame of shape (n, 2), or array-like of shape (n,)
        Pairs (lower, upper), both ends included. None, NaN, or an infinity of the right sign is an open end.
        With one dimension, labels that are known.
    classes : sequence of at least 2 distinct labels, optional
        All levels, lowest first.
    """
    cells = label_table(y)
    if cells.ndim == 1 and any(isinstance(cell, tuple | list) for cell in cells):
        raise ValueError(
            "y holds pairs and single labels; one kind is needed. Write a known label k as the pair (k, k)."
        )
    if cells.ndim != 2 or cells.shape[1] != 2:
        try:
            labels = encode_labels(y, classes)
        except ValueError as error:
            raise ValueError(
                f"{error} If y holds ranges of labels, pass pairs (lower, upper): two columns or tuples."
            ) from None
        return OrderedIntervals(labels.classes, labels.codes, labels.codes, labels.given_order)
    is_open = np.vectorize(_is_open, otypes=[bool])
    has_lower, has_upper = ~is_open(cells[:, 0], -np.inf), ~is_open(cells[:, 1], np.inf)
    if not (has_lower.any() or has_upper.any()):
        raise ValueError(
            f"All ends of the {len(cells)} intervals in y are missing; some labels are needed. Check the two "
            "columns."
        )
    ends = np.concatenate([cells[has_lower, 0], cells[has_upper, 1]])
    labels = encode_labels(ends, _declared_order(y) if classes is None else classes)
    lower = np.zeros(len(has_lower), dtype=np.intp)
    upper = np.full(len(has_upper), len(labels.classes) - 1)
    lower[has_lower], upper[has_upper] = np.split(labels.codes, [np.count_nonzero(has_lower)])
    reversed_rows = np.flatnonzero(lower > upper)
    if len(reversed_rows):
        first = reversed_rows[0]
        pair = tuple(labels.classes[[lower[first], upper[first]]].tolist())
        raise ValueError(
            f"In y the lower label is above the upper one in {len(reversed_rows)} of {len(lower)} rows, the "
            f"first in row {first}, counted from 0: {pair}. Put the lower label first, or correct the order "
            f"in classes, which is {labels.classes.tolist()}."
        )
    return OrderedIntervals(labels.classes, lower, upper, labels.given_order)


def _is_open(end: object, infinity: float) -> bool:
    return is_missing(end) or (isinstance(end, float | np.floating) and bool(end == infinity))


def _declared_order(y: object) -> list[Any] | None:
    """Return the order of the labels if columns of a data frame are ordered categoricals."""
    frame: Any = nw.from_native(y, pass_through=True, eager_only=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    orders = [list(order) for name in frame.columns if (order := declared_order(frame[name])) is not None]
    if any(order != orders[0] for order in orders):
        raise ValueError(
            f"The columns of y have different categories, {orders[0]} and {orders[1]}; one order is needed. "
            "List all labels, lowest first, in classes=."
        )
    return orders[0] if orders else None
