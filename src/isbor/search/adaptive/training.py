r"""Joint training: all centres, metrics and weights at once, by stochastic gradient ascent.

Selection in Gram space needs functions to select from. Instead of improving candidates one by one, this
module trains many functions together, on mini-batches, in single precision. What it maximises is the log
posterior per row of a model whose functions are not fixed yet,

.. math::
    \frac1N \sum_n v_n \ln p(y_n \mid f_n, s_n) - \frac{\lambda}{2N} \sum_m \tilde w_m^2
    - \frac{\mu}{2N} \sum_m \tilde u_m^2, \qquad
    f = \sum_m \tilde w_m \tilde\phi_m, \quad \ln s = \sum_m \tilde u_m \tilde\phi_m ,

with :math:`\tilde\phi_m` the function divided by its standard deviation over the rows at the start: a weight
is the size of a contribution to the score. Nothing is selected here. Training only has to bring functions to
useful places; the evidence decides afterwards which of them stay (`isbor.search.adaptive.joint`).

**Parameters.** All steps should be of one length, so parameters are in units of the function itself. With
θ₀, z₀ the metric and centre at the start, a bump has :math:`\theta = \theta_0 e^{2\lambda}` and
:math:`z = z_0 + \tau \min(\theta_0^{-1/2}, 2)`. A ramp has :math:`\theta = \theta_0 + |\theta_0|\lambda`, and
its centre moves along θ₀. A column of two values allows one contrast, so centres do not move along it. The
thresholds are the first one and the logarithms of the gaps.

**Steps** are Adam's: a mean of recent gradients over the root of a mean of their squares, times a step
length that rises quickly and falls to zero along a cosine. Adam moves every parameter by about the step
length, whatever its effect. That is too far for a function of large weight, which another one may nearly
cancel. So steps in λ and τ are divided by the change of the score that they would cause, if it is above 1.

The batches are drawn from the canonical order of the rows by a generator with a fixed seed, and sums have a
fixed order: the result depends on nothing but the rows and the seed.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isbor._core.types import BoolArray, FloatArray, IntArray, SingleArray
from isbor.data.rows import TrainingRows
from isbor.inference.noise import noise_scale_of
from isbor.model.basis import (
    Functions,
    adaptive_cost,
    bumps_and_ramps,
    coefficients,
    column_costs,
    monomials,
    parameter_gradient,
    value_slopes,
)
from isbor.model.likelihood import edges, ordinal_probit

__all__ = ["Trainable", "train_jointly"]

_BATCH = 256
_WEIGHT_PRECISION = 5.0  # λ, of the contributions to the score
_NOISE_PRECISION = 10.0  # μ, of the contributions to the log noise scale
_NOISE_RATE = 0.3  # step length of the noise weights, relative to the others
_MOMENTUM, _SQUARES = 0.9, 0.99  # decay of the means of gradients and of their squares
_WARM_UP = 0.05  # share of the steps in which the step length rises
_RATE_STEPS = 10  # steps after which the factors of the step length are computed again
_LEAST_DEVIATION = 1e-4  # of a function that is nearly constant
_FLATTEST = 0.05  # slope of a ramp; a flatter one is a straight line as well
_LEAST_GAP = 1e-3  # between thresholds


@dataclass(frozen=True, slots=True)
class Trainable:
    """Functions with weights in the score and in the log noise scale, and thresholds."""

    functions: Functions  # m of them, centred
    weights: FloatArray  # (m,)
    thresholds: FloatArray  # (r-1,)
    noise_weights: FloatArray | None  # (m,); None for constant noise


def train_jointly(
    rows: TrainingRows, start: Trainable, n_steps: int, step_length: float, random: np.random.Generator
) -> Trainable:
    """Return the functions, weights and thresholds after `n_steps` steps on random batches of the rows."""
    model = _Model.of(rows, start)
    batches = _Batches(rows, random)
    at, gradient, rate = model.at.vector, model.by.vector, model.rate.vector
    mean, square = np.zeros_like(at), np.zeros_like(at)
    for k in range(1, n_steps + 1):
        model.set_gradient(*batches.draw())
        mean += np.float32(1.0 - _MOMENTUM) * (gradient - mean)
        square += np.float32(1.0 - _SQUARES) * (gradient**2 - square)
        if k % _RATE_STEPS == 1:
            model.set_rates()
        fall = 0.5 * (1.0 + np.cos(np.pi * k / n_steps))
        length = step_length * min(k / (_WARM_UP * n_steps + 1.0), fall) / (1.0 - _MOMENTUM**k)
        root = np.sqrt(square / np.float32(1.0 - _SQUARES**k))
        at += np.float32(length) * rate * mean / (root + np.float32(1e-8))
    return model.result()


class _Batches:
    """Draws random batches of the rows, each row once before any comes again."""

    def __init__(self, rows: TrainingRows, random: np.random.Generator) -> None:
        self._powers: SingleArray = np.ascontiguousarray(monomials(rows.X).T, dtype=np.float32)
        self._y = rows.y
        self._share: SingleArray = (rows.weight / rows.weight.mean()).astype(np.float32)
        self._random = random
        self._size = min(_BATCH, len(rows))
        self._left: IntArray = np.empty(0, dtype=np.intp)

    def draw(self) -> tuple[SingleArray, IntArray, SingleArray]:
        """Return (x², x, 1) of some rows, (n, 2d + 1), their labels, and weights that sum to about 1."""
        if len(self._left) < self._size:
            self._left = self._random.permutation(len(self._y))
        chosen, self._left = self._left[: self._size], self._left[self._size :]
        return self._powers[chosen], self._y[chosen], self._share[chosen] / np.float32(self._size)


class _Parameters(NamedTuple):
    """All parameters, or a gradient in them, as views of one vector in single precision."""

    vector: SingleArray
    scale: SingleArray  # (m, d) λ
    shift: SingleArray  # (m, d) τ; a ramp has one only, the first
    weights: SingleArray  # (m,)
    noise_weights: SingleArray  # (m,)
    thresholds: SingleArray  # (r-1,) the first threshold, then logarithms of gaps

    @classmethod
    def of(cls, m: int, d: int, t: int) -> "_Parameters":
        """Return zeros for m functions of d columns and t thresholds."""
        vector = np.zeros(2 * m * d + 2 * m + t, dtype=np.float32)
        scale, shift, weights, noise_weights, thresholds = np.split(vector, np.cumsum([m * d, m * d, m, m]))
        return cls(vector, scale.reshape(m, d), shift.reshape(m, d), weights, noise_weights, thresholds)


@dataclass(slots=True)
class _Model:
    """The model in training."""

    start: Trainable
    costs: FloatArray  # of the columns
    total_weight: float  # of the rows, N
    at: _Parameters  # the present parameters
    by: _Parameters  # the gradient in them
    rate: _Parameters  # the factor of the step length of each
    centres: SingleArray  # (m, d) z at the start
    metric: SingleArray  # (m, d) θ at the start
    offset: SingleArray  # (m,)
    deviation: SingleArray  # (m,) standard deviation of each function at the start
    slope: SingleArray  # (m,) root mean square of its derivative in its argument
    reach: SingleArray  # (m, d) change of the argument for a unit of τ: min(√θ, 1) for a bump, up to a factor
    moving: SingleArray  # (m, d) change of the centre for a unit of τ
    scaling: SingleArray  # (m, d) 1 for each column in use; for a ramp, |θ|

    @classmethod
    def of(cls, rows: TrainingRows, start: Trainable) -> "_Model":
        functions = start.functions
        ramp, used = functions.ramp[:, None], functions.metric != 0.0
        values = functions.at(monomials(rows.X).astype(np.float32))
        share = (rows.weight / rows.weight.sum()).astype(np.float32)
        offset = values @ share
        deviation = np.sqrt(np.maximum(np.square(values) @ share - offset**2, _LEAST_DEVIATION**2))
        slope = np.sqrt(np.square(value_slopes(values, functions.ramp)) @ share)
        length = np.sqrt(np.einsum("md,md->m", functions.metric, functions.metric))[:, None]
        root = np.where(ramp, length, np.sqrt(np.abs(functions.metric)))
        reach = np.minimum(1.0, 2.0 * root)
        costs = column_costs(rows)
        movable = used & (costs >= 1.0)
        moving = np.where(
            ramp,
            reach * functions.metric / np.maximum(length, 1e-12) ** 2,
            np.where(movable, reach / np.maximum(root, 1e-12), 0.0),
        )
        scaling = np.where(ramp, length, 1.0) * used
        single = (functions.centres, functions.metric, offset, deviation, slope, reach, moving, scaling)
        shape = (*functions.metric.shape, len(start.thresholds))
        at, by, rate = (_Parameters.of(*shape) for _ in range(3))
        at.weights[:] = deviation * start.weights
        at.thresholds[0] = start.thresholds[0]
        at.thresholds[1:] = np.log(np.maximum(np.diff(start.thresholds), _LEAST_GAP))
        rate.vector[:] = 1.0
        rate.noise_weights[:] = 0.0
        if start.noise_weights is not None:
            at.noise_weights[:] = deviation * start.noise_weights
            rate.noise_weights[:] = _NOISE_RATE
        parts = (part.astype(np.float32) for part in single)
        return cls(start, costs, rows.total_weight, at, by, rate, *parts)

    def set_rates(self) -> None:
        """Set the step lengths of scales and shifts for the present weights."""
        ramp = self.start.functions.ramp[:, None]
        effect = (np.abs(self.at.weights) / self.deviation * self.slope)[:, None]
        by_scale = effect * np.where(ramp, self.reach, self.reach**2)
        self.rate.scale[:] = (self.scaling != 0.0) / np.maximum(1.0, by_scale)
        movable = np.where(ramp, np.arange(self.moving.shape[1]) == 0, self.moving != 0.0)
        self.rate.shift[:] = movable / np.maximum(1.0, effect * self.reach)

    def _placed(self) -> tuple[SingleArray, SingleArray]:
        """Return the present centres and metric, (m, d) each."""
        scale, shift = self.at.scale, self.at.shift
        ramp = self.start.functions.ramp[:, None]
        factor = np.exp(np.where(ramp, 0.0, 2.0 * scale), dtype=np.float32)
        metric = np.where(ramp, self.metric + self.scaling * scale, self.metric * factor)
        shifts: SingleArray = np.where(ramp, shift[:, :1], shift)
        centres: SingleArray = self.centres + shifts * self.moving
        return centres, metric

    def _thresholds(self) -> FloatArray:
        first, gaps = np.split(self.at.thresholds.astype(np.float64), [1])
        return np.concatenate([first, first + np.cumsum(np.exp(gaps))])

    def set_gradient(self, powers: SingleArray, y: IntArray, share: SingleArray) -> None:
        """Set the gradient of the log posterior per row, from a batch."""
        at, by, ramp = self.at, self.by, self.start.functions.ramp
        centres, metric = self._placed()
        arguments: SingleArray = coefficients(centres, metric, ramp) @ powers.T
        values = bumps_and_ramps(arguments, ramp)
        by_score, by_noise, by.thresholds[:] = self._likelihood_gradient(values, y, share)
        decay = np.float32(_WEIGHT_PRECISION / self.total_weight)
        by.weights[:] = self._by_weight(values, by_score) - decay * at.weights
        by_value: SingleArray = (at.weights / self.deviation)[:, None] * by_score
        if by_noise is not None:
            decay = np.float32(_NOISE_PRECISION / self.total_weight)
            by.noise_weights[:] = self._by_weight(values, by_noise) - decay * at.noise_weights
            by_value += (at.noise_weights / self.deviation)[:, None] * by_noise
        by_value *= value_slopes(values, ramp)
        by_coefficient: SingleArray = by_value @ powers
        by_centre, by_metric = parameter_gradient(by_coefficient, centres, metric, ramp)
        by.scale[:] = np.where(ramp[:, None], self.scaling * by_metric, 2.0 * metric * by_metric)
        np.multiply(by_centre, self.moving, out=by.shift)
        by.shift[ramp, 0] = by.shift[ramp].sum(axis=1)

    def _by_weight(self, values: SingleArray, by_row: SingleArray) -> SingleArray:
        """Return the gradient in the weights of the functions, from that in their sum at each row."""
        gradient: SingleArray = (values @ by_row - self.offset * by_row.sum()) / self.deviation
        return gradient

    def _likelihood_gradient(
        self, values: SingleArray, y: IntArray, share: SingleArray
    ) -> tuple[SingleArray, SingleArray | None, FloatArray]:
        """Return the gradients in the scores and log noise scales of a batch, and in the thresholds."""
        score = _contribution(self.at.weights / self.deviation, values, self.offset).astype(np.float64)
        thresholds = self._thresholds()
        edge = edges(thresholds)
        scale = np.ones(len(y))
        if self.start.noise_weights is not None:
            log_scale = _contribution(self.at.noise_weights / self.deviation, values, self.offset)
            scale = noise_scale_of(log_scale[:, None].astype(np.float64), np.ones(1))
        low, high = (edge[y] - score) / scale, (edge[y + 1] - score) / scale
        at = ordinal_probit(np.zeros(len(y)), low, high)
        t = len(thresholds)
        by_edge = np.zeros(t)
        by_edge += np.bincount(y, share * at.upper / scale, t + 1)[:-1]
        by_edge -= np.bincount(y, share * at.lower / scale, t + 1)[1:]
        after: FloatArray = np.cumsum(by_edge[::-1])[::-1]  # a gap moves all thresholds above it
        after[1:] *= np.diff(thresholds)
        by_score = (share * at.slope / scale).astype(np.float32)
        if self.start.noise_weights is None:
            return by_score, None, after
        # Zero instead of infinity if there is no threshold.
        above = np.where(np.isfinite(high), high, 0.0) * at.upper
        below = np.where(np.isfinite(low), low, 0.0) * at.lower
        return by_score, (share * (below - above)).astype(np.float32), after

    def result(self) -> Trainable:
        """Return the trained functions with their weights and thresholds."""
        functions = self.start.functions
        centres, metric = (part.astype(np.float64) for part in self._placed())
        used: BoolArray = functions.metric != 0.0
        metric = np.where(used & (metric == 0.0), 1e-6, metric)  # zero would mean "not used"
        metric, flat = _not_too_flat(metric, functions.ramp)
        centres = np.where(flat[:, None], functions.centres, centres)
        constant = self.start.noise_weights is None
        return Trainable(
            replace(functions, centres=centres, metric=metric, cost=adaptive_cost(metric, self.costs)),
            (self.at.weights / self.deviation).astype(np.float64),
            self._thresholds(),
            None if constant else (self.at.noise_weights / self.deviation).astype(np.float64),
        )


def _contribution(weights: SingleArray, values: SingleArray, offset: SingleArray) -> SingleArray:
    """Return the weighted sum of the centred functions at each row, (n,)."""
    total: SingleArray = weights @ values - weights @ offset
    return total


def _not_too_flat(metric: FloatArray, ramp: NDArray[np.bool_]) -> tuple[FloatArray, BoolArray]:
    """Return the metric with a least slope of ramps, and which ramps were too flat.

    In training, a ramp may become flatter and flatter while its weight grows.
    """
    length = np.sqrt(np.einsum("md,md->m", metric, metric))
    flat = ramp & (length < _FLATTEST)
    factor = np.where(flat, _FLATTEST / np.maximum(length, 1e-300), 1.0)
    return metric * factor[:, None], flat
