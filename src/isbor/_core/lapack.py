"""Routines of BLAS and LAPACK that release the interpreter lock.

SciPy's wrappers hold it, so that other threads of a fit wait for each matrix. These are the same routines,
called by their addresses. Matrices are in the order of Fortran: columns are contiguous.
"""

import ctypes
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address

from isbor._core.types import FloatArray

__all__ = ["factorise_lower", "inverse_from_factor", "inverse_of_lower", "self_product", "solve", "whiten"]

_LETTERS = {letter: ctypes.c_char_p(letter.encode()) for letter in "LNT"}


def _routine(module: str, name: str, n_arguments: int) -> Any:
    address = get_cython_function_address(f"scipy.linalg.{module}", name)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(address)


_dpotrf = _routine("cython_lapack", "dpotrf", 5)
_dpotri = _routine("cython_lapack", "dpotri", 5)
_dpotrs = _routine("cython_lapack", "dpotrs", 8)
_dlauum = _routine("cython_lapack", "dlauum", 5)
_dtrtri = _routine("cython_lapack", "dtrtri", 6)
_dtrsm = _routine("cython_blas", "dtrsm", 11)


def factorise_lower(matrix: FloatArray) -> FloatArray:
    """Replace a matrix, (n, n), by its lower Cholesky factor, with zeros above, and return it.

    Only the lower triangle is read. Raises LinAlgError unless it is positive definite.
    """
    n = len(matrix)
    _call(_dpotrf, "L", n, matrix, n)
    np.copyto(matrix, 0.0, where=~np.tri(n, dtype=np.bool_))
    return matrix


def solve(lower: FloatArray, right: FloatArray) -> FloatArray:
    """Return (LLᵀ)⁻¹ · right for a vector."""
    n, solution = len(lower), right.copy()
    _call(_dpotrs, "L", n, 1, lower, n, solution, n)
    return solution


def whiten(lower: FloatArray, right: FloatArray) -> FloatArray:
    """Return L⁻¹ · right for a matrix, (n, k), which is overwritten if its columns are contiguous."""
    right = np.asfortranarray(right)
    n, k = right.shape
    _dtrsm(*map(_pointer, ("L", "L", "N", "N", n, k, 1.0, lower, n, right, n)))
    return right


def inverse_of_lower(lower: FloatArray) -> FloatArray:
    """Return L⁻¹, with the upper triangle of L."""
    n, inverse = len(lower), lower.copy(order="F")
    _call(_dtrtri, "L", "N", n, inverse, n)
    return inverse


def inverse_from_factor(lower: FloatArray) -> FloatArray:
    """Return the lower triangle of (LLᵀ)⁻¹, with the upper triangle of L."""
    n, inverse = len(lower), lower.copy(order="F")
    _call(_dpotri, "L", n, inverse, n)
    return inverse


def self_product(lower: FloatArray) -> FloatArray:
    """Replace the lower triangle of L by that of LᵀL, and return the matrix."""
    n = len(lower)
    _call(_dlauum, "L", n, lower, n)
    return lower


def _call(routine: Any, *arguments: str | int | FloatArray) -> None:
    """Call a routine of LAPACK; raise LinAlgError if it reports a failure."""
    info = ctypes.c_int(0)
    routine(*map(_pointer, arguments), ctypes.byref(info))
    if info.value:
        raise np.linalg.LinAlgError(f"The matrix is singular or not positive definite in row {info.value}.")


def _pointer(argument: str | float | FloatArray) -> Any:
    """Return the address of an argument."""
    if isinstance(argument, str):
        return _LETTERS[argument]
    if isinstance(argument, int):
        return ctypes.byref(ctypes.c_int(argument))
    if isinstance(argument, float):
        return ctypes.byref(ctypes.c_double(argument))
    if not argument.flags.f_contiguous:
        raise ValueError("The columns of the matrix are not contiguous.")
    return argument.ctypes.data_as(ctypes.c_void_p)
