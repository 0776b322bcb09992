r"""A reference process: how far from a fitted model the truth may be, as far as the data can tell.

The uncertainty of a model's own weights is not all of its uncertainty. A sparse model has chosen its
functions by the same labels, and far from its functions it is sure of nothing in particular. So a second,
deliberately simple model is fitted beside it: a smooth Gaussian process of the score with thresholds, and a
smooth process of the logarithm of the noise. It selects nothing, knows nothing far from the data, and says
where it would put the thresholds in units of the noise,

.. math:: \eta_k(x) = \frac{b_k - f(x)}{s(x)},

as a Gaussian at each row: mean :math:`\mu` and covariance C, (r-1) × (r-1). `isbor.prediction.bands` compares
the fitted model with it.

**Score.** :math:`f \sim \mathrm{GP}(0, k)` with

.. math:: k(x, x') = a^2 \exp\Big(-\gamma \sum_d \theta_d (x_d - x'_d)^2\Big), \qquad \sum_d \theta_d = 1 .

The metric θ is given: features along which the fitted score changes more count for more. Amplitude a and
width γ maximise the evidence (Laplace's approximation, `isbor.inference.mode`) on a grid, for a sample of the
rows. With M inducing rows, and K their matrix of values of :math:`k/a^2`, the functions :math:`\psi(x) =
\Lambda^{-1/2} U^\top k(\cdot, x)/a^2`, from the eigenvectors U and eigenvalues Λ of K, have independent
weights :math:`u \sim N(0, a^2)`, so the posterior of weights and thresholds is that of any model of the
package. What the functions do not represent, :math:`a^2 (1 - \|\psi(x)\|^2)`, is added to the variance: it is
zero at the inducing rows, and grows to the prior variance far from them.

**Noise.** Given the score, :math:`t = \ln s` has the same kind of process. Its posterior is Gaussian if the
log likelihood is expanded to second order, with the curvature of `isbor.inference.shape`, which is never
negative. Its width is the one with the highest evidence; its amplitude is averaged over, so noise that the
data do not ask for hardly varies. Score and noise are fitted in turn, a few times. To first order in t,

.. math:: C_{kl} = \frac{\operatorname{Cov}(b_k - f, b_l - f)}{s^2} + \eta_k \eta_l \operatorname{Var} t .
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from scipy.special import softmax

from isbor._core.linalg import UnresolvedError
from isbor._core.parallel import Workers
from isbor._core.types import FloatArray
from isbor.data.rows import Scaling, TrainingRows
from isbor.inference.expansion import Columns, columns_of
from isbor.inference.mode import (
    Mode,
    find_mode_at_rows,
    log_evidence,
    posterior_covariance,
    starting_thresholds,
)
from isbor.model.cuts import RowShape
from isbor.model.likelihood import edges, ordinal_probit

__all__ = [
    "InducedFunctions",
    "Law",
    "NoiseProcess",
    "ReferenceProcess",
    "fit_reference",
    "noise_derivatives",
]

_MAX_ROWS = 8_000  # to which it is fitted
_SAMPLE_ROWS = 300  # for width and amplitude
_INDUCING, _INDUCING_NOISE = 100, 60
_WIDTHS = tuple(2.0 ** np.arange(-5, 3))  # γ
_AMPLITUDES = tuple(np.geomspace(0.1, 300.0, 8))  # a²
_LEAST_AMPLITUDE = 1e-6
_NOISE_WIDTHS = (0.03, 0.125, 0.5)
_NOISE_AMPLITUDES = np.geomspace(1e-2, 2.0, 12)
_RESOLVED = 1e-7  # smallest eigenvalue of K that counts, as a share of the largest
_EVEN_SHARE = 0.1  # of the metric that all features have alike
_LARGEST = 3.0  # of |t|
_ROUNDS = 3  # fits of the noise


class Law(NamedTuple):
    """The Gaussian of η at n rows."""

    mean: FloatArray  # (n, K)
    covariance: FloatArray  # (n, K, K)


@dataclass(frozen=True, slots=True)
class InducedFunctions:
    """Functions ψ of scaled rows, whose weights are independent in the prior."""

    metric: FloatArray  # (d,) γθ
    inducing: FloatArray  # (M, d) rows
    whitening: FloatArray  # (M, m)
    offset: FloatArray  # (m,) means over the training rows; they keep thresholds apart from scores

    @classmethod
    def of(cls, rows: TrainingRows, metric: FloatArray, count: int) -> Self:
        """Return the functions for the first rows as inducing ones."""
        inducing = rows.X[:count]
        size, vectors = np.linalg.eigh(_kernel(inducing, inducing, metric))
        kept = size > _RESOLVED * size[-1]
        found = cls(metric, inducing, vectors[:, kept] / np.sqrt(size[kept]), np.zeros(int(kept.sum())))
        return replace(found, offset=rows.weight @ found.plain(rows.X) / rows.total_weight)

    def __len__(self) -> int:
        return len(self.offset)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the centred functions, (n, m)."""
        return self.plain(X) - self.offset

    def plain(self, X: FloatArray) -> FloatArray:
        """Return the functions without their offsets, (n, m)."""
        values: FloatArray = _kernel(X, self.inducing, self.metric) @ self.whitening
        return values


