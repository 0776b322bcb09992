"""Ordered labels as integers and back."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from isbor import OrderedLabelEncoder

LEVELS = ["low", "medium", "high"]  # alphabetical order would be high, low, medium


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["high", "low", "high"], LEVELS),
        (pd.Series(pd.Categorical(["high", "low", "high"], LEVELS, ordered=True)), None),
        (pl.Series(["high", "low", "high"], dtype=pl.Enum(LEVELS)), None),
    ],
    ids=["classes", "pandas", "polars"],
)
def test_codes_keep_the_order_and_count_levels_without_rows(y, classes):
    encoder = OrderedLabelEncoder(classes=classes)
    assert_array_equal(encoder.fit_transform(y), [2, 0, 2])
    assert_array_equal(encoder.transform(["medium"]), [1])
    assert encoder.classes_.tolist() == LEVELS
    assert encoder.inverse_transform([1, 2]).tolist() == ["medium", "high"]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_decoding_undoes_encoding(y):
    encoder = OrderedLabelEncoder()
    codes = encoder.fit_transform(y)
    assert_array_equal(encoder.inverse_transform(codes), y)
    assert set(codes.tolist()) == set(range(len(set(y))))  # without gaps
    assert_array_equal(np.argsort(codes, kind="stable"), np.argsort(y, kind="stable"))


def test_fit_can_follow_a_clone():
    encoder = clone(OrderedLabelEncoder(classes=LEVELS))
    with pytest.raises(NotFittedError, match="OrderedLabelEncoder instance is not fitted yet"):
        encoder.transform(["low"])
    assert_array_equal(encoder.fit(["low"]).transform(["high"]), [2])


@pytest.mark.parametrize(
    ("codes", "found"),
    [([0, 3], "3"), ([-1, 0], "-1"), ([0.5], "0.5"), (["low"], "'low'"), ([True], "True"), ([np.nan], "nan")],
)
def test_what_is_no_code_is_refused(codes, found):
    encoder = OrderedLabelEncoder(classes=LEVELS).fit(["low"])
    wanted = f"codes holds {found}; integers from 0 to 2, the positions of the 3 classes, are needed."
    with pytest.raises(ValueError, match=re.escape(wanted)):
        encoder.inverse_transform(codes)
