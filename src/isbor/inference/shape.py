r"""The shape of the response: the weights of functions in noise and gaps, fitted given the score.

`isbor.model.cuts` defines the sums ln s and t_q. Their weights have the priors
:math:`u_{qm} \sim N(0, 1/(\lambda_q h_m^2))`, where :math:`h_m` is the height of the function: 1 for a bump,
the largest value on a sample of rows for a ramp. So :math:`\lambda_q` limits the effect of each function,
whatever its slope. It is found by MacKay's fixed-point iteration for the evidence; if noise (q = 0) or gaps
do not vary, it goes to its upper limit and the weights to zero. What varies only in directions in which the
score does not vary cannot be represented.

The sums are fitted one after the other, given the score, the thresholds and the other sums. With
:math:`z_i`, :math:`g_i` and :math:`c_i` as in `isbor.model.likelihood`, in units of s, and dots for
derivatives in one of the sums,

.. math::
    \dot\ell = g_1 \dot z_1 - g_2 \dot z_2, \qquad
    -\ddot\ell = c_1 \dot z_1^2 + c_2 \dot z_2^2 + g_1 g_2 (\dot z_1 - \dot z_2)^2
        - g_1 \ddot z_1 + g_2 \ddot z_2 .

For ln s, :math:`\dot z = -z`. For t_q, each gap of z has the derivative of :math:`e_l`, a factor
:math:`c_{ql}`. ln p is not concave in these sums everywhere. But under the model, the last two terms have
mean zero (summed over the classes, each threshold occurs twice, with opposite signs), and the others are not
negative. So the curvature is computed without the last two: Newton steps ascend, and in the mean over labels
it is the Fisher information. Given the shape, the rest of the model is as before, with scores and thresholds
in units of s.

**What functions are worth.** Expanded to second order, the log evidence of sum q is that of a linear Gaussian
model: with P the posterior precision, and g = Pu, functions A add

.. math::
    \tfrac12 g_A^\top P_{AA}^{-1} g_A - \tfrac12 \ln|P_{AA}| + \tfrac12 \sum_{m \in A} \ln(\lambda_q h_m^2)

to it. Without function m, it is lower by

.. math:: \tfrac12 \Big(\frac{u_{qm}^2}{\Sigma_{mm}} + \ln (\lambda_q h_m^2 \Sigma_{mm})\Big),

with Σ the inverse of P (the ratio of posterior and prior density at zero, Savage and Dickey).
"""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from isbor._core.linalg import Factor, add_diagonal, factorise
from isbor._core.parallel import Workers, row_blocks
from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.inference.compiled_expansion import Sums, add_shape_block
from isbor.inference.expansion import Columns, Expansion, block_of, summed
from isbor.inference.mode import Mode, find_mode, posterior_covariance
from isbor.model.basis import Functions
from isbor.model.cuts import RowShape, gap_patterns
from isbor.model.likelihood import edges

__all__ = [
    "FIRST_PRECISION",
    "MAX_ROUNDS",
    "MAX_STEPS",
    "ShapeFit",
    "ShapeModel",
    "expand_shape",
    "fit_shape",
    "shape_at_rows",
    "shape_model",
]

FIRST_PRECISION = 30.0  # starting value of λ
_PRECISIONS = (0.3, 1e6)  # limits of λ
MAX_ROUNDS = 3
MAX_STEPS = 8  # of Newton's method for one sum


@dataclass(frozen=True, slots=True)
class ShapeFit:
    """Weights of m functions in the K sums of the shape."""

    weights: FloatArray  # (K, m), u
    precision: FloatArray  # (K,), λ


@dataclass(frozen=True)
class ShapeModel:
    """The log posterior of the weights of m functions in each of the K sums, to second order."""

    precision: FloatArray  # (K, m, m), P
    linear: FloatArray  # (K, m), g
    prior: FloatArray  # (K, m), prior precisions

    def take(self, chosen: IntArray) -> "ShapeModel":
        """Return the model of some of the functions."""
        precision = np.ascontiguousarray(self.precision[:, chosen[:, None], chosen])
        return ShapeModel(precision, self.linear[:, chosen], self.prior[:, chosen])

    @cached_property
    def factors(self) -> list[Factor]:
        """The K factors of P."""
        return [factorise(precision) for precision in self.precision]

    @cached_property
    def mode(self) -> FloatArray:
        """The weights, (K, m)."""
        pairs = zip(self.factors, self.linear, strict=True)
        return np.stack([factor.solve(linear) for factor, linear in pairs])

    @cached_property
    def log_evidence(self) -> float:
        """What the functions add to the log evidence."""
        total = 0.0
        for factor, linear, mode, prior in zip(self.factors, self.linear, self.mode, self.prior, strict=True):
            total += float(linear @ mode + np.log(prior).sum() - factor.log_determinant)
        return 0.5 * total


