r"""Labels by cut-offs of cumulative probabilities.

With cut-offs :math:`c_1, …, c_{r-1}`, the label of a row is

.. math:: \hat y = \max\big\{k : P(y \ge k) > c_k\big\},

and 0 if there is no such k. Whatever the cut-offs are, a row whose probabilities :math:`P(y \ge k)` are all
at least those of another row never gets a lower label. If all are ½, the label is the median. A cut-off below
½ calls class k sooner, as it should be if it is worse to overlook it than to call it in vain; with :math:`c_k
= 1`, class k is never called. If all predictions are shifts of one distribution, as those of a score with
constant noise, every rule by which labels do not fall with the score is one of cut-offs: so is the best rule
for a score that is monotone in this sense, such as the mean absolute error averaged over classes.

A score of a whole table, such as kappa, is no mean over rows, and not smooth. It is maximised one cut-off at
a time over a grid of log odds, until no change of a single cut-off raises it. Equal scores
go to the value nearest to the present one.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from isbor._core.types import FloatArray, IntArray

__all__ = ["best_cutoffs", "labels_by_cutoffs"]

_LOG_ODDS = np.concatenate([[-6.0, -5.0, -4.0], np.arange(-3.0, 3.5, 0.5), [4.0, 5.0, 6.0]])
_GRID = np.append(expit(_LOG_ODDS), 1.0)  # with ½; the last calls a class never
_MOST_ROUNDS = 20  # four suffice, as a rule


def labels_by_cutoffs(proba: FloatArray, cutoffs: FloatArray) -> IntArray:
    """Return the level of each row, (n, r) → (n,)."""
    return _levels(_at_least(proba), cutoffs)


def best_cutoffs(proba: FloatArray, score: Callable[[IntArray], float]) -> FloatArray:
    """Return cut-offs that maximise a score of the labels as far as changes of single ones do."""
    at_least, known = _at_least(proba), dict[bytes, float]()

    def value_of(position: IntArray) -> float:
        levels = _levels(at_least, _GRID[position])
        key = levels.tobytes()
        if key not in known:
            known[key] = score(levels)
        return known[key]

    position = np.full(at_least.shape[1], int(np.searchsorted(_GRID, 0.5)), dtype=np.intp)
    best = value_of(position)
    for _ in range(_MOST_ROUNDS):
        before = best
        for k in range(len(position)):
            for candidate in np.argsort(np.abs(np.arange(len(_GRID)) - position[k]), kind="stable"):
                trial = position.copy()
                trial[k] = candidate
                value = value_of(trial)
                if value > best:
                    position, best = trial, value
        if best == before:
            break
    cutoffs: FloatArray = _GRID[position]
    return cutoffs


def _at_least(proba: FloatArray) -> FloatArray:
    """Return P(y ≥ k) for k = 1, …, r − 1, (n, r − 1)."""
    at_least: FloatArray = proba[:, :0:-1].cumsum(axis=1)[:, ::-1]
    return at_least


def _levels(at_least: FloatArray, cutoffs: FloatArray) -> IntArray:
    called = (at_least > cutoffs) * np.arange(1, at_least.shape[1] + 1)
    levels: IntArray = called.max(axis=1, initial=0)
    return levels
