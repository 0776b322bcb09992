import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import integers
from numpy.testing import assert_allclose, assert_array_equal

from isbor.data.order import on_grid
from isbor.data.rows import canonical_rows


def table(seed, n=60, d=3, levels=4):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 1)  # rounded, so that rows repeat
    return X, rng.integers(0, levels, n), rng.integers(1, 4, n).astype(float)


@given(seed=integers(0, 1000))
@settings(max_examples=30)
def test_order_of_rows_does_not_matter(seed):
    X, y, weight = table(seed)
    order = np.random.default_rng(seed + 1).permutation(len(y))
    rows, scaling = canonical_rows(X, y, weight)
    other, other_scaling = canonical_rows(X[order], y[order], weight[order])
    assert_array_equal(rows.X, other.X)
    assert_array_equal(rows.y, other.y)
    assert_array_equal(rows.weight, other.weight)
    assert_array_equal(scaling.factor, other_scaling.factor)
    assert_array_equal(X[rows.source], X[order][other.source])


@given(seed=integers(0, 1000))
@settings(max_examples=30)
def test_weight_means_repetition_and_zero_absence(seed):
    X, y, weight = table(seed)
    weight[::7] = 0.0
    times = weight.astype(int)
    rows, _ = canonical_rows(X, y, weight)
    repeated, _ = canonical_rows(np.repeat(X, times, axis=0), np.repeat(y, times), np.ones(times.sum()))
    assert_array_equal(rows.X, repeated.X)
    assert_array_equal(rows.weight, repeated.weight)


def test_equal_rows_are_merged_and_contradicting_ones_kept():
    X = np.array([[0.0], [-0.0], [1.0], [1.0]])
    rows, _ = canonical_rows(X, np.array([0, 0, 0, 1]), np.array([1.0, 2.0, 1.0, 1.0]))
    assert len(rows) == 3
    assert rows.weight[rows.X[:, 0] < 0].tolist() == [3.0]


def test_every_prefix_is_stratified():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [700, 290, 10])
    rows, _ = canonical_rows(rng.normal(size=(1000, 2)), y, np.ones(1000))
    assert sorted(rows.head(3).y.tolist()) == [0, 1, 2]
    for n in (50, 100, 101, 500):
        share = np.bincount(rows.head(n).y, minlength=3)
        assert np.all(np.abs(share - n * np.array([0.7, 0.29, 0.01])) <= 1)


def test_seed_gives_another_sample():
    X, y, weight = table(0, n=200)
    one, _ = canonical_rows(X, y, weight)
    two, _ = canonical_rows(X, y, weight, seed=1)
    assert set(one.source.tolist()) == set(two.source.tolist())
    assert one.source[:20].tolist() != two.source[:20].tolist()


def test_scaling_standardises_by_weighted_moments():
    X, y, weight = table(1)
    X = on_grid(X * [1.0, 1e12, 1e-12] + [0.0, 3e12, 1.0])
    rows, scaling = canonical_rows(X, y, weight)
    share = rows.weight / rows.weight.sum()
    assert_allclose(share @ rows.X, 0.0, atol=1e-3)
    assert_allclose(share @ rows.X**2, 1.0, rtol=1e-6)
    assert_allclose(scaling(X[rows.source]), rows.X)


def test_constant_features_get_factor_zero():
    X = np.column_stack([np.full(50, 0.1), np.arange(50.0), np.full(50, 1e300)])
    _, scaling = canonical_rows(X, np.arange(50) % 2, np.ones(50))
    assert scaling.factor[[0, 2]].tolist() == [0.0, 0.0]
    assert_allclose(scaling(np.array([[5.0, 24.5, 0.0]])), 0.0, atol=1e-12)


def test_prefixes_leave_no_holes():
    """The order is as good as random even for one column of consecutive integers."""
    X = np.arange(10_000.0)[:, None]
    rows, _ = canonical_rows(X, np.zeros(10_000, dtype=np.intp), np.ones(10_000))
    first = np.sort(X[rows.source[:200], 0])
    assert np.diff(first, prepend=0, append=10_000).max() < 500  # ten times the mean: p < 0.01


def test_more_features_than_rows_keep_their_distances():
    rng = np.random.default_rng(0)
    rows, _ = canonical_rows(rng.normal(size=(12, 300)), np.arange(12) % 3, np.ones(12))
    fewer = rows.in_fewer_dimensions()
    assert fewer.X.shape == (12, 12)
    distances = lambda X: ((X[:, None] - X) ** 2).sum(axis=2)
    assert_allclose(distances(fewer.X), distances(rows.X), atol=1e-9)


def test_the_columns_of_a_category_are_scaled_together():
    """Two rows are on average as far apart in a category as in a number, however rare its levels are."""
    rng = np.random.default_rng(0)
    level = rng.choice(4, size=2000, p=[0.7, 0.2, 0.09, 0.01])
    X = np.column_stack([rng.normal(size=2000), np.eye(4)[level]])
    rows, scaling = canonical_rows(
        X, np.zeros(2000, dtype=np.intp), np.ones(2000), group=np.array([-1, 1, 1, 1, 1])
    )
    assert_allclose(scaling.factor[1:], scaling.factor[1])
    share = rows.weight / rows.weight.sum()
    variance = share @ rows.X**2 - (share @ rows.X) ** 2
    assert_allclose([variance[0], variance[1:].sum()], [1.0, 1.0])


def test_scaling_can_be_undone():
    X, y, weight = table(3)
    X = np.column_stack([X, np.full(len(X), 7.0)])
    _, scaling = canonical_rows(X, y, weight)
    assert_allclose(scaling.inverse(scaling(X)), X)


@pytest.mark.parametrize("exponent", [-900, -1000, -1030, -1050])
def test_the_unit_of_a_column_does_not_matter_even_where_numbers_are_subnormal(exponent):
    X, y, weight = table(4)
    X = np.round(X * 64)  # so that the tiny ones are exact
    rows, _ = canonical_rows(X, y, weight)
    X_tiny = X * [2.0**exponent, 1.0, 1.0]
    tiny, scaling = canonical_rows(X_tiny, y, weight)
    assert_allclose(tiny.X[np.argsort(tiny.source)], rows.X[np.argsort(rows.source)], rtol=0, atol=1e-7)
    assert_allclose(scaling(X_tiny[tiny.source]), tiny.X, atol=1e-12)
    assert_allclose(scaling.inverse(tiny.X) / scaling.spread, X_tiny[tiny.source] / scaling.spread, atol=1e-5)
    assert scaling(np.array([[1e300, 0.0, 0.0]]))[0, 0] == 1e100
