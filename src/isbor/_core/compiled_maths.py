"""Elementary functions, compiled such that loops in which they are called are vectorised.

They have no branches, and multiply and add in one rounding where it says so. A vectorised loop and its
remainder, row by row, therefore give the same bits.
"""

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import types
from numba.extending import intrinsic

from isbor._core.compiled import inner

__all__ = ["exp_double", "exp_single", "fma", "log_double", "tanh_single"]

_WORD: dict[Any, Any] = {types.float64: types.int64, types.float32: types.int32}
_NUMBER: dict[Any, Any] = {word: number for number, word in _WORD.items()}


def _instruction(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an instruction of the processor, of which the function gives the type and the code."""
    return cast(Callable[..., Any], intrinsic(function))


@_instruction
def fma(context: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a·b + c, rounded once."""
    return a(a, a, a), lambda context, builder, signature, arguments: builder.fma(*arguments)


@_instruction
def _bits(context: Any, x: Any) -> Any:
    """Return the bits of a number as an integer."""
    return _WORD[x](x), _reinterpret


@_instruction
def _number(context: Any, bits: Any) -> Any:
    """Return the number that has given bits."""
    return _NUMBER[bits](bits), _reinterpret


def _reinterpret(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))


# Adding 1.5 · 2⁵² (2²³ in single precision) rounds to an integer, which is then in the last bits.
_ROUNDING, _ROUNDING_SINGLE = 1.5 * 2.0**52, np.float32(1.5 * 2.0**23)
_LOG2_E, _LN2_UPPER, _LN2_LOWER = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
# One over the factorials: the exponential series for |r| ≤ ½ ln 2, the highest power first.
_SERIES = np.array([1.0 / math.factorial(k) for k in range(13, -1, -1)])
_SERIES_SINGLE = _SERIES[-8:].astype(np.float32)


@inner
def exp_double(x: float) -> float:
    """Return exp(x) for nonpositive x, to a relative error of 3e-16; below e⁻⁷⁰⁸, about that."""
    a = max(x, -708.0)
    rounded = fma(a, _LOG2_E, _ROUNDING)
    n = rounded - _ROUNDING
    r = fma(-n, _LN2_LOWER, fma(-n, _LN2_UPPER, a))
    p: float = _SERIES[0]
    for k in range(1, 14):
        p = fma(p, r, _SERIES[k])
    power: float = _number((_bits(rounded) + 1023) << 52)
    return p * power


_MANTISSA, _ONE_BITS = (1 << 52) - 1, 1023 << 52
_LN2, _ROOT_2 = 0.6931471805599453, 1.4142135623730951


@inner
def log_double(x: float) -> float:
    """Return ln(x) for positive x, to an error of 2e-16 times the larger of 1 and |ln x|."""
    bits = _bits(x)
    fraction = _number((bits & _MANTISSA) | _ONE_BITS)
    above = fraction > _ROOT_2
    mantissa = 0.5 * fraction if above else fraction  # between √½ and √2
    octaves = float((bits >> 52) - 1023) + (1.0 if above else 0.0)
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square = ratio * ratio
    p = 1.0 / 21.0  # ln m = 2 artanh((m - 1)/(m + 1)), by its series
    for k in range(19, 0, -2):
        p = fma(p, square, 1.0 / k)
    logarithm: float = fma(octaves, _LN2, 2.0 * ratio * p)
    return logarithm


_ONE, _TWO = np.float32(1.0), np.float32(2.0)


@inner
def exp_single(x: np.float32) -> np.float32:
    """Return exp(x) for nonpositive x, to a relative error of 3e-7; below e⁻⁸⁷, about that."""
    a = max(x, np.float32(-87.0))
    rounded = fma(a, np.float32(_LOG2_E), _ROUNDING_SINGLE)
    n = rounded - _ROUNDING_SINGLE
    r = fma(-n, np.float32(-2.12194440e-4), fma(-n, np.float32(0.693359375), a))
    p: np.float32 = _SERIES_SINGLE[0]
    for k in range(1, 8):
        p = fma(p, r, _SERIES_SINGLE[k])
    power: np.float32 = _number(np.int32((_bits(rounded) + 127) << 23))
    return p * power


# Up to |x| = 0.625, tanh(x) is x plus x times this polynomial in x², from Cephes, the highest power first.
_NEAR = np.float32(0.625)
_TANH = np.array(
    [-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1], np.float32
)


@inner
def tanh_single(x: np.float32) -> np.float32:
    """Return tanh(x), to a relative error of 2e-7."""
    fall = exp_single(-_TWO * abs(x))
    far = (_ONE - fall) / (_ONE + fall)  # near zero, the difference would lose digits
    square = x * x
    rest: np.float32 = _TANH[0]
    for k in range(1, 5):
        rest = fma(rest, square, _TANH[k])
    near: np.float32 = fma(x, square * rest, x)
    return near if abs(x) < _NEAR else (far if x > np.float32(0.0) else -far)
