"""Validation of the arguments of metrics: labels as ranks, probabilities, weights."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.data.labels import encode_labels, ordered_union, rank_labels
from isbor.data.weights import check_sample_weight

__all__ = [
    "Order",
    "Ranked",
    "check_forecast",
    "own_order",
    "ranks",
    "read_forecast",
    "read_labels",
    "spread_columns",
    "union_order",
]

Order: TypeAlias = Sequence[Any] | LabelArray

_SUM_TOLERANCE = 1e-4  # on the sum of a row of probabilities; large enough for single precision


@dataclass(frozen=True, slots=True)
class Ranked:
    """True and predicted labels as ranks."""

    true: IntArray  # (n,)
    pred: IntArray  # (n,)
    weight: FloatArray  # (n,)
    n_classes: int

    @property
    def distance(self) -> IntArray:
        """Distances between true and predicted labels, in ranks, (n,)."""
        distance: IntArray = np.abs(self.true - self.pred)
        return distance


def read_labels(
    y_true: object, y_pred: object, labels: Order | None, sample_weight: ArrayLike | None
) -> Ranked:
    """Check true labels, predicted labels and weights, and return the ranks."""
    order = own_order(y_true) if labels is None else labels
    if labels is None:
        with _argument("y_pred"):
            order = union_order(order, y_pred)
    true, pred = ranks(y_true, order, "y_true"), ranks(y_pred, order, "y_pred")
    if len(true) != len(pred):
        raise ValueError(
            f"y_true holds {len(true)} label(s) and y_pred {len(pred)}; the numbers must be equal. "
            "Pass true and predicted labels of the same rows."
        )
    return Ranked(true, pred, check_sample_weight(sample_weight, len(true)), len(order))


def read_forecast(
    y_true: object, y_proba: ArrayLike, labels: Order | None, sample_weight: ArrayLike | None
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Check true labels, probabilities and weights; return the ranks, the probabilities and the weights."""
    order = own_order(y_true) if labels is None else labels
    true = ranks(y_true, order, "y_true")
    proba = check_forecast(y_proba, len(true), order, name="y_proba", order_name="labels")
    return true, proba, check_sample_weight(sample_weight, len(true))


def check_forecast(
    proba: ArrayLike, n_rows: int, classes: Order, *, name: str, order_name: str
) -> FloatArray:
    """Return predicted probabilities, checked; `name` and `order_name` are the names of the arguments."""
    table = np.asarray(proba, dtype=np.float64)
    if table.shape != (n_rows, len(classes)):
        raise ValueError(
            f"{name} has shape {table.shape}; for {n_rows} row(s) and the {len(classes)} class(es) "
            f"{np.asarray(classes).tolist()}, {(n_rows, len(classes))} is needed. Pass the classes of all "
            f"columns, lowest first, as {order_name}=, for example the estimator's classes_."
        )
    sums = table.sum(axis=1)
    # Written so that NaN fails it.
    if not (table.min() >= -_SUM_TOLERANCE and np.all(np.abs(sums - 1) <= _SUM_TOLERANCE)):
        raise ValueError(
            f"{name} has minimum {table.min():.3g} and row sums from {sums.min():.6g} to {sums.max():.6g}; "
            "nonnegative probabilities, each row summing to 1, are needed. Pass the output of predict_proba."
        )
    return table


def own_order(y_true: object) -> LabelArray:
    """Return the classes that true labels have by themselves, lowest first."""
    with _argument("y_true"):
        return encode_labels(y_true).classes


def union_order(classes: Order, y: object) -> LabelArray:
    """Return the order of `classes` together with the labels of y."""
    order = ordered_union(classes, y)
    if len(order) > len(classes):
        encode_labels(y)  # only numbers can be new; this refuses fractions, which are not classes
    return order


def ranks(y: object, order: Order, name: str) -> IntArray:
    """Return the ranks of labels in an order; errors name the argument."""
    with _argument(name):
        return rank_labels(y, order)


def spread_columns(proba: FloatArray, classes: Order, order: Order) -> FloatArray:
    """Return the columns of the estimator's `classes` at their positions in `order`, with zeros elsewhere."""
    spread = np.zeros((len(proba), len(order)))
    spread[:, ranks(classes, order, "the estimator's classes_")] = proba
    return spread


@contextmanager
def _argument(name: str) -> Iterator[None]:
    """Add the names that the metrics use for the arguments to errors about labels."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{error} (Here y is {name}, and classes= is labels=.)") from error
