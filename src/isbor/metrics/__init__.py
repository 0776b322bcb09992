r"""Metrics for ordered classes, and scorers for scikit-learn.

All metrics use the ranks of the labels, their positions 0 < 1 < … < r−1 in the order of the classes, not
their values. A strictly increasing relabelling does not change them. Their common parameters are

``y_true``, ``y_pred`` : array-like of shape (n,)
    True and predicted labels: numbers, booleans, strings, an ordered categorical (pandas) or an ``Enum``
    (polars).
``y_proba`` : array-like of shape (n, r)
    Predicted probabilities, with columns in the order of the classes. Each row sums to 1.
``labels`` : sequence of labels, default=None
    All classes, lowest first. By default, the order of `y_true` if it is an ordered categorical, else the
    numbers that occur in `y_true` or `y_pred`, ascending. A class that does not occur is then not counted:
    the distance from 1 to 3 is one, unless 2 occurs or ``labels=[1, 2, 3]``. Strings need `labels`. So do
    probabilities, unless every class occurs in `y_true`.
``sample_weight`` : array-like of shape (n,), default=None
    Nonnegative weights. A row of weight 2 counts as two equal rows, a row of weight 0 is ignored. None means
    weight 1 for all rows.

With :math:`t_i` and :math:`p_i` the ranks of row :math:`i` in `y_true` and `y_pred`, and :math:`F_{ik}` the
predicted probability of the classes up to :math:`k`,

.. math::

    \text{MAE} &= \operatorname{mean}_i |t_i - p_i| \\
    \text{RPS} &= \operatorname{mean}_i \frac1{r-1} \sum_{k=0}^{r-2} \big(F_{ik} - 1[t_i \le k]\big)^2

`get_scorer` returns scorers for the parameter ``scoring`` of scikit-learn's model selection.
"""

from isbor.metrics.measures import (
    accuracy,
    average_mae,
    kendall_tau,
    log_loss,
    maximum_mae,
    mean_absolute_error,
    mean_cost,
    mean_squared_error,
    mean_zero_one_error,
    quadratic_weighted_kappa,
    ranked_probability_score,
)
from isbor.metrics.scorers import OrdinalScorer, get_scorer, scorer_names

__all__ = [
    "OrdinalScorer",
    "accuracy",
    "average_mae",
    "get_scorer",
    "kendall_tau",
    "log_loss",
    "maximum_mae",
    "mean_absolute_error",
    "mean_cost",
    "mean_squared_error",
    "mean_zero_one_error",
    "quadratic_weighted_kappa",
    "ranked_probability_score",
    "scorer_names",
]
