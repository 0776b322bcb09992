r"""How much each feature matters to a fitted score.

The relevance of a feature is its total effect: how much the score changes, in mean square, when the feature
alone is taken from another row,

.. math:: \rho_j \propto \tfrac12 \mathrm{E}\big[(f(x_j, x_{-j}) - f(x'_j, x_{-j}))^2\big],
    \qquad \sum_j \rho_j = 1,

x and x' being two training rows drawn independently. If features are independent, this is
:math:`\mathrm{E}[\mathrm{Var}(f \mid x_{-j})]`, the numerator of the total Sobol index (Jansen's estimator),
and for a linear score the square of coefficient times spread. All columns of a feature are taken together:
the levels of a category, the mark of missing cells, a number and its warp. So it does not matter in how many
columns a feature is written. A mean squared slope would depend on that, and a steep step that is not high
would count for more than a gentle rise across the whole range.

A function's argument is a sum of one part for each feature. To exchange a feature is to exchange its part,
and functions that do not use the feature stay as they are.
"""

from itertools import pairwise

import numpy as np

from isbor._core.parallel import row_blocks
from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.model.basis import bumps_and_ramps, monomials
from isbor.prediction.ensemble import Ensemble

__all__ = ["feature_relevance"]

_ROWS = 2000
_PAIRS = 20_000
# Values of functions, pairs × features × functions that use them: beyond, there are fewer pairs, then rows.
_WORK = 20_000_000
_FEWEST_PAIRS = 20
# The square of a larger number would take the digits of what it is added to. A standardised row so far out
# has less than 1e-12 of the weight.
_FAR = 1e6


def feature_relevance(model: Ensemble, rows: TrainingRows, feature: IntArray, n_features: int) -> FloatArray:
    """Return the relevance of each feature, (n_features,); all zero if the score is constant.

    `rows` are scaled, and `feature` says, in ascending order, which feature each of their columns belongs to.
    """
    functions, weights = model.functions, model.coef
    ends = np.searchsorted(feature[model.preparation.source], np.arange(n_features + 1))
    columns = [slice(start, stop) for start, stop in pairwise(ends)]
    users = [np.flatnonzero(functions.metric[:, own].any(axis=1)) for own in columns]

    work = sum(map(len, users))  # of one pair
    n_pairs = min(max(_WORK // max(work, 1), _FEWEST_PAIRS), _PAIRS)
    sample = rows.head(min(_ROWS, n_pairs))
    receiver, donor = _pairs(len(sample), n_pairs)
    share = sample.weight / sample.weight.sum()
    pair_share = share[receiver] * share[donor]
    X = np.clip(model.preparation.widen(sample.X), -_FAR, _FAR)
    varying = (X != X[:1]).any(axis=0)
    powers, coefficients = monomials(X), functions.coefficients()
    squares, plain, _ = np.split(powers, [X.shape[1], -1])
    curvature, slope, _ = np.split(coefficients, [X.shape[1], -1], axis=1)
    argument = coefficients @ powers
    height = weights[:, None] * bumps_and_ramps(argument.copy(), functions.ramp)

    relevance = np.zeros(n_features)
    for j, (own, used) in enumerate(zip(columns, users, strict=True)):
        if not (used.size and varying[own].any()):
            continue
        part = curvature[used, own] @ squares[own] + slope[used, own] @ plain[own]
        rest = argument[used] - part
        before = height[used].sum(axis=0)
        for block in row_blocks(len(receiver), len(used)):
            exchanged = rest.take(receiver[block], axis=1) + part.take(donor[block], axis=1)
            after = weights[used] @ bumps_and_ramps(exchanged, functions.ramp[used])
            relevance[j] += pair_share[block] @ (after - before[receiver[block]]) ** 2
    total = relevance.sum()
    return relevance / total if total > 0 else relevance


def _pairs(n: int, n_pairs: int) -> tuple[IntArray, IntArray]:
    """Return about so many pairs of n rows, or all there are; a row is in as many of them as any other."""
    # Neighbours among the rows have different labels, so they are no independent draws.
    order = np.random.default_rng(0).permutation(n)
    shifts = np.arange(1, min(n_pairs // n + 1, n))
    place = np.tile(np.arange(n), len(shifts))
    return order[place], order[(place + np.repeat(shifts, n)) % n]
