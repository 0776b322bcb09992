r"""Grid search by cross-validation, as a race.

The grid point with the smallest mean error over the folds is chosen. Points far behind the best are dropped
early: let :math:`d_i` be the error of a point on row :math:`i` minus that of the best point so far, over the
:math:`n` rows of the folds done. A point is dropped when

.. math:: \bar d > c \; s_d / \sqrt n

with :math:`c = 5` standard errors by default. If rows were independent, a point as good as the best would be
dropped once in three million times. But rows of a fold share a model, and the best of many points is partly
lucky, so :math:`c` is large. The remaining points are compared on all folds. Source: O. Maron and A. W.
Moore, "Hoeffding races", 1993, with paired differences as in M. Birattari et al., "A racing algorithm for
configuring metaheuristics", 2002.

A race needs errors of single rows. The absolute error has them; with other scores, all points run on all
folds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, StratifiedKFold

from isbor._core.types import FloatArray, IntArray
from isbor.data.frames import take_rows
from isbor.experiments.description.experiment import Search
from isbor.metrics import get_scorer

__all__ = ["best_point"]

_FEWEST_ROWS = 30  # for a standard error


def best_point(
    estimator: Any, grid: Mapping[str, Sequence[Any]], X: Any, y: IntArray, search: Search
) -> dict[str, Any]:
    """Return the grid point with the smallest cross-validated error, the first of equals."""
    points = list(ParameterGrid({name: list(values) for name, values in grid.items()}))
    errors: list[list[FloatArray]] = [[] for _ in points]  # by point and fold
    running = list(range(len(points)))
    for train, test in StratifiedKFold(search.folds).split(y, y):
        X_train, X_test = take_rows(X, train), take_rows(X, test)
        for k in running:
            fitted = clone(estimator).set_params(**points[k]).fit(X_train, y[train])
            errors[k].append(_errors(fitted, X_test, y[test], search.scoring))
        running = _still_running(running, errors, search.give_up)
    return dict(points[min(running, key=lambda k: _mean(errors[k]))])


def _errors(fitted: Any, X: Any, y: IntArray, scoring: str) -> FloatArray:
    """Return the errors of the rows, or a single error if the score has none of single rows."""
    if scoring == "mae":
        return np.abs(np.asarray(fitted.predict(X), dtype=np.float64) - y)
    return np.array([-get_scorer(scoring)(fitted, X, y)])


def _mean(folds: list[FloatArray]) -> float:
    return float(np.mean([errors.mean() for errors in folds]))


def _still_running(running: list[int], errors: list[list[FloatArray]], give_up: float) -> list[int]:
    """Return the points that are at most `give_up` standard errors behind the best."""
    best = np.concatenate(errors[min(running, key=lambda k: _mean(errors[k]))])
    if len(best) < _FEWEST_ROWS:
        return running
    behind = {k: np.concatenate(errors[k]) - best for k in running}
    return [k for k, d in behind.items() if d.mean() / give_up <= d.std(ddof=1) / np.sqrt(len(d))]
