r"""Laplace's approximation for a Gaussian process with ordered labels.

**Mode.** Given thresholds, the log posterior of the scores f = Kα of all rows is, up to a constant,

.. math:: \psi = \sum_i v_i \ln p_i(f_i) - \tfrac12 \alpha^\top K \alpha .

It is concave because the noise density is log-concave. Let δ and H be the slopes and curvatures of ln p (see
`isbor.model.likelihood`), ∇ = vδ and W = diag(vH). A Newton step leads to the posterior with the factors
s = W, ν = Wf + ∇ of `isbor.gp.process`; its length is chosen to maximise ψ. At the mode, α = ∇.

**Evidence.** :math:`L = \psi - \tfrac12 \ln|B|`, :math:`B = I + W^{1/2} K W^{1/2}`.

**Gradient.** The gradient of ψ vanishes at the mode, but B depends on the mode through W, and the mode
depends on the parameters. Let Σ = K - KRK be the posterior covariance. With

.. math::
    \tau_i = \frac{\partial L}{\partial f_i} = -\tfrac12 \Sigma_{ii} \frac{\partial W_i}{\partial f_i}, \qquad
    df = (I - KR)\, dK\, \nabla, \qquad u = (I - RK)\tau,

a change of K gives

.. math::
    dL = \tfrac12 \nabla^\top dK\, \nabla - \tfrac12 \operatorname{tr}(R\, dK) + u^\top dK\, \nabla, \qquad
    \frac{\partial L}{\partial K} = \tfrac12 \big((\alpha + u)(\alpha + u)^\top - u u^\top - R\big)

because α = ∇. The derivative of ln p in the upper threshold of a row is g1, that of its slope in f is c1; the
curvature changes as well, and the mode changes by :math:`df = \Sigma\, d\nabla`. Since Στ = Ku,

.. math::
    \frac{\partial L}{\partial b_k} = \sum_{i: y_i = k}
        v_i \Big(g_1 - \tfrac12 \Sigma_{ii} \frac{\partial H}{\partial b_k} + (Ku)_i\, c_1\Big) + \dots ,

and likewise for the rows of which it is the lower threshold. H is 1 - Var z, where z is the truncated normal
variable of the row. With the third derivatives of `isbor.model.likelihood`,

.. math::
    \frac{\partial H}{\partial b_k} = -\partial_f c_1, \qquad
    \frac{\partial H}{\partial b_{k-1}} = -\partial_f c_2, \qquad
    \frac{\partial H}{\partial f} = \partial_f c_1 + \partial_f c_2 .

The variances come from the diagonal of :math:`B^{-1}`, which is :math:`1 - W_i \Sigma_{ii}`. This cancels for
a row with small curvature; but there the slope of the curvature is small as well.
"""

from dataclasses import dataclass

import numpy as np

from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.gp.process import Evidence, ProcessPosterior, process_posterior, sum_by_threshold
from isbor.model.likelihood import Derivatives, edge_slopes, edges, ordinal_probit

__all__ = ["laplace"]

_MAX_STEPS = 100
_DECREMENT = 1e-16  # Newton decrement at convergence; the error of ln|B| is about its square root
_MAX_TRIALS = 30  # step lengths tried
_SLOPE_LEFT = 0.1  # the line search ends at this share of the initial slope
_TINY = 1e-200


def laplace(
    gram: FloatArray, rows: TrainingRows, thresholds: FloatArray, start: ProcessPosterior | None = None
) -> Evidence:
    """Return the approximate log evidence by Laplace's method, with its gradient."""
    edge = edges(thresholds)
    low, high, v = edge[rows.y], edge[rows.y + 1], rows.weight
    mode = _find_mode(gram, low, high, v, start)
    at, posterior = mode.at, mode.posterior

    inverse = posterior.inverse()
    shrinkage = 1.0 - np.diag(inverse)
    # The posterior variance is at most the prior variance.
    variance = np.minimum(shrinkage / np.maximum(posterior.precision, _TINY), np.diag(gram))
    # Zero instead of infinity if there is no threshold.
    above = np.where(np.isfinite(high), high - mode.f - at.slope, 0.0)
    below = np.where(np.isfinite(low), mode.f + at.slope - low, 0.0)
    slopes = edge_slopes(at, above, below, 1.0 - at.curvature)
    tau = -0.5 * variance * v * (slopes.upper + slopes.lower)
    u = tau - posterior.reduce(gram @ tau)
    shift = gram @ u
    by_upper = v * (at.upper + 0.5 * variance * slopes.upper + shift * at.upper_curvature)
    by_lower = v * (-at.lower + 0.5 * variance * slopes.lower + shift * at.lower_curvature)
    return Evidence(
        posterior,
        mode.height - posterior.half_log_determinant,
        posterior.gradient(inverse, u),
        sum_by_threshold(rows.y, by_upper, by_lower),
    )


@dataclass(frozen=True, slots=True)
class _Mode:
    f: FloatArray  # (n,)
    at: Derivatives
    height: float  # ψ
    posterior: ProcessPosterior  # with the factors at f


def _find_mode(
    gram: FloatArray,
    low: FloatArray,
    high: FloatArray,
    v: FloatArray,
    start: ProcessPosterior | None,
) -> _Mode:
    """Maximise ψ by damped Newton steps, from zero or from another mode, whichever is higher."""
    coef = np.zeros(len(v))
    f = np.zeros(len(v))
    at = ordinal_probit(f, low, high)
    height = float(v @ at.log_p)
    if start is not None:
        other = gram @ start.coef
        other_at = ordinal_probit(other, low, high)
        other_height = float(v @ other_at.log_p - 0.5 * start.coef @ other)
        if other_height > height:
            coef, f, at, height = start.coef, other, other_at, other_height
    for _ in range(_MAX_STEPS):
        precision = v * at.curvature
        slope = v * at.slope
        posterior = process_posterior(gram, precision, precision * f + slope)
        direction = posterior.coef - coef
        change = gram @ direction
        decrement = float(change @ (slope - coef))
        if decrement < _DECREMENT:
            break
        # The step length maximises ψ, which takes O(n) along a line, by Newton steps or bisection.
        pull, bend = float(coef @ change), float(direction @ change)
        step, short, long = 1.0, 0.0, 2.0
        for _ in range(_MAX_TRIALS):
            at = ordinal_probit(f + step * change, low, high)
            rise = float((v * at.slope) @ change) - pull - step * bend
            if abs(rise) <= _SLOPE_LEFT * decrement:
                break
            short, long = (step, long) if rise > 0.0 else (short, step)
            step += rise / (float((v * at.curvature) @ change**2) + bend)
            step = step if short < step < long else 0.5 * (short + long)
        else:
            at = ordinal_probit(f + step * change, low, high)
        coef, f = coef + step * direction, f + step * change
    height = float(v @ at.log_p - 0.5 * coef @ f)
    return _Mode(f, at, height, posterior)
