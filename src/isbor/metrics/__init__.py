r"""Ordinal metrics and scorers, on ranks.

A label counts by its rank, its place 0 < 1 < … < r−1 in the order of the classes, never by its value: any
strictly increasing relabelling leaves every metric here as it was. All metrics take

``y_true``, ``y_pred``
    Labels, shape (n,): numbers, booleans, strings, or an ordered categorical (pandas) or ``Enum`` (polars).
``y_proba``
    Probabilities, shape (n, r), columns in the order of the classes, each row summing to 1.
``labels``
    The classes, lowest first. By default the order that `y_true` carries if it is an ordered categorical,
    else the numbers that occur in `y_true` or `y_pred`, ascending. A level that occurs in neither is then not
    counted: from 1 to 3 is one step unless ``labels=[1, 2, 3]`` says otherwise. Strings need `labels`.
    Probabilities need them too, unless the order found in `y_true` has a class for every column.
``sample_weight``
    Weights, shape (n,), zero or positive: weight 2 counts as the row twice, weight 0 as no row.

With :math:`t_i` and :math:`p_i` the ranks of row :math:`i` in `y_true` and `y_pred`, and :math:`F_{ik}` the
probability given to the classes up to :math:`k`,

.. math::

    \text{MAE} &= \operatorname{mean}_i |t_i - p_i| \\
    \text{RPS} &= \operatorname{mean}_i \frac1{r-1} \sum_{k=0}^{r-2} \big(F_{ik} - 1[t_i \le k]\big)^2

The scorers of `get_scorer` serve as ``scoring=`` in scikit-learn's model selection.
"""

from isbor.metrics.measures import (
    accuracy,
    average_mae,
    kendall_tau,
    log_loss,
    maximum_mae,
    mean_absolute_error,
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
    "mean_squared_error",
    "mean_zero_one_error",
    "quadratic_weighted_kappa",
    "ranked_probability_score",
    "scorer_names",
]
