import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers
from numpy.testing import assert_allclose, assert_array_equal

from isbor._core.linalg import UnresolvedError, add_diagonal, factorise

SIZES = 10.0 ** np.arange(-9, 9, 3)  # of the rows and columns of a badly scaled matrix


def positive_definite(seed):
    A = np.random.default_rng(seed).normal(size=(6, 6))
    return A @ A.T + np.eye(6)


@given(seed=integers(0, 1000))
def test_scales_do_not_matter(seed):
    core = positive_definite(seed)
    factor = factorise(core * SIZES * SIZES[:, None])
    inverse = np.linalg.inv(core)
    right = np.random.default_rng(seed + 1).normal(size=(6, 2))
    expected = inverse @ (right / SIZES[:, None]) / SIZES[:, None]
    assert_allclose(factor.solve(right) * SIZES[:, None], expected * SIZES[:, None], rtol=1e-9)
    assert_array_equal(factor.solve(right[:, 0]), factor.solve(right)[:, 0])
    assert_allclose(factor.inverse() * SIZES * SIZES[:, None], inverse, rtol=1e-9, atol=1e-12)
    assert_allclose(factor.log_determinant, np.linalg.slogdet(core)[1] + 2 * np.log(SIZES).sum())


@given(seed=integers(0, 1000))
def test_whitening_is_a_root_of_the_inverse(seed):
    core = positive_definite(seed)
    root = factorise(core).whitening()
    assert_array_equal(root, np.tril(root))
    assert_allclose(root.T @ root, np.linalg.inv(core), rtol=1e-9, atol=1e-12)
    scaled = factorise(core * SIZES * SIZES[:, None]).whitening()
    assert_allclose(scaled * SIZES, root, rtol=1e-12, atol=1e-14)


def test_nothing_has_an_empty_root():
    assert factorise(np.zeros((0, 0))).whitening().shape == (0, 0)


def test_singular_matrices_are_refused():
    with pytest.raises(UnresolvedError, match="singular"):
        factorise(np.ones((3, 3)))
    for diagonal in ([1.0, 0.0], [1.0, -1.0], [1.0, np.nan]):
        with pytest.raises(UnresolvedError, match="no curvature"):
            factorise(np.diag(diagonal))


def test_a_sum_with_a_diagonal_is_a_new_matrix():
    matrix = np.ones((2, 2))
    assert_array_equal(add_diagonal(matrix, np.array([1.0, 2.0])), [[2.0, 1.0], [1.0, 3.0]])
    assert_array_equal(matrix, 1.0)
