"""The symmetric products of BLAS, for compiled code; Numba itself offers the general product only.

The routines are SciPy's. Compiled code refers to them by names, so that it can be cached.
"""

from typing import Any

import numpy as np
from llvmlite import binding
from numba import types
from numba.extending import get_cython_function_address

from isbor._core.compiled import inner
from isbor._core.types import FloatArray, SingleArray

__all__ = ["add_symmetric_product", "write_symmetric_product"]

for _name in ("dsyrk", "ssyrk"):
    binding.add_symbol(f"isbor_{_name}", get_cython_function_address("scipy.linalg.cython_blas", _name))
# Multiplications up to which OpenBLAS has a faster way for the general product, on matrices as they are.
_SMALL = 1_000_000
_CHAR, _INT = types.CPointer(types.uint8), types.CPointer(types.int32)


def _routine(name: str, number: Any) -> Any:
    """Return the routine for matrices of these numbers."""
    of = types.CPointer(number)
    signature = types.void(_CHAR, _CHAR, _INT, _INT, of, of, _INT, of, of, _INT)
    return types.ExternalFunction(name, signature)


_dsyrk, _ssyrk = _routine("isbor_dsyrk", types.float64), _routine("isbor_ssyrk", types.float32)


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


@inner
def write_symmetric_product(values: SingleArray, to: SingleArray) -> None:
    """Write the inner products of the rows of `values`, (m, n), to the lower triangle of `to`, (m, m).

    Both matrices are contiguous, in single precision.
    """
    m, n = values.shape
    letters = np.array([ord("U"), ord("T")], np.uint8)
    numbers = np.array([m, n], np.int32)
    factors = np.array([1.0, 0.0], np.float32)
    _ssyrk(
        letters[:1].ctypes,
        letters[1:].ctypes,
        numbers[:1].ctypes,
        numbers[1:].ctypes,
        factors[:1].ctypes,
        values.ctypes,
        numbers[1:].ctypes,
        factors[1:].ctypes,
        to.ctypes,
        numbers[:1].ctypes,
    )
