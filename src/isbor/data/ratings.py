"""Tables of ratings by several raters, as rows to fit."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length

from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.data.frames import take_rows
from isbor.data.label_tables import label_table
from isbor.data.labels import is_missing

__all__ = ["RatedRows", "from_ratings"]


class RatedRows(NamedTuple):
    """Rows to fit: one for each rating; made by `from_ratings`."""

    X: Any  # (n_ratings, n_features), a data frame if the items are one, else an array or sparse matrix
    y: LabelArray  # (n_ratings,)
    sample_weight: FloatArray  # (n_ratings,)
    groups: IntArray  # (n_ratings,) row number of the item, for cross-validation


def from_ratings(
    X: ArrayLike, ratings: ArrayLike, *, count: Literal["items", "ratings"] = "items"
) -> RatedRows:
    """Return the rows that several raters' labels of the same items give.

    Every rating becomes a row, with the features of its item. Where raters disagree, the model learns how
    often; a mean or majority label would hide it. The rows of an item must not be split between training and
    test: pass `groups` to a splitter such as scikit-learn's `GroupKFold`.

    Parameters
    ----------
    X : array-like or data frame of shape (n_items, n_features)
        Features of the items.
    ratings : array-like or data frame of shape (n_items, n_raters)
        Labels, a column for each rater. None and NaN are missing. An item without ratings is left out.
    count : "items" or "ratings", default="items"
        What weighs the same. "items": every item; its ratings share the weight 1. Bands and selection then
        take an item for one observation, as is prudent if ratings of the same item are alike. "ratings":
        every rating has weight 1, so that much-rated items count more.

    Returns
    -------
    rows : RatedRows
        A named tuple ``X, y, sample_weight, groups``; `groups` has the row number of the item.

    See Also
    --------
    isbor.meta.suspicious_labels : Single labels that are probably wrong.

    Examples
    --------
    >>> from isbor import ISBOR, from_ratings
    >>> X = [[0.0], [1.0], [2.0]]
    >>> ratings = [[1, 1], [2, None], [2, 3]]
    >>> rows = from_ratings(X, ratings)
    >>> rows.y.tolist(), rows.sample_weight.tolist(), rows.groups.tolist()
    ([1, 1, 2, 2, 3], [0.5, 0.5, 1.0, 0.5, 0.5], [0, 0, 1, 2, 2])
    >>> model = ISBOR(gamma=0.5).fit(rows.X, rows.y, sample_weight=rows.sample_weight)
    """
    if count not in ("items", "ratings"):
        raise ValueError(f"count is {count!r}; 'items' or 'ratings' is needed.")
    table = label_table(ratings)
    if table.ndim != 2:
        raise ValueError(
            f"ratings has {table.ndim} dimension(s); 2 are needed, a row for each item and a column for each "
            "rater. If all items have a single label, no rows need to be made: pass X and y to fit."
        )
    check_consistent_length(X, table)
    known = ~np.vectorize(is_missing, otypes=[bool])(table)
    if not known.any():
        raise ValueError("All ratings are missing; at least one is needed. Check the columns of ratings.")
    groups, raters = np.nonzero(known)
    y = np.array(table[groups, raters].tolist())
    weight = 1.0 / known.sum(axis=1)[groups] if count == "items" else np.ones(len(groups))
    return RatedRows(take_rows(X, groups), y, weight, groups)
