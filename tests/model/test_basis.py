import numpy as np
from numpy.testing import assert_allclose

from isbor.model.basis import RowDictionary, monomials
from tests.problems import small_rows


def test_functions_are_centred_gaussians_of_the_rows():
    rows = small_rows()
    chosen = np.array([3, 0, 17])
    basis = RowDictionary(rows, 0.7).basis(chosen)
    squares = ((rows.X[:, None] - rows.X[chosen]) ** 2).sum(axis=2)
    kernel = np.exp(-0.7 * squares)
    assert_allclose(basis.at(monomials(rows.X)).T, kernel, rtol=1e-12)
    assert_allclose(basis(rows.X), kernel - np.average(kernel, axis=0, weights=rows.weight), atol=1e-12)


def test_very_wide_functions_keep_their_digits():
    """A nearly constant column, centred, is accurate relative to its own small spread."""
    rows = small_rows()
    gamma = 1e-6
    basis = RowDictionary(rows, gamma).basis(np.arange(5))
    squares = ((rows.X[:, None] - rows.X[:5]) ** 2).sum(axis=2)
    kernel = np.expm1(-gamma * squares)
    exact = kernel - np.average(kernel, axis=0, weights=rows.weight)
    assert_allclose(basis(rows.X), exact, atol=1e-9 * np.abs(exact).max())