def shape_at_rows(
    rows: TrainingRows, columns: Columns, weights: FloatArray | None, n_thresholds: int, workers: Workers
) -> RowShape | None:
    """Return the shape at each row; None if there are no weights, (K, m)."""
    if weights is None:
        return None
    blocks = row_blocks(len(rows), len(columns))
    parts = list(workers.map(lambda block: RowShape.of(columns(block), weights, n_thresholds), blocks))
    return RowShape(
        np.concatenate([part.noise_scale for part in parts]),
        np.concatenate([part.gap_factors for part in parts], axis=1),
    )


def fit_shape(
    rows: TrainingRows,
    functions: Functions,
    columns: Columns,
    mode: Mode,
    start: FloatArray,
    precision: FloatArray,
    workers: Workers,
    max_rounds: int = MAX_ROUNDS,
    max_steps: int = MAX_STEPS,
) -> ShapeFit:
    """Fit the weights of functions, whose values are `columns`, in the sums of the shape.

    `start`, (K, m), and `precision`, (K,), are first guesses.
    """
    weights, precision = start.copy(), precision.copy()
    if not len(functions):
        return ShapeFit(weights, precision)
    height = _squared_heights(rows, functions)
    nothing = np.zeros(0)
    known: dict[tuple[int, bytes], Expansion] = {}

    def expand_at(q: int, u: FloatArray, _: FloatArray) -> Expansion:
        trial = weights.copy()
        trial[q] = u
        where = q, trial.tobytes()
        if where not in known:  # else where the round before ended
            known.clear()
            known[where] = expand_shape(rows, columns, mode, trial, q, workers)
        return known[where]

    for _ in range(max_rounds):
        before = precision.copy()
        for q in range(len(weights)):
            prior = precision[q] * height
            expand_sum = partial(expand_at, q)
            found = find_mode(expand_sum, prior, weights[q], nothing, tol=1e-2, max_steps=max_steps)
            weights[q] = found.weights
            variance = np.diag(posterior_covariance(found)).copy()
            determined = len(height) - float(prior @ variance)
            size = float(height @ weights[q] ** 2)
            precision[q] = np.clip(determined / max(size, 1e-12), *_PRECISIONS)
        if np.abs(np.log(precision / before)).max() < 0.1:
            break
    return ShapeFit(weights, precision)


def shape_model(
    rows: TrainingRows,
    functions: Functions,
    columns: Columns,
    mode: Mode,
    weights: FloatArray,
    precision: FloatArray,
    workers: Workers,
    total_weight: float,
) -> ShapeModel:
    """Expand the log posterior in the weights of each sum of the shape, (K, m); `precision`, (K,), is λ.

    `total_weight` is that of all rows, of which these may be a sample.
    """
    prior, share = precision[:, None] * _squared_heights(rows, functions), total_weight / rows.total_weight
    sums = [expand_shape(rows, columns, mode, weights, q, workers) for q in range(len(weights))]
    at = np.stack(
        [add_diagonal(share * here.precision, of_sum) for here, of_sum in zip(sums, prior, strict=True)]
    )
    slope = share * np.stack([here.gradient for here in sums]) - prior * weights
    return ShapeModel(at, np.einsum("qij,qj->qi", at, weights) + slope, prior)


def _squared_heights(rows: TrainingRows, functions: Functions) -> FloatArray:
    """Return h² of each function."""
    reach = np.square(functions(rows.reference.X)).max(axis=0)
    return np.where(functions.ramp, np.maximum(reach, 1e-6), 1.0)


def expand_shape(
    rows: TrainingRows, columns: Columns, mode: Mode, weights: FloatArray, q: int, workers: Workers
) -> Expansion:
    """Expand the log likelihood in the weights of sum q, with the score fixed at its mode."""
    edge, patterns = edges(mode.thresholds), gap_patterns(len(mode.thresholds), len(weights) - 1)
    weights = np.ascontiguousarray(weights)  # a selection of functions may have another layout

    def add(block: slice, sums: Sums) -> None:
        part = block_of(columns(block), rows, block, None)
        add_shape_block(part, mode.weights, edge, weights, patterns, q, sums)

    sums = summed(add, rows, len(columns), len(columns), workers)
    return Expansion(weights[q], np.zeros(0), float(sums.totals[0]), sums.gradient, sums.precision, 0.0, 0.0)
