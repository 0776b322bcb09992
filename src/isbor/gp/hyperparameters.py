r"""The hyperparameters of a Gaussian process with ordered labels, found by maximising the evidence.

Amplitude, widths and thresholds maximise the approximate log evidence (see `isbor.gp.process`) by L-BFGS with
the exact gradient, from several starting points; the best result is used. Thresholds are parametrised by
their gaps, in units of the latent response (score plus noise):

.. math:: b = \sqrt{1 + a^2}\, c, \qquad c_1, \; \ln(c_2 - c_1), \; \ln(c_3 - c_2), \; \dots

So the problem is well scaled both if there is only noise (a → 0, and b are the normal quantiles of the class
frequencies) and if the classes can be separated (a → ∞, and b grows with a). In these coordinates,

.. math::
    \frac{\partial}{\partial \ln a}\Big|_c = \frac{\partial}{\partial \ln a}\Big|_b
        + \frac{a^2}{1 + a^2} \sum_k b_k \frac{\partial}{\partial b_k}, \qquad
    \frac{\partial}{\partial \ln(c_{j+1} - c_j)}
        = (c_{j+1} - c_j) \sqrt{1 + a^2} \sum_{k > j} \frac{\partial}{\partial b_k} .
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import Bounds, minimize

from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.gp.process import Covariance, Inference, ProcessPosterior
from isbor.inference.mode import starting_thresholds

__all__ = ["ProcessSettings", "ProcessFit", "fit_process"]

# Limits of the amplitude, in units of the noise. If labels can be explained without noise, the evidence
# increases with the amplitude, but less and less.
_AMPLITUDES = (1e-2, 300.0)
# Limits of θ times the number of features d: the mean squared distance of standardised rows is 2d.
_WIDTHS = (1e-5, 1e3)
_GAPS = (1e-8, 20.0)  # limits of the gaps, in units of the latent response
_STARTING_WIDTHS = (0.1, 1.0)
_RANDOM_AMPLITUDES = (0.3, 30.0)
_RANDOM_WIDTHS = (0.01, 10.0)
_MEMORY = 20  # pairs of steps and gradients stored by L-BFGS


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """Settings of the search for hyperparameters."""

    n_features: int  # number of features that vary; widths are given in units of 1/n_features
    gamma: float | None = None  # the width, if it is given
    ard: bool = False  # one scale for each column instead of one for all
    n_restarts: int = 0  # number of random starting points
    max_iter: int = 200
    tol: float = 1e-7  # the search ends if the log evidence increases by a smaller share in an iteration
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ProcessFit:
    """Hyperparameters and the posterior given them."""

    covariance: Covariance
    thresholds: FloatArray  # (r-1,) b
    posterior: ProcessPosterior
    log_evidence: float
    n_iter: int = 0
    converged: bool = False


def fit_process(rows: TrainingRows, infer: Inference, settings: ProcessSettings) -> ProcessFit:
    """Return the hyperparameters with the highest evidence, searched from several starting points.

    The search for one scale per column starts from the result of the search for one width.
    """
    rng = np.random.default_rng(settings.seed)
    d = rows.X.shape[1]
    shared = _Coordinates.of(rows, settings, np.zeros(d, dtype=np.intp))
    widths = _STARTING_WIDTHS if settings.gamma is None else (settings.gamma * settings.n_features,)
    starts = [shared.point(1.0, np.array([width / settings.n_features])) for width in widths]
    best = _climb_from(starts, rows, infer, shared, settings, rng)
    if settings.ard:
        apart = _Coordinates.of(rows, settings, np.arange(d))
        starts = [apart.point(best.covariance.amplitude, best.covariance.scales, best.thresholds)]
        best = _climb_from(starts, rows, infer, apart, settings, rng)
    return best


def _climb_from(
    starts: Sequence[FloatArray],
    rows: TrainingRows,
    infer: Inference,
    coordinates: "_Coordinates",
    settings: ProcessSettings,
    rng: np.random.Generator,
) -> ProcessFit:
    """Return the best result of searches from these points and from random ones."""
    starts = [*starts, *(coordinates.random_point(rng) for _ in range(settings.n_restarts))]
    fits = (_climb(rows, infer, coordinates, start, settings) for start in starts)
    return max(fits, key=lambda fit: fit.log_evidence)


@dataclass(frozen=True, slots=True)
class _Coordinates:
    """Coordinates of the search: ln a, ln θ of each group of columns, c_1, logarithms of the gaps of c."""

    group: IntArray  # (d,) group number of each column
    n_groups: int
    start: FloatArray  # (r-1,) c at the start
    lowest: FloatArray  # (p,) lower bounds
    highest: FloatArray  # (p,) upper bounds
    unit: float  # unit of widths

    @classmethod
    def of(cls, rows: TrainingRows, settings: ProcessSettings, group: IntArray) -> "_Coordinates":
        """Return the coordinates for these groups of columns, numbered from 0."""
        unit = 1.0 / settings.n_features
        widths = np.multiply(_WIDTHS, unit) if settings.gamma is None else np.full(2, settings.gamma)
        c = starting_thresholds(rows.y, rows.weight)
        n_groups = int(group[-1]) + 1

        def bounds(end: int, first: float) -> FloatArray:
            log_widths, log_gaps = np.log(widths[end]), np.log(_GAPS[end])
            parts = np.full(n_groups, log_widths), [first], np.full(len(c) - 1, log_gaps)
            return np.concatenate([[np.log(_AMPLITUDES[end])], *parts])

        # The first threshold has no bounds: if all coordinates had, the first step of L-BFGS-B would go to
        # the bounds.
        return cls(group, n_groups, c, bounds(0, -np.inf), bounds(1, np.inf), unit)

    def point(self, amplitude: float, scales: FloatArray, thresholds: FloatArray | None = None) -> FloatArray:
        """Return the point with these parameters, with one scale for each group."""
        c = self.start if thresholds is None else thresholds / np.hypot(1.0, amplitude)
        point = np.concatenate([[np.log(amplitude)], np.log(scales), c[:1], np.log(np.diff(c))])
        return np.asarray(np.clip(point, self.lowest, self.highest))

    def random_point(self, rng: np.random.Generator) -> FloatArray:
        """Return a point with random amplitude and scales."""
        low, high = np.log(_RANDOM_AMPLITUDES)
        amplitude = float(np.exp(rng.uniform(low, high)))
        low, high = np.log(_RANDOM_WIDTHS)
        return self.point(amplitude, self.unit * np.exp(rng.uniform(low, high, self.n_groups)))

    def read(self, point: FloatArray) -> tuple[Covariance, FloatArray]:
        """Return covariance and thresholds at a point."""
        log_amplitude, log_scales, first, log_gaps = np.split(point, self._ends)
        amplitude = float(np.exp(log_amplitude[0]))
        c = np.cumsum(np.concatenate([first, np.exp(log_gaps)]))
        return Covariance(amplitude, np.exp(log_scales)[self.group]), np.hypot(1.0, amplitude) * c

    @property
    def _ends(self) -> tuple[int, int, int]:
        """Ends of the parts of a point, except for the last."""
        return 1, 1 + self.n_groups, 2 + self.n_groups

    def gradient(
        self,
        point: FloatArray,
        by_log_amplitude: float,
        by_log_scales: FloatArray,
        by_thresholds: FloatArray,
    ) -> FloatArray:
        """Convert a gradient in (ln a, ln θ, b) to one in the coordinates."""
        covariance, thresholds = self.read(point)
        response = np.hypot(1.0, covariance.amplitude)
        by_log_response = float(by_thresholds @ thresholds)
        # A gap moves all thresholds above it.
        above = response * np.cumsum(by_thresholds[::-1])[::-1]
        return np.concatenate(
            [
                [by_log_amplitude + by_log_response * (covariance.amplitude / response) ** 2],
                np.bincount(self.group, by_log_scales),
                above[:1],
                above[1:] * np.exp(point[self._ends[-1] :]),
            ]
        )


def _climb(
    rows: TrainingRows,
    infer: Inference,
    coordinates: _Coordinates,
    start: FloatArray,
    settings: ProcessSettings,
) -> ProcessFit:
    """Maximise the log evidence from a starting point, by L-BFGS within the bounds."""
    best: ProcessFit | None = None

    def negative(point: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        covariance, thresholds = coordinates.read(point)
        gram = covariance.gram(rows.X)
        evidence = infer(gram, rows, thresholds, best.posterior if best is not None else None)
        if best is None or evidence.log_evidence > best.log_evidence:
            best = ProcessFit(covariance, thresholds, evidence.posterior, evidence.log_evidence)
        by_log_amplitude, by_log_scales = covariance.gradient(rows.X, gram, evidence.by_gram)
        slope = coordinates.gradient(point, by_log_amplitude, by_log_scales, evidence.by_thresholds)
        return -evidence.log_evidence, -slope

    outcome = minimize(
        negative,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(coordinates.lowest, coordinates.highest),
        options={"maxiter": settings.max_iter, "ftol": settings.tol, "maxcor": _MEMORY},
    )
    assert best is not None  # L-BFGS evaluates its starting point
    return replace(best, n_iter=int(outcome.nit), converged=outcome.status != 1)
