"""Ratings by several raters: rows, weights and groups, from arrays and frames."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor import from_ratings
from isbor.estimators.linear import OrderedProbit


def test_every_rating_is_a_row_of_its_item():
    ratings = np.array([[1, 2, np.nan], [np.nan, np.nan, np.nan], [3, 3, 1]])
    X, y, weight, groups = from_ratings([[10.0], [20.0], [30.0]], ratings)
    assert X.tolist() == [[10.0], [10.0], [30.0], [30.0], [30.0]]
    assert y.tolist() == [1, 2, 3, 3, 1]
    assert_allclose(weight, [1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3])
    assert groups.tolist() == [0, 0, 2, 2, 2]
    assert from_ratings(X, np.ones((5, 2)), count="ratings").sample_weight.tolist() == [1] * 10


@pytest.mark.parametrize(
    "ratings",
    [
        pd.DataFrame({"a": ["low", "high"], "b": pd.Categorical([None, "low"])}),
        pl.DataFrame({"a": ["low", "high"], "b": [None, "low"]}),
        np.array([["low", None], ["high", "low"]], dtype=object),
        np.ma.masked_array([["low", "?"], ["high", "low"]], [[False, True], [False, False]]),
        [["low", None], ["high", "low"]],
    ],
    ids=["pandas", "polars", "objects", "masked", "lists"],
)
def test_tables_of_words_with_missing_cells(ratings):
    rows = from_ratings(pl.DataFrame({"x": [1.0, 2.0]}), ratings)
    assert rows.y.tolist() == ["low", "high", "low"]
    assert rows.X["x"].to_list() == [1.0, 2.0, 2.0]


def test_the_model_is_that_of_the_labels_distribution():
    """Items of equal features: what raters disagree about becomes the predicted probabilities."""
    ratings = [[0, 0, 0, 1], [2, 2, 2, 1]] * 50
    X = np.tile([[0.0], [1.0]], (50, 1))
    rows = from_ratings(X, ratings)
    model = OrderedProbit().fit(rows.X, rows.y, sample_weight=rows.sample_weight)
    assert_allclose(model.predict_proba([[0.0], [1.0]]), [[0.75, 0.25, 0], [0, 0.25, 0.75]], atol=0.02)
    assert_array_equal(np.unique(rows.groups), np.arange(100))


@pytest.mark.parametrize(
    ("X", "ratings", "count", "message"),
    [
        ([[0.0]], [[None]], "items", "All ratings are missing"),
        ([[0.0]], [1], "items", r"ratings has 1 dimension"),
        ([[0.0]], [[1], [2]], "items", "inconsistent numbers of samples"),
        ([[0.0]], [[1]], "rows", "count is 'rows'; 'items' or 'ratings'"),
    ],
)
def test_bad_tables_are_refused(X, ratings, count, message):
    with pytest.raises(ValueError, match=message):
        from_ratings(X, ratings, count=count)
