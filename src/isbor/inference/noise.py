r"""Noise whose standard deviation varies with the row (heteroscedastic noise).

The latent response is the score plus noise, whose standard deviation s may differ between rows,

.. math:: y^* = f(x) + s(x)\,\varepsilon, \qquad \ln s(x) = \sum_m u_m \phi_m(x) .

The functions are those of the score. They are centred, so the typical noise scale stays 1. ln s is clipped to
±3, because it means nothing far from all training rows. The weights have the prior
:math:`u_m \sim N(0, 1/(\lambda h_m^2))`, where :math:`h_m` is the height of the function: 1 for a bump, the
largest value on a sample of rows for a ramp. So λ limits the effect of each function on the noise, whatever
its slope. λ is found by MacKay's fixed-point iteration for the evidence; if the noise does not vary, λ goes
to its upper limit and u to zero. Noise that varies only in directions in which the score does not vary cannot
be represented.

Given the score and the thresholds, with :math:`z_i` and :math:`g_i` as in `isbor.model.likelihood` and in
units of s,

.. math::
    q = \frac{\partial \ln p}{\partial \ln s} = z_2 g_2 - z_1 g_1, \qquad
    -\frac{\partial^2 \ln p}{\partial (\ln s)^2} = q^2 - z_1 g_1 (1 - z_1^2) + z_2 g_2 (1 - z_2^2) .

ln p is not concave in ln s everywhere. Negative curvatures are replaced by zero, so that Newton steps still
ascend. Given s, the rest of the model is as before, with scores and thresholds in units of s.
"""

import numpy as np

from isbor._core.parallel import Workers, row_blocks
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.inference.compiled_expansion import Block, Sums, add_noise_block
from isbor.inference.expansion import Columns, Expansion, summed
from isbor.inference.mode import Mode, find_mode, posterior_covariance
from isbor.model.basis import Functions
from isbor.model.likelihood import edges

__all__ = [
    "FIRST_PRECISION",
    "MAX_LOG_SCALE",
    "expand_noise",
    "fit_noise",
    "noise_scale_of",
    "noise_scale_at_rows",
]

MAX_LOG_SCALE = 3.0  # limit on |ln s|
FIRST_PRECISION = 30.0  # starting value of λ
_PRECISIONS = (3.0, 1e6)  # limits of λ
_MAX_ROUNDS = 8


def noise_scale_of(phi: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the standard deviation of the noise at rows where the functions have the values φ, (n, m)."""
    scale: FloatArray = np.exp(np.clip(phi @ weights, -MAX_LOG_SCALE, MAX_LOG_SCALE))
    return scale


def noise_scale_at_rows(
    rows: TrainingRows, columns: Columns, weights: FloatArray | None, workers: Workers
) -> FloatArray | None:
    """Return the standard deviation of the noise at each row; None (all 1) if there are no weights."""
    if weights is None:
        return None
    blocks = row_blocks(len(rows), len(columns))
    parts = workers.map(lambda block: noise_scale_of(columns(block).T, weights), blocks)
    return np.concatenate([np.zeros(0), *parts])


def fit_noise(
    rows: TrainingRows,
    functions: Functions,
    columns: Columns,
    mode: Mode,
    workers: Workers,
    precision: float = FIRST_PRECISION,
) -> tuple[FloatArray, float]:
    """Return the weights u of the functions, whose values are `columns`, in the log noise scale, and λ.

    `precision` is a first guess of λ.
    """
    weights = np.zeros(len(functions))
    if not len(functions):
        return weights, precision
    reach = np.square(functions(rows.reference.X)).max(axis=0)
    height = np.where(functions.ramp, np.maximum(reach, 1e-6), 1.0)
    nothing = np.zeros(0)
    last: Expansion | None = None

    def expand_at(u: FloatArray, _: FloatArray) -> Expansion:
        if last is not None and np.array_equal(u, last.weights):  # where the round before ended
            return last
        return expand_noise(rows, columns, mode, u, workers)

    for _ in range(_MAX_ROUNDS):
        noise = find_mode(expand_at, precision * height, weights, nothing, tol=1e-2)
        weights, last = noise.weights, noise.expansion
        covariance = posterior_covariance(noise)
        determined = len(weights) - precision * float(height @ np.diag(covariance))
        size = float(height @ weights**2)
        before, precision = precision, float(np.clip(determined / max(size, 1e-12), *_PRECISIONS))
        if abs(np.log(precision / before)) < 0.1:
            break
    return weights, precision


def expand_noise(
    rows: TrainingRows, columns: Columns, mode: Mode, weights: FloatArray, workers: Workers
) -> Expansion:
    """Expand the log likelihood around weights u of the log noise scale, with the score fixed at its mode."""
    edge, unused = edges(mode.thresholds), np.ones(len(rows))

    def add(block: slice, sums: Sums) -> None:
        part = Block(columns(block), rows.y[block], rows.weight[block], unused[block])
        add_noise_block(part, mode.weights, edge, weights, MAX_LOG_SCALE, sums)

    sums = summed(add, rows, len(columns), len(columns), workers)
    return Expansion(weights, np.zeros(0), float(sums.totals[0]), sums.gradient, sums.precision, 0.0, 0.0)
