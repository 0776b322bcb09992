from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor.model.basis import (
    Functions,
    RowDictionary,
    adaptive_cost,
    bumps_and_ramps,
    column_costs,
    monomials,
)
from isbor.model.compiled_basis import parameter_gradient
from tests.oracles import dense
from tests.problems import small_rows

RAMP = np.arange(6) >= 3


@pytest.fixture(scope="module")
def functions():
    """Three bumps and three ramps, some of one feature only."""
    rng = np.random.default_rng(0)
    metric = rng.uniform(0.2, 2.0, size=(6, 2))
    metric[RAMP] *= [[-1.0, 1.0], [1.0, 1.0], [1.0, -1.0]]
    metric[0, 1] = metric[4, 0] = 0.0
    return Functions(rng.normal(size=(6, 2)), metric, RAMP, rng.normal(size=6), np.arange(6), np.ones(6))


X = np.random.default_rng(1).normal(size=(40, 2))


def test_values_are_their_formula(functions):
    values = functions(X)
    for m in range(6):
        away = X - functions.centres[m]
        if RAMP[m]:
            expected = np.tanh(away @ functions.metric[m])
        else:
            expected = np.exp(-(away**2) @ functions.metric[m])
        assert_allclose(values[:, m], expected - functions.offset[m], atol=1e-14)
    single = functions.at(monomials(X).astype(np.float32))
    assert single.dtype == np.float32
    assert_allclose(single.T - functions.offset, values, atol=1e-5)


def test_slopes_are_derivatives_in_the_arguments(functions):
    arguments = functions.coefficients() @ monomials(X)
    h = 1e-6
    up, down = (bumps_and_ramps(arguments + step, RAMP) for step in (h, -h))
    inside = arguments < -h  # a bump has no argument above zero
    numeric = (up - down) / (2 * h)
    slopes = functions.slopes(functions.at(monomials(X)))
    assert_allclose(slopes[RAMP], numeric[RAMP], atol=1e-9)
    assert_allclose(slopes[inside], numeric[inside], atol=1e-9)


@pytest.mark.parametrize("name", ["centres", "metric"])
def test_parameter_gradient(functions, name):
    """Of a weighted sum of all values, by central differences."""
    weight = np.random.default_rng(2).normal(size=(6, 40))
    powers = monomials(X)
    by_argument = weight * functions.slopes(functions.at(powers))
    described = functions.centres, functions.metric, functions.ramp
    gradient = dict(
        zip(("centres", "metric"), parameter_gradient(*described, by_argument @ powers.T), strict=True)
    )

    def total(parameters):
        moved = replace(functions, **{name: parameters.reshape(6, 2)})
        return (weight * moved.at(powers)).sum()

    numeric = dense.gradient(total, getattr(functions, name).ravel())
    assert_allclose(gradient[name].ravel(), numeric, rtol=1e-7, atol=1e-7)


def test_offsets_are_weighted_means_over_a_sample_of_the_rows(functions):
    rows = small_rows(n=1500)
    centred = functions.centred_on(rows)
    sample = rows.head(1000)
    assert_allclose(sample.weight @ centred(sample.X), 0.0, atol=1e-10)
    assert_allclose(centred(X) + centred.offset, functions(X) + functions.offset, atol=1e-14)


def test_a_bump_is_at_most_one_whatever_the_rounding():
    rng = np.random.default_rng(0)
    z = 1e6 + 1e-3 * rng.normal(size=(20, 3))
    m = len(z)
    bumps = Functions(z, np.ones((m, 3)), np.zeros(m, bool), np.zeros(m), np.arange(m), np.ones(m))
    assert (bumps.coefficients() @ monomials(z)).max() > 1e-6  # rounding alone: no exponent is positive
    assert bumps.at(monomials(z)).max() <= 1.0


def test_some_functions_and_then_others(functions):
    some = functions.take(np.array([4, 1])).followed_by(functions.take(RAMP))
    assert_array_equal(some(X), functions(X)[:, [4, 1, 3, 4, 5]])
    assert_array_equal(some.origin, [4, 1, 3, 4, 5])


def test_embedded_functions_see_their_columns_at_other_places(functions):
    wide = np.random.default_rng(3).normal(size=(40, 5))
    wide[:, [3, 0]] = X
    embedded = functions.embedded(np.array([0, 1]), np.array([3, 0]), 5)
    assert_allclose(embedded(wide), functions(X), atol=1e-14)


def test_a_feature_adds_its_cost_to_an_adaptive_function():
    rows = small_rows(d=3)
    rows = replace(rows, X=np.column_stack([rows.X[:, :2], rows.X[:, 2] > 0]))
    assert_array_equal(column_costs(rows), [1.0, 1.0, 0.25])
    metric = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, -2.0], [1.0, 1.0, 1.0]])
    assert_array_equal(adaptive_cost(metric, column_costs(rows)), [2.0, 2.25, 3.25])


# --- Rows as centres ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.7, np.array([0.7, 0.1])], ids=["one width", "scales"])
def test_functions_are_centred_gaussians_of_the_rows(gamma):
    rows = small_rows()
    chosen = np.array([3, 0, 17])
    basis = RowDictionary(rows, gamma).basis(chosen)
    kernel = np.exp(-((rows.X[:, None] - rows.X[chosen]) ** 2 * gamma).sum(axis=2))
    assert_allclose(basis.at(monomials(rows.X)).T, kernel, rtol=1e-12)
    assert_allclose(basis(rows.X), kernel - np.average(kernel, axis=0, weights=rows.weight), atol=1e-12)
    assert_array_equal(basis.origin, chosen)


def test_very_wide_functions_keep_their_digits():
    """A nearly constant column, centred, is accurate relative to its own small spread."""
    rows = small_rows()
    gamma = 1e-6
    basis = RowDictionary(rows, gamma).basis(np.arange(5))
    squares = ((rows.X[:, None] - rows.X[:5]) ** 2).sum(axis=2)
    kernel = np.expm1(-gamma * squares)
    exact = kernel - np.average(kernel, axis=0, weights=rows.weight)
    assert_allclose(basis(rows.X), exact, atol=1e-9 * np.abs(exact).max())


def test_slopes_of_a_sum_are_its_derivatives():
    rng = np.random.default_rng(0)
    m, d = 7, 3
    metric = rng.uniform(0.1, 1.0, (m, d)) * (rng.random((m, d)) < 0.7)
    ramp = np.arange(m) % 2 == 1
    functions = Functions(rng.normal(size=(m, d)), metric, ramp, rng.normal(size=m), np.arange(m), np.ones(m))
    weights, X, h = rng.normal(size=m), rng.normal(size=(20, d)), 1e-6
    numeric = [(functions(X + h * e) - functions(X - h * e)) @ weights / (2 * h) for e in np.eye(d)]
    assert_allclose(functions.slopes_of_sum(weights, X), np.transpose(numeric), rtol=1e-6, atol=1e-8)
