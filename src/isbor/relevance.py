r"""How much each feature matters to a fitted score.

The relevance of a feature is the mean squared slope of the score along it, in units of the feature's spread,

.. math:: \rho_j \propto \mathrm{E}\big[(s_j\, \partial f/\partial x_j)^2\big], \qquad \sum_j \rho_j = 1,

the mean taken over training rows. It is defined for every kind of function. Where functions see a feature
and its warp, both slopes count together; the columns of a category count one by one, and are added.
"""

import numpy as np
from numpy.typing import NDArray

from isbor.arrays import FloatArray, IntArray
from isbor.basis import Functions, monomials
from isbor.inputs import TrainingRows
from isbor.predictive import LatentModel

__all__ = ["feature_relevance"]

_SAMPLE = 2000


def feature_relevance(
    latent: LatentModel, rows: TrainingRows, feature: IntArray, n_features: int
) -> FloatArray:
    """Return the relevance of each feature, (n_features,); all zero if the score is constant.

    `rows` are scaled, and `feature` says which feature each of their columns belongs to.
    """
    sample = rows.head(_SAMPLE)
    share = sample.weight / sample.weight.sum()
    prepared = latent.prepare.widen(sample.X)
    slope = np.zeros(prepared.shape)
    for member in latent.members:
        slope += member.share * _slopes(member.functions, member.weights, prepared)
    mean = share @ prepared
    slope *= np.sqrt(share @ (prepared - mean) ** 2)
    # A column and its warp are one.
    by_column = np.zeros(sample.X.shape)
    np.add.at(by_column.T, latent.prepare.source, slope.T)
    relevance = np.zeros(n_features)
    np.add.at(relevance, feature, share @ by_column**2)
    total = relevance.sum()
    return relevance / total if total > 0 else relevance


def _slopes(functions: Functions, weights: FloatArray, X: FloatArray) -> FloatArray:
    """Return ∂f/∂x at each row, shape of X."""
    rate = functions.slopes(functions.at(monomials(X))).T * weights
    ramp: NDArray[np.bool_] = functions.ramp
    rising, falling = rate[:, ramp], rate[:, ~ramp]
    theta, centres = functions.metric[~ramp], functions.centres[~ramp]
    slope: FloatArray = rising @ functions.metric[ramp]
    slope -= 2.0 * (X * (falling @ theta) - falling @ (theta * centres))
    return slope
