"""Values of basis functions at rows, and their derivatives, compiled; `isbor.model.basis` defines them."""

import numpy as np

from isbor._core.compiled import compiled, compiled_sums, inner
from isbor._core.compiled_maths import exp_double
from isbor._core.types import BoolArray, FloatArray, IntArray

__all__ = ["function_values", "mean_squared_change", "parameter_gradient", "powers_of", "values_at"]

_COLUMN_COST = 3  # time for one column of one function, relative to that for one term of a matrix product
_FEW_COLUMNS = 3  # up to this many columns, products of powers are as fast for functions of one metric
_ROWS = 256  # evaluated together


@inner
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


@inner
def values_at(
    centres: FloatArray, metric: FloatArray, ramp: BoolArray, offset: FloatArray, powers: FloatArray
) -> FloatArray:
    """Return the functions, (m, n), at rows given by their powers, in which the arguments are linear."""
    m_all, d = centres.shape
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
    _apply(values, ramp, offset)
    return values


@inner
def _apply(values: FloatArray, ramp: BoolArray, offset: FloatArray) -> None:
    """Turn the arguments of functions, (m, n), into their values."""
    for m in range(len(values)):
        phi, o = values[m], offset[m]
        if ramp[m]:
            for i in range(len(phi)):
                fall = exp_double(-2.0 * abs(phi[i]))
                rising = (1.0 - fall) / (1.0 + fall)
                phi[i] = (rising if phi[i] > 0.0 else -rising) - o
        else:
            for i in range(len(phi)):  # rounding may make an exponent positive; a bump is at most 1
                phi[i] = exp_double(min(phi[i], 0.0)) - o


@inner
def _have_one_metric(metric: FloatArray, ramp: BoolArray) -> bool:
    """Return whether the functions are bumps of the same metric."""
    m_all, d = metric.shape
    for m in range(m_all):
        if ramp[m]:
            return False
        for k in range(d):
            if metric[m, k] != metric[0, k]:
                return False
    return bool(m_all)


@inner
def _values_with_one_metric(
    centres: FloatArray, metric: FloatArray, offset: FloatArray, X: FloatArray
) -> FloatArray:
    """Return bumps of the metric θ, (d,), at the rows of X: the arguments are 2 zᵀΘx - zᵀΘz - xᵀΘx."""
    m_all, d = centres.shape
    tilt, height = np.empty((m_all, d)), np.zeros(m_all)
    for m in range(m_all):
        for k in range(d):
            tilt[m, k] = 2.0 * metric[k] * centres[m, k]
            height[m] -= metric[k] * centres[m, k] * centres[m, k]
    length = np.zeros(len(X))
    for i in range(len(X)):
        for k in range(d):
            length[i] += metric[k] * X[i, k] * X[i, k]
    values: FloatArray = np.dot(tilt, X.T)
    for m in range(m_all):
        phi = values[m]
        for i in range(len(phi)):
            phi[i] += height[m] - length[i]
    _apply(values, np.zeros(m_all, np.bool_), offset)
    return values


@compiled
def function_values(
    centres: FloatArray, metric: FloatArray, ramp: BoolArray, offset: FloatArray, X: FloatArray
) -> FloatArray:
    """Return the functions at the rows of X, (m, n).

    Functions of a few of many columns are evaluated column by column, others by a matrix product.
    """
    m_all, d = centres.shape
    n = len(X)
    if d > _FEW_COLUMNS and _have_one_metric(metric, ramp):
        return _values_with_one_metric(centres, metric[0], offset, X)
    first, column = np.zeros(m_all + 1, np.intp), np.empty(m_all * d, np.intp)  # the columns of each function
    place, n_columns = np.full(d, -1), 0  # the columns of all functions are numbered
    for m in range(m_all):
        end = first[m]
        for k in range(d):
            if metric[m, k] != 0.0:
                column[end] = k
                end += 1
                if place[k] < 0:
                    place[k] = n_columns
                    n_columns += 1
        first[m + 1] = end
    if first[-1] * _COLUMN_COST > m_all * (2 * d + 1):
        return values_at(centres, metric, ramp, offset, powers_of(X))
    values = np.zeros((m_all, n))
    contiguous = np.empty((n_columns, _ROWS))
    for begin in range(0, n, _ROWS):
        end = min(begin + _ROWS, n)
        for k in range(d):
            if place[k] >= 0:
                for i in range(end - begin):
                    contiguous[place[k], i] = X[begin + i, k]
        for m in range(m_all):
            phi = values[m, begin:end]
            for k in column[first[m] : first[m + 1]]:
                theta, z, x = metric[m, k], centres[m, k], contiguous[place[k]]
                if ramp[m]:
                    for i in range(len(phi)):
                        phi[i] += theta * (x[i] - z)
                else:
                    for i in range(len(phi)):
                        phi[i] -= theta * ((x[i] - z) * (x[i] - z))
    _apply(values, ramp, offset)
    return values


@inner
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


@compiled_sums
def mean_squared_change(
    argument: FloatArray,
    by_power: FloatArray,
    powers: FloatArray,
    weights: FloatArray,
    n_bumps: int,
    receiver: IntArray,
    donor: IntArray,
    share: FloatArray,
) -> float:
    """Return the mean of (f(x') - f(x))² over pairs of rows, where x' is x with a part of the donor.

    f is the sum of functions times `weights`, bumps first, then ramps. Their arguments at the rows are
    `argument`, (n, m), and depend on the part by its `powers`, (k, n), with the coefficients `by_power`,
    (k, m). `share` is that of each pair.
    """
    total, phi = 0.0, np.empty((2, len(weights)))
    for p in range(len(receiver)):
        own, before, after = argument[receiver[p]], phi[0], phi[1]
        for m in range(len(own)):
            before[m] = own[m]
            after[m] = own[m]
        for k in range(len(by_power)):
            change, slope = powers[k, donor[p]] - powers[k, receiver[p]], by_power[k]
            for m in range(len(own)):
                after[m] += slope[m] * change
        _apply_in_order(before, n_bumps)
        _apply_in_order(after, n_bumps)
        rise = 0.0
        for m in range(len(own)):
            rise += weights[m] * (after[m] - before[m])
        total += share[p] * rise * rise
    return total


@inner
def _apply_in_order(phi: FloatArray, n_bumps: int) -> None:
    """Turn the arguments of bumps and ramps, in this order, into their values."""
    bumps, ramps = phi[:n_bumps], phi[n_bumps:]
    for m in range(len(bumps)):
        bumps[m] = exp_double(min(bumps[m], 0.0))
    for m in range(len(ramps)):
        fall = exp_double(-2.0 * abs(ramps[m]))
        rising = (1.0 - fall) / (1.0 + fall)
        ramps[m] = rising if ramps[m] > 0.0 else -rising
