"""Intervals of labels: every way to write them, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isbor.data.intervals import read_intervals

SIZES = ["small", "medium", "large"]  # not in alphabetical order
LOWER, UPPER = ["small", "medium", None, "large"], ["small", None, "medium", "large"]


def categories(ends):
    return pd.Categorical(ends, SIZES, ordered=True)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (list(zip(LOWER, UPPER, strict=True)), SIZES),
        (np.array([LOWER, UPPER], dtype=object).T, SIZES),
        (pd.DataFrame({"from": LOWER, "to": UPPER}), SIZES),
        (pd.DataFrame({"from": categories(LOWER), "to": categories(UPPER)}), None),
        (pd.DataFrame({"from": categories(LOWER), "to": UPPER}), None),
        (
            pl.DataFrame({"from": LOWER, "to": UPPER}, schema=dict.fromkeys(("from", "to"), pl.Enum(SIZES))),
            None,
        ),
    ],
    ids=["tuples", "array", "pandas", "categorical", "one categorical", "polars"],
)
def test_strings(y, classes):
    found = read_intervals(y, classes)
    assert found.classes.tolist() == SIZES
    assert found.given_order
    assert found.lower.tolist() == [0, 1, 0, 2]
    assert found.upper.tolist() == [0, 2, 1, 2]
    assert found.inside.sum(axis=1).tolist() == [1, 2, 2, 1]


@pytest.mark.parametrize(
    "y",
    [
        [(1, 1), (2, 4), (4, None), (None, 2)],
        np.array([[1, 1], [2, 4], [4, np.nan], [np.nan, 2]]),
        np.array([[1, 1], [2, 4], [4, np.inf], [-np.inf, 2]]),
        np.ma.masked_array([[1, 1], [2, 4], [4, 0], [0, 2]], [[0, 0], [0, 0], [0, 1], [1, 0]]),
        pd.DataFrame({"from": [1, 2, 4, None], "to": [1, 4, None, 2]}),
        pd.DataFrame({"from": [1, 2, 4, None], "to": [1, 4, None, 2]}, dtype="Int64"),
        pl.DataFrame({"from": [1, 2, 4, None], "to": [1.0, 4.0, float("nan"), 2.0]}, strict=False),
    ],
    ids=["tuples", "NaN", "infinite", "masked", "pandas", "nullable", "polars"],
)
def test_numbers(y):
    found = read_intervals(y)
    assert found.classes.tolist() == [1, 2, 4]  # 3 is no end of any interval
    assert not found.given_order
    assert found.lower.tolist() == [0, 1, 2, 0]
    assert found.upper.tolist() == [0, 2, 2, 1]
    assert read_intervals(y, [1, 2, 3, 4]).upper.tolist() == [0, 3, 3, 1]


@given(st.lists(st.integers(-5, 5), min_size=1))
def test_labels_that_are_known(y):
    found, pairs = read_intervals(y), read_intervals(np.column_stack([y, y]))
    assert found.classes.tolist() == pairs.classes.tolist() == sorted(set(y))
    for codes in (found.lower, found.upper, pairs.lower, pairs.upper):
        assert found.classes[codes].tolist() == y


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        ([(1, 1), (3, 2)], None, r"above the upper one in 1 of 2 rows, the first in row 1, .*: \(3, 2\)"),
        ([(1, 2)], [2, 1], r"correct the order in classes, which is \[2, 1\]"),
        ([(1, 7)], [1, 2, 3], r"1 label\(s\) not in classes: \[7\]"),
        ([(None, None), (None, np.nan)], None, "All ends of the 2 intervals in y are missing"),
        ([("low", "high")], None, "whose order must be given"),
        (["low or mid"], ["low", "mid"], r"not in classes: \['low or mid'\].*pass pairs \(lower, upper\)"),
        ([1, (2, 3)], None, r"Write a known label k as the pair \(k, k\)"),
        ([(np.inf, 2), (1, 2)], None, "1 of 4 labels are infinite"),
        ([(1, 2, 3)], None, "y should be a 1d array"),
        (
            pd.DataFrame(
                {"from": categories(["small"]), "to": pd.Categorical(["L"], ["S", "L"], ordered=True)}
            ),
            None,
            "The columns of y have different categories",
        ),
    ],
)
def test_what_is_refused(y, classes, message):
    with pytest.raises(ValueError, match=message):
        read_intervals(y, classes)
