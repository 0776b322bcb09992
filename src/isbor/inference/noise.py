r"""Noise that varies with the row.

The latent response is the score plus noise of a standard deviation that may differ from row to row,

.. math:: y^* = f(x) + s(x)\,\varepsilon, \qquad \ln s(x) = \sum_m u_m \phi_m(x),

a sum of the same functions that the score is made of, cut off at ±3: far from all training rows it would
mean nothing. They are centred, so the typical noise stays 1. The weights have a prior
:math:`u_m \sim N(0, 1/(\lambda h_m^2))`, with :math:`h_m` the height of a bump, 1, or the largest value that
a ramp has on a sample: λ limits what a function does to the noise, whatever its slope. λ is the fixed point
of the evidence's gradient (MacKay); where noise does not vary, it goes to its limit and u to zero. Noise that
varies along a direction of its own, in which the score does not, is out of reach.

Given the score and the thresholds, with :math:`z_i` and :math:`g_i` as in `isbor.model.likelihood`, in units
of s,

.. math::
    q = \frac{\partial \ln p}{\partial \ln s} = z_2 g_2 - z_1 g_1, \qquad
    -\frac{\partial^2 \ln p}{\partial (\ln s)^2} = q^2 - z_1 g_1 (1 - z_1^2) + z_2 g_2 (1 - z_2^2) .

ln p is not concave in ln s everywhere; a row where it is not counts as flat, so that steps still lead uphill.
Given s, the rest of the model is what it was: derivatives in scores and thresholds are those in units of s.
"""

import numpy as np

from isbor._core.linalg import factorise
from isbor._core.parallel import Workers, row_blocks
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.inference.expansion import Columns, Expansion, columns_of
from isbor.inference.mode import Mode, find_mode, posterior_precision
from isbor.model.basis import Functions
from isbor.model.likelihood import edges, ordinal_probit

__all__ = ["expand_noise", "fit_noise", "noise_at", "noise_at_rows"]

_WIDEST = 3.0  # of ln s
_REFERENCE_ROWS = 1000  # that a function's height is taken from
_FIRST_PRECISION = 30.0
_PRECISIONS = (3.0, 1e6)
_MAX_ROUNDS = 8


def noise_at(phi: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the standard deviation of the noise where the functions take the values φ, (n, m)."""
    scale: FloatArray = np.exp(np.clip(phi @ weights, -_WIDEST, _WIDEST))
    return scale


def noise_at_rows(
    rows: TrainingRows, functions: Functions, weights: FloatArray | None, workers: Workers
) -> FloatArray | None:
    """Return the standard deviation of the noise at each row; None, which means 1, without weights."""
    if weights is None:
        return None
    blocks = row_blocks(len(rows), len(functions))
    parts = workers.map(lambda block: noise_at(functions(rows.X[block]), weights), blocks)
    return np.concatenate([np.zeros(0), *parts])


def fit_noise(rows: TrainingRows, functions: Functions, mode: Mode, workers: Workers) -> FloatArray:
    """Return the weights of the functions in the log of the noise."""
    weights = np.zeros(len(functions))
    if not len(functions):
        return weights
    columns = columns_of(rows, functions, workers)
    reach = np.square(functions(rows.head(_REFERENCE_ROWS).X)).max(axis=0)
    height = np.where(functions.ramp, np.maximum(reach, 1e-6), 1.0)
    precision = _FIRST_PRECISION
    nothing = np.zeros(0)
    for _ in range(_MAX_ROUNDS):
        noise = find_mode(
            lambda u, _: expand_noise(rows, columns, mode, u, workers),
            precision * height,
            weights,
            nothing,
            tolerance=1e-2,
        )
        weights = noise.weights
        covariance = factorise(posterior_precision(noise)).inverse()
        determined = len(weights) - precision * float(height @ np.diag(covariance))
        size = float(height @ weights**2)
        before, precision = precision, float(np.clip(determined / max(size, 1e-12), *_PRECISIONS))
        if abs(np.log(precision / before)) < 0.1:
            break
    return weights


def expand_noise(
    rows: TrainingRows, columns: Columns, mode: Mode, weights: FloatArray, workers: Workers
) -> Expansion:
    """Expand the log likelihood around weights of the log noise, the score held at its mode."""
    m = len(columns)
    cuts = edges(mode.thresholds)

    def block_sums(block: slice) -> tuple[float, FloatArray, FloatArray]:
        phi = columns(block)
        y, v = rows.y[block], rows.weight[block]
        scale = noise_at(phi, weights)
        moving = v * (np.abs(np.log(scale)) < _WIDEST)
        f = phi @ mode.weights / scale
        low, high = cuts[y] / scale, cuts[y + 1] / scale
        at = ordinal_probit(f, low, high)
        # Zero instead of infinite where there is no threshold: g is zero there.
        z1 = np.where(np.isfinite(high), high - f, 0.0)
        z2 = np.where(np.isfinite(low), low - f, 0.0)
        above, below = z1 * at.upper, z2 * at.lower
        slope = below - above
        curvature = slope**2 - above * (1.0 - z1**2) + below * (1.0 - z2**2)
        gradient = phi.T @ (moving * slope)
        phi *= np.sqrt(moving * np.maximum(curvature, 0.0))[:, None]
        return float(v @ at.log_p), gradient, phi.T @ phi

    log_likelihood, gradient, precision = 0.0, np.zeros(m), np.zeros((m, m))
    for part in workers.map(block_sums, row_blocks(len(rows), m)):
        log_likelihood += part[0]
        gradient += part[1]
        precision += part[2]
    return Expansion(weights, np.zeros(0), log_likelihood, gradient, precision, 0.0, 0.0)
