r"""How much each feature contributes to the score of a row: exact Shapley values.

A row x is compared with rows b of a background. If features S are taken from x and the others from b, the
score is :math:`v_b(S) = f(x_S, b_{-S})`. The contribution of feature j is its Shapley value, the mean change
of :math:`v_b` when j joins those before it in a random order of the features, averaged over the background:

.. math:: \psi_j = \mathrm{E}_b \sum_{S \not\ni j} \frac{|S|!\,(d - |S| - 1)!}{d!}
    \big(v_b(S \cup j) - v_b(S)\big), \qquad \mathrm{E}_b f(b) + \sum_j \psi_j = f(x) .

All columns of a feature switch together. Shapley values are linear in the game, and a function that does not
use a feature gives it nothing. So they are computed for each basis function with the features that it uses,
and added up (`isbor.inspection.score`).

**Diagonal.** An order can be drawn by drawing for each feature a time, uniform in [0, 1]. Thus, if others
join independently with probability t,

.. math:: \psi_j = \int_0^1 \mathrm{E}_{S_t} [v(S_t \cup j) - v(S_t \setminus j)]\, dt .

**Bumps** are products over features, :math:`v(S) = \prod_{i \in S} p_i \prod_{i \notin S} r_i` with
:math:`p_i = e^{-a_i(x_i)}` and :math:`r_i = e^{-a_i(b_i)}`. Expectations of products of independent factors
are products, so

.. math:: \psi_j = (p_j - r_j) \int_0^1 \prod_{i \ne j} \big((1 - t)\, r_i + t\, p_i\big)\, dt .

For k features the integrand is a polynomial of degree k - 1, and Gauss's rule with ⌈k/2⌉ nodes is exact. The
products without j come from products of those before and after j, without divisions. The time is that of k²
multiplications for each row, row of the background, and function.

**Linear functions**: :math:`\psi_j = a_j(x_j) - \mathrm{E}_b\, a_j(b_j)`.

**Other ridges** of up to ten features: the sum over all :math:`2^k` coalitions, as it is. Of more features: g
is written as a sum of exponentials, which are products over features, and their Shapley values are computed
like those of bumps (`isbor.inspection.exponentials`, which has bounds on the error).

So all is exact up to rounding, but for ramps of more than ten features, whose error is at most 1e-13 times
their weight. What is estimated is the mean over all training rows, by a background of some of them.
"""

from collections.abc import Iterable

import numpy as np
from scipy.special import roots_legendre

from isbor._core.parallel import Workers
from isbor._core.types import FloatArray, IntArray
from isbor.inspection.background import Background
from isbor.inspection.compiled_shapley import shapley_of_exponentials, shapley_of_functions, terms_of
from isbor.inspection.exponentials import as_exponentials
from isbor.inspection.score import ScoreSum
from isbor.model.basis import Functions

__all__ = ["shapley_values"]

_MOST_ENUMERATED = 10  # features of a ridge all of whose coalitions are enumerated
_FUNCTIONS_AT_ONCE = 64
_ROWS_AT_ONCE = 64
_SATURATED = 20.0  # tanh is 1 from here on


def shapley_values(
    score: ScoreSum, X: FloatArray, background: Background, n_features: int, workers: Workers
) -> FloatArray:
    """Return the contributions of all features to the scores of encoded rows, (n, n_features)."""
    rows, other = score.prepare(X), score.prepare(background.X)
    n_used = _features_used(score, n_features)
    chunks = [slice(i, i + _FUNCTIONS_AT_ONCE) for i in range(0, len(n_used), _FUNCTIONS_AT_ONCE)]
    values = np.zeros((len(X), n_features))
    for first in range(0, len(X), _ROWS_AT_ONCE):
        block = slice(first, first + _ROWS_AT_ONCE)
        own = np.ascontiguousarray(rows[block])

        def of_chunk(chunk: slice, own: FloatArray = own) -> FloatArray:
            return _of_functions(score, chunk, n_used[chunk], own, other, background.share, n_features)

        parts: Iterable[FloatArray] = workers.map(of_chunk, chunks)
        for part in parts:
            values[block] += part
    return values


