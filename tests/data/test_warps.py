import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import integers
from numpy.testing import assert_allclose, assert_array_equal

from isbor.data.compiled_warps import interpolated
from isbor.data.order import on_grid
from isbor.data.rows import canonical_rows
from isbor.data.warps import Warp, prepare


@given(seed=integers(0, 500))
@settings(max_examples=25)
def test_a_warp_is_increasing_standard_and_can_be_undone(seed):
    rng = np.random.default_rng(seed)
    column = np.exp(3 * rng.normal(size=rng.integers(3, 800)))
    weight = rng.integers(1, 4, len(column)).astype(float)
    warp = Warp.learn(column, weight)
    scores = warp(column)
    order = np.argsort(column)
    assert np.all(np.diff(warp.knots) > 0)
    assert np.all(np.diff(warp.warped) > 0)
    assert np.all(np.diff(scores[order]) >= 0)
    assert_allclose(warp.inverse(scores), column, rtol=1e-9)
    share = weight / weight.sum()
    if len(column) <= 200:  # every value is a knot
        assert_allclose([share @ scores, share @ scores**2], [0.0, 1.0], atol=1e-9)


def test_one_outlier_does_not_squeeze_the_rest():
    column = np.append(np.linspace(0, 1, 199), 1e9)
    scores = Warp.learn(column, np.ones(200))(column)
    assert np.ptp(scores[:199]) > 4.0
    assert scores[199] < 4.0


def test_beyond_the_training_rows_a_warp_is_constant():
    warp = Warp.learn(np.arange(10.0), np.ones(10))
    assert warp(np.array([-1e300]))[0] == warp.warped[0]
    assert warp(np.array([1e300]))[0] == warp.warped[-1]


def test_weights_mean_repetition():
    rng = np.random.default_rng(0)
    column, times = rng.normal(size=50), rng.integers(1, 5, 50)
    once = Warp.learn(column, times.astype(float))
    again = Warp.learn(np.repeat(column, times), np.ones(times.sum()))
    assert_allclose(once.warped, again.warped, rtol=1e-12)


@pytest.fixture
def prepared():
    rng = np.random.default_rng(1)
    X = np.column_stack(
        [np.exp(rng.normal(size=80)), rng.integers(0, 2, 80), np.full(80, 3.0), rng.normal(size=80)]
    )
    X = on_grid(X)
    rows, scaling = canonical_rows(X, rng.integers(0, 3, 80), np.ones(80))
    return X, rows, *prepare(rows, scaling, np.ones(4, dtype=bool))


def test_numbers_get_a_second_column_and_constants_none(prepared):
    X, rows, wide, preparation = prepared
    assert sorted(preparation.source.tolist()) == [0, 0, 1, 3, 3]
    assert_allclose(preparation(X[rows.source]), wide.X)


def test_centres_return_to_the_units_of_the_table(prepared):
    X, rows, wide, preparation = prepared
    every = np.ones(wide.X.shape, dtype=bool)
    assert_allclose(preparation.centres(wide.X, every), X[rows.source], rtol=1e-9, atol=1e-9)
    warps = [j if warp else -1 for j, warp in zip(preparation.source, preparation.warps, strict=True)]
    warped_only = np.broadcast_to(np.equal(warps, 0), wide.X.shape)
    centres = preparation.centres(wide.X, warped_only)
    assert_allclose(centres[:, 0], X[rows.source, 0], rtol=1e-9)
    assert_allclose(centres[:, 3], X[:, 3].mean())


def test_columns_of_two_values_are_put_in_order_as_well():
    """No column is left out and none is warped; still, they are not in the order of the table."""
    X = (np.random.default_rng(0).random((60, 5)) < [0.5, 0.2, 0.7, 0.4, 0.6]).astype(float)
    rows, scaling = canonical_rows(X, (X[:, 1] > 0).astype(int), np.ones(60))
    wide, preparation = prepare(rows, scaling, np.ones(5, dtype=bool))
    assert preparation.source.tolist() != list(range(5))
    assert_array_equal(wide.X, rows.X[:, preparation.source])


def test_slopes_of_a_warp_are_its_derivatives():
    column = np.sort(np.random.default_rng(0).exponential(size=300))
    warp = Warp.learn(column, np.ones(300))
    middle, h = 0.5 * (warp.knots[:-1] + warp.knots[1:]), 1e-7
    assert_allclose(warp.slope(middle), (warp(middle + h) - warp(middle - h)) / (2 * h), rtol=1e-5)
    assert_array_equal(warp.slope(np.array([-1.0, 1e3])), 0.0)
    steep = Warp.learn(np.array([-1.0, 0.0, 1e-310, 1.0]), np.ones(4))
    assert np.isfinite(steep.slope(np.array([5e-311]))).all()


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60, unique=True).map(sorted),
    st.lists(st.floats(-2e6, 2e6), max_size=200),
    st.integers(0, 2**32 - 1),
)
def test_interpolation_is_that_of_numpy(knots, values, seed):
    assume(np.diff(knots).min() > 1e-300)
    warped = np.sort(np.random.default_rng(seed).normal(size=len(knots)))
    values = np.array([*values, *knots])
    expected = np.interp(values, knots, warped)
    assert_allclose(interpolated(values, np.array(knots), warped), expected, rtol=1e-12, atol=1e-12)
