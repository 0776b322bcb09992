import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import integers
from numpy.testing import assert_allclose

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
    rows, scaling = canonical_rows(X, rng.integers(0, 3, 80), np.ones(80))
    return X, rows, *prepare(rows, scaling, np.ones(4, dtype=bool))


def test_numbers_get_a_second_column_and_constants_none(prepared):
    X, rows, wide, preparation = prepared
    assert preparation.source.tolist() == [0, 0, 1, 3, 3]
    assert_allclose(preparation(X[rows.source]), wide.X)


def test_centres_return_to_the_units_of_the_table(prepared):
    X, rows, wide, preparation = prepared
    every = np.ones(wide.X.shape, dtype=bool)
    assert_allclose(preparation.centres(wide.X, every), X[rows.source], rtol=1e-9, atol=1e-9)
    warped_only = np.broadcast_to([False, True, False, False, False], wide.X.shape)
    centres = preparation.centres(wide.X, warped_only)
    assert_allclose(centres[:, 0], X[rows.source, 0], rtol=1e-9)
    assert_allclose(centres[:, 3], X[:, 3].mean())
