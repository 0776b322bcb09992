"""Elementary functions of many numbers, compiled such that they are vectorised."""

import numpy as np
from numpy.typing import NDArray

from isbor._core.compiled import inner, inner_sums
from isbor._core.types import FloatArray, SingleArray

__all__ = ["exp", "exp_double", "log_double", "tanh"]

_LOG2_E, _LN2_HIGH, _LN2_LOW = np.float32(1.44269504), np.float32(0.693359375), np.float32(-2.12194440e-4)
_ZERO, _ONE, _TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)
# Up to |x| = 0.625, tanh(x) is x plus x times this polynomial in x², from Cephes, the highest power first.
_NEAR = np.float32(0.625)
_TANH = np.array(
    [-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1], np.float32
)


@inner_sums
def exp(x: SingleArray, exponent: NDArray[np.int32], power: SingleArray) -> None:
    """Replace nonpositive x by exp(x). `exponent` and `power` are views of the same scratch memory."""
    for i in range(len(x)):
        a = max(x[i], np.float32(-87.0))
        n = np.floor(a * _LOG2_E + np.float32(0.5))
        r = a - n * _LN2_HIGH - n * _LN2_LOW
        p = _ONE  # the exponential series to the seventh power of r, |r| ≤ ½ ln 2
        for k in range(7, 0, -1):
            p = _ONE + p * r * np.float32(1.0 / k)
        x[i] = p
        exponent[i] = (np.int32(n) + np.int32(127)) << np.int32(23)
    for i in range(len(x)):
        x[i] *= power[i]


@inner_sums
def tanh(x: SingleArray, exponent: NDArray[np.int32], power: SingleArray) -> None:
    """Replace x by tanh(x), to a relative error of 2e-7. The scratch memory is that of `exp`."""
    before = x.copy()
    for i in range(len(x)):
        x[i] = -_TWO * abs(x[i])
    exp(x, exponent, power)
    for i in range(len(x)):
        a = before[i]
        far = (_ONE - x[i]) / (_ONE + x[i])  # near zero, the difference would lose digits
        near = _ZERO
        for k in range(len(_TANH)):
            near = (near + _TANH[k]) * a * a
        x[i] = a + a * near if abs(a) < _NEAR else (far if a > _ZERO else -far)


# Adding this number, 1.5 · 2⁵², rounds to an integer, which is then in the last bits.
_ROUNDING = 6755399441055744.0
_LN2_UPPER, _LN2_LOWER = 0.6931471803691238, 1.9082149292705877e-10


@inner
def exp_double(x: FloatArray, exponent: NDArray[np.int64], power: FloatArray) -> None:
    """Replace nonpositive x by exp(x), to a relative error of 3e-16; below e⁻⁷⁰⁸, by about that.

    `exponent` and `power` are views of the same scratch memory. Not for functions that are `compiled_sums`.
    """
    for i in range(len(x)):
        a = max(x[i], -708.0)
        rounded = a * 1.4426950408889634 + _ROUNDING
        n = rounded - _ROUNDING
        r = (a - n * _LN2_UPPER) - n * _LN2_LOWER
        p = 1.0  # the exponential series to the thirteenth power of r, |r| ≤ ½ ln 2
        for k in range(13, 0, -1):
            p = 1.0 + p * r * (1.0 / k)
        x[i] = p
        power[i] = rounded
    for i in range(len(x)):
        exponent[i] = (exponent[i] + 1023) << 52
    for i in range(len(x)):
        x[i] *= power[i]


_MANTISSA, _ONE_BITS = (1 << 52) - 1, 1023 << 52
_LN2, _ROOT_2 = 0.6931471805599453, 1.4142135623730951


@inner
def log_double(x: FloatArray, exponent: NDArray[np.int64], power: FloatArray) -> None:
    """Replace positive x by ln(x), to an error of 2e-16 times the larger of 1 and |ln x|.

    `exponent` and `power` are views of the same scratch memory. Not for functions that are `compiled_sums`.
    """
    n = len(x)
    for i in range(n):
        power[i] = x[i]
    for i in range(n):
        x[i] = (exponent[i] >> 52) - 1023
        exponent[i] = (exponent[i] & _MANTISSA) | _ONE_BITS
    for i in range(n):
        above = power[i] > _ROOT_2
        mantissa = 0.5 * power[i] if above else power[i]  # between √½ and √2
        octaves = x[i] + 1.0 if above else x[i]
        ratio = (mantissa - 1.0) / (mantissa + 1.0)
        square = ratio * ratio
        p = 1.0 / 21.0  # ln m = 2 artanh((m - 1)/(m + 1)), by its series
        for k in range(19, 0, -2):
            p = p * square + 1.0 / k
        x[i] = octaves * _LN2 + 2.0 * ratio * p
