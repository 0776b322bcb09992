"""Values of basis functions at rows, and their derivatives, compiled; `isbor.model.basis` defines them."""

import numpy as np

from isbor._core.compiled import compiled
from isbor._core.compiled_maths import exp_double
from isbor._core.types import BoolArray, FloatArray

__all__ = ["function_values", "parameter_gradient", "powers_of", "values_at"]


@compiled
def powers_of(X: FloatArray) -> FloatArray:
    """Return (x², x, 1) of each row, shape (2d + 1, n)."""
    n, d = X.shape
    powers = np.empty((2 * d + 1, n))
    for i in range(n):
        for k in range(d):
            powers[k, i] = X[i, k] * X[i, k]
            powers[d + k, i] = X[i, k]
        powers[2 * d, i] = 1.0
    return powers


@compiled
def values_at(
    centres: FloatArray, metric: FloatArray, ramp: BoolArray, offset: FloatArray, powers: FloatArray
) -> FloatArray:
    """Return the functions, (m, n), at rows given by their powers, in which the arguments are linear."""
    m_all, d = centres.shape
    n = powers.shape[1]
    coefficients = np.zeros((m_all, 2 * d + 1))
    for m in range(m_all):
        constant = 0.0
        for k in range(d):
            tilt = metric[m, k] * centres[m, k]
            if ramp[m]:
                coefficients[m, d + k] = metric[m, k]
                constant -= tilt
            else:
                coefficients[m, k], coefficients[m, d + k] = -metric[m, k], 2.0 * tilt
                constant -= tilt * centres[m, k]
        coefficients[m, 2 * d] = constant
    values: FloatArray = np.dot(coefficients, powers)
    power = np.empty(n)
    exponent = power.view(np.int64)
    for m in range(m_all):
        phi, o = values[m], offset[m]
        if ramp[m]:
            argument = phi.copy()
            for i in range(n):
                phi[i] = -2.0 * abs(argument[i])
            exp_double(phi, exponent, power)
            for i in range(n):
                rising = (1.0 - phi[i]) / (1.0 + phi[i])
                phi[i] = (rising if argument[i] > 0.0 else -rising) - o
        else:
            for i in range(n):  # rounding may make an exponent positive; a bump is at most 1
                phi[i] = min(phi[i], 0.0)
            exp_double(phi, exponent, power)
            for i in range(n):
                phi[i] -= o
    return values


@compiled
def function_values(
    centres: FloatArray, metric: FloatArray, ramp: BoolArray, offset: FloatArray, X: FloatArray
) -> FloatArray:
    """Return the functions at the rows of X, (m, n)."""
    return values_at(centres, metric, ramp, offset, powers_of(X))


@compiled
def parameter_gradient(
    centres: FloatArray, metric: FloatArray, ramp: BoolArray, by_coefficient: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Convert a gradient in the coefficients of the powers, (m, 2d + 1), to centres and metric, (m, d)."""
    m_all, d = centres.shape
    by_centre, by_metric = np.empty((m_all, d)), np.empty((m_all, d))
    for m in range(m_all):
        constant = by_coefficient[m, 2 * d]
        for k in range(d):
            theta, z = metric[m, k], centres[m, k]
            square, linear = by_coefficient[m, k], by_coefficient[m, d + k]
            if ramp[m]:
                by_centre[m, k], by_metric[m, k] = -theta * constant, linear - z * constant
            else:
                by_centre[m, k] = 2.0 * theta * (linear - z * constant)
                by_metric[m, k] = 2.0 * z * linear - square - z * z * constant
    return by_centre, by_metric
