"""Gradient ascent of the log evidence in the centres and metrics of the active functions.

Selection chooses among proposed functions. Here the chosen functions are improved together with their prior
precisions, all at once, by L-BFGS. The parameters are the logarithms of scales, and centres in units of the
width of the function, so that one step length suits all. A feature that a function does not use stays unused.

`share_metric` does the same for one metric shared by all functions (automatic relevance determination).
"""

from dataclasses import replace

import numpy as np

from isbor._core.linalg import UnresolvedError
from isbor._core.parallel import Workers
from isbor._core.types import BoolArray, FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.inference.sparse import SparseModel, fit_weights
from isbor.model.basis import monomials
from isbor.model.cuts import RowShape
from isbor.search.compiled_ascent import Problem, climb

__all__ = ["move_functions", "share_metric", "typical_widths"]

# Newton decrement at which a mode counts as found. Scales that are shared are few and found precisely; value
# and gradient must agree for that, or line searches fail by rounding. Many functions are moved a part of the
# way only, for which rough modes suffice.
_ROUGH, _PRECISE = 1e-2, 1e-6


def typical_widths(metric: FloatArray, ramp: BoolArray) -> FloatArray:
    """Return the typical distance, at most 2, over which functions with these scales vary."""
    theta = np.abs(metric)
    width = np.where(ramp, 1.0 / np.maximum(theta, 0.3), np.sqrt(0.5 / np.maximum(theta, 0.1)))
    return np.minimum(width, 2.0)


def move_functions(
    rows: TrainingRows,
    model: SparseModel,
    max_steps: int,
    workers: Workers,
    shape: RowShape | None = None,
) -> SparseModel:
    """Return the model with better centres, metrics and precisions, or the same model if none are found.

    `shape` is the noise of each row; None means 1. All rows must have the same thresholds.
    """
    used = model.functions.metric != 0.0
    n_used = int(np.count_nonzero(used))
    of_metric, of_centres = np.full(used.shape, -1), np.full(used.shape, -1)
    of_metric[used] = np.arange(n_used)
    of_centres[used] = n_used + np.arange(n_used)
    return _climb(rows, model, of_metric, of_centres, max_steps, workers, _ROUGH, shape)


def share_metric(
    rows: TrainingRows, model: SparseModel, group: IntArray, max_steps: int, workers: Workers
) -> SparseModel:
    """Return the model with better scales, or the same model if none are found.

    All functions share the scales. Columns with the same number in `group`, (d,), have the same scale.
    """
    numbers = np.unique(group[rows.varying])  # groups without varying columns are not changed
    free = np.isin(group, numbers)
    parameter = np.where(free, np.searchsorted(numbers, group), -1)
    of_metric = np.tile(parameter, (len(model), 1))
    return _climb(rows, model, of_metric, np.full(of_metric.shape, -1), max_steps, workers, _PRECISE)


def _climb(
    rows: TrainingRows,
    model: SparseModel,
    of_metric: IntArray,
    of_centres: IntArray,
    max_steps: int,
    workers: Workers,
    mode_tol: float,
    shape: RowShape | None = None,
) -> SparseModel:
    """Maximise the log evidence in ln α and in the parameters of metric and centres, by their numbers."""
    n_parameters = int(max(of_metric.max(initial=-1), of_centres.max(initial=-1))) + 1
    if not n_parameters:
        return model
    workers.check()
    functions, start = model.functions, model.mode
    problem = Problem(
        monomials(rows.X),
        rows.y,
        rows.weight,
        np.ones(len(rows)) if shape is None else shape.noise_scale,
        functions.centres,
        functions.metric,
        functions.ramp,
        functions.offset,
        start.alpha,
        of_metric,
        of_centres,
        typical_widths(functions.metric, functions.ramp[:, None]),
        start.expansion.threshold_precision,
        mode_tol,
    )
    mode = np.concatenate([start.weights, start.thresholds])
    m = len(model)
    centres, metric, alpha = climb(problem, n_parameters + m, mode, max_steps)
    moved = replace(functions, centres=centres, metric=metric).centred_on(rows)
    try:
        fitted = fit_weights(rows, moved, alpha, mode[:m], mode[m:], workers, shape)
    except UnresolvedError:
        return model
    return fitted if fitted.log_evidence > model.log_evidence else model
