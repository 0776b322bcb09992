r"""Hyper-parameters by cross-validation, as a race.

The point of the grid is wanted whose error, averaged over the folds, is the least. Points that are far behind
need not run to the end: let :math:`d_i` be the error of a point on row :math:`i` less that of the point that
is best so far, over the :math:`n` rows of the folds that are done. A point leaves the race when

.. math:: \bar d > c \; s_d / \sqrt n

with :math:`c` standard errors, five unless the description says otherwise: were rows independent, a point
that is as good as the best would be lost once in three million times. Rows of a fold share the model that
they test, and the best of many points is a lucky one: that is why :math:`c` is large. What is left after the
last fold is compared on all folds, as if nobody had left. Source: O. Maron and A. W. Moore, "Hoeffding
races", 1993, with paired differences as in M. Birattari et al., "A racing algorithm for configuring
metaheuristics", 2002.

Only errors of single rows make a race. The absolute error has them; with other scores all points run to the
end.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, StratifiedKFold

from isbor._core.types import FloatArray, IntArray
from isbor.experiments.description.experiment import Search
from isbor.experiments.description.tasks import take_rows
from isbor.metrics import get_scorer

__all__ = ["best_point"]

_FEWEST_ROWS = 30  # that a standard error is taken from


def best_point(
    estimator: Any, grid: Mapping[str, Sequence[Any]], X: Any, y: IntArray, search: Search
) -> dict[str, Any]:
    """Return the point of the grid with the least cross-validated error, the first of equal ones."""
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
    """Return numbers whose mean is the error: one a row where the score has that, else one alone."""
    if scoring == "mae":
        return np.abs(np.asarray(fitted.predict(X), dtype=np.float64) - y)
    return np.array([-get_scorer(scoring)(fitted, X, y)])


def _mean(folds: list[FloatArray]) -> float:
    return float(np.mean([errors.mean() for errors in folds]))


def _still_running(running: list[int], errors: list[list[FloatArray]], give_up: float) -> list[int]:
    """Return those that are not behind the best by more than `give_up` standard errors."""
    best = np.concatenate(errors[min(running, key=lambda k: _mean(errors[k]))])
    if len(best) < _FEWEST_ROWS:
        return running
    behind = {k: np.concatenate(errors[k]) - best for k in running}
    return [k for k, d in behind.items() if d.mean() / give_up <= d.std(ddof=1) / np.sqrt(len(d))]
