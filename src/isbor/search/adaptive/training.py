r"""Joint training: all centres, metrics and weights at once, by stochastic gradient ascent.

Selection in Gram space needs functions to select from. Instead of improving candidates one by one, this
module trains many functions together, on mini-batches, in single precision. What it maximises is the log
posterior per row of a model whose functions are not fixed yet,

.. math::
    \frac1N \sum_n v_n \ln \big(p(y_n \mid f_n, t_n) + \epsilon\big) - \frac{\lambda}{2N} \sum_m \tilde w_m^2
    - \frac1{2N} \sum_{qm} \mu_{qm} \tilde u_{qm}^2, \qquad
    f = \sum_m \tilde w_m \tilde\phi_m, \quad t_q = \sum_m \tilde u_{qm} \tilde\phi_m ,

where t_q are the sums of the shape (noise and gaps, see `isbor.model.cuts`), and :math:`\tilde\phi_m` is the
function divided by its standard deviation over the rows at the start: a weight is the size of a contribution
to the score. The weights of the shape have the priors of `isbor.inference.shape`: functions of small standard
deviation, which are large at few rows, have a larger μ. Because of ε, which is small, rows that contradict
the model have no influence; otherwise, few of them could govern a batch, where the noise is small.

Nothing is selected here. Training only has to bring functions to useful places; the evidence decides
afterwards which of them stay (`isbor.search.adaptive.joint`).

**Parameters.** All steps should be of one length, so parameters are in units of the function itself. With
θ₀, z₀ the metric and centre at the start, a bump has :math:`\theta = \theta_0 e^{2\lambda}` and
:math:`z = z_0 + \tau \min(\theta_0^{-1/2}, 2)`. A ramp has :math:`\theta = \theta_0 + |\theta_0|\lambda`, and
its centre moves along θ₀. A column of two values allows one contrast, so centres do not move along it. The
thresholds are given by their middle and the logarithms of the gaps.

**Steps** are Adam's: a mean of recent gradients over the root of a mean of their squares, times a step
length that rises quickly and falls to zero along a cosine. Adam moves every parameter by about the step
length, whatever its effect. That is too far for a function of large weight, which another one may nearly
cancel. So steps in λ and τ are divided by the change of the score that they would cause, if it is above 1.
For the same reason, weights of functions that are high at few rows move more slowly.

The batches are drawn from the canonical order of the rows by a generator with a fixed seed, and sums have a
fixed order: the result depends on nothing but the rows and the seed. The steps are compiled
(`isbor.search.adaptive.compiled_training`).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isbor._core.types import BoolArray, FloatArray, IntArray, SingleArray
from isbor.data.rows import TrainingRows
from isbor.model.basis import Functions, adaptive_cost, column_costs, monomials
from isbor.model.compiled_cuts import SATURATION
from isbor.model.cuts import RowShape, gap_patterns, row_thresholds
from isbor.search.adaptive.compiled_training import Batches, Layout, train

__all__ = ["Parameters", "Trainable", "train_jointly", "trained_parameters"]

_BATCH = 256
_WEIGHT_PRECISION = 5.0  # λ, of the contributions to the score
_SHAPE_RATE = 0.3  # step length of the weights of the shape, relative to the others
_LAPSE = 1e-4  # ε, probability of any label, whatever the model says
_HEIGHT = 5.0  # height of a function, in standard deviations, above which its weights move more slowly
_LEAST_DEVIATION = 1e-4  # of a function that is nearly constant
_FLATTEST = 0.05  # slope of a ramp; a flatter one is a straight line as well
_LEAST_GAP = 1e-3  # between thresholds


@dataclass(frozen=True, slots=True)
class Trainable:
    """Functions with weights in the score and in the shape of the response, and thresholds."""

    functions: Functions  # m of them, centred
    weights: FloatArray  # (m,)
    thresholds: FloatArray  # (r-1,)
    shape_weights: FloatArray  # (K, m); (0, m) for constant noise and thresholds
    shape_precision: FloatArray  # (K,), λ of the priors of these weights

    def centred_on(self, rows: TrainingRows) -> "Trainable":
        """Return the same model with functions whose means over the rows are zero.

        The constants that this takes from the sums go to the thresholds: that of the score shifts them, that
        of ln s is a common factor of score and thresholds, and those of t_q are factors of the gaps.
        """
        functions = self.functions.centred_on(rows)
        change = functions.offset - self.functions.offset
        weights, thresholds = self.weights, self.thresholds - self.weights @ change
        if len(self.shape_weights):
            constant = np.clip(self.shape_weights @ change, -SATURATION, SATURATION)
            patterns = gap_patterns(len(thresholds), len(constant) - 1)
            if len(patterns):
                factors = np.exp(constant[1:] @ patterns)
                thresholds = row_thresholds(thresholds, RowShape(np.ones(1), factors[:, None]))[0]
            weights, thresholds = weights * np.exp(-constant[0]), thresholds * np.exp(-constant[0])
        return replace(self, functions=functions, weights=weights, thresholds=thresholds)


def train_jointly(
    rows: TrainingRows, start: Trainable, n_steps: int, step_length: float, random: np.random.Generator
) -> Trainable:
    """Return the functions, weights and thresholds after `n_steps` steps on random batches of the rows."""
    return trained_parameters(rows, start, n_steps, step_length, random).result(rows)


def trained_parameters(
    rows: TrainingRows, start: Trainable, n_steps: int, step_length: float, random: np.random.Generator
) -> "Parameters":
    """Return the parameters after `n_steps` steps."""
    parameters = Parameters.of(rows, start)
    weight = (rows.weight / rows.weight.mean()).astype(np.float32)
    batches = Batches(rows.X.astype(np.float32), rows.y, weight, _draw_batches(len(rows), n_steps, random))
    train(parameters.layout, batches, parameters.vector, parameters.rate, step_length)
    return parameters


def _draw_batches(n_rows: int, n_steps: int, random: np.random.Generator) -> IntArray:
    """Return the rows of each batch, (steps, batch): each row once before any comes again."""
    size = min(_BATCH, n_rows)
    each = n_rows // size
    orders = [random.permutation(n_rows)[: each * size] for _ in range(-(-n_steps // each))]
    return np.concatenate(orders).reshape(-1, size)[:n_steps]


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters in training, as `isbor.search.adaptive.compiled_training` lays them out."""

    start: Trainable
    costs: FloatArray  # of the columns
    layout: Layout
    vector: SingleArray
    rate: SingleArray  # factor of the step length of each parameter

    @classmethod
    def of(cls, rows: TrainingRows, start: Trainable) -> "Parameters":
        """Return the parameters at the start."""
        functions = start.functions
        t = len(start.thresholds)
        ramp, used = functions.ramp[:, None], functions.metric != 0.0
        sample = rows.reference
        values = functions.at(monomials(sample.X).astype(np.float32))
        share = (sample.weight / sample.weight.sum()).astype(np.float32)
        offset = values @ share
        deviation = np.sqrt(np.maximum(np.square(values) @ share - offset**2, _LEAST_DEVIATION**2))
        slope = np.sqrt(np.square(functions.slopes(values)) @ share)
        length = np.sqrt(np.einsum("md,md->m", functions.metric, functions.metric))[:, None]
        root = np.where(ramp, length, np.sqrt(np.abs(functions.metric)))
        reach = np.minimum(1.0, 2.0 * root)
        costs = column_costs(rows)
        moving = np.where(
            ramp,
            reach * functions.metric / np.maximum(length, 1e-12) ** 2,
            np.where(costs >= 1.0, reach / np.maximum(root, 1e-12), 0.0),
        )
        layout = Layout(
            first=np.concatenate([[0], np.cumsum(used.sum(axis=1))]),
            column=np.ascontiguousarray(np.nonzero(used)[1]),
            ramp=functions.ramp,
            centre=functions.centres[used].astype(np.float32),
            metric=functions.metric[used].astype(np.float32),
            moving=moving[used].astype(np.float32),
            scaling=np.broadcast_to(length, used.shape)[used].astype(np.float32),
            reach=reach[used].astype(np.float32),
            offset=offset,
            deviation=deviation,
            slope=slope,
            n_sums=len(start.shape_weights),
            patterns=gap_patterns(t, len(start.shape_weights) - 1),
            weight_decay=_WEIGHT_PRECISION / rows.total_weight,
            shape_decay=start.shape_precision / rows.total_weight,
            lapse=_LAPSE,
            height=np.where(functions.ramp, np.square(values).max(axis=1), 1.0) / deviation**2,
        )
        nothing = np.zeros(2 * len(layout.column))
        gaps = np.log(np.maximum(np.diff(start.thresholds), _LEAST_GAP))
        shape = (deviation * start.shape_weights).ravel()
        middle = 0.5 * (start.thresholds[(t - 1) // 2] + start.thresholds[t // 2])
        parts = [nothing, deviation * start.weights, shape, [middle], gaps]
        of_weights = np.minimum(_HEIGHT / np.sqrt(layout.height), 1.0)
        of_shape = np.tile(_SHAPE_RATE * of_weights, layout.n_sums)
        rates = [nothing, of_weights, of_shape, np.ones(t)]
        vector, rate = (np.concatenate(some).astype(np.float32) for some in (parts, rates))
        return cls(start, costs, layout, vector, rate)

    def result(self, rows: TrainingRows) -> Trainable:
        """Return the functions with their weights and thresholds."""
        functions, layout = self.start.functions, self.layout
        vector = self.vector.astype(np.float64)
        n, m = len(layout.column), len(functions)
        ends = np.cumsum([n, n, m, layout.n_sums * m, 1])
        scale, shift, weights, shape_weights, middle, log_gaps = np.split(vector, ends)
        used = functions.metric != 0.0
        ramp = np.repeat(functions.ramp, np.diff(layout.first))
        shift = np.where(ramp, np.repeat(shift[layout.first[:-1]], np.diff(layout.first)), shift)
        metric, centres = np.zeros_like(functions.metric), functions.centres.copy()
        metric[used] = np.where(
            ramp,
            layout.metric + layout.scaling * scale,
            layout.metric * np.exp(np.where(ramp, 0.0, 2.0 * scale)),
        )
        metric = np.where(used & (metric == 0.0), 1e-6, metric)  # zero would mean "not used"
        metric, flat = _not_too_flat(metric, functions.ramp)
        centres[used] = layout.centre + layout.moving * shift
        centres = np.where(flat[:, None], functions.centres, centres)
        above = np.concatenate([[0.0], np.cumsum(np.exp(log_gaps))])
        t = len(above)
        moved = replace(functions, centres=centres, metric=metric, cost=adaptive_cost(metric, self.costs))
        return Trainable(
            replace(moved, offset=layout.offset.astype(np.float64)),
            weights / layout.deviation,
            middle + above - 0.5 * (above[(t - 1) // 2] + above[t // 2]),
            shape_weights.reshape(layout.n_sums, m) / layout.deviation,
            self.start.shape_precision,
        ).centred_on(rows)


def _not_too_flat(metric: FloatArray, ramp: NDArray[np.bool_]) -> tuple[FloatArray, BoolArray]:
    """Return the metric with a least slope of ramps, and which ramps were too flat.

    In training, a ramp may become flatter and flatter while its weight grows.
    """
    length = np.sqrt(np.einsum("md,md->m", metric, metric))
    flat = ramp & (length < _FLATTEST)
    factor = np.where(flat, _FLATTEST / np.maximum(length, 1e-300), 1.0)
    return metric * factor[:, None], flat
