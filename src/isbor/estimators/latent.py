"""Base class of estimators whose latent score is Gaussian: moments, thresholds and credible intervals."""

from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from isbor._core.parallel import Workers
from isbor._core.types import FloatArray
from isbor.data.training import TrainingSet
from isbor.estimators.base import OrdinalClassifier, map_latent
from isbor.model.latent import Latent, LatentModel
from isbor.prediction.empty_classes import insert_empty_levels
from isbor.prediction.probabilities import credible_intervals

__all__ = ["LatentClassifier", "thresholds_of_all_levels"]


def thresholds_of_all_levels(
    training: TrainingSet,
    model: LatentModel,
    thresholds: FloatArray,
    workers: Workers,
    *,
    noise_scale: float = 1.0,
) -> FloatArray:
    """Return thresholds between all classes, including those without training rows."""
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
        noise_scale=noise_scale,
        responses=map_latent(model, training.X[training.weight > 0], mean_and_scale, workers),
    )


class LatentClassifier(OrdinalClassifier):
    """Base class of estimators whose latent score is Gaussian."""

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Predict class probabilities.

        The uncertainty of the score is integrated out. A share 1/(n + 2) of the labels is assumed to be drawn
        at random (lapses), where n is the total weight of the training rows: n labels cannot exclude that the
        next one is a surprise. So no probability is exactly zero.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            P(y = k) for each row and class, with columns as in `classes_`. Rows sum to 1.
        """
        return super().predict_proba(X)

    def predict_proba_interval(self, X: ArrayLike, coverage: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Return a central credible interval for each class probability.

        If the score were known exactly, it would give exact class probabilities. It is known only up to its
        posterior distribution; with posterior probability `coverage`, a class probability lies in its
        interval.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.
        coverage : float, default=0.9
            Posterior probability of each interval, between 0 and 1.

        Returns
        -------
        lower, upper : ndarrays of shape (n_samples, n_classes)
            Ends of the intervals, with columns as in `classes_`.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"coverage is {coverage}; a number between 0 and 1 is needed, for example 0.9.")
        limits = self._map_rows(
            X,
            lambda latent: np.stack(credible_intervals(latent, self._thresholds, coverage), axis=1),
        )
        return limits[:, 0], limits[:, 1]

    @overload
    def latent(self, X: ArrayLike, return_std: Literal[False] = False) -> FloatArray: ...
    @overload
    def latent(self, X: ArrayLike, return_std: Literal[True]) -> tuple[FloatArray, FloatArray]: ...
    def latent(self, X: ArrayLike, return_std: bool = False) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Return the latent score of each row, on the scale of `thresholds_`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.
        return_std : bool, default=False
            If True, return the standard deviation as well.

        Returns
        -------
        score : ndarray of shape (n_samples,)
            Posterior mean of the latent score.
        std : ndarray of shape (n_samples,)
            Posterior standard deviation of the latent score given the thresholds; only if `return_std`.
        """
        moments = self._map_rows(X, lambda latent: np.stack([latent.mean, latent.variance], axis=1))
        score = (moments[:, 0] - self._centre) / self._unit
        return (score, np.sqrt(moments[:, 1]) / self._unit) if return_std else score

    def thresholds_at(self, X: ArrayLike) -> FloatArray:
        """Return the thresholds at each row, on the scale of the score.

        They are `thresholds_` for all rows, unless the model lets thresholds vary with the row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.

        Returns
        -------
        thresholds : ndarray of shape (n_samples, n_classes - 1)
        """

        def of_rows(latent: Latent) -> FloatArray:
            shape = len(latent.mean), len(self._thresholds)
            return np.broadcast_to(latent.thresholds(self._thresholds), shape)

        return (self._map_rows(X, of_rows) - self._centre) / self._unit

    def noise_scale(self, X: ArrayLike) -> FloatArray:
        """Return the standard deviation of the noise at each row, on the scale of the score.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.

        Returns
        -------
        scale : ndarray of shape (n_samples,)
        """
        scale: FloatArray = np.sqrt(self._map_rows(X, lambda latent: latent.noise_variance)) / self._unit
        return scale