def _features_used(score: ScoreSum, n_features: int) -> IntArray:
    """Return the number of features that each function uses, (m,)."""
    used = np.zeros((len(score.weights), n_features), np.bool_)
    for column, number in enumerate(score.feature):
        used[:, number] |= score.functions.metric[:, column] != 0.0
    return np.asarray(used.sum(axis=1))


def _of_functions(
    score: ScoreSum,
    chunk: slice,
    n_used: IntArray,
    rows: FloatArray,
    other: FloatArray,
    share: FloatArray,
    n_features: int,
) -> FloatArray:
    """Return the sums over some functions, (n, n_features)."""
    functions, weights, ridge = score.functions.take(chunk), score.weights[chunk], score.ridge
    degree = 0 if ridge.degree is None else ridge.degree
    sizes, rule = np.unique(n_used, return_inverse=True)
    nodes, node_weights = _rules(sizes)
    values = shapley_of_functions(
        (functions.centres, functions.metric, functions.ramp, weights),
        score.feature,
        n_features,
        rows,
        np.ascontiguousarray(other),
        share,
        rule,
        nodes,
        node_weights,
        _MOST_ENUMERATED,
        degree,
        ridge.shift,
    )
    many = functions.ramp & (n_used > _MOST_ENUMERATED) & (degree != 1)
    for m in np.flatnonzero(many).tolist():
        used, of_used = _of_many_features(score, functions, m, rows, other, share)
        values[:, used] += weights[m] * of_used
    return values


def _rules(sizes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of the rule on [0, 1] for each number of features, a row for each."""
    counts = [max((size + 1) // 2, 1) for size in sizes.tolist()]
    nodes, weights = np.zeros((2, len(counts), max(counts)))
    for row, count in enumerate(counts):
        at, share = roots_legendre(count)
        nodes[row, :count], weights[row, :count] = 0.5 + 0.5 * at, 0.5 * share
    return nodes, weights


def _of_many_features(
    score: ScoreSum, functions: Functions, m: int, rows: FloatArray, other: FloatArray, share: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Return the features that a ridge uses, and their Shapley values without its weight, (n, k)."""
    metric, z, is_ramp = functions.metric[m], functions.centres[m], bool(functions.ramp[m])
    used = np.unique(score.feature[metric != 0.0])
    place = np.searchsorted(used, score.feature)
    terms = [terms_of(metric, z, is_ramp, place, len(used), np.ascontiguousarray(X)) for X in (rows, other)]
    nodes, node_weights = (rule[0] for rule in _rules(np.array([len(used)])))
    values = np.empty((len(rows), len(used)))
    for i, own in enumerate(terms[0]):
        apart = terms[1]
        if score.ridge.degree is None:
            own, apart = _without_excess(own, apart)
        high, low = (extreme(own, apart).sum(axis=1) for extreme in (np.maximum, np.minimum))
        reach = float(max(high.max(), -low.min()))
        sum_of = as_exponentials(score.ridge, reach)
        values[i] = shapley_of_exponentials(
            own, apart, share, nodes, node_weights, sum_of.coefficients, sum_of.exponents
        )
    return used, values


def _without_excess(own: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the terms, the largest feature's clipped where tanh is ±1 whatever the others are."""
    largest = np.maximum(np.abs(own), np.abs(other).max(axis=0))
    j = int(np.argmax(largest))
    limit = _SATURATED + float(largest.sum() - largest[j])
    if not largest[j] > limit:
        return own, other
    own, other = own.copy(), other.copy()
    own[j] = np.clip(own[j], -limit, limit)
    other[:, j] = np.clip(other[:, j], -limit, limit)
    return own, other
