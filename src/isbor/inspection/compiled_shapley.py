"""Shapley values of single basis functions, compiled; `isbor.inspection.shapley` has the mathematics."""

import numpy as np
from numpy.typing import NDArray

from isbor._core.compiled import compiled, inner
from isbor._core.types import BoolArray, FloatArray, IntArray

__all__ = ["shapley_of_exponentials", "shapley_of_functions", "terms_of"]

_NEGLIGIBLE = 1e-30  # a product that is smaller with any values of its features


@inner
def _terms(
    theta: FloatArray, z: FloatArray, ramp: bool, place: IntArray, n_used: int, X: FloatArray
) -> FloatArray:
    """Return the terms of one function for each feature that it uses, (n, k)."""
    terms = np.zeros((len(X), n_used))
    for column in range(len(theta)):
        if theta[column] != 0.0:
            j = place[column]
            for i in range(len(X)):
                apart = X[i, column] - z[column]
                terms[i, j] += theta[column] * (apart if ramp else apart * apart)
    return terms


@compiled
def terms_of(
    theta: FloatArray, z: FloatArray, ramp: bool, place: IntArray, n_used: int, X: FloatArray
) -> FloatArray:
    """Return the terms of one function for each feature that it uses, (n, k).

    `place`, (p,), is that of the feature of each column among those used.
    """
    return _terms(theta, z, ramp, place, n_used, X)


@inner
def _ridge(s: float, degree: int, shift: float) -> float:
    """Return g(s): tanh, or a power if the degree is positive."""
    if degree == 0:
        return float(np.tanh(s))
    value = 1.0
    for _ in range(degree):
        value *= s + shift
    return value


@compiled
def shapley_of_functions(
    functions: tuple[FloatArray, FloatArray, BoolArray, FloatArray],
    feature: IntArray,
    n_features: int,
    rows: FloatArray,
    background: FloatArray,
    share: FloatArray,
    rule: IntArray,
    nodes: FloatArray,
    node_weights: FloatArray,
    most_enumerated: int,
    degree: int,
    shift: float,
) -> FloatArray:
    """Return the sums over functions of their Shapley values, (n, n_features).

    `functions` are centres, metric, ramp and weights. `rule`, (m,), is the row of `nodes` and `node_weights`
    that has the rule for the number of features of each function. Ridges of more than `most_enumerated`
    features are left out, unless they are linear.
    """
    centres, metric, ramp, weights = functions
    total = np.zeros((len(rows), n_features))
    place, seen = np.empty(len(feature), np.intp), np.empty(n_features, np.intp)
    for m in range(len(weights)):
        seen[:] = -1
        n_used = 0
        for column in range(len(feature)):
            place[column] = 0
            if metric[m, column] != 0.0:
                if seen[feature[column]] < 0:
                    seen[feature[column]] = n_used
                    n_used += 1
                place[column] = seen[feature[column]]
        if n_used == 0 or (ramp[m] and n_used > most_enumerated and degree != 1):
            continue
        own = _terms(metric[m], centres[m], ramp[m], place, n_used, rows)
        other = _terms(metric[m], centres[m], ramp[m], place, n_used, background)
        values = np.zeros((len(rows), n_used))
        if not ramp[m]:
            _of_product(own, other, share, nodes[rule[m]], node_weights[rule[m]], (n_used + 1) // 2, values)
        elif degree == 1:
            for j in range(n_used):
                mean = 0.0
                for b in range(len(other)):
                    mean += share[b] * other[b, j]
                for i in range(len(own)):
                    values[i, j] = own[i, j] - mean
        else:
            _by_coalitions(own, other, share, degree, shift, values)
        for j in range(n_features):
            if seen[j] >= 0:
                for i in range(len(rows)):
                    total[i, j] += weights[m] * values[i, seen[j]]
    return total


@inner
def _of_product(
    own: FloatArray,
    other: FloatArray,
    share: FloatArray,
    nodes: FloatArray,
    node_weights: FloatArray,
    n_nodes: int,
    values: FloatArray,
) -> None:
    """Add the Shapley values of the product of exp(-term) over features."""
    n_used = own.shape[1]
    own, other = np.exp(-own), np.exp(-other)
    before = np.empty(n_used + 1)
    for i in range(len(own)):
        for b in range(len(other)):
            bound = 1.0
            for j in range(n_used):
                bound *= max(own[i, j], other[b, j])
            if bound < _NEGLIGIBLE:
                continue
            for q in range(n_nodes):
                t = nodes[q]
                before[0] = share[b] * node_weights[q]
                for j in range(n_used):
                    before[j + 1] = before[j] * (other[b, j] + t * (own[i, j] - other[b, j]))
                after = 1.0
                for j in range(n_used - 1, -1, -1):
                    step = own[i, j] - other[b, j]
                    values[i, j] += before[j] * after * step
                    after *= other[b, j] + t * step


@inner
def _by_coalitions(
    own: FloatArray, other: FloatArray, share: FloatArray, degree: int, shift: float, values: FloatArray
) -> None:
    """Add the Shapley values of a ridge function of the sum of the terms, by all coalitions."""
    n_used = own.shape[1]
    # |S|! (k - |S| - 1)! / k!, the weight of a coalition that a feature joins.
    weight = np.empty(n_used)
    weight[0] = 1.0 / n_used
    for size in range(1, n_used):
        weight[size] = weight[size - 1] * size / (n_used - size)
    n_coalitions = 1 << n_used
    argument, members = np.empty(n_coalitions), np.zeros(n_coalitions, np.intp)
    for i in range(len(own)):
        for b in range(len(other)):
            argument[0] = 0.0
            for j in range(n_used):
                argument[0] += other[b, j]
            for j in range(n_used):
                change, half = own[i, j] - other[b, j], 1 << j
                for coalition in range(half):
                    argument[half + coalition] = argument[coalition] + change
                    members[half + coalition] = members[coalition] + 1
            for coalition in range(n_coalitions):
                value = share[b] * _ridge(argument[coalition], degree, shift)
                size = members[coalition]
                for j in range(n_used):
                    if coalition >> j & 1:
                        values[i, j] += weight[size - 1] * value
                    else:
                        values[i, j] -= weight[size] * value


@compiled
def shapley_of_exponentials(
    own: FloatArray,
    other: FloatArray,
    share: FloatArray,
    nodes: FloatArray,
    node_weights: FloatArray,
    coefficients: NDArray[np.complex128],
    exponents: NDArray[np.complex128],
) -> FloatArray:
    """Return the Shapley values of Re Σ c exp(λ s) at a row, (k,), where s sums its terms, (k,)."""
    n_used = len(own)
    values = np.zeros(n_used)
    low, step = np.empty(n_used, np.complex128), np.empty(n_used, np.complex128)
    before = np.empty(n_used + 1, np.complex128)
    for b in range(len(other)):
        for e in range(len(exponents)):
            for j in range(n_used):
                low[j] = np.exp(exponents[e] * other[b, j])
                step[j] = np.exp(exponents[e] * own[j]) - low[j]
            for q in range(len(nodes)):
                before[0] = share[b] * node_weights[q] * coefficients[e]
                for j in range(n_used):
                    before[j + 1] = before[j] * (low[j] + nodes[q] * step[j])
                after = 1.0 + 0.0j
                for j in range(n_used - 1, -1, -1):
                    values[j] += (before[j] * after * step[j]).real
                    after *= low[j] + nodes[q] * step[j]
    return values
