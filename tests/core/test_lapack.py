import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor._core import lapack


@pytest.fixture
def matrix():
    root = np.random.default_rng(0).normal(size=(40, 60))
    return np.asfortranarray(root @ root.T)


def test_factor_inverse_and_products(matrix):
    lower = lapack.factorise_lower(matrix.copy(order="F"))
    assert_array_equal(lower, np.tril(lower))
    assert_allclose(lower @ lower.T, matrix, rtol=1e-12)
    right = np.arange(40.0)
    assert_allclose(matrix @ lapack.solve(lower, right), right, atol=1e-10)
    assert_array_equal(right, np.arange(40.0))  # not overwritten
    inverse = lapack.inverse_of_lower(lower)
    assert_allclose(inverse @ lower, np.eye(40), atol=1e-12)
    expected = np.tril(np.linalg.inv(matrix))
    assert_allclose(np.tril(lapack.inverse_from_factor(lower)), expected, rtol=1e-9, atol=1e-14)
    assert_allclose(np.tril(lapack.self_product(inverse)), expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_columns", [0, 1, 7])
def test_whitening(matrix, order, n_columns):
    lower = lapack.factorise_lower(matrix.copy(order="F"))
    right = np.array(np.random.default_rng(1).normal(size=(40, n_columns)), order=order)
    assert_allclose(lower @ lapack.whiten(lower, right.copy(order="K")), right, atol=1e-12)


def test_what_cannot_be_factorised_and_what_lies_in_another_order_is_refused(matrix):
    matrix[20, 20] = -1.0
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite in row 21"):
        lapack.factorise_lower(matrix)
    with pytest.raises(ValueError, match="not contiguous"):
        lapack.factorise_lower(np.eye(3)[:, ::-1])


def test_other_threads_run_meanwhile():
    """A factorisation that takes a second does not hold the interpreter."""
    n = 500
    while True:
        matrix = np.asfortranarray(np.eye(n) + 0.5 / n)
        begin = time.perf_counter()
        lapack.factorise_lower(matrix)
        if time.perf_counter() - begin > 0.1 or n > 4000:
            break
        n *= 2
    matrix, ticks, over = np.asfortranarray(np.eye(n) + 0.5 / n), [], threading.Event()

    def tick():
        while not over.is_set():
            ticks.append(None)
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    time.sleep(0.01)
    before = len(ticks)
    lapack.factorise_lower(matrix)
    during = len(ticks) - before
    over.set()
    thread.join()
    assert during > 3  # if the lock were held, none would come
