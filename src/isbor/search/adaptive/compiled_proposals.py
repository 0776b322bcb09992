"""Random functions, drawn one by one in compiled code; `isbor.search.adaptive.proposals` says which."""

import math
from typing import NamedTuple

import numpy as np

from isbor._core.compiled import compiled, inner
from isbor._core.compiled_linalg import cholesky, solve
from isbor._core.types import FloatArray, IntArray
from isbor.search.adaptive.entries import Entries

__all__ = ["Table", "children", "fresh", "oblique", "siblings"]

_SIZES = (1, 2, 3, 12)  # number of features of a fresh function, if there are as many
_SHARES = (0.35, 0.3, 0.2, 0.15)  # their probabilities
_RAMPS = 0.3  # share of ramps among fresh functions
_REACHES = (0.15, 0.5, 1.0)  # how far a child is from its parent, in typical widths
_OBLIQUE_SIZES = (3, 6, 12, 1000)  # number of features of an oblique ramp, if there are as many
_RIDGE = 0.01  # share of the diagonal added before solving for a direction


class Table(NamedTuple):
    """The rows on which functions are centred, and the columns they may use."""

    X: FloatArray  # (n, d)
    column: IntArray  # (c,) the columns that vary, those of one feature together
    first: IntArray  # (f + 1,) the columns of feature k are those from first[k] to first[k + 1]
    cost: FloatArray  # (d,) see `isbor.model.basis.column_costs`


@compiled
def fresh(random: np.random.Generator, table: Table, count: int) -> Entries:
    """Return functions centred on random rows, of a few features each."""
    n_features = len(table.first) - 1
    entries = _new_entries(count, min(n_features, max(_SIZES)))
    order = np.arange(n_features)
    for m in range(count):
        origin = _below(random, len(table.X))
        size = min(_size(random), n_features)
        ramp = random.random() < _RAMPS
        octave = _between(random, -5.0, 3.0) if ramp else _between(random, -4.0, 4.0)
        begin, squares = entries.first[m], 0.0
        for j in range(size):
            pick = j + _below(random, n_features - j)
            order[j], order[pick] = order[pick], order[j]
            column = _column(random, table, order[j])
            theta = random.standard_normal()
            squares += theta * theta
            if not ramp:
                theta = 2.0 ** (octave + 0.7 * theta) / size
            _write(entries, begin + j, column, table.X[origin, column], theta)
        if ramp:
            for k in range(begin, begin + size):
                entries.metric[k] *= 2.0**octave / math.sqrt(squares)
        entries.ramp[m] = ramp
        _finish(entries, m, begin + size, origin, table.cost)
    return _trimmed(entries)


@compiled
def children(random: np.random.Generator, table: Table, parents: Entries, count: int) -> Entries:
    """Return perturbed copies of random `parents`."""
    n_features = len(table.first) - 1
    entries = _new_entries(count, _largest(parents) + 1)
    for m in range(count):
        parent = _below(random, len(parents.origin))
        first, last, ramp = parents.first[parent], parents.first[parent + 1], parents.ramp[parent]
        reach = _REACHES[_below(random, len(_REACHES))]
        draw, dropped = random.random(), -1
        if draw < 0.2 and last - first > 1:
            dropped = first + _below(random, last - first)
        begin = end = entries.first[m]
        for k in range(first, last):
            if k == dropped:
                continue
            theta = parents.metric[k]
            width = 1.0 if ramp else min(1.0 / math.sqrt(2.0 * theta), 2.0)
            centre = parents.centre[k] + 0.7 * reach * width * random.standard_normal()
            if ramp:
                theta *= 1.0 + 0.5 * reach * random.standard_normal()
            else:
                theta *= 2.0 ** (1.5 * reach * random.standard_normal())
            end = _write(entries, end, parents.column[k], centre, theta)
        if 0.2 <= draw < 0.5 and n_features > 0:
            column = _column(random, table, _below(random, n_features))
            if column not in entries.column[begin:end]:
                theta = random.standard_normal() * 2.0 ** _between(random, -2.0, 1.0)
                if not ramp:
                    theta = 2.0 ** _between(random, -5.0, 2.0)
                end = _write(entries, end, column, table.X[_below(random, len(table.X)), column], theta)
        entries.ramp[m] = ramp
        _finish(entries, m, end, parents.origin[parent], table.cost)
    return _trimmed(entries)


@compiled
def siblings(random: np.random.Generator, table: Table, parents: Entries, count: int) -> Entries:
    """Return functions of the features of random `parents`, centred on random rows."""
    entries = _new_entries(count, _largest(parents))
    for m in range(count):
        parent = _below(random, len(parents.origin))
        origin = _below(random, len(table.X))
        ramp, octave, end = parents.ramp[parent], random.standard_normal(), entries.first[m]
        for k in range(parents.first[parent], parents.first[parent + 1]):
            octaves = octave + 0.5 * random.standard_normal()
            theta = parents.metric[k] * 2.0 ** (0.5 * octaves if ramp else octaves)
            column = parents.column[k]
            end = _write(entries, end, column, table.X[origin, column], theta)
        entries.ramp[m] = ramp
        _finish(entries, m, end, origin, table.cost)
    return _trimmed(entries)


