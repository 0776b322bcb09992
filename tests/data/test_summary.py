import numpy as np
import pandas as pd
from numpy.testing import assert_equal

from isbor._core.parallel import Workers
from isbor.data.summary import TableSummary
from isbor.data.training import read_training


def summary_of(frame, y, weight=None):
    with Workers(1) as workers:
        return TableSummary.of(read_training(frame, y, weight, owner="test", workers=workers))


def test_ranges_medians_and_frequent_categories_of_weighted_rows():
    frame = pd.DataFrame(
        {
            "x": [1.0, 2.0, 10.0, np.nan, 99.0],
            "word": ["b", "a", "a", None, "c"],
            "place": pd.Categorical(
                ["low", "high", "high", "low", "low"], ["low", "mid", "high"], ordered=True
            ),
            "half": [0.5, 1.0, 1.0, 1.0, 1.0],
        }
    )
    y = [0, 1, 0, 1, 0]
    found = summary_of(frame, y, [3.0, 1.0, 1.0, 2.0, 0.0])  # the last row does not count
    assert_equal(found.low, [1.0, np.nan, np.nan, 0.5])
    assert_equal(found.high, [10.0, np.nan, np.nan, 1.0])
    assert_equal(found.typical, [1.0, 1.0, 0.0, 1.0])  # "b" and "low"
    assert_equal(found.whole, [True, False, False, False])
    assert found.total_weight == 7.0
    repeated = np.repeat(np.arange(5), [3, 1, 1, 2, 0])
    again = summary_of(frame.iloc[repeated], np.take(y, repeated))
    for name in ("low", "high", "typical", "whole", "total_weight"):
        assert_equal(getattr(again, name), getattr(found, name))
