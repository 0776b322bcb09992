"""Tables of labels: a column for each rater, or for each end of an interval."""

from typing import Any

import narwhals as nw
import numpy as np

from isbor._core.types import LabelArray

__all__ = ["label_table"]


def label_table(labels: object) -> LabelArray:
    """Return a data frame or array of labels as an array of objects, with None for masked cells."""
    frame: Any = nw.from_native(labels, pass_through=True, eager_only=True)
    if isinstance(frame, nw.DataFrame):
        cells = np.empty(frame.shape, dtype=object)
        for j, name in enumerate(frame.columns):
            cells[:, j] = frame[name].to_list()
        return cells
    cells = np.array(labels, dtype=object)
    if isinstance(labels, np.ma.MaskedArray):
        cells[np.ma.getmaskarray(labels)] = None
    return cells
