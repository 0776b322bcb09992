r"""Basis functions with a centre and a metric of their own: bumps and ramps.

.. math:: \phi_m(x) = \exp\Big(-\sum_d \theta_{md} (x_d - z_{md})^2\Big) - o_m
    \qquad\text{or}\qquad \phi_m(x) = \tanh\Big(\sum_d \theta_{md} (x_d - z_{md})\Big) - o_m .

A zero :math:`\theta_{md}` leaves feature d out of function m. The arguments of all functions together are one
matrix product, because they are linear in (x², x, 1). A ramp of small slope is a straight line, a steep one
a step.

The offset :math:`o_m`, the function's mean over a sample of rows, changes nothing in the model: the
thresholds take up any constant. It is there for the arithmetic and for the posterior. A wide basis
function is nearly constant, and products of nearly equal columns lose the digits that tell them apart;
and uncertain weights of uncentred functions are mostly an uncertain common shift of scores and
thresholds, which no prediction depends on.
"""

from dataclasses import dataclass, replace
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows

Real = TypeVar("Real", np.float32, np.float64)

__all__ = ["Functions", "RowDictionary", "adaptive_cost", "bumps_and_ramps", "column_effort", "monomials"]

_REFERENCE_ROWS = 1000  # that the offsets are means over


@dataclass(frozen=True, slots=True)
class Functions:
    """Some functions of a row of scaled features."""

    centres: FloatArray  # (m, d), z
    metric: FloatArray  # (m, d), θ, not negative for bumps
    ramp: NDArray[np.bool_]  # (m,) ramps; the others are bumps
    offset: FloatArray  # (m,)
    origin: IntArray  # (m,) the training row that a function was first centred on
    cost: FloatArray  # (m,) what a function pays, in units of the size prior

    def __len__(self) -> int:
        return len(self.centres)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the centred functions at the rows of X, shape (n, m)."""
        values = self.at(monomials(X))
        values -= self.offset[:, None]
        return values.T

    def at(self, powers: NDArray[Real]) -> NDArray[Real]:
        """Return the functions without their offsets, (m, n), at rows given by their `monomials`.

        A function's values lie side by side in memory: what is done to some functions, or to each row
        of all of them, is fast.
        """
        return bumps_and_ramps(self.coefficients().astype(powers.dtype, copy=False) @ powers, self.ramp)

    def slopes(self, values: NDArray[Real]) -> NDArray[Real]:
        """Return the functions' derivatives in their arguments, from their values without offsets, (m, n)."""
        slopes = values.copy()
        ramps = np.flatnonzero(self.ramp)
        slopes[ramps] = 1.0 - values[ramps] ** 2
        return slopes

    def coefficients(self) -> FloatArray:
        """Return the arguments' coefficients of (x², x, 1), shape (m, 2d + 1)."""
        theta, z = self.metric, self.centres
        tilt = theta * z
        bump = np.hstack([-theta, 2.0 * tilt, -np.einsum("md,md->m", tilt, z)[:, None]])
        ramp = np.hstack([np.zeros_like(theta), theta, -tilt.sum(axis=1)[:, None]])
        return np.where(self.ramp[:, None], ramp, bump)

    def parameter_gradient(self, by_coefficient: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Turn a gradient in the coefficients, (m, 2d + 1), into one in centres and one in metric, (m, d)."""
        square, linear, constant = np.split(by_coefficient, [self.metric.shape[1], -1], axis=1)
        theta, z, ramp = self.metric, self.centres, self.ramp[:, None]
        centres = np.where(ramp, -theta * constant, 2.0 * theta * (linear - z * constant))
        metric = np.where(ramp, linear - z * constant, 2.0 * z * linear - square - z * z * constant)
        return centres, metric

    def take(self, chosen: IntArray | NDArray[np.bool_] | slice) -> Self:
        """Return some of the functions."""
        return replace(
            self,
            centres=self.centres[chosen],
            metric=self.metric[chosen],
            ramp=self.ramp[chosen],
            offset=self.offset[chosen],
            origin=self.origin[chosen],
            cost=self.cost[chosen],
        )

    def followed_by(self, others: "Functions") -> "Functions":
        """Return these functions and then the others."""
        return Functions(
            np.concatenate([self.centres, others.centres]),
            np.concatenate([self.metric, others.metric]),
            np.concatenate([self.ramp, others.ramp]),
            np.concatenate([self.offset, others.offset]),
            np.concatenate([self.origin, others.origin]),
            np.concatenate([self.cost, others.cost]),
        )

    def moved(self, columns: IntArray, places: IntArray, n_columns: int) -> Self:
        """Return the functions of rows that have some of the columns at other places, and others besides."""
        centres, metric = np.zeros((2, len(self), n_columns))
        centres[:, places] = self.centres[:, columns]
        metric[:, places] = self.metric[:, columns]
        return replace(self, centres=centres, metric=metric)

    def centred_on(self, rows: TrainingRows) -> Self:
        """Return the functions with offsets that make their means over a sample of the rows zero."""
        sample = rows.head(_REFERENCE_ROWS)
        share = sample.weight / sample.weight.sum()
        return replace(self, offset=self.at(monomials(sample.X)) @ share)


def bumps_and_ramps(arguments: NDArray[Real], ramp: NDArray[np.bool_]) -> NDArray[Real]:
    """Return the functions of their arguments, (m, n), which they take the place of."""
    ramps = np.flatnonzero(ramp)
    rising = np.tanh(arguments[ramps])
    np.minimum(arguments, 0.0, out=arguments)  # a bump is at most one, whatever the rounding of its exponent
    np.exp(arguments, out=arguments)
    arguments[ramps] = rising
    return arguments


def monomials(X: FloatArray) -> FloatArray:
    """Return (x², x, 1) of each row, shape (2d + 1, n)."""
    n, d = X.shape
    powers = np.empty((2 * d + 1, n))
    powers[d:-1] = X.T
    np.multiply(powers[d:-1], powers[d:-1], out=powers[:d])
    powers[-1] = 1.0
    return powers


def adaptive_cost(metric: FloatArray, effort: FloatArray) -> FloatArray:
    """Return the cost of functions whose centre and metric were adapted to the data.

    A function of k features has k centres and k scales to adapt, and noise alone lets them gain: the best
    gain that a search finds in labels drawn from the model itself grows about linearly with k. `effort` is
    what a column counts: 1, or less where there is less to adapt.
    """
    cost: FloatArray = 1.0 + (metric != 0.0) @ effort
    return cost


def column_effort(rows: TrainingRows) -> FloatArray:
    """Return what each column counts in the cost of a function: a quarter for a column of two values.

    Between two values there is one contrast, not a centre and a scale.
    """
    X = rows.head(_REFERENCE_ROWS).X
    low, high = X.min(axis=0), X.max(axis=0)
    return np.where(((X == low) | (X == high)).all(axis=0), 0.25, 1.0)


@dataclass(frozen=True, slots=True)
class RowDictionary:
    """All bumps of one metric centred on training rows; a candidate is a row's number."""

    rows: TrainingRows
    gamma: float | FloatArray  # one width, or a scale for each feature

    def basis(self, chosen: IntArray) -> Functions:
        """Return the functions centred on the chosen rows."""
        m, d = len(chosen), self.rows.X.shape[1]
        return Functions(
            self.rows.X[chosen],
            np.broadcast_to(np.asarray(self.gamma, dtype=np.float64), (m, d)).copy(),
            np.zeros(m, dtype=np.bool_),
            np.zeros(m),
            chosen,
            np.ones(m),
        ).centred_on(self.rows)
