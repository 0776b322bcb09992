r"""The relevance of each feature to the fitted score.

The relevance of a feature is its total effect: the mean squared change of the score if the value of this
feature is replaced by that of another row,

.. math:: \rho_j \propto \tfrac12 \mathrm{E}\big[(f(x_j, x_{-j}) - f(x'_j, x_{-j}))^2\big],
    \qquad \sum_j \rho_j = 1,

where x and x' are two training rows drawn independently. If features are independent, this is
:math:`\mathrm{E}[\mathrm{Var}(f \mid x_{-j})]`, the numerator of the total Sobol index (Jansen's estimator).
For a linear score it is the square of coefficient times standard deviation. All encoded columns of a feature
are replaced together: the columns of its categories, the mark of missing cells, a number and its warp. So the
relevance does not depend on the number of columns. A mean squared slope would, and it would rate a small but
steep step higher than a gentle increase over the whole range.

The argument of a basis function is a sum with one term for each feature. Replacing a feature replaces its
term; functions that do not use the feature do not change.
"""

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.model.basis import monomials
from isbor.model.compiled_basis import mean_squared_change
from isbor.prediction.ensemble import Ensemble

__all__ = ["feature_relevance"]

_MAX_ROWS = 2000
_MAX_PAIRS = 20_000
# Limit on function values, pairs × features × functions that use them; beyond it, pairs and rows are reduced.
_MAX_VALUES = 20_000_000
_MIN_PAIRS = 20
# Rows are clipped here, because the squares of larger numbers would cancel digits of the other terms. A
# standardised row that far out has less than 1e-12 of the weight.
_FAR = 1e6


def feature_relevance(
    model: Ensemble, rows: TrainingRows, feature: IntArray, n_features: int, workers: Workers
) -> FloatArray:
    """Return the relevance of each feature, (n_features,); all zero if the score is constant.

    `rows` are scaled. `feature` is the feature of each of their columns.
    """
    functions, weights = model.functions, model.coef
    of_feature = feature[model.preparation.source]
    columns = [np.flatnonzero(of_feature == number) for number in range(n_features)]
    values_per_pair = sum(int(functions.metric[:, own].any(axis=1).sum()) for own in columns)
    n_pairs = min(max(_MAX_VALUES // max(values_per_pair, 1), _MIN_PAIRS), _MAX_PAIRS)
    sample = rows.head(min(_MAX_ROWS, n_pairs))
    receiver, donor = _pairs(len(sample), n_pairs)
    share = sample.weight / sample.weight.sum()
    pair_share = share[receiver] * share[donor]
    X = np.clip(model.preparation.widen(sample.X), -_FAR, _FAR)
    varying = (X != X[:1]).any(axis=0)
    bumps_first = np.argsort(functions.ramp, kind="stable")
    functions, weights = functions.take(bumps_first), weights[bumps_first]
    powers, coefficients = monomials(X), functions.coefficients()
    argument = (coefficients @ powers).T.copy()

    def effect(own: IntArray) -> float:
        """Return the total effect of a feature, given its columns."""
        uses = functions.metric[:, own].any(axis=1)
        if not (uses.any() and varying[own].any()):
            return 0.0
        both = np.concatenate([own, own + X.shape[1]])  # its columns squared, and as they are
        return mean_squared_change(
            argument if uses.all() else argument[:, uses],
            coefficients[np.ix_(uses, both)].T.copy(),
            powers[both],
            weights[uses],
            int(np.count_nonzero(uses & ~functions.ramp)),
            receiver,
            donor,
            pair_share,
        )

    relevance = np.array([*workers.map(effect, columns)])
    total = relevance.sum()
    return relevance / total if total > 0 else relevance


def _pairs(n: int, n_pairs: int) -> tuple[IntArray, IntArray]:
    """Return about `n_pairs` pairs of n rows, at most all; every row is in the same number of pairs."""
    # Neighbouring rows have different labels, so they are not independent draws.
    order = np.random.default_rng(0).permutation(n)
    shifts = np.arange(1, min(n_pairs // n + 1, n))
    place = np.tile(np.arange(n), len(shifts))
    return order[place], order[(place + np.repeat(shifts, n)) % n]
