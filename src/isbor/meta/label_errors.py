r"""Labels that are probably wrong.

A classifier that has not seen the row gives the probabilities :math:`p_j` of its true label j. Suppose that a
share :math:`\epsilon` of the labels was replaced by one drawn from all r classes. Given the label k, the true
one is j with probability

.. math:: P(j \mid k) \propto p_j \big[(1 - \epsilon)\, 1[j = k] + \epsilon / r\big] .

Two numbers follow, with :math:`Z = (1 - \epsilon)\, p_k + \epsilon / r`:

.. math::

    P(j \ne k \mid k) &= \frac{\epsilon}{r} \cdot \frac{1 - p_k}{Z} & &\text{the probability of an error,} \\
    \mathrm{E}\big[|j - k| \mid k\big] &= \frac{\epsilon}{r} \cdot \frac{\sum_j p_j |j - k|}{Z}
    & &\text{by how many classes the label is expected to be wrong.}

Rows are ranked by the second: what a look at the row is expected to correct. The first is a decreasing
function of :math:`p_k` alone and ranks as :math:`-\ln p_k` does, for which a neighbour of the right class and
the opposite end of the scale are the same error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from isbor._core.tables import as_frame
from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.estimators.isbor import ISBOR
from isbor.meta.conformal import median_levels
from isbor.meta.routing import Passed
from isbor.meta.table import LabelledTable, stratified_folds

__all__ = ["SuspiciousLabels", "error_scores", "suspicious_labels"]


def error_scores(proba: FloatArray, codes: IntArray, error_rate: float) -> tuple[FloatArray, FloatArray]:
    """Return the expected distance of each label from the true one, and the probability of an error, (n,)."""
    n_levels = proba.shape[1]
    given = proba[np.arange(len(codes)), codes]
    distance = np.abs(codes[:, None] - np.arange(n_levels))
    replaced = error_rate / n_levels
    odds = replaced / ((1 - error_rate) * given + replaced)
    return odds * (proba * distance).sum(axis=1), odds * (1 - given)


@dataclass(frozen=True, slots=True)
class SuspiciousLabels:
    """The rows of a table, most suspicious label first; made by `suspicious_labels`.

    See Also
    --------
    suspicious_labels : Makes it, and has an example with strings.

    Examples
    --------
    >>> import numpy as np
    >>> from isbor.estimators.linear import OrderedProbit
    >>> from isbor.meta import suspicious_labels
    >>> X = np.arange(60.0)[:, None]
    >>> y = np.repeat([1, 2, 3], 20)
    >>> y[5] = 3  # wrong
    >>> found = suspicious_labels(X, y, OrderedProbit())
    >>> int(found.rows[0]), int(found.labels[0]), int(found.predicted[0])
    (5, 3, 1)
    """

    rows: IntArray  # (n,) row numbers, counted from 0
    scores: FloatArray  # (n,) by how many classes the label is expected to be wrong, largest first
    error_probability: FloatArray  # (n,) probability that it is wrong
    labels: LabelArray  # (n,) the labels as they are
    predicted: LabelArray  # (n,) the median of the prediction without the row

    def to_frame(self) -> Any:
        """Return a line for each row, as a data frame; without pandas and polars, a dict of arrays."""
        names = ("row", "label", "predicted", "score", "error_probability")
        columns = (self.rows, self.labels, self.predicted, self.scores, self.error_probability)
        return as_frame(dict(zip(names, columns, strict=True)))


def suspicious_labels(
    X: ArrayLike,
    y: ArrayLike,
    estimator: Any = None,
    *,
    cv: Any = 5,
    error_rate: float = 0.05,
    sample_weight: ArrayLike | None = None,
    classes: Sequence[Any] | LabelArray | None = None,
    random_state: int | np.random.RandomState | None = 0,
) -> SuspiciousLabels:
    r"""Rank the rows of a table by how far their labels are probably wrong.

    Every row is predicted by a classifier that has not seen it. A label is suspicious if its probability is
    small and the probable labels are far from it. Rows whose features say little are not suspicious, whatever
    their label.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        Rows, as the estimator takes them.
    y : array-like of shape (n_samples,)
        Ordered labels, some of which may be wrong.
    estimator : classifier with `predict_proba`, default=None
        Fitted `cv` times. None means ``ISBOR(effort="fast")``.
    cv : int, splitter or iterable of splits, default=5
        Folds. Random ones with about the same class frequencies, if it is a number.
    error_rate : float, default=0.05
        Assumed share of labels that were replaced by others. It sets the level of scores and probabilities,
        and hardly changes the order of rows.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights for the estimator; in a pipeline, for its last step.
    classes : sequence of labels, default=None
        All labels, lowest first, as for `PredictionSetClassifier`.
    random_state : int, RandomState or None, default=0
        Draws the folds.

    Returns
    -------
    result : SuspiciousLabels
        `rows`, `scores`, `error_probability`, `labels` and `predicted`, most suspicious first, and
        `to_frame()`.

    See Also
    --------
    isbor.meta.PredictionSetClassifier : Sets of labels for new rows.

    Notes
    -----
    Without errors, some row is the most suspicious as well: scores rank rows to look at, they do not prove
    errors. `isbor.meta.label_errors` derives them.

    Examples
    --------
    >>> from isbor.datasets import make_balance_scale
    >>> from isbor.meta import suspicious_labels
    >>> X, y = make_balance_scale()
    >>> y[7] = 4 - y[7]  # 3, "right", becomes 1, "left"
    >>> found = suspicious_labels(X, y)
    >>> int(found.rows[0]), int(found.labels[0]), int(found.predicted[0])
    (7, 1, 3)
    """
    if not 0 < error_rate < 1:
        raise ValueError(f"error_rate is {error_rate}; a number between 0 and 1 is needed, for example 0.05.")
    model = ISBOR(effort="fast") if estimator is None else estimator
    passed = Passed.of_weights(model, sample_weight)
    table = LabelledTable.read(model, X, y, classes, sample_weight, passed)
    codes, order = table.labels.codes, table.labels.classes
    proba = table.cross_fitted(
        model, stratified_folds(table.labels.codes, cv, check_random_state(random_state), table.passed)
    )
    scores, wrong = error_scores(proba, codes, error_rate)
    rows = np.argsort(-scores, kind="stable")
    predicted = order[median_levels(proba)]
    return SuspiciousLabels(rows, scores[rows], wrong[rows], order[codes][rows], predicted[rows])
