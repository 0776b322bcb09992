"""Gradient ascent of the log evidence in the centres and metrics of the active functions.

Selection chooses among proposed functions. Here the chosen functions are improved together with their prior
precisions, all at once, by L-BFGS. The parameters are the logarithms of scales, and centres in units of the
width of the function, so that one step length suits all. A feature that a function does not use stays unused.

`share_metric` does the same for one metric shared by all functions (automatic relevance determination).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from isbor._core.linalg import UnresolvedError
from isbor._core.parallel import Workers
from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.inference.expansion import columns_of, expand
from isbor.inference.gradient import EvidenceGradient, evidence_gradient
from isbor.inference.mode import Mode, find_mode, log_evidence
from isbor.inference.sparse import SparseModel, fit_weights
from isbor.model.basis import Functions

__all__ = ["move_functions", "share_metric", "typical_widths"]

_MEMORY = 20  # pairs of steps and gradients stored by L-BFGS
# Newton decrement at which a mode counts as found. Scales that are shared are few and found precisely; value
# and gradient must agree for that, or line searches fail by rounding. Many functions are moved a part of the
# way only, for which rough modes suffice.
_ROUGH, _PRECISE = 1e-2, 1e-6
_TOO_FAR = 30.0  # a line search with larger parameters has failed
_REFUSED = 1e12  # objective value that makes the line search turn back


def typical_widths(functions: Functions) -> FloatArray:
    """Return the typical distance over which each function varies along each feature, at most 2, (m, d)."""
    theta = np.abs(functions.metric)
    width = np.where(
        functions.ramp[:, None], 1.0 / np.maximum(theta, 0.3), np.sqrt(0.5 / np.maximum(theta, 0.1))
    )
    return np.minimum(width, 2.0)


def move_functions(
    rows: TrainingRows,
    model: SparseModel,
    max_steps: int,
    workers: Workers,
    noise_scale: FloatArray | None = None,
) -> SparseModel:
    """Return the model with better centres, metrics and precisions, or the same model if none are found.

    `noise_scale`, (n,), is the standard deviation of each row's noise; None means 1.
    """
    functions = model.functions
    used = functions.metric != 0.0
    scales = used & ~functions.ramp[:, None]
    tilts = used & functions.ramp[:, None]
    width = typical_widths(functions)[used]
    ends = np.cumsum([np.count_nonzero(scales), np.count_nonzero(tilts), len(width)])

    def apply(p: FloatArray) -> Functions:
        log_scale, tilt, shift = np.split(p, ends[:-1])
        metric, centres = functions.metric.copy(), functions.centres.copy()
        metric[scales] *= np.exp(log_scale)
        metric[tilts] += tilt
        centres[used] += shift * width
        return replace(functions, metric=metric, centres=centres)

    def pull_back(moved: Functions, gradient: EvidenceGradient) -> FloatArray:
        return np.concatenate(
            [
                (gradient.metric * moved.metric)[scales],
                gradient.metric[tilts],
                gradient.centres[used] * width,
            ]
        )

    return _climb(rows, model, apply, pull_back, int(ends[-1]), max_steps, workers, _ROUGH, noise_scale)


def share_metric(
    rows: TrainingRows, model: SparseModel, group: IntArray, max_steps: int, workers: Workers
) -> SparseModel:
    """Return the model with better scales, or the same model if none are found.

    All functions share the scales. Columns with the same number in `group`, (d,), have the same scale.
    """
    functions = model.functions
    numbers = np.unique(group[rows.varying])  # groups without varying columns are not changed
    free = np.isin(group, numbers)
    parameter = np.searchsorted(numbers, group[free])

    def apply(p: FloatArray) -> Functions:
        factor = np.ones(len(group))
        factor[free] = np.exp(p)[parameter]
        return replace(functions, metric=functions.metric * factor)

    def pull_back(moved: Functions, gradient: EvidenceGradient) -> FloatArray:
        by_group = np.zeros(len(numbers))
        np.add.at(by_group, parameter, np.einsum("md,md->d", gradient.metric, moved.metric)[free])
        return by_group

    return _climb(rows, model, apply, pull_back, len(numbers), max_steps, workers, _PRECISE)


@dataclass(slots=True)
class _Latest:
    """The last mode found, from which the search for the next one starts."""

    weights: FloatArray
    thresholds: FloatArray


def _climb(
    rows: TrainingRows,
    model: SparseModel,
    apply: Callable[[FloatArray], Functions],
    pull_back: Callable[[Functions, EvidenceGradient], FloatArray],
    n_parameters: int,
    max_steps: int,
    workers: Workers,
    mode_tol: float,
    noise_scale: FloatArray | None = None,
) -> SparseModel:
    """Maximise the log evidence in ln α and in the parameters that `apply` maps to functions."""
    if not len(model) or not n_parameters:
        return model
    beta = model.mode.expansion.threshold_precision
    latest = _Latest(model.mode.weights, model.mode.thresholds)

    def negative(p: FloatArray) -> tuple[float, FloatArray]:
        if np.abs(p).max() > _TOO_FAR:
            return _REFUSED, np.zeros_like(p)
        functions, alpha = apply(p[:n_parameters]), model.mode.alpha * np.exp(p[n_parameters:])
        columns = columns_of(rows, functions, workers)
        try:
            mode: Mode = find_mode(
                lambda w, b: replace(expand(rows, columns, w, b, workers, noise_scale), held_precision=beta),
                alpha,
                latest.weights,
                latest.thresholds,
                tol=mode_tol,
            )
            evidence = log_evidence(mode)
            gradient = evidence_gradient(rows, functions, columns, mode, workers, noise_scale)
        except UnresolvedError:
            return _REFUSED, np.zeros_like(p)
        latest.weights, latest.thresholds = mode.weights, mode.thresholds
        return -evidence, -np.concatenate([pull_back(functions, gradient), gradient.log_alpha])

    best = minimize(
        negative,
        np.zeros(n_parameters + len(model)),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_steps, "maxfun": max_steps + max_steps // 3 + 2, "maxcor": _MEMORY},
    )
    p = best.x
    try:
        moved = fit_weights(
            rows,
            apply(p[:n_parameters]).centred_on(rows),
            model.mode.alpha * np.exp(p[n_parameters:]),
            latest.weights,
            latest.thresholds,
            workers,
            noise_scale,
        )
    except UnresolvedError:
        return model
    return moved if moved.log_evidence > model.log_evidence else model
