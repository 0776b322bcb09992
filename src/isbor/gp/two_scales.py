r"""A Gaussian process of two scales, a smooth score plus a local one, robust enough to need no supervision.

.. math::
    k(x, x') = a^2 \exp\Big(-\sum_d \theta_d (x_d - x'_d)^2\Big) + l^2 \exp\big(-\kappa \|x - x'\|^2\big) .

The smooth part has a scale for each column. The local part has one short width. It learns what holds for near
rows only, or, if l is large, that labels of equal rows agree: a part of the noise that equal rows share.

**Parameters** are ln a, ln l/a, ln κ, the logarithm of the common scale, :math:`z_g = \ln \theta_g` relative
to it, for each group of columns g, and the thresholds b = Rc, :math:`R^2 = 1 + a^2 + l^2`, as in
`isbor.gp.hyperparameters`: the first of c, and the logarithms of its gaps. They maximise the log evidence by
expectation propagation (`isbor.gp.pooled`) plus the log prior

.. math:: z_g \sim N(0, 2^2), \qquad \ln a \sim N(0, 3^2), \qquad \ln l/a \sim N(-1, 3^2),

without which 70 scales would be learned from 140 rows, and the amplitude would go to infinity if the classes
can be separated. With :math:`D = \sum_k b_k\, \partial L/\partial b_k`,

.. math::
    \frac{\partial L}{\partial \ln a}\Big|_{l/a, c}
        = \frac{\partial L}{\partial \ln a} + \frac{\partial L}{\partial \ln l}
        + \frac{a^2 + l^2}{R^2} D, \qquad
    \frac{\partial L}{\partial \ln l/a} = \frac{\partial L}{\partial \ln l} + \frac{l^2}{R^2} D .

**Search.** L-BFGS on a few rows with one scale for all columns, then on more rows with all scales, which
takes O(n³) for each evaluation. The posterior of all rows is computed once, at the end. Factors are kept in
units of the response, R, so that they remain good starts if the amplitude changes. The factors of rows that
join come from the predictions of their scores.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from scipy.optimize import Bounds, minimize

from isbor._core.types import FloatArray, IntArray
from isbor.gp.pooled import Factors, PooledEvidence, PooledRows, pooled_evidence, score_moments
from isbor.gp.process import Covariance, negative_squared_distances
from isbor.inference.mode import starting_thresholds

__all__ = ["Pairs", "TwoScales", "TwoScalesFit", "fit_two_scales"]

# Limits of a, l/a, κ and the common scale times the number of features, deviations z, gaps.
_AMPLITUDES = (1e-2, 300.0)
_RATIOS = (1e-3, 10.0)
_LOCAL_WIDTHS = (1.0, 1e3)
_WIDTHS = (1e-4, 30.0)
_DEVIATIONS = (-8.0, 5.0)
_GAPS = (1e-8, 20.0)
# Where the search starts.
_FIRST_RATIO, _FIRST_LOCAL_WIDTH, _FIRST_WIDTH = 0.3, 10.0, 0.2
# Prior standard deviations, and the prior mean of ln l/a.
_AMPLITUDE_SPREAD, _RATIO_SPREAD, _DEVIATION_SPREAD = 3.0, 3.0, 2.0
_RATIO_MEAN = -1.0
_ROWS_PER_LEVEL = 4  # the first rows must include every level
_TOL = 1e-5  # share of the objective; an iteration that gains less is the last
_MISMATCH = 0.01  # of factors during the search; at 0.05, line searches failed because of it
_MEMORY = 20  # pairs of steps and gradients stored by L-BFGS
_LOWEST = -700.0  # exponent: below, exp takes seven times as long
_MAX_ROUNDS = 20  # of expectation propagation during the search


@dataclass(frozen=True, slots=True)
class _Climb:
    """Part of a search."""

    n_rows: int  # distinct rows, at most
    max_iter: int
    apart: bool  # a scale for each group of columns


_FROM_NOTHING = (
    _Climb(100, 12, False),
    _Climb(150, 20, True),
    _Climb(300, 6, True),
    _Climb(600, 8, True),
)
_FROM_START = (_Climb(300, 12, True), _Climb(600, 6, True))


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows, and what the covariances of all pairs of them need for any parameters."""

    X: FloatArray  # (n, d)
    distances: FloatArray  # (n, n) minus the squared distances

    @classmethod
    def of(cls, X: FloatArray) -> Self:
        """Compute the distances."""
        distances = negative_squared_distances(X, X)
        np.fill_diagonal(distances, 0.0)
        return cls(X, distances)


class Parts(NamedTuple):
    """The covariances of all pairs of rows, (n, n), of both parts."""

    smooth: FloatArray
    local: FloatArray

    @property
    def total(self) -> FloatArray:
        """Their sum."""
        return self.smooth + self.local


