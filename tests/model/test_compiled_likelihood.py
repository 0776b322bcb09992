"""The compiled likelihood against the NumPy one, which is tested against exact values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isbor._core import compiled_maths
from isbor.model import compiled_likelihood
from isbor.model.compiled_likelihood import new_terms
from isbor.model.likelihood import ordinal_probit
from tests.compiled import callable_from_python

exp_double = callable_from_python(compiled_maths.exp_double)
log_double = callable_from_python(compiled_maths.log_double)
probit_terms = callable_from_python(compiled_likelihood.probit_terms)

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
    scratch = np.empty(N)
    found = x.copy()
    exp_double(found, scratch.view(np.int64), scratch)
    assert_allclose(found, np.exp(x), rtol=4e-16)
    logarithms = found.copy()
    log_double(logarithms, scratch.view(np.int64), scratch)
    assert_allclose(logarithms, np.log(found), rtol=4e-16, atol=2e-16)
