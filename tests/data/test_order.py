"""Orders of rows and columns: the same however the table is stored, and random all the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from isbor.data.order import column_order, exact_keys, grid_keys, on_grid
from isbor.data.rows import canonical_rows


def table(n=400, d=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, 3, n)


@given(st.permutations(range(5)), st.integers(0, 20))
def test_columns_are_found_wherever_they_stand(order, seed):
    X, y = table(n=30, seed=seed)
    moved = X[:, order]
    assert_array_equal(moved[:, column_order(moved, y, np.arange(5))], X[:, column_order(X, y, np.arange(5))])


def test_columns_of_equal_values_are_told_apart_by_their_rows():
    """Four columns with the same numbers, all alike beside the labels."""
    rng = np.random.default_rng(0)
    values = np.repeat([0.0, 1.0], 20)
    X = np.column_stack([rng.permutation(values) for _ in range(4)])
    y = np.zeros(40, dtype=int)
    found = X[:, column_order(X, y, np.arange(4))]
    for order in ([3, 1, 0, 2], [1, 0, 3, 2], [2, 3, 1, 0]):
        moved = X[:, order]
        assert_array_equal(moved[:, column_order(moved, y, np.arange(4))], found)


def test_columns_of_a_feature_stay_together():
    X, y = table()
    order = column_order(X, y, np.array([0, 1, 1, 1, 2]))
    place = np.flatnonzero(order == 1)[0]
    assert order[place : place + 3].tolist() == [1, 2, 3]


@pytest.mark.parametrize("kind", ["normal", "whole", "binary"])
@pytest.mark.parametrize("change", ["digits", "columns", "rows"])
def test_the_order_of_rows_comes_from_what_they_say(change, kind):
    X, y = table()
    if kind == "whole":
        X = np.column_stack([np.floor(3.0 * np.abs(X[:, :4])), X[:, 4]])
    elif kind == "binary":
        X = np.column_stack([X[:, :4] > [0.0, 0.5, -0.4, 1.0], X[:, 4]]).astype(float)
    rng = np.random.default_rng(1)
    expected, _ = canonical_rows(X, y, np.ones(400))
    if change == "digits":
        rows, _ = canonical_rows(X * (1 + 1e-13 * rng.choice([-1, 1], X.shape)), y, np.ones(400))
        assert_array_equal(rows.source, expected.source)
    elif change == "columns":
        rows, scaling = canonical_rows(X[:, ::-1], y, np.ones(400))
        assert_array_equal(rows.source, expected.source)
        assert_array_equal(rows.X[:, ::-1], expected.X)
    else:
        order = rng.permutation(400)
        rows, _ = canonical_rows(X[order], y[order], np.ones(400))
        assert_array_equal(order[rows.source], expected.source)


def test_a_row_more_leaves_the_others_in_their_order():
    X, y = table()
    expected, _ = canonical_rows(X[:-1], y[:-1], np.ones(399))
    rows, _ = canonical_rows(X, y, np.ones(400))
    for level in range(3):  # classes are interleaved anew
        of_level = rows.source[rows.y == level]
        assert_array_equal(of_level[of_level != 399], expected.source[expected.y == level])


@pytest.mark.parametrize("transform", [np.copy, np.exp, lambda x: np.exp(4 * x), lambda x: 1e9 + x])
def test_the_first_rows_are_a_sample_also_of_one_column(transform):
    x = transform(np.random.default_rng(0).normal(size=20_000))
    key = grid_keys(x[:, None], np.zeros(20_000, dtype=int), 0, np.arange(1))
    first = x[np.argsort(key)[:1000]]
    shares = np.searchsorted(np.sort(x), np.quantile(first, [0.1, 0.25, 0.5, 0.75, 0.9])) / 20_000
    np.testing.assert_allclose(shares, [0.1, 0.25, 0.5, 0.75, 0.9], atol=0.05)


def test_numbers_that_differ_in_their_last_digit_differ_in_their_exact_keys_only():
    X, y = table(n=50)
    near = X * (1 + 2e-16)
    assert np.any(exact_keys(X, y, 0) != exact_keys(near, y, 0))
    assert_array_equal(grid_keys(X, y, 0, np.arange(5)), grid_keys(near, y, 0, np.arange(5)))


def test_keys_of_extreme_numbers():
    x = np.array([-1.7e308, 1.7e308, 0.0, 5e-324, 1.0, -0.0])
    keys = grid_keys(x[:, None], np.zeros(6, dtype=int), 0, np.arange(1))
    assert len(np.unique(keys)) >= 3


def test_numbers_of_few_digits_stay_on_the_grid():
    rng = np.random.default_rng(0)
    whole = rng.integers(-(2**19), 2**19, 500).astype(float)
    X = np.column_stack([whole, whole / 64, rng.integers(0, 2, 500), np.full(500, 0.1), 2.0**40 + whole])
    assert_array_equal(on_grid(X), X)
    assert on_grid(X) is not X


@pytest.mark.parametrize("transform", [np.copy, np.exp, lambda x: np.exp(8 * x), lambda x: x**9])
def test_numbers_move_by_a_millionth_of_their_spread_or_distance(transform):
    x = transform(np.random.default_rng(0).normal(size=1000))
    rounded = on_grid(x[:, None])[:, 0]
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75])
    assert np.any(rounded != x)
    assert np.all(np.abs(rounded - x) <= 2e-6 * np.maximum(high - low, np.abs(x - middle)))
    assert_array_equal(on_grid(rounded[:, None])[:, 0], rounded)


def test_last_digits_are_rounded_away():
    X, y = table(n=2000)
    near = X * (1 + 1e-13 * np.random.default_rng(1).choice([-1, 1], X.shape))
    assert np.mean(near == X) < 0.01
    one, other = canonical_rows(X, y, np.ones(2000)), canonical_rows(near[:, ::-1], y, np.ones(2000))
    assert_array_equal(other[0].X[:, ::-1], one[0].X)
    assert_array_equal(other[1].mean[::-1], one[1].mean)
    assert_array_equal(other[1].factor[::-1], one[1].factor)


def test_rows_that_differ_by_rounding_are_merged():
    X, y = table(n=60)
    near = X * (1 + 1e-15)
    doubled, _ = canonical_rows(np.concatenate([X, near]), np.concatenate([y, y]), np.ones(120))
    rows, _ = canonical_rows(X, y, np.full(60, 2.0))
    assert_array_equal(doubled.X, rows.X)
    assert_array_equal(doubled.weight, rows.weight)
    assert doubled.source.max() < 60  # the first of equal rows


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-280, 1e300])
def test_extreme_numbers_stay_apart(scale):
    x = scale * np.arange(-7.0, 8.0)
    rounded = on_grid(x[:, None])[:, 0]
    assert np.isfinite(rounded).all()
    assert np.all(np.diff(rounded) > 0.0)
    assert_array_equal(on_grid(np.array([[-1.7e308], [1.7e308], [0.0]]))[2], [0.0])
