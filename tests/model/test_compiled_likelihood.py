"""The compiled likelihood against the NumPy one, which is tested against exact values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor._core.compiled_maths import exp_double, exp_single, log_double, tanh_single
from isbor.model.compiled_likelihood import new_terms, probit_terms
from isbor.model.likelihood import ordinal_probit

N = 20_000


def terms_of(f, low, high):
    terms = new_terms(len(f))
    probit_terms(high - f, low - f, high - low, terms)
    return terms


@pytest.mark.parametrize("kind", ["between", "lowest", "highest"])
@pytest.mark.parametrize("reach", [3.0, 1000.0])
def test_it_is_the_likelihood(kind, reach):
    rng = np.random.default_rng(0)
    f = rng.uniform(-reach, reach, N)
    low = rng.normal(size=N)
    high = low + 10.0 ** rng.uniform(-6, 1.5, N)
    if kind == "lowest":
        low = np.full(N, -np.inf)
    if kind == "highest":
        high = np.full(N, np.inf)
    found, expected = terms_of(f, low, high), ordinal_probit(f, low, high)
    assert_allclose(found.log_p, expected.log_p, rtol=1e-9, atol=1e-15)
    assert_allclose(found.mean, expected.slope, rtol=1e-9, atol=1e-12)
    for name in ("upper", "lower", "upper_curvature", "lower_curvature"):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-8, atol=1e-11, err_msg=name)


def test_what_is_left_of_a_certain_class_is_not_lost():
    """ln p of rows that are almost certain is tiny, but not zero."""
    f = np.array([9.0, 12.0, 30.0])
    found = terms_of(f, np.zeros(3), np.full(3, np.inf)).log_p
    assert_allclose(found, ordinal_probit(f, np.zeros(3), np.full(3, np.inf)).log_p, rtol=1e-12)
    assert np.all(found < 0)


def test_elementary_functions():
    x = -(10.0 ** np.random.default_rng(0).uniform(-8, 2.8, N))
    found = np.array([exp_double(value) for value in x])
    assert_allclose(found, np.exp(x), rtol=4e-16)
    logarithms = np.array([log_double(value) for value in found])
    assert_allclose(logarithms, np.log(found), rtol=4e-16, atol=2e-16)


def test_elementary_functions_in_single_precision():
    x = np.linspace(-100.0, 0.0, 4001).astype(np.float32)
    found = np.array([exp_single(value) for value in x])
    assert_array_equal(found, found.astype(np.float32))
    assert_allclose(found, np.exp(np.maximum(x, -87.0).astype(float)), rtol=4e-7)
    size = np.geomspace(1e-30, 20.0, 3001)
    x = np.concatenate([-size, [0.0], size]).astype(np.float32)
    found = np.array([tanh_single(value) for value in x])
    assert_array_equal(found, found.astype(np.float32))
    assert_allclose(found, np.tanh(x.astype(float)), rtol=2e-7)


@pytest.mark.parametrize("n", [1, 7, 255, 256, 259])
def test_a_row_alone_has_the_same_bits_as_among_others(n):
    """Loops over rows are vectorised but for the last few rows."""
    rng = np.random.default_rng(n)
    f, low = rng.normal(size=n) * 3, rng.normal(size=n)
    high = low + 10.0 ** rng.uniform(-3, 1, n)
    together = terms_of(f, low, high)
    for i in {0, n // 2, n - 1}:
        alone = terms_of(f[i : i + 1], low[i : i + 1], high[i : i + 1])
        for one, all_rows in zip(alone, together, strict=True):
            assert one[0] == all_rows[i]
