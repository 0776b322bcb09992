"""The symmetric products against NumPy's, for small matrices and for those that BLAS gets."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor._core.compiled_blas import add_symmetric_product, write_symmetric_product


@pytest.mark.parametrize(("m", "n"), [(0, 5), (3, 0), (1, 7), (20, 300), (70, 1500), (130, 90)])
@pytest.mark.parametrize("room", [0, 4])
def test_inner_products_are_added_to_the_lower_triangle(m, n, room):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(m, n))
    before = rng.normal(size=(m + room, m + room))
    found = before.copy()
    add_symmetric_product(values, found)
    lower = np.tril_indices(m)
    assert_allclose(found[:m, :m][lower], (before[:m, :m] + values @ values.T)[lower], rtol=1e-12, atol=1e-12)
    found[:m, :m][lower] = before[:m, :m][lower]
    assert_array_equal(found, before)  # nothing else has changed


@pytest.mark.parametrize(("m", "n"), [(1, 7), (20, 300), (130, 90)])
def test_inner_products_in_single_precision_are_written_to_the_lower_triangle(m, n):
    values = np.random.default_rng(0).normal(size=(m, n)).astype(np.float32)
    found = np.full((m, m), np.nan, np.float32)
    write_symmetric_product(values, found)
    lower = np.tril_indices(m)
    assert_allclose(found[lower], (values.astype(float) @ values.T)[lower], atol=1e-5 * n)
