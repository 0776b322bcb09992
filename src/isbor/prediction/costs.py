"""What errors cost, and the label with the least expected cost."""

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from isbor._core.types import FloatArray, IntArray, LabelArray

__all__ = ["Loss", "cost_matrix", "in_order_of", "least_expected_loss"]

Loss: TypeAlias = Literal["absolute", "zero_one", "quadratic"] | ArrayLike


def in_order_of(classes: LabelArray, loss: Any) -> Any:
    """Return costs with rows and columns in the order of the classes, if they are a table with these names.

    A pandas data frame without names of its own (0, 1, …) is taken as it is, as an array is.
    """
    if not (hasattr(loss, "index") and hasattr(loss, "columns")):
        return loss
    true, predicted, names = list(loss.index), list(loss.columns), classes.tolist()
    unnamed = list(range(len(names)))
    if true == predicted == unnamed and set(names) != set(unnamed):
        return loss
    if not (len(true) == len(predicted) == len(names) and set(true) == set(predicted) == set(names)):
        raise ValueError(
            f"The table of costs has the rows {true} and the columns {predicted}; the classes are {names}. "
            "Name rows (true classes) and columns (predicted ones) like the classes, or pass an array in "
            "their order."
        )
    return loss.loc[names, names]


def least_expected_loss(proba: FloatArray, loss: Loss) -> IntArray:
    """Return the level with the smallest expected loss under class probabilities, (n, r) → (n,)."""
    levels = np.arange(proba.shape[1])
    if isinstance(loss, str):
        distance = np.abs(levels[:, None] - levels)
        costs = {"absolute": distance, "zero_one": distance > 0, "quadratic": distance**2}
        if loss not in costs:
            raise ValueError(
                f"loss={loss!r} is unknown. Use 'absolute', 'zero_one' or 'quadratic', "
                "or pass a cost matrix with one row per true class and one column per predicted class."
            )
        cost = costs[loss].astype(float)
    else:
        cost = cost_matrix(loss, len(levels))
    best: IntArray = np.argmin(proba @ cost, axis=1)
    return best


def cost_matrix(cost: ArrayLike, n_levels: int) -> FloatArray:
    """Return a checked matrix of costs, cost[true, predicted]."""
    matrix = np.asarray(cost, dtype=float)
    if matrix.shape != (n_levels, n_levels) or not np.isfinite(matrix).all():
        raise ValueError(
            f"The costs are a matrix of shape {matrix.shape}; a matrix of finite numbers of shape "
            f"({n_levels}, {n_levels}) is needed: cost[true, predicted], with the classes in order."
        )
    return matrix