def _kernel(X: FloatArray, Z: FloatArray, metric: FloatArray) -> FloatArray:
    """Return exp(-Σ_d θ_d (x_d - z_d)²) for all pairs, (n, M)."""
    values: FloatArray = X @ (2.0 * metric * Z).T
    values -= np.add.outer(*(np.einsum("ij,ij,j->i", rows, rows, metric) for rows in (X, Z)))
    np.minimum(values, 0.0, out=values)
    np.exp(values, out=values)
    return values


@dataclass(frozen=True, slots=True)
class NoiseProcess:
    """The posterior of t = ln s."""

    functions: InducedFunctions
    coef: FloatArray  # (m,) mean of the weights
    directions: FloatArray  # (m, m) orthogonal directions of the weights
    variances: FloatArray  # (m,) of the weights in these directions
    amplitude: float  # mean prior variance

    def moments(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance at scaled rows."""
        plain = self.functions.plain(X)
        psi = plain - self.functions.offset
        mean: FloatArray = _LARGEST * np.tanh(psi @ self.coef / _LARGEST)
        variance: FloatArray = np.square(psi @ self.directions) @ self.variances
        return mean, variance + self.amplitude * _missing(plain)


def _missing(plain: FloatArray) -> FloatArray:
    """Return the share of the prior variance that the functions do not represent, (n,)."""
    share: FloatArray = np.maximum(1.0 - np.einsum("ij,ij->i", plain, plain), 0.0)
    return share


@dataclass(frozen=True, slots=True)
class ReferenceProcess:
    """The fitted processes of score and noise."""

    scaling: Scaling
    functions: InducedFunctions  # of the score, m of them
    amplitude: float  # a²
    coef: FloatArray  # (m,) mean of their weights
    thresholds: FloatArray  # (K,)
    covariance: FloatArray  # (m + K, m + K) of weights and thresholds
    noise: NoiseProcess | None  # None if it does not vary
    log_evidence: float  # -∞ if it was fitted to a part of the rows only

    def law(self, X: FloatArray) -> Law:
        """Return the Gaussian of η at encoded rows."""
        scaled = self.scaling(X)
        plain = self.functions.plain(scaled)
        psi, m = plain - self.functions.offset, len(self.coef)
        t, variance_of_t = np.zeros((2, len(X))) if self.noise is None else self.noise.moments(scaled)
        mean = (self.thresholds - (psi @ self.coef)[:, None]) * np.exp(-t)[:, None]
        score = np.einsum("ij,ij->i", psi @ self.covariance[:m, :m], psi) + self.amplitude * _missing(plain)
        shared = psi @ self.covariance[:m, m:]
        covariance = self.covariance[m:, m:] - shared[:, :, None] - shared[:, None, :]
        covariance += score[:, None, None]
        covariance *= np.exp(-2.0 * t)[:, None, None]
        covariance += (variance_of_t[:, None] * mean)[:, :, None] * mean[:, None, :]
        return Law(mean, covariance)


def fit_reference(
    rows: TrainingRows, scaling: Scaling, slopes: FloatArray, workers: Workers
) -> ReferenceProcess:
    """Fit the processes; `slopes`, (d,), are the mean squared slopes of the fitted score."""
    sample = rows.head(_MAX_ROWS)
    # Fewer rows stand for all of them: the uncertainty is that of all.
    sample = replace(sample, weight=sample.weight * (rows.total_weight / sample.total_weight))
    metric = _metric(slopes, scaling)
    width, amplitude = _best_scale(rows.head(rows.prefix_size(_SAMPLE_ROWS)), metric, workers)
    functions = InducedFunctions.of(sample, width * metric, _INDUCING)
    columns = columns_of(sample, functions, workers)
    amplitude, mode = _first_mode(sample, columns, amplitude, workers)
    t, cost, noise = np.zeros(len(sample)), 0.0, None
    for _ in range(_ROUNDS):
        found, its_cost = _fit_noise(sample, mode, functions, metric, t)
        its_t = found.moments(sample.X)[0]
        shape = RowShape(np.exp(its_t), np.empty((0, len(sample))))
        try:
            mode = _mode(sample, columns, amplitude, mode, workers, shape)
        except UnresolvedError:  # this noise differs by too much between rows
            break
        t, noise, cost = its_t, found, its_cost
    evidence = log_evidence(mode) - cost
    return ReferenceProcess(
        scaling,
        functions,
        amplitude,
        mode.weights,
        mode.thresholds,
        posterior_covariance(mode),
        noise,
        evidence if len(sample) == len(rows) else -np.inf,
    )


def _metric(slopes: FloatArray, scaling: Scaling) -> FloatArray:
    """Return θ, of sum 1: a share for the slopes, and one for all columns alike."""
    even = (scaling.factor > 0.0).astype(np.float64)
    even = even / even.sum() if even.any() else np.full(len(even), 1.0 / len(even))
    total = slopes.sum()
    if not 0.0 < total < np.inf:
        return even
    metric: FloatArray = (1.0 - _EVEN_SHARE) * slopes / total + _EVEN_SHARE * even
    return metric


def _best_scale(rows: TrainingRows, metric: FloatArray, workers: Workers) -> tuple[float, float]:
    """Return the width and the amplitude with the highest evidence."""
    best, highest = (_WIDTHS[len(_WIDTHS) // 2], 1.0), -np.inf
    for width in _WIDTHS:
        functions = InducedFunctions.of(rows, width * metric, _INDUCING)
        columns = columns_of(rows, functions, workers)
        mode: Mode | None = None
        for amplitude in _AMPLITUDES:
            try:
                mode = _mode(rows, columns, amplitude, mode, workers)
                height = log_evidence(mode)
            except UnresolvedError:
                continue
            if height > highest:
                best, highest = (width, amplitude), height
    return best


def _first_mode(
    rows: TrainingRows, columns: Columns, amplitude: float, workers: Workers
) -> tuple[float, Mode]:
    """Return the mode with this amplitude, or with the largest smaller one for which it is resolved."""
    while True:
        try:
            mode = _mode(rows, columns, amplitude, None, workers)
            log_evidence(mode)
            return amplitude, mode
        except UnresolvedError:
            if amplitude < _LEAST_AMPLITUDE:
                raise
            amplitude *= 0.1


def _mode(
    rows: TrainingRows,
    columns: Columns,
    amplitude: float,
    start: Mode | None,
    workers: Workers,
    shape: RowShape | None = None,
) -> Mode:
    m = len(columns)
    weights = np.zeros(m) if start is None else start.weights
    thresholds = starting_thresholds(rows.y, rows.weight) if start is None else start.thresholds
    alpha = np.full(m, 1.0 / amplitude)
    return find_mode_at_rows(rows, columns, alpha, weights, thresholds, workers, shape, tol=1e-2)


def _fit_noise(
    rows: TrainingRows, mode: Mode, functions: InducedFunctions, metric: FloatArray, t: FloatArray
) -> tuple[NoiseProcess, float]:
    """Fit ln s given the score, from the expansion at t; return it with the cost of its weights in nats."""
    slope, curvature = noise_derivatives(rows, functions(rows.X) @ mode.weights, mode.thresholds, t)
    linear = slope + curvature * t
    fits = [_noise_of_width(rows, width * metric, linear, curvature) for width in _NOISE_WIDTHS]
    noise, _, cost = max(fits, key=lambda fit: fit[1])
    return noise, cost


def noise_derivatives(
    rows: TrainingRows, score: FloatArray, thresholds: FloatArray, t: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return slope and curvature of the log likelihood of each row in t = ln s.

    Of the curvature, what has mean zero under the model is left out.
    """
    edge, scale = edges(thresholds), np.exp(t)
    low, high = (edge[rows.y] - score) / scale, (edge[rows.y + 1] - score) / scale
    at = ordinal_probit(np.zeros(len(score)), low, high)
    above, below = np.where(np.isfinite(high), high, 0.0), np.where(np.isfinite(low), low, 0.0)
    slope = at.lower * below - at.upper * above
    curvature = at.upper_curvature * above**2 + at.lower_curvature * below**2
    curvature += at.upper * at.lower * (above - below) ** 2
    return rows.weight * slope, rows.weight * curvature


def _noise_of_width(
    rows: TrainingRows, metric: FloatArray, linear: FloatArray, curvature: FloatArray
) -> tuple[NoiseProcess, float, float]:
    """Return the noise with this metric, its highest log evidence, and the cost of its weights."""
    functions = InducedFunctions.of(rows, metric, _INDUCING_NOISE)
    psi = functions(rows.X)
    size, directions = np.linalg.eigh(psi.T @ (curvature[:, None] * psi))
    size = np.maximum(size, 0.0)
    pull = directions.T @ (psi.T @ linear)
    prior = _NOISE_AMPLITUDES[:, None]
    variances = 1.0 / (size + 1.0 / prior)  # (amplitudes, m)
    weights = pull * variances
    occam = -0.5 * np.log1p(prior * size).sum(axis=1)
    evidence = 0.5 * (pull * weights).sum(axis=1) + occam
    share = softmax(evidence)
    cost = float(share @ (0.5 * (weights**2 / prior).sum(axis=1) - occam))
    amplitude = float(share @ _NOISE_AMPLITUDES)
    noise = NoiseProcess(functions, directions @ (share @ weights), directions, share @ variances, amplitude)
    return noise, float(evidence.max()), cost
