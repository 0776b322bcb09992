"""Starting models for a search."""

import numpy as np

from isbor._core.linalg import UnresolvedError
from isbor._core.parallel import Workers
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.inference.mode import starting_thresholds
from isbor.inference.sparse import SparseModel, fit_weights
from isbor.model.basis import Functions, RowDictionary

__all__ = [
    "INITIAL_FUNCTIONS",
    "INITIAL_REACH",
    "enlarged_model",
    "initial_model",
    "precisions_of_reach",
    "refit",
    "start_from",
]

# The reach of a function is the prior standard deviation of its contribution to the score, in units of the
# noise. This one is large enough for nearly noise-free labels.
INITIAL_REACH = 30.0
INITIAL_FUNCTIONS = 30
# Reach of functions added at a restart, in units of the standard deviation of the model's score.
_RESTART_REACH = 3.0


def start_from(
    rows: TrainingRows, functions: Functions, workers: Workers, reach: float = INITIAL_REACH
) -> SparseModel:
    """Return a model of the given functions, all with weak priors."""
    alpha = _weak_precisions(functions, reach, rows)
    varying = np.isfinite(alpha)
    thresholds = starting_thresholds(rows.y, rows.weight)
    weights = np.zeros(np.count_nonzero(varying))
    return fit_weights(rows, functions.take(varying), alpha[varying], weights, thresholds, workers)


def initial_model(rows: TrainingRows, dictionary: RowDictionary, workers: Workers) -> SparseModel:
    """Return a model with a few functions centred on rows of each class, all with weak priors.

    An empty model would not do: on an interaction (a saddle), single functions may gain nothing although
    several together gain much.
    """
    each = max(2, INITIAL_FUNCTIONS // rows.n_levels)
    chosen = np.sort(np.concatenate([np.flatnonzero(rows.y == k)[:each] for k in range(rows.n_levels)]))
    return start_from(rows, dictionary.basis(chosen), workers)


def refit(rows: TrainingRows, dictionary: RowDictionary, model: SparseModel, workers: Workers) -> SparseModel:
    """Refit a model to other rows or with another metric; return an initial model if that fails."""
    mode = model.mode
    functions = dictionary.basis(model.functions.origin)
    try:
        return fit_weights(rows, functions, mode.alpha, mode.weights, mode.thresholds, workers)
    except UnresolvedError:
        return initial_model(rows, dictionary, workers)


def enlarged_model(rows: TrainingRows, model: SparseModel, fresh: Functions, workers: Workers) -> SparseModel:
    """Return the model with other functions added under weak priors, to restart from."""
    spread = float(np.std(model.functions(rows.reference.X) @ model.mode.weights))
    alpha = _weak_precisions(fresh, _RESTART_REACH * max(spread, 1.0), rows)
    varying = np.isfinite(alpha)
    fresh = fresh.take(varying)
    return fit_weights(
        rows,
        model.functions.followed_by(fresh),
        np.concatenate([model.mode.alpha, alpha[varying]]),
        np.concatenate([model.mode.weights, np.zeros(len(fresh))]),
        model.mode.thresholds,
        workers,
    )


def _weak_precisions(functions: Functions, reach: float, rows: TrainingRows) -> FloatArray:
    """Return the prior precisions that give functions this reach over rows; infinite for constant ones."""
    return precisions_of_reach(np.square(functions(rows.reference.X)).mean(axis=0), reach)


def precisions_of_reach(size: FloatArray, reach: float) -> FloatArray:
    """Return the prior precisions of functions with these mean squares; infinite for constant ones."""
    return np.where(size > 1e-14, size / reach**2, np.inf)
