"""Models to start a search from."""

import numpy as np

from isbor._core.linalg import UnresolvedError
from isbor._core.parallel import Workers
from isbor._core.types import BoolArray, FloatArray
from isbor.data.rows import TrainingRows
from isbor.inference.mode import starting_thresholds
from isbor.model.basis import Functions, RowDictionary
from isbor.prediction.sparse import SparseModel, fit_weights

__all__ = ["INITIAL_FUNCTIONS", "INITIAL_REACH", "enlarged_model", "initial_model", "refit", "start_from"]

# The prior standard deviation of each starting function's part of the score, in units of the noise:
# wide enough not to hold back a signal that is nearly free of noise.
INITIAL_REACH = 30.0
INITIAL_FUNCTIONS = 30
# The same for functions added at a restart, in units of the standard deviation of the model's score.
_RESTART_REACH = 3.0


def start_from(
    rows: TrainingRows, functions: Functions, workers: Workers, reach: float = INITIAL_REACH
) -> SparseModel:
    """Return a model of some functions, all with weak priors."""
    functions, alpha = _weakly_held(functions, reach, rows)
    thresholds = starting_thresholds(rows.y, rows.weight)
    return fit_weights(rows, functions, alpha, np.zeros(len(functions)), thresholds, workers)


def initial_model(rows: TrainingRows, dictionary: RowDictionary, workers: Workers) -> SparseModel:
    """Start from a few functions of each class, all with weak priors, not from none.

    On an interaction (a saddle) single functions may gain nothing where several gain everything.
    """
    each = max(2, INITIAL_FUNCTIONS // rows.n_levels)
    chosen = np.sort(np.concatenate([np.flatnonzero(rows.y == k)[:each] for k in range(rows.n_levels)]))
    return start_from(rows, dictionary.basis(chosen), workers)


def refit(rows: TrainingRows, dictionary: RowDictionary, model: SparseModel, workers: Workers) -> SparseModel:
    """Bring a model to its mode on other rows or in another metric, or start anew where it has none."""
    mode = model.mode
    functions = dictionary.basis(model.functions.origin)
    try:
        return fit_weights(rows, functions, mode.alpha, mode.weights, mode.thresholds, workers)
    except UnresolvedError:
        return initial_model(rows, dictionary, workers)


def enlarged_model(rows: TrainingRows, model: SparseModel, fresh: Functions, workers: Workers) -> SparseModel:
    """Return the model with other functions added under weak priors: a place to restart from."""
    spread = float(np.std(model.functions(rows.head(1000).X) @ model.mode.weights))
    fresh, alpha = _weakly_held(fresh, _RESTART_REACH * max(spread, 1.0), rows)
    return fit_weights(
        rows,
        model.functions.followed_by(fresh),
        np.concatenate([model.mode.alpha, alpha]),
        np.concatenate([model.mode.weights, np.zeros(len(fresh))]),
        model.mode.thresholds,
        workers,
    )


def _weakly_held(functions: Functions, reach: float, rows: TrainingRows) -> tuple[Functions, FloatArray]:
    """Return the functions that are more than constants, and precisions that let each reach so far."""
    size = np.square(functions(rows.head(1000).X)).mean(axis=0)
    varying: BoolArray = size > 1e-14
    return functions.take(varying), size[varying] / reach**2
