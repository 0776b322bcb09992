import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from isbor.data.weights import check_sample_weight


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, [1, 1, 1]),
        (2, [2, 2, 2]),
        (np.float32(0.5), [0.5, 0.5, 0.5]),
        ([0, 1, 2], [0, 1, 2]),
        (np.array([True, False, True]), [1, 0, 1]),
        (pd.Series([1, 2, 3], dtype="Int64"), [1, 2, 3]),
        (pl.Series([1, 2, 3]), [1, 2, 3]),
        (np.ma.array([1, 2, 3]), [1, 2, 3]),
    ],
    ids=["none", "scalar", "numpy-scalar", "list", "boolean", "nullable", "polars", "masked-none"],
)
def test_weights_are_floats_one_for_each_row(given, expected):
    weight = check_sample_weight(given, 3)
    assert weight.dtype == np.float64
    assert_array_equal(weight, expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, 2], r"shape \(2,\); one weight for each of the 3 rows is needed.*a single number"),
        ([[1], [2], [3]], r"shape \(3, 1\); one weight for each"),
        ([], r"shape \(0,\); one weight for each"),
        ([1, -2, 3], r"sample_weight is -2\.0 in row 1; a finite, nonnegative number"),
        (-1, r"sample_weight is -1\.0 in row 0"),
        ([1, 2, np.nan], "sample_weight is nan in row 2"),
        (np.inf, "sample_weight is inf in row 0"),
        (pd.Series([1, None, 3], dtype="Int64"), "sample_weight is nan in row 1"),
        (np.ma.array([1, 2, 3], mask=[0, 1, 0]), "sample_weight is nan in row 1"),
        ([0, 0, 0], "All sample weights are zero"),
        (["a", "b", "c"], "sample_weight: could not convert string to float: 'a'. One number for each row"),
    ],
    ids=["short", "2-D", "empty", "negative", "scalar", "nan", "inf", "nullable", "masked", "zero", "text"],
)
def test_bad_weights_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        check_sample_weight(given, 3)
