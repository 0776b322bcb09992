r"""Conformal sets of ordered labels.

Scores
------
With predicted probabilities :math:`p_k` of the classes :math:`0 < … < r - 1` of a row, the score of class k
is

.. math:: s(k) = \max\big(0,\; 1 - 2 \min(P(y \le k),\, P(y \ge k))\big),

zero for the median m (both probabilities are at least ½) and not decreasing on either side of it, since
:math:`P(y \le k)` falls to the left and :math:`P(y \ge k)` to the right. So :math:`\{k: s(k) \le t\}` is a
run of neighbouring classes around the median for every :math:`t \ge 0`, and grows with t: it leaves out the
classes of which less than :math:`(1 - t)/2` of the probability lies at or beyond them.

Sets
----
Let a classifier be fitted without the n calibration rows, and :math:`s_i` be the score of row i's own label.
The set of a new row has the classes

.. math:: C = \big\{k : \#\{i : s_i < s(k)\} < c\,(n + 1)\big\},

those whose score is at most the :math:`\lceil c (n+1) \rceil`-th smallest :math:`s_i`. If calibration rows
and the new row are exchangeable, the rank of the new row's score among all n + 1 is uniform, with ties in its
favour:

.. math:: P(y \in C) \ge c,

whatever the classifier and the distribution. Where ties are rare, the probability is also at most
:math:`c + 1/(n + 1)`. Ties are frequent if the median is right more often than c: the median alone is then
the set, and it covers more than c. Breaking ties at random would make the coverage exactly c. It would also
give equal rows different sets, and empty ones, and is not done.

*Cross-conformal sets (CV+).* Each of K classifiers is fitted without one fold, :math:`s_i` comes from the one
without row i, and is compared with the score of class k by the same classifier:
:math:`\#\{i : s_i < s^{(i)}(k)\} < c\,(n + 1)`. All rows train and all calibrate. With :math:`\alpha = 1 -
c`,

.. math:: P(y \in C) \ge 1 - 2\alpha - \sqrt{2/n}

(Barber, Candès, Ramdas and Tibshirani 2021, Theorem 4; for classes Romano, Sesia and Candès 2020), and about
:math:`1 - \alpha` unless small changes of the training rows change the classifier much. The classifiers
differ in their medians, so the accepted classes need not be neighbours, nor have the median of the averaged
probabilities among them: the set is the smallest run of classes that has all of these. A larger set keeps the
guarantee.

*For each class* (Mondrian). If class k is compared with the calibration rows of class k alone, n being their
number, :math:`P(y \in C \mid y = k) \ge c` for every class k. (For CV+ the bound is not proved for a single
class, whose rows folds have in unequal numbers.) A class with fewer than c/(1 - c) rows is in every set:
nothing else could be promised for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from isbor._core.types import BoolArray, FloatArray, IntArray

__all__ = ["Calibration", "central_scores", "median_levels"]

_ROUNDING = 1e-9  # of coverage times a number of rows


def central_scores(proba: FloatArray) -> FloatArray:
    """Return the score of each class of each row, (n, r): zero for the median, up to 1 away from it."""
    at_most = proba.cumsum(axis=1)
    at_least = proba[:, ::-1].cumsum(axis=1)[:, ::-1]
    scores: FloatArray = np.maximum(0.0, 1.0 - 2.0 * np.minimum(at_most, at_least))
    scores[np.arange(len(proba)), median_levels(proba)] = 0.0  # rounding aside, it is
    return scores


def median_levels(proba: FloatArray) -> IntArray:
    """Return the lowest class with P(y ≤ k) ≥ ½ for each row, (n,)."""
    median: IntArray = np.count_nonzero(proba.cumsum(axis=1)[:, :-1] < 0.5, axis=1)
    return median


@dataclass(frozen=True, slots=True)
class Calibration:
    """The scores of the calibration rows."""

    scores: tuple[
        tuple[FloatArray, ...], ...
    ]  # for each classifier and class, those to compare with; ascending
    n_rows: IntArray  # (r,) how many these are, over all classifiers

    @classmethod
    def of(cls, probas: Sequence[FloatArray], codes: Sequence[IntArray], *, by_class: bool) -> Self:
        """Summarise probabilities and labels of the calibration rows of each classifier."""
        n_levels = probas[0].shape[1]
        scores = []
        for proba, y in zip(probas, codes, strict=True):
            own = central_scores(proba)[np.arange(len(y)), y]
            together = np.sort(own)
            scores.append(tuple(np.sort(own[y == k]) if by_class else together for k in range(n_levels)))
        n_rows = np.sum([[len(of_class) for of_class in of_model] for of_model in scores], axis=0)
        return cls(tuple(scores), n_rows)

    def sets(self, probas: Sequence[FloatArray], coverage: float) -> BoolArray:
        """Return the sets of new rows, (n, r), given their probabilities by each classifier."""
        smaller = np.zeros(probas[0].shape, dtype=np.intp)
        for of_model, proba in zip(self.scores, probas, strict=True):
            for k, score in enumerate(central_scores(proba).T):
                smaller[:, k] += np.searchsorted(of_model[k], score)
        accepted = smaller < coverage * (self.n_rows + 1) - _ROUNDING
        accepted[np.arange(len(accepted)), median_levels(np.mean(probas, axis=0))] = True
        return _between(accepted)


def _between(accepted: BoolArray) -> BoolArray:
    """Return all classes from the lowest to the highest accepted one of each row."""
    from_below = np.logical_or.accumulate(accepted, axis=1)
    from_above = np.logical_or.accumulate(accepted[:, ::-1], axis=1)[:, ::-1]
    both: BoolArray = from_below & from_above
    return both
