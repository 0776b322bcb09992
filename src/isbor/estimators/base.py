"""What all estimators share: a score cut by thresholds, and what it predicts."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, Self, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from isbor._core.parallel import Workers, row_blocks
from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.data.encoding import Missing, TableEncoding
from isbor.data.training import TrainingSet
from isbor.estimators.parameters import DICT, NONE, RANDOM_STATE, Allowed, check_parameters, choice, integer
from isbor.model.latent import Latent, LatentModel
from isbor.prediction.decisions import Loss, decide, margins
from isbor.prediction.empty_classes import insert_empty_levels
from isbor.prediction.probabilities import class_probabilities, credible_bands, log_class_probabilities

__all__ = [
    "SHARED_PARAMETERS",
    "LatentClassifier",
    "OrdinalClassifier",
    "all_or_nothing",
    "thresholds_of_all_levels",
]

A = TypeVar("A", bound=NDArray[Any])

# Constraints on the parameters that all estimators have.
SHARED_PARAMETERS: dict[str, Allowed] = {
    "missing": choice("auto", "indicator", "error"),
    "class_weight": DICT | choice("balanced") | NONE,
    "n_jobs": integer() | NONE,
    "random_state": RANDOM_STATE,
}


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


def map_latent(
    model: LatentModel,
    X: FloatArray,
    function: Callable[[Latent], A],
    workers: Workers,
    n_columns: int = 0,
) -> A:
    """Apply a function of the latent score to all rows, in blocks on all cores.

    `n_columns` says how much the function itself needs a row, beyond the basis functions.
    """
    blocks = row_blocks(len(X), model.n_functions + n_columns)
    parts = workers.map(lambda block: function(model.latent(X[block])), blocks)
    return cast(A, np.concatenate(list(parts)))


def thresholds_of_all_levels(
    training: TrainingSet, model: LatentModel, thresholds: FloatArray, workers: Workers
) -> FloatArray:
    """Return the thresholds of a latent Gaussian for all levels, those without training rows included."""
    n_levels = len(training.classes)
    if len(training.observed) == n_levels:
        return thresholds

    def mean_and_scale(latent: Latent) -> FloatArray:
        return np.stack([latent.mean, latent.response_scale], axis=1)

    return insert_empty_levels(
        thresholds,
        training.observed,
        n_levels,
        total_weight=training.rows.total_weight,
        responses=map_latent(model, training.X[training.weight > 0], mean_and_scale, workers),
    )


class OrdinalClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Predictions of a fitted score.

    A subclass sets `classes_`, `n_jobs`, `_encoding` (how tables become matrices), `_model` (the latent
    score), `_cuts` (its thresholds, all levels), and `_centre` and `_unit` if scores are reported in other
    units.
    """

    classes_: LabelArray
    n_features_in_: int
    missing: Missing
    n_jobs: int | None
    _encoding: TableEncoding
    _model: LatentModel
    _cuts: FloatArray
    _centre: float = 0.0  # scores are reported as (score - centre)/unit
    _unit: float = 1.0
    _allowed: ClassVar[dict[str, Allowed]] = SHARED_PARAMETERS

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers, on any scale, or a data frame, with categories if need be.
        y : array-like of shape (n_samples,)
            Ordered labels: integers, booleans, an ordered categorical, or strings with `classes`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight 2 means the same as the row twice, weight 0 as its absence.

        Returns
        -------
        self
        """
        self._check_parameters()
        with all_or_nothing(self):
            self._fit(X, y, sample_weight)
        return self

    @abstractmethod
    def _fit(self, X: object, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        """Fit to valid parameters; what is set is taken back if it fails."""

    def _check_parameters(self) -> None:
        check_parameters(self, self._allowed)

    def predict(self, X: ArrayLike, loss: Loss = "absolute") -> LabelArray:
        """Predict a label for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        loss : "absolute", "zero_one", "quadratic" or a cost matrix
            The loss whose expectation the label minimises: "absolute" gives the class whose thresholds
            enclose the score (for a Bayesian model the median of the predicted distribution, lapses aside,
            see `predict_proba`); "zero_one" the mode of that distribution; "quadratic" the class nearest to
            its mean; a matrix has cost[true, predicted].

        Returns
        -------
        ndarray of shape (n_samples,), of the labels' own type
        """
        codes: IntArray = self._map_rows(X, lambda latent: self._decide(latent, loss))
        return self.classes_[codes]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Predict P(y = k) for each row, columns as in `classes_`; rows sum to one."""
        return self._map_rows(X, lambda latent: class_probabilities(*self._response(latent)))

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Predict ln P(y = k), accurate where the probability itself would underflow."""
        return self._map_rows(X, lambda latent: log_class_probabilities(*self._response(latent)))

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return margins in units of the predictive standard deviation (of the score's own, if it has none).

        Two classes: (score - threshold), positive for the upper class, shape (n_samples,). More:
        the distance to the nearer threshold of each class, shape (n_samples, n_classes), positive for the
        predicted class only.
        """
        result = self._map_rows(X, lambda latent: margins(latent, self._cuts))
        return result[:, 1] if len(self.classes_) == 2 else result

    def _decide(self, latent: Latent, loss: Loss) -> IntArray:
        if isinstance(loss, str) and loss == "absolute":
            return decide(latent, self._cuts, loss)
        return decide(*self._response(latent), loss)

    def _response(self, latent: Latent) -> tuple[Latent, FloatArray]:
        """Return the score and the thresholds that class probabilities follow from."""
        return latent, self._cuts

    @property
    def column_names_(self) -> NDArray[np.object_]:
        """Names of the encoded columns, which vectors and scales refer to, such as "age" and "color=red"."""
        check_is_fitted(self)
        return np.array(self._encoding.names, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "indicator"
        return tags

    def _map_rows(self, X: ArrayLike, function: Callable[[Latent], A]) -> A:
        check_is_fitted(self)
        return self._map_encoded(self._encoding(self, X), function)

    def _map_encoded(self, rows: FloatArray, function: Callable[[Latent], A]) -> A:
        n_columns = 10 * len(self.classes_)  # results and temporaries have a column a class
        with Workers(self.n_jobs) as workers:
            return map_latent(self._model, rows, function, workers, n_columns)

    def _encoded_latent(self, rows: FloatArray) -> FloatArray:
        """Return what `latent` returns, for rows that are already encoded."""
        return (self._map_encoded(rows, lambda latent: latent.mean) - self._centre) / self._unit


class LatentClassifier(OrdinalClassifier):
    """Predictions of a fitted latent Gaussian."""

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Predict P(y = k) for each row, columns as in `classes_`.

        Uncertainty of the score is integrated over; rows sum to one. A share 1/(n + 2) of labels is taken to
        be lapses, drawn at random, n being the weight of the training rows: from n labels nobody can know
        that the next is no surprise.
        """
        return super().predict_proba(X)

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
            lambda latent: np.stack(credible_bands(latent, self._cuts, coverage), axis=1),
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
        moments = self._map_rows(X, lambda latent: np.stack([latent.mean, latent.variance], axis=1))
        score = (moments[:, 0] - self._centre) / self._unit
        return (score, np.sqrt(moments[:, 1]) / self._unit) if return_std else score

    def noise_scale(self, X: ArrayLike) -> FloatArray:
        """Return the standard deviation of the noise at each row, in units of the score."""
        scale: FloatArray = np.sqrt(self._map_rows(X, lambda latent: latent.noise_variance)) / self._unit
        return scale
