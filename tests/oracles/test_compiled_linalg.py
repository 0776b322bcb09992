"""The compiled Cholesky factors against those of `isbor._core.linalg`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from isbor._core.compiled_linalg import cholesky, inverse, log_determinant, solve, whitening
from isbor._core.linalg import UnresolvedError, factorise

ROUNDING = 1e-10  # relative


def factors_of(matrix):
    lower, scale = np.empty_like(matrix), np.empty(len(matrix))
    return cholesky(matrix, lower, scale), lower, scale


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 30))
def test_factors_of_badly_scaled_matrices(seed, n):
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(-9, 9, n)
    half = rng.normal(size=(n, 2 * n + 5))
    matrix = half @ half.T * sizes * sizes[:, None]
    expected = factorise(matrix)
    positive, lower, scale = factors_of(matrix)
    assert positive
    assert_allclose(scale, expected.scale, rtol=1e-14)
    assert_allclose(np.tril(lower), np.tril(expected.lower), rtol=ROUNDING, atol=ROUNDING)
    right = rng.normal(size=n) * sizes
    assert_allclose(
        solve(lower, scale, right) * sizes, expected.solve(right) * sizes, rtol=ROUNDING, atol=ROUNDING
    )
    root = whitening(lower, scale)
    assert_array_equal(root, np.tril(root))
    assert_allclose(root * sizes, expected.whitening() * sizes, rtol=ROUNDING, atol=ROUNDING)
    room = np.full((n + 1, n + 2), 7.0)
    inverse(root, room)
    found = room[:n, :n] * sizes * sizes[:, None]
    assert_allclose(found, expected.inverse() * sizes * sizes[:, None], rtol=ROUNDING, atol=ROUNDING)
    assert_array_equal(room[:n, :n], room[:n, :n].T)
    assert np.all(room[n:] == 7.0) and np.all(room[:, n:] == 7.0)
    assert_allclose(log_determinant(lower, scale), expected.log_determinant, rtol=ROUNDING, atol=ROUNDING)


def test_a_factor_may_replace_its_matrix():
    matrix = np.array([[4.0, np.nan], [2.0, 5.0]])  # above the diagonal nothing is read
    scale = np.empty(2)
    assert cholesky(matrix, matrix, scale)
    assert_allclose(solve(matrix, scale, np.array([8.0, 12.0])), [1.0, 2.0])


def test_nothing_has_an_empty_factor():
    positive, lower, scale = factors_of(np.zeros((0, 0)))
    assert positive
    assert solve(lower, scale, np.zeros(0)).shape == (0,)
    assert whitening(lower, scale).shape == (0, 0)
    assert log_determinant(lower, scale) == 0.0


@pytest.mark.parametrize(
    "matrix",
    [
        np.ones((3, 3)),
        np.diag([1.0, 0.0]),
        np.diag([1.0, -1.0]),
        np.diag([1.0, np.nan]),
        np.diag([1.0, np.inf]),
        np.array([[1.0, 2.0], [2.0, 1.0]]),
        np.array([[1.0, np.nan], [np.nan, 1.0]]),
        np.array([[1.0, np.inf], [np.inf, 1.0]]),
    ],
    ids=["collinear", "zero", "negative", "nan", "infinite", "indefinite", "nan beside", "infinite beside"],
)
def test_matrices_without_a_factor(matrix):
    assert not factors_of(matrix)[0]
    if np.isfinite(matrix).all():  # of others, LAPACK says nothing
        with pytest.raises(UnresolvedError, match="singular|no curvature"):
            factorise(matrix)


def test_a_large_matrix_is_factorised_in_panels():
    half = np.random.default_rng(0).normal(size=(150, 170))
    matrix = half @ half.T
    resolved, lower, scale = factors_of(matrix)
    expected = factorise(matrix)
    assert resolved
    assert_allclose(np.tril(lower), np.tril(expected.lower), rtol=ROUNDING, atol=ROUNDING)
    assert_allclose(scale, expected.scale)
    lower[:] = matrix  # in place
    assert cholesky(lower, lower, scale)
    assert_allclose(np.tril(lower), np.tril(expected.lower), rtol=ROUNDING, atol=ROUNDING)