@compiled
def oblique(
    random: np.random.Generator,
    table: Table,
    quality: FloatArray,
    sparsity: FloatArray,
    count: int,
    max_features: int,
) -> Entries:
    """Return ramps along the best directions of several features, which are drawn by their strength."""
    n_features = len(table.first) - 1
    strength, excluded = np.zeros(n_features), np.zeros(n_features, np.bool_)
    for j in range(n_features):
        n_binary = 0
        for column in table.column[table.first[j] : table.first[j + 1]]:
            strength[j] = max(strength[j], quality[column] ** 2 / max(sparsity[column, column], 1e-6))
            n_binary += table.cost[column] < 1.0
        # A feature with too many 0/1 columns, each with a slope to be fitted, is not used.
        excluded[j] = n_binary > max(max_features, 2)
    entries = _new_entries(count, len(table.column))
    chosen, keys = np.empty(len(table.column), np.intp), np.empty(n_features)
    for m in range(count):
        origin = _below(random, len(table.X))
        size = min(_OBLIQUE_SIZES[_below(random, len(_OBLIQUE_SIZES))], max_features)
        # The features with the lowest keys are a random sample without replacement, by strength.
        for j in range(n_features):
            keys[j] = np.inf if excluded[j] else -math.log(1.0 - random.random()) / (1.0 + strength[j])
        n_chosen = 0
        for _ in range(min(size, n_features)):
            j = int(np.argmin(keys))
            if keys[j] == np.inf:
                break
            keys[j] = np.inf
            pick = _column(random, table, j)
            for column in table.column[table.first[j] : table.first[j + 1]]:
                if column == pick or table.cost[column] < 1.0:
                    chosen[n_chosen] = column
                    n_chosen += 1
        direction = best_direction(quality, sparsity, chosen[:n_chosen])
        direction *= 2.0 ** _between(random, -5.0, 1.0)
        end = entries.first[m]
        for k in range(n_chosen):
            if direction[k] != 0.0:
                end = _write(entries, end, chosen[k], table.X[origin, chosen[k]], direction[k])
        entries.ramp[m] = True
        _finish(entries, m, end, origin, table.cost)
    return _trimmed(entries)


@inner
def best_direction(quality: FloatArray, sparsity: FloatArray, columns: IntArray) -> FloatArray:
    """Return the unit vector with the highest Q²/S among directions of some columns."""
    k = len(columns)
    matrix, right, scale = np.empty((k, k)), np.empty(k), np.empty(k)
    for i in range(k):
        right[i] = quality[columns[i]]
        for j in range(k):
            matrix[i, j] = sparsity[columns[i], columns[j]]
        matrix[i, i] += _RIDGE * max(matrix[i, i], 1e-6) + 1.0
    if not cholesky(matrix, matrix, scale):
        return np.zeros(k)
    best = solve(matrix, scale, right)
    length = math.sqrt(np.dot(best, best))
    return best / length if length > 0.0 else best


@inner
def _below(random: np.random.Generator, n: int) -> int:
    """Draw a whole number below n; unlike `integers`, this takes hardly any time to compile."""
    return int(random.random() * n)


@inner
def _between(random: np.random.Generator, low: float, high: float) -> float:
    """Draw a number between two others."""
    return low + (high - low) * random.random()


@inner
def _size(random: np.random.Generator) -> int:
    """Draw the number of features of a fresh function."""
    draw, k = random.random(), 0
    while draw >= _SHARES[k] and k < len(_SHARES) - 1:
        draw -= _SHARES[k]
        k += 1
    return _SIZES[k]


@inner
def _column(random: np.random.Generator, table: Table, feature: int) -> int:
    """Draw a column of a feature."""
    first = table.first[feature]
    return int(table.column[first + _below(random, table.first[feature + 1] - first)])


@inner
def _largest(entries: Entries) -> int:
    """Return the largest number of features of a function."""
    largest = 0
    for m in range(len(entries.origin)):
        largest = max(largest, entries.first[m + 1] - entries.first[m])
    return largest


@inner
def _new_entries(count: int, size: int) -> Entries:
    """Return memory for functions of up to `size` features."""
    return Entries(
        np.zeros(count + 1, np.intp),
        np.empty(count * size, np.intp),
        np.empty(count * size),
        np.empty(count * size),
        np.empty(count, np.bool_),
        np.empty(count, np.intp),
        np.empty(count),
    )


@inner
def _write(entries: Entries, k: int, column: int, centre: float, theta: float) -> int:
    """Write entry k, and return the number of the next one."""
    entries.column[k], entries.centre[k], entries.metric[k] = column, centre, theta
    return k + 1


@inner
def _finish(entries: Entries, m: int, end: int, origin: int, costs: FloatArray) -> None:
    """Write what belongs to function m as a whole; its entries and `ramp` are written."""
    entries.first[m + 1], entries.origin[m] = end, origin
    cost = 1.0
    for k in range(entries.first[m], end):
        cost += costs[entries.column[k]]
    entries.cost[m] = cost


@inner
def _trimmed(entries: Entries) -> Entries:
    """Return the entries without unused memory."""
    n = entries.first[-1]
    by_entry = entries.column[:n].copy(), entries.centre[:n].copy(), entries.metric[:n].copy()
    return Entries(entries.first, *by_entry, entries.ramp, entries.origin, entries.cost)
