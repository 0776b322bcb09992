"""Read a source to the end, and compare what is read."""

import math

import narwhals as nw
import numpy as np


def plain(value):
    """Return a cell as Python has it; None if it is missing."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if value != value or type(value).__name__ == "NAType" else value


def cells(part):
    """Return the rows of an array, frame or column as tuples."""
    native = nw.from_native(part, pass_through=True, allow_series=True)
    if isinstance(native, nw.DataFrame):
        return [tuple(map(plain, row)) for row in native.rows()]
    values = native.to_list() if isinstance(native, nw.Series) else np.asarray(native).tolist()
    return [tuple(map(plain, row)) if isinstance(row, list) else (plain(row),) for row in values]


def read(table, most=math.inf):
    """Return all rows of a source; check that blocks are bounded and that rows are numbered through."""
    rows = []
    for block in table.blocks():
        assert block.first == len(rows)
        parts = [cells(part) for part in (block.X, block.y, block.weight) if part is not None]
        found = [sum(row, ()) for row in zip(*parts, strict=True)]
        assert 0 < len(found) <= most
        rows += found
    return rows


def wheres(table):
    return [block.where for block in table.blocks()]
