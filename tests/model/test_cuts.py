"""Thresholds that vary with the row: where they lie, how they move, and what they are at most."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from isbor.model.compiled_cuts import (
    SATURATION,
    anchoring,
    edges_of_rows,
    saturated,
    slopes_of_threshold,
)
from isbor.model.cuts import RowShape, gap_patterns, n_shape_sums, row_thresholds
from isbor.model.likelihood import edges
from tests.oracles import dense

THRESHOLDS = [2, 3, 4, 5, 6, 9]
numbers = pytest.mark.parametrize("t", THRESHOLDS)


def example(t, n=40, seed=0):
    """Common thresholds, and a shape of n rows."""
    rng = np.random.default_rng(seed)
    thresholds = np.cumsum(rng.uniform(0.1, 2.0, t)) - 2.0
    return thresholds, RowShape(np.exp(rng.normal(size=n)), np.exp(rng.normal(size=(t - 1, n))))


def middle(thresholds):
    t = thresholds.shape[-1]
    return 0.5 * (thresholds[..., (t - 1) // 2] + thresholds[..., t // 2])


# --- Thresholds at a row -----------------------------------------------------------------------------------


def test_thresholds_of_four_classes_by_hand():
    shape = RowShape(np.ones(2), np.array([[2.0, 1.0], [0.5, 3.0]]))
    found = row_thresholds(np.array([-1.0, 0.0, 4.0]), shape)
    assert_allclose(found, [[-2.0, 0.0, 2.0], [-1.0, 0.0, 12.0]], atol=1e-15)


def test_thresholds_of_five_classes_by_hand():
    """The middle, 1, is half of the way through the second gap."""
    shape = RowShape(np.ones(1), np.array([[3.0], [2.0], [0.5]]))
    found = row_thresholds(np.array([-1.0, 0.0, 2.0, 6.0]), shape)
    assert_allclose(found, [[-4.0, -1.0, 3.0, 5.0]], atol=1e-15)


@numbers
def test_thresholds_are_gaps_added_up_from_the_middle(t):
    thresholds, shape = example(t)
    found = row_thresholds(thresholds, shape)
    assert_allclose(found, dense.row_thresholds(thresholds, shape.gap_factors), rtol=1e-12, atol=1e-12)
    assert_allclose(np.diff(found, axis=1), (np.diff(thresholds)[:, None] * shape.gap_factors).T, rtol=1e-9)
    assert_allclose(middle(found), middle(thresholds), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("t", [1, *THRESHOLDS])
def test_without_factors_all_rows_have_the_common_thresholds(t):
    thresholds = np.sort(np.random.default_rng(t).normal(size=t))
    assert_array_equal(row_thresholds(thresholds, RowShape.constant(7)), np.tile(thresholds, (7, 1)))
    ones = RowShape(np.ones(7), np.ones((t - 1, 7)))
    assert_allclose(row_thresholds(thresholds, ones), np.tile(thresholds, (7, 1)), rtol=1e-12, atol=1e-12)


@given(
    gaps=st.lists(st.floats(1e-3, 10.0), min_size=1, max_size=9),
    first=st.floats(-20.0, 20.0),
    data=st.data(),
)
def test_thresholds_are_in_order_whatever_the_factors(gaps, first, data):
    thresholds = first + np.concatenate([[0.0], np.cumsum(gaps)])
    log_factors = data.draw(st.lists(st.floats(-9.0, 9.0), min_size=len(gaps), max_size=len(gaps)))
    shape = RowShape(np.ones(1), np.exp(np.array(log_factors))[:, None])
    found = row_thresholds(thresholds, shape)[0]
    # A narrow gap far from the middle may be lost in rounding, but thresholds never pass each other.
    rounding = 8 * np.finfo(float).eps * np.abs(found).max()
    assert np.all(np.diff(found) >= -rounding)
    wide = np.diff(thresholds) * shape.gap_factors[:, 0] > 2 * rounding
    assert np.all(np.diff(found)[wide] > 0)
    assert abs(middle(found) - middle(thresholds)) <= rounding


@numbers
def test_reversed_classes_have_mirrored_thresholds(t):
    thresholds, shape = example(t)
    mirrored = RowShape(shape.noise_scale, shape.gap_factors[::-1].copy())
    turned = row_thresholds(-thresholds[::-1], mirrored)
    assert_allclose(turned, -row_thresholds(thresholds, shape)[:, ::-1], rtol=1e-12, atol=1e-12)
    assert_allclose(anchoring(t), -anchoring(t)[::-1, ::-1], atol=1e-15)


@numbers
def test_edges_are_the_thresholds_around_a_class(t):
    thresholds, shape = example(t)
    y = np.arange(len(shape.noise_scale)) % (t + 1)
    row = np.arange(len(y))
    for gaps, expected in (
        (shape.gap_factors, row_thresholds(thresholds, shape)),
        (np.empty((0, len(y))), np.tile(thresholds, (len(y), 1))),
    ):
        edge = np.pad(expected, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
        low, high, width = edges_of_rows(y, edges(thresholds), gaps)
        assert_allclose(low, edge[row, y], rtol=1e-12, atol=1e-12)
        assert_allclose(high, edge[row, y + 1], rtol=1e-12, atol=1e-12)
        assert_allclose(width, edge[row, y + 1] - edge[row, y], rtol=1e-9)


def test_the_width_of_a_class_far_from_the_middle_keeps_its_digits():
    thresholds, factors = np.array([-1e8, 0.0, 1e8, 1e8 + 1e-6]), np.array([[1.0], [1.0], [0.3]])
    _, _, width = edges_of_rows(np.array([3]), edges(thresholds), factors)
    assert_allclose(width, 0.3 * (thresholds[3] - thresholds[2]), rtol=1e-12)


@numbers
def test_derivatives_of_a_rows_thresholds_in_the_common_ones(t):
    thresholds, shape = example(t, n=6)
    slopes, sigma = np.zeros(t), anchoring(t)
    for i in range(6):
        one = shape.gap_factors[:, i : i + 1]
        expected = dense.gradient(lambda b, one=one: dense.row_thresholds(b, one)[0], thresholds)
        for k in range(t):
            slopes_of_threshold(k, sigma, shape.gap_factors, i, slopes)
            assert_allclose(slopes, expected[:, k], rtol=1e-8, atol=1e-8)
            assert_allclose(slopes.sum(), 1.0, rtol=1e-12)  # a common shift shifts all
            here = row_thresholds(thresholds, RowShape(np.ones(1), one))[0, k]
            assert_allclose(slopes @ thresholds, here, rtol=1e-12, atol=1e-12)  # they are linear


# --- Patterns of gaps --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("t", "expected"), [(1, 0), (2, 0), (3, 1), (4, 2), (5, 3), (6, 3), (20, 3)])
def test_patterns_are_orthogonal_to_each_other_and_to_the_noise(t, expected):
    patterns = gap_patterns(t)
    assert patterns.shape == (expected, t - 1)
    assert_allclose(patterns.sum(axis=1), 0.0, atol=1e-12)
    assert_allclose(patterns @ patterns.T, (t - 1) * np.eye(expected), atol=1e-9)
    assert n_shape_sums("nothing", t) == 0
    assert n_shape_sums("noise", t) == 1
    assert n_shape_sums("thresholds", t) == 1 + expected


@pytest.mark.parametrize("t", [3, 4, 5, 6, 20])
def test_patterns_are_polynomials_that_reversal_mirrors(t):
    place = np.arange(t - 1.0)
    for degree, pattern in enumerate(gap_patterns(t), start=1):
        assert_allclose(np.polyval(np.polyfit(place, pattern, degree), place), pattern, atol=1e-9)
        assert np.polyfit(place, pattern, degree)[0] > 0.1 / (t - 1) ** degree
        assert_allclose(pattern[::-1], (-1) ** degree * pattern, atol=1e-9)
        assert pattern[-1] > 0


def test_first_patterns_by_hand():
    assert_allclose(gap_patterns(3), [[-1.0, 1.0]], atol=1e-12)
    half = np.sqrt(0.5)
    assert_allclose(
        gap_patterns(4), [[-np.sqrt(1.5), 0.0, np.sqrt(1.5)], [half, -2 * half, half]], atol=1e-12
    )


def test_fewer_patterns_are_the_first_ones():
    everything = gap_patterns(7)
    for count in range(4):
        assert_allclose(gap_patterns(7, count), everything[:count], atol=1e-12)
    assert gap_patterns(7, -1).shape == (0, 6)  # without noise, there are no gaps either


# --- Shapes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [1, 2, 3, 4, 6])
def test_the_shape_is_that_of_the_definition(t):
    rng = np.random.default_rng(t)
    n_sums = n_shape_sums("thresholds", t)
    values, weights = rng.normal(size=(4, 30)), rng.normal(size=(n_sums, 4))
    predictors = SATURATION * np.tanh(weights @ values / SATURATION)
    shape = RowShape.of(values, weights, t)
    assert_allclose(shape.noise_scale, np.exp(predictors[0]), rtol=1e-12)
    if n_sums > 1:
        assert_allclose(shape.gap_factors, np.exp(gap_patterns(t).T @ predictors[1:]), rtol=1e-12)
    else:
        assert shape.gap_factors.shape == (0, 30)
    noise_alone = RowShape.of(values, weights[:1], t)
    assert_array_equal(noise_alone.noise_scale, shape.noise_scale)
    assert noise_alone.gap_factors.shape == (0, 30)


def test_a_part_of_a_shape():
    _, shape = example(4)
    part = shape[slice(5, 12)]
    assert_array_equal(part.noise_scale, shape.noise_scale[5:12])
    assert_array_equal(part.gap_factors, shape.gap_factors[:, 5:12])


@pytest.mark.parametrize("x", [-1e300, -300.0, -3.0, -0.1, 0.0, 1e-8, 0.1, 3.0, 300.0, 1e300])
def test_sums_saturate_smoothly(x):
    assert_allclose(saturated(x), SATURATION * np.tanh(x / SATURATION), rtol=1e-12, atol=1e-15)
    assert_allclose(saturated(-x), -saturated(x), rtol=1e-12, atol=1e-15)


def test_extreme_sums_give_finite_shapes():
    values = np.array([[1e300, -1e300, 1e10, 0.0]])
    shape = RowShape.of(values, np.array([[1.0], [-1.0], [1.0], [1.0]]), 6)
    limit = np.exp(SATURATION * np.abs(gap_patterns(6)).sum(axis=0).max()) * (1 + 1e-9)
    for some, highest in ((shape.noise_scale, np.exp(SATURATION) * (1 + 1e-9)), (shape.gap_factors, limit)):
        assert np.all((some >= 1 / highest) & (some <= highest))
    assert_array_equal(shape.gap_factors[:, 3], 1.0)