@dataclass(frozen=True, slots=True)
class TwoScales:
    """Parameters of the process: the coordinates of the search."""

    point: FloatArray  # ln a, ln l/a, ln κ, ln of the common scale, z (G), c_1, ln gaps of c
    group: IntArray  # (d,) group of each column, from 0 to G-1

    @property
    def smooth(self) -> Covariance:
        """The smooth part of the covariance."""
        deviations = self.point[4 : 4 + self.n_groups]
        return Covariance(float(np.exp(self.point[0])), np.exp(self.point[3] + deviations)[self.group])

    @property
    def local(self) -> Covariance:
        """The local part of the covariance."""
        width = float(np.exp(self.point[2]))
        return Covariance(float(np.exp(self.point[0] + self.point[1])), np.full(len(self.group), width))

    @property
    def n_groups(self) -> int:
        """Number of groups of columns, G."""
        return int(self.group.max()) + 1

    @property
    def variance(self) -> float:
        """Prior variance of the score, a² + l²."""
        return self.smooth.amplitude**2 + self.local.amplitude**2

    @property
    def response(self) -> float:
        """Prior standard deviation of the response, R."""
        return float(np.sqrt(1.0 + self.variance))

    @property
    def thresholds(self) -> FloatArray:
        """Thresholds, (r-1,) b."""
        gaps = self.point[4 + self.n_groups :].copy()
        gaps[1:] = np.exp(gaps[1:])
        return self.response * np.cumsum(gaps)

    def covariances(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        """Return the covariances between two sets of rows, shape (n, m)."""
        return self.smooth(X, Z) + self.local(X, Z)

    def parts(self, pairs: "Pairs") -> "Parts":
        """Return the covariances of all pairs of rows, part by part."""
        local: FloatArray = float(np.exp(self.point[2])) * pairs.distances
        np.maximum(local, _LOWEST, out=local)
        np.exp(local, out=local)
        local *= self.local.amplitude**2
        return Parts(self.smooth.gram(pairs.X), local)

    def gram(self, X: FloatArray) -> FloatArray:
        """Return the covariances of all pairs of rows, shape (n, n)."""
        return self.parts(Pairs.of(X)).total

    @property
    def log_prior(self) -> float:
        """Log prior density, up to a constant."""
        return -0.5 * float(np.sum(self._standardised**2))

    @property
    def _standardised(self) -> FloatArray:
        """The parameters that have a prior, in units of its standard deviation; zeros for the others."""
        return (self.point - self._prior_mean) * self._prior_root

    @property
    def _prior_mean(self) -> FloatArray:
        mean = np.zeros(len(self.point))
        mean[1] = _RATIO_MEAN
        return mean

    @property
    def _prior_root(self) -> FloatArray:
        """One over prior standard deviations, 0 for parameters without a prior."""
        root = np.zeros(len(self.point))
        root[:2] = 1.0 / _AMPLITUDE_SPREAD, 1.0 / _RATIO_SPREAD
        root[4 : 4 + self.n_groups] = 1.0 / _DEVIATION_SPREAD
        return root

    def gradient(self, pairs: "Pairs", parts: "Parts", evidence: PooledEvidence) -> FloatArray:
        """Return the gradient of log evidence plus log prior."""
        smooth, local = self.smooth, self.local
        by_a, by_scales = smooth.gradient(pairs.X, parts.smooth, evidence.by_gram)
        by_l, by_width = _local_gradient(pairs, parts.local, evidence.by_gram)
        by_width *= float(np.exp(self.point[2]))
        by_thresholds, response = evidence.by_thresholds, self.response
        by_response = float(by_thresholds @ self.thresholds) / response**2
        by_a += by_response * smooth.amplitude**2
        by_l += by_response * local.amplitude**2
        by_deviations = np.bincount(self.group, by_scales)
        # A gap moves all thresholds above it.
        above = response * np.cumsum(by_thresholds[::-1])[::-1]
        above[1:] *= np.exp(self.point[5 + self.n_groups :])
        gradient = np.concatenate([[by_a + by_l, by_l, by_width, by_deviations.sum()], by_deviations, above])
        return gradient - self._standardised * self._prior_root


def _local_gradient(pairs: Pairs, local: FloatArray, by_gram: FloatArray) -> tuple[float, float]:
    """Convert the lower triangle of a symmetric gradient to one in (ln l, κ)."""
    products = by_gram.T * local  # an upper triangle, in the memory order of both
    whole = 2.0 * float(products.sum()) - float(np.einsum("ii->", products))
    return 2.0 * whole, 2.0 * float(np.vdot(products, pairs.distances))


@dataclass(frozen=True, slots=True)
class TwoScalesFit:
    """The fitted process."""

    parameters: TwoScales
    evidence: PooledEvidence  # of all rows
    n_climbs: int


def fit_two_scales(
    rows: PooledRows,
    group: IntArray,
    n_features: int,
    start: TwoScales | None = None,
    *,
    roughly: bool = False,
    is_late: Callable[[], bool] = lambda: False,
    report: Callable[[float, int], object] = lambda log_evidence, n_rows: None,
) -> TwoScalesFit:
    """Search for the parameters, and compute the posterior of all rows.

    Widths are in units of 1/`n_features`. `start` is the result for similar rows. If `roughly`, the last part
    of the search, on most rows, is left out. When `is_late`, the search ends. After each of its parts,
    `report` is called with the log evidence and the number of rows used.
    """
    n_levels, n_groups = int(rows.y.max()) + 1, int(group.max()) + 1
    bounds = _bounds(n_features, n_groups, n_levels)
    parameters = _first(rows, group, n_features) if start is None else start
    known: PooledRows | None = None  # rows with factors
    factors = Factors.weak(0)
    done: set[tuple[int, bool]] = set()
    climbs = _FROM_NOTHING if start is None else _FROM_START
    for climb in climbs[:-1] if roughly else climbs:
        some = rows.head(max(climb.n_rows, _ROWS_PER_LEVEL * n_levels))
        how = len(some), climb.apart and n_groups > 1
        if how in done:
            continue
        if is_late():
            break
        factors = _extended(factors, known, some, parameters)
        parameters, factors, log_evidence = _climb(
            some, parameters, factors, bounds, how[1], climb.max_iter, is_late
        )
        known = some
        done.add(how)
        report(log_evidence, len(some))
    factors = _extended(factors, known, rows, parameters)
    evidence = pooled_evidence(
        parameters.gram(rows.X), rows, parameters.thresholds, factors.scaled(parameters.response)
    )
    return TwoScalesFit(parameters, evidence, len(done))


def _first(rows: PooledRows, group: IntArray, n_features: int) -> TwoScales:
    """Return the parameters from which the search starts."""
    c = starting_thresholds(rows.y, rows.weight)
    widths = np.log([_FIRST_LOCAL_WIDTH / n_features, _FIRST_WIDTH / n_features])
    deviations = np.zeros(int(group.max()) + 1)
    point = np.concatenate([[0.0, np.log(_FIRST_RATIO)], widths, deviations, c[:1], np.log(np.diff(c))])
    return TwoScales(point, group)


def _bounds(n_features: int, n_groups: int, n_levels: int) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper limits of the parameters."""

    def limits(end: int, first: float) -> FloatArray:
        widths = np.log([_LOCAL_WIDTHS[end] / n_features, _WIDTHS[end] / n_features])
        amplitudes = np.log([_AMPLITUDES[end], _RATIOS[end]])
        gaps = np.full(n_levels - 2, np.log(_GAPS[end]))
        return np.concatenate([amplitudes, widths, np.full(n_groups, _DEVIATIONS[end]), [first], gaps])

    return limits(0, -np.inf), limits(1, np.inf)


class _LateError(Exception):
    """Raised to end a climb when the time is up."""


def _climb(
    rows: PooledRows,
    start: TwoScales,
    factors: Factors,
    bounds: tuple[FloatArray, FloatArray],
    apart: bool,
    max_iter: int,
    is_late: Callable[[], bool],
) -> tuple[TwoScales, Factors, float]:
    """Increase log evidence plus log prior by L-BFGS; return parameters, factors and log evidence.

    Factors are in units of the response. Unless `apart`, the deviations of the scales stay as they are.
    """
    best, best_factors, log_evidence, highest = start, factors, -np.inf, -np.inf
    pairs = Pairs.of(rows.X)

    def negative(point: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best, best_factors, log_evidence, highest
        if highest > -np.inf and is_late():
            raise _LateError
        at = replace(start, point=point.copy())
        parts = at.parts(pairs)
        evidence = pooled_evidence(
            parts.total,
            rows,
            at.thresholds,
            best_factors.scaled(at.response),
            tol=_MISMATCH,
            max_rounds=_MAX_ROUNDS,
        )
        height = evidence.log_evidence + at.log_prior
        if height > highest:
            best, highest, log_evidence = at, height, evidence.log_evidence
            best_factors = evidence.factors.scaled(1.0 / at.response)
        return -height, -at.gradient(pairs, parts, evidence)

    low, high = (limit.copy() for limit in bounds)
    if not apart:
        held = slice(4, 4 + start.n_groups)
        low[held] = high[held] = start.point[held]
    options = {"maxiter": max_iter, "ftol": _TOL, "maxcor": _MEMORY}
    with suppress(_LateError):
        minimize(
            negative,
            np.clip(start.point, low, high),
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(low, high),
            options=options,
        )
    return best, best_factors, log_evidence


def _extended(factors: Factors, known: PooledRows | None, rows: PooledRows, parameters: TwoScales) -> Factors:
    """Return factors of all labels of `rows`, of which the first are `known`, in units of the response."""
    if known is None:
        return Factors.weak(len(rows.y))
    if len(known) == len(rows):
        return factors
    thresholds, response = parameters.thresholds, parameters.response
    posterior = pooled_evidence(
        parameters.gram(known.X), known, thresholds, factors.scaled(response), tol=_MISMATCH
    ).posterior
    moments = score_moments(parameters.covariances(rows.X, known.X), parameters.variance, posterior)
    mean, variance = (moment[rows.row] for moment in moments)
    extended = Factors.in_cavities(mean, variance, rows.y, thresholds).scaled(1.0 / response)
    own = rows.row < len(known)
    extended.precision[own], extended.linear[own] = factors.precision, factors.linear
    return extended
