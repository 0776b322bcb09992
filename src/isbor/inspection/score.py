r"""The score as a sum of functions of features, whatever model it comes from.

.. math:: f(x) = c + \sum_m w_m \phi_m(x), \qquad
    \phi_m(x) = \prod_j e^{-a_{mj}(x_j)} \quad\text{or}\quad \phi_m(x) = g\Big(\sum_j a_{mj}(x_j)\Big) .

The sums are over features, and :math:`a_{mj}` has the terms of all columns of feature j: its categories, its
mark of missing cells, a number and its warp. The first form is a bump; it is a **product** over features. The
second is a **ridge**: a ramp with g = tanh, a linear function, or a polynomial kernel,
:math:`g(s) = (s + s_0)^p`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from isbor._core.types import FloatArray, IntArray
from isbor.gp.process import Process
from isbor.model.basis import Functions
from isbor.prediction.ensemble import Ensemble

__all__ = ["Ridge", "ScoreSum", "plain_functions", "score_of_ensemble", "score_of_process"]


@dataclass(frozen=True, slots=True)
class Ridge:
    """The function g of ridges: (s + shift)^degree, or tanh if the degree is None."""

    degree: int | None = None
    shift: float = 0.0


@dataclass(frozen=True, slots=True)
class ScoreSum:
    """A score on the scale on which it is reported."""

    prepare: Callable[[FloatArray], FloatArray]  # encoded rows to the p columns that functions see
    feature: IntArray  # (p,) feature of each of them
    functions: Functions  # m of them without offsets, bumps and ridges
    weights: FloatArray  # (m,)
    intercept: float
    source: IntArray  # (m,) number of the training row behind each function, -1 if there is none
    ridge: Ridge = Ridge()

    def values(self, columns: FloatArray) -> FloatArray:
        """Return w φ of each function at prepared rows, (n, m)."""
        if self.ridge.degree is None:
            return self.functions(columns) * self.weights
        functions = self.functions
        lines = columns @ functions.metric.T - np.einsum("md,md->m", functions.metric, functions.centres)
        powers: FloatArray = (lines + self.ridge.shift) ** self.ridge.degree
        return powers * self.weights


def plain_functions(centres: FloatArray, metric: FloatArray, *, ramp: bool) -> Functions:
    """Return functions of these centres and metrics, (m, p), all bumps or all ridges, without offsets."""
    m = len(centres)
    none = np.zeros(m)
    return Functions(
        np.ascontiguousarray(centres),
        np.ascontiguousarray(metric),
        np.full(m, ramp),
        none,
        np.arange(m),
        none,
    )


def score_of_ensemble(
    model: Ensemble, feature: IntArray, source: IntArray, centre: float, unit: float
) -> ScoreSum:
    """Return the score of an average of models; `feature`, (d,), is that of each encoded column."""
    functions = model.functions
    return ScoreSum(
        model.preparation,
        feature[model.preparation.source],
        replace(functions, offset=np.zeros(len(functions))),
        model.coef / unit,
        (model.intercept - centre) / unit,
        source,
    )


def score_of_process(
    process: Process, feature: IntArray, source: IntArray, centre: float, unit: float
) -> ScoreSum:
    """Return the score of a Gaussian process: a bump on each training row."""
    metric = np.broadcast_to(process.covariance.scales, process.X.shape)
    return ScoreSum(
        process.scaling,
        feature,
        plain_functions(process.X, metric, ramp=False),
        process.covariance.amplitude**2 * process.posterior.coef / unit,
        -centre / unit,
        source,
    )
