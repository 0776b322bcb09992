"""The symmetric product of BLAS, for compiled code; Numba itself offers the general product only.

The routine is SciPy's. Compiled code refers to it by a name, so that it can be cached.
"""

from typing import Any

import numpy as np
from llvmlite import binding
from numba import types
from numba.extending import get_cython_function_address

from isbor._core.compiled import inner
from isbor._core.types import FloatArray

__all__ = ["add_symmetric_product"]

binding.add_symbol("isbor_dsyrk", get_cython_function_address("scipy.linalg.cython_blas", "dsyrk"))
# Multiplications up to which OpenBLAS has a faster way for the general product, on matrices as they are.
_SMALL = 1_000_000
_CHAR, _INT, _DOUBLE = (types.CPointer(of) for of in (types.uint8, types.int32, types.float64))
_dsyrk: Any = types.ExternalFunction(
    "isbor_dsyrk",
    types.void(_CHAR, _CHAR, _INT, _INT, _DOUBLE, _DOUBLE, _INT, _DOUBLE, _DOUBLE, _INT),
)


@inner
def add_symmetric_product(values: FloatArray, to: FloatArray) -> None:
    """Add the inner products of the rows of `values`, (m, n), to the lower triangle of the first m columns.

    Both matrices are contiguous, and `to` has at least m rows and columns.
    """
    m, n = values.shape
    if m * m * n <= _SMALL:
        products = np.dot(values, values.T)
        for i in range(m):
            for j in range(i + 1):
                to[i, j] += products[i, j]
        return
    # For Fortran, in which columns come first, the lower triangle is the upper one.
    letters = np.array([ord("U"), ord("T")], np.uint8)
    numbers = np.array([m, n, to.shape[1]], np.int32)
    one = np.ones(1)
    _dsyrk(
        letters[:1].ctypes,
        letters[1:].ctypes,
        numbers[:1].ctypes,
        numbers[1:].ctypes,
        one.ctypes,
        values.ctypes,
        numbers[1:].ctypes,
        one.ctypes,
        to.ctypes,
        numbers[2:].ctypes,
    )
