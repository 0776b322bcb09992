r"""Basis functions, each with its own centre and metric: bumps and ramps.

.. math:: \phi_m(x) = \exp\Big(-\sum_d \theta_{md} (x_d - z_{md})^2\Big) - o_m
    \qquad\text{or}\qquad \phi_m(x) = \tanh\Big(\sum_d \theta_{md} (x_d - z_{md})\Big) - o_m .

A zero :math:`\theta_{md}` means that function m does not use feature d. The arguments of all functions are
linear in (x², x, 1), so they are computed as one matrix product. A ramp with a small slope is close to a
straight line, one with a large slope close to a step.

The offset :math:`o_m` is the mean of the function over a sample of rows. It does not change the model,
because the thresholds absorb any constant, but it helps in two ways. Wide functions are nearly constant;
without centring, their inner products would lose the digits in which they differ. And the uncertainty of the
weights of uncentred functions is mostly that of a common shift of scores and thresholds, on which no
prediction depends.
"""

from dataclasses import dataclass, replace
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.model.compiled_basis import function_values

Real = TypeVar("Real", np.float32, np.float64)

__all__ = ["Functions", "RowDictionary", "adaptive_cost", "bumps_and_ramps", "column_costs", "monomials"]


@dataclass(frozen=True, slots=True)
class Functions:
    """m basis functions of a row of scaled features."""

    centres: FloatArray  # (m, d), z
    metric: FloatArray  # (m, d), θ, nonnegative for bumps
    ramp: NDArray[np.bool_]  # (m,) True for ramps, False for bumps
    offset: FloatArray  # (m,), o
    origin: IntArray  # (m,) the training row on which each function was first centred
    cost: FloatArray  # (m,) cost of each function, in units of the size prior

    def __len__(self) -> int:
        return len(self.centres)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the centred functions at the rows of X, shape (n, m)."""
        return function_values(self.centres, self.metric, self.ramp, self.offset, X).T

    def at(self, powers: NDArray[Real]) -> NDArray[Real]:
        """Return the functions without their offsets, (m, n), at rows given by their `monomials`.

        The values of one function are contiguous in memory, which makes operations on single functions fast.
        """
        return bumps_and_ramps(self.coefficients().astype(powers.dtype, copy=False) @ powers, self.ramp)

    def slopes(self, values: NDArray[Real]) -> NDArray[Real]:
        """Return the derivatives in the arguments, (m, n), from the values without offsets."""
        slopes = values.copy()
        ramps = np.flatnonzero(self.ramp)
        slopes[ramps] = 1.0 - values[ramps] ** 2
        return slopes

    def slopes_of_sum(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Return the slopes of Σ_m w_m φ_m along each feature at the rows of X, (n, d)."""
        steep = weights[:, None] * self.slopes(self.at(monomials(X)))
        theta, bumps = self.metric, ~self.ramp
        of_ramps: FloatArray = steep[self.ramp].T @ theta[self.ramp]
        pull = steep[bumps].T @ (theta * self.centres)[bumps]
        return of_ramps + 2.0 * (pull - X * (steep[bumps].T @ theta[bumps]))

    def coefficients(self) -> FloatArray:
        """Return the coefficients of the arguments in (x², x, 1), shape (m, 2d + 1)."""
        theta, z = self.metric, self.centres
        tilt = theta * z
        bump = np.hstack([-theta, 2.0 * tilt, -np.einsum("md,md->m", tilt, z)[:, None]])
        ramp = np.hstack([np.zeros_like(theta), theta, -tilt.sum(axis=1)[:, None]])
        return np.where(self.ramp[:, None], ramp, bump)

    def take(self, chosen: IntArray | NDArray[np.bool_] | slice) -> Self:
        """Return the chosen functions."""
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
        """Return these functions followed by the others."""
        return Functions(
            np.concatenate([self.centres, others.centres]),
            np.concatenate([self.metric, others.metric]),
            np.concatenate([self.ramp, others.ramp]),
            np.concatenate([self.offset, others.offset]),
            np.concatenate([self.origin, others.origin]),
            np.concatenate([self.cost, others.cost]),
        )

    def embedded(self, columns: IntArray, places: IntArray, n_columns: int) -> Self:
        """Return the functions for rows of `n_columns` columns, where `columns` stand at `places`."""
        centres, metric = np.zeros((2, len(self), n_columns))
        centres[:, places] = self.centres[:, columns]
        metric[:, places] = self.metric[:, columns]
        return replace(self, centres=centres, metric=metric)

    def centred_on(self, rows: TrainingRows) -> Self:
        """Return the functions with offsets such that their means over a sample of the rows are zero."""
        sample = rows.reference
        share = sample.weight / sample.weight.sum()
        plain = replace(self, offset=np.zeros(len(self)))
        return replace(self, offset=plain(sample.X).T @ share)


def bumps_and_ramps(arguments: NDArray[Real], ramp: NDArray[np.bool_]) -> NDArray[Real]:
    """Apply exp or tanh in place to the (m, n) arguments."""
    ramps = np.flatnonzero(ramp)
    rising = np.tanh(arguments[ramps])
    np.minimum(arguments, 0.0, out=arguments)  # rounding may make an exponent positive; a bump is at most 1
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


def adaptive_cost(metric: FloatArray, column_costs: FloatArray) -> FloatArray:
    """Return the cost of functions whose centre and metric are adapted to the data.

    A function of k features has k centre coordinates and k scales to adapt, and adapting them gains even on
    noise: if labels are drawn from the model itself, the best gain that a search finds grows about linearly
    with k. So each column used adds its cost, see `column_costs`.
    """
    cost: FloatArray = 1.0 + (metric != 0.0) @ column_costs
    return cost


def column_costs(rows: TrainingRows) -> FloatArray:
    """Return the cost of each column, (d,): 1, but ¼ for a column with two values.

    Two values allow one contrast, not a centre and a scale.
    """
    X = rows.reference.X
    low, high = X.min(axis=0), X.max(axis=0)
    return np.where(((X == low) | (X == high)).all(axis=0), 0.25, 1.0)


@dataclass(frozen=True, slots=True)
class RowDictionary:
    """All bumps with one metric that are centred on training rows; a candidate is a row number."""

    rows: TrainingRows
    gamma: float | FloatArray  # one width, or one scale for each column

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
