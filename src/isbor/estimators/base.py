"""What the estimators with a Gaussian latent score share: checks, weights, predictions."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from isbor.arrays import FloatArray, IntArray, LabelArray
from isbor.blocks import Workers, row_blocks
from isbor.labels import OrderedLabels
from isbor.predictive import (
    LatentModel,
    Loss,
    Score,
    class_probabilities,
    credible_bands,
    decide,
    log_class_probabilities,
    margins,
)
from isbor.tables import TableEncoding

__all__ = ["LatentClassifier", "all_or_nothing", "row_weights"]

A = TypeVar("A", bound=NDArray[Any])


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """Leave the estimator as it was if the block does not end well, Ctrl-C included."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def row_weights(
    labels: OrderedLabels,
    sample_weight: FloatArray,
    class_weight: Mapping[Any, float] | Literal["balanced"] | None,
) -> FloatArray:
    """Return each row's weight: its sample weight times the weight of its class.

    "balanced" gives each class that occurs the same total, and leaves the total of all rows as it is. A
    class of less than 1e-12 of the total weighs nothing: its thresholds could not be told apart.
    """
    weight = sample_weight * _class_weights(labels, sample_weight, class_weight)[labels.codes]
    totals = np.bincount(labels.codes, weight, minlength=len(labels.classes))
    return np.where(totals[labels.codes] < 1e-12 * totals.sum(), 0.0, weight)


def _class_weights(
    labels: OrderedLabels,
    sample_weight: FloatArray,
    class_weight: Mapping[Any, float] | Literal["balanced"] | None,
) -> FloatArray:
    """Return the weight of each level."""
    n_levels = len(labels.classes)
    if class_weight is None:
        return np.ones(n_levels)
    if isinstance(class_weight, str):
        ascending = np.argsort(sample_weight)  # a sum that does not depend on the order of rows
        totals = np.bincount(labels.codes[ascending], sample_weight[ascending], minlength=n_levels)
        occurs = totals > 0
        of_class = np.zeros(n_levels)
        of_class[occurs] = totals.sum() / (occurs.sum() * totals[occurs])
    else:
        position = {label: k for k, label in enumerate(labels.classes.tolist())}
        unknown = [label for label in class_weight if label not in position]
        if unknown:
            raise ValueError(
                f"class_weight names {unknown}, not among the classes {list(position)}. "
                "Use the labels of y as keys."
            )
        of_class = np.ones(n_levels)
        for label, weight in class_weight.items():
            if not (np.isfinite(weight) and weight >= 0):
                raise ValueError(
                    f"class_weight[{label!r}] is {weight}; a finite number that is not negative is needed."
                )
            of_class[position[label]] = weight
    return of_class


def map_scores(
    latent: LatentModel,
    X: FloatArray,
    function: Callable[[Score], A],
    workers: Workers,
    n_columns: int = 0,
) -> A:
    """Apply a function of the score to all rows, in blocks on all cores.

    `n_columns` says how much the function itself needs a row, beyond the basis functions.
    """
    blocks = row_blocks(len(X), latent.n_functions + n_columns)
    parts = workers.map(lambda block: function(latent.score(X[block])), blocks)
    return cast(A, np.concatenate(list(parts)))


class LatentClassifier(ClassifierMixin, BaseEstimator):
    """Predictions of a fitted latent Gaussian.

    A subclass sets `classes_`, `n_jobs`, `_table` (how tables become matrices), `_latent` (a
    `LatentModel`), `_cuts` (its thresholds, all levels), and `_centre` and `_unit`, with which scores are
    reported: (score - centre)/unit.
    """

    classes_: LabelArray
    n_features_in_: int
    n_jobs: int | None
    _table: TableEncoding
    _latent: LatentModel
    _cuts: FloatArray
    _centre: float
    _unit: float

    def predict(self, X: ArrayLike, loss: Loss = "absolute") -> LabelArray:
        """Predict a label for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        loss : "absolute", "zero_one", "quadratic" or a cost matrix
            The loss whose expectation the label minimises: "absolute" gives the median of the predicted
            distribution (lapses aside, see `predict_proba`), the class whose thresholds enclose the score;
            "zero_one" its mode; "quadratic" the class nearest to its mean; a matrix has
            cost[true, predicted].

        Returns
        -------
        ndarray of shape (n_samples,), of the labels' own type
        """
        codes: IntArray = self._map_rows(X, lambda score: decide(score, self._cuts, loss))
        return self.classes_[codes]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Predict P(y = k) for each row, columns as in `classes_`.

        Uncertainty of the score is integrated over; rows sum to one. A share 1/(n + 2) of labels is taken to
        be lapses, drawn at random, n being the weight of the training rows: from n labels nobody can know
        that the next is no surprise.
        """
        return self._map_rows(X, lambda score: class_probabilities(score, self._cuts))

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Predict ln P(y = k), accurate where the probability itself would underflow."""
        return self._map_rows(X, lambda score: log_class_probabilities(score, self._cuts))

    def predict_proba_interval(self, X: ArrayLike, coverage: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Return a central credible interval for each class probability.

        P(y = k | f) depends on the score f, which is known only up to its posterior. With probability
        `coverage` the probability that an exactly known score would give lies in the interval.

        Returns
        -------
        lower, upper : ndarrays of shape (n_samples, n_classes)
        """
        if not 0 < coverage < 1:
            raise ValueError(f"coverage is {coverage}; a number between 0 and 1 is needed, for instance 0.9.")
        bands = self._map_rows(
            X,
            lambda score: np.stack(credible_bands(score, self._cuts, coverage), axis=1),
        )
        return bands[:, 0], bands[:, 1]

    @overload
    def latent(self, X: ArrayLike, return_std: Literal[False] = False) -> FloatArray: ...
    @overload
    def latent(self, X: ArrayLike, return_std: Literal[True]) -> tuple[FloatArray, FloatArray]: ...
    def latent(self, X: ArrayLike, return_std: bool = False) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Return the latent score of each row, to be compared with `thresholds_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool
            Also return the posterior standard deviation of the score relative to the thresholds.
        """
        moments = self._map_rows(X, lambda score: np.stack([score.mean, score.variance], axis=1))
        score = (moments[:, 0] - self._centre) / self._unit
        return (score, np.sqrt(moments[:, 1]) / self._unit) if return_std else score

    def noise_scale(self, X: ArrayLike) -> FloatArray:
        """Return the standard deviation of the noise at each row, in units of the score."""
        scale: FloatArray = np.sqrt(self._map_rows(X, lambda score: score.noise)) / self._unit
        return scale

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return margins in units of the predictive standard deviation.

        Two classes: (score - threshold), positive for the upper class, shape (n_samples,). More:
        the distance to the nearer threshold of each class, shape (n_samples, n_classes), positive for the
        predicted class only.
        """
        result = self._map_rows(X, lambda score: margins(score, self._cuts))
        return result[:, 1] if len(self.classes_) == 2 else result

    def _map_rows(self, X: ArrayLike, function: Callable[[Score], A]) -> A:
        check_is_fitted(self)
        rows = self._check_rows(X)
        n_columns = 10 * len(self.classes_)  # results and temporaries have a column a class
        with Workers(self.n_jobs) as workers:
            return map_scores(self._latent, rows, function, workers, n_columns)

    def _check_rows(self, X: object) -> FloatArray:
        """Return a table like that of training as a matrix of finite numbers."""
        return self._table(self, X)
