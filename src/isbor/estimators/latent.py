"""Base class of estimators whose latent score is Gaussian: moments, thresholds and bands."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from isbor._core.parallel import Workers, row_blocks
from isbor._core.tables import columns_like
from isbor._core.types import FloatArray, IntArray
from isbor.data.ranges import Ranges
from isbor.data.training_set import TrainingSet
from isbor.estimators.blocks import map_latent, map_rows
from isbor.estimators.explained import ExplainedClassifier
from isbor.estimators.parameters import check_coverage
from isbor.files.checks import need, within
from isbor.gp.reference import ReferenceProcess, fit_reference
from isbor.inspection.effects import MeanDraws
from isbor.model.latent import Drift, GaussianModel, Latent, LatentModel
from isbor.prediction.band_check import BandCheck, Simulated
from isbor.prediction.bands import N_DRAWS, Reference, probability_bands, probability_draws, score_std
from isbor.prediction.empty_classes import insert_empty_levels
from isbor.prediction.probabilities import class_probabilities, lapse_after, with_lapses

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
        total_weight=training.total_weight,
        noise_scale=noise_scale,
        responses=map_latent(
            model.latent,
            model.n_functions,
            training.X[np.flatnonzero(training.weight > 0)],
            mean_and_scale,
            workers,
        ),
    )


_SLOPE_ROWS = 200  # rows at which the slopes of the score are computed
_DRAWS_OF_LABELS = 100  # tried until two classes occur
_NEGLIGIBLE = 1e-4  # share of the largest mean squared slope below which a column hardly counts
_FARTHEST = 100.0  # in widths of the range; far enough
_VALUES_OF_BANDS = 5 * N_DRAWS  # that the band of a class probability needs at once


class LatentClassifier(ExplainedClassifier):
    """Base class of estimators whose latent score is Gaussian."""

    _model: GaussianModel
    _reference: Reference
    _ranges: Ranges
    _base_rates: FloatArray  # (r,)

    def _learn_beside(
        self,
        training: TrainingSet,
        log_evidence: float,
        workers: Workers,
        process: ReferenceProcess | None = None,
    ) -> None:
        """Learn what bands and rows far from the data need; the model has this log evidence.

        `process` is the reference process, if it is known already.
        """
        self._keep_background(training)
        rows = training.rows
        rates = np.zeros(len(training.classes))
        rates[training.observed] = training.level_weight / training.total_weight
        self._base_rates = with_lapses(rates[None], lapse_after(training.total_weight))[0]
        sample = rows.head(_SLOPE_ROWS)
        slopes = sample.weight @ np.square(self._model.slopes(sample.X)) / sample.total_weight
        used = slopes > _NEGLIGIBLE * slopes.max(initial=0.0)
        self._ranges = Ranges.of(*training.ranges, used & ~training.encoding.categorical)
        if process is None:
            process = fit_reference(rows, training.scaling, slopes, workers)
        self._reference = Reference.beside(process, log_evidence, training.observed, len(training.classes))

    def _check_restored(self) -> None:
        super()._check_restored()
        n_levels, n_columns = len(self.classes_), len(self._encoding.feature)
        need(within(self._ranges.columns, n_columns), "its ranges are of other columns")
        rates = self._base_rates
        need(rates.shape == (n_levels,) and (rates > 0.0).all(), "its base rates are of other classes")
        need(0.0 < self._unit < np.inf and np.isfinite(self._centre), "the unit of its score is none")
        rows = np.zeros((1, n_columns))

        def predicted(latent: Latent) -> FloatArray:
            return class_probabilities(replace(latent, drift=Drift(np.full(1, 0.5), rates)), self._thresholds)

        self._check_finite(self._map_encoded(rows, predicted))
        if hasattr(self, "_reference"):
            reference = self._reference
            need(len(reference.process.scaling.mean) == n_columns, "its reference is of another encoding")
            need(len(reference.places) == n_levels - 1, "its reference is of other classes")
            latent = self._latent(rows)
            self._check_finite(score_std(latent, self._thresholds, reference, rows))
            self._check_finite(
                np.stack(probability_bands(latent, self._thresholds, reference, rows, coverage=0.9))
            )

    def _latent(self, rows: FloatArray) -> Latent:
        """Return the latent score of encoded rows, and how far probabilities drift to the base rates."""
        latent, excess = self._model.latent(rows), self._ranges.excess(rows)
        if not excess.any():
            return latent
        share = -np.expm1(-(np.minimum(excess, _FARTHEST) ** 2) / 8.0)
        return replace(latent, drift=Drift(share, self._base_rates))

    def out_of_range(self, X: ArrayLike) -> FloatArray:
        """Return how far each row lies outside the range of the training rows.

        The number is 0 if all numeric features that the score depends on are within their range in the
        training rows. Otherwise, it is the largest excess of such a feature, in units of the width of its
        range: at 1, a feature is as far outside as its smallest and largest value in training are apart.
        Predictions there are guesses: `predict_proba` drifts from the probabilities of the model to the class
        frequencies of the training rows, by 12 % at 1, 39 % at 2 and 86 % at 4.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.

        Returns
        -------
        excess : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        with Workers(self.n_jobs) as workers:
            return map_rows(self._ranges.excess, 1, self._rows(X), workers)

    @overload
    def predict_proba(self, X: ArrayLike, *, as_frame: Literal[False] = False) -> FloatArray: ...
    @overload
    def predict_proba(self, X: ArrayLike, *, as_frame: bool) -> Any: ...
    def predict_proba(self, X: ArrayLike, *, as_frame: bool = False) -> Any:
        """Predict class probabilities.

        The uncertainty of the score is integrated out. A share 1/(n + 2) of the labels is assumed to be drawn
        at random (lapses), where n is the total weight of the training rows: n labels cannot exclude that the
        next one is a surprise. So no probability is exactly zero. For rows far outside the range of the
        training rows, probabilities drift to the class frequencies, see `out_of_range`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.
        as_frame : bool, default=False
            Whether to return a data frame with the classes as columns, of the library of X (pandas, polars,
            pyarrow, modin) and with its index; for other X, of pandas or polars.

        Returns
        -------
        proba : ndarray or data frame of shape (n_samples, n_classes)
            P(y = k) for each row and class, with columns as in `classes_`. Rows sum to 1.
        """
        return super().predict_proba(X, as_frame=as_frame)

    @overload
    def predict_proba_interval(
        self, X: ArrayLike, coverage: float = 0.9, *, as_frame: Literal[False] = False
    ) -> tuple[FloatArray, FloatArray]: ...
    @overload
    def predict_proba_interval(
        self, X: ArrayLike, coverage: float = 0.9, *, as_frame: bool
    ) -> tuple[Any, Any]: ...
    def predict_proba_interval(
        self, X: ArrayLike, coverage: float = 0.9, *, as_frame: bool = False
    ) -> tuple[Any, Any]:
        """Return a band around each class probability: where the true one is.

        With posterior probability `coverage`, the true probability of a class lies in its band. Bands account
        for what the data leave open: score, thresholds and noise, the choice of basis functions, and what
        happens far from the training rows. They contain the predicted probabilities, and lean towards those
        of a smooth model that selects nothing as far as it describes the labels better.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.
        coverage : float, default=0.9
            Posterior probability of each band, between 0 and 1.
        as_frame : bool, default=False
            Whether to return two data frames, as `predict_proba` does.

        Returns
        -------
        lower, upper : ndarrays or data frames of shape (n_samples, n_classes)
            Ends of the bands, with columns as in `classes_`.

        Notes
        -----
        The fitted model is compared with a smooth Gaussian process that is fitted beside it and selects
        nothing. Bands add up the uncertainty of that process, the disagreement between the models of an
        average, and, as far as the evidence supports the process, its distance from the model.
        """
        check_coverage(coverage)
        self._check_reference()

        def bands(latent: Latent, rows: FloatArray) -> FloatArray:
            limits = probability_bands(latent, self._thresholds, self._reference, rows, coverage)
            return np.stack(limits, axis=1)

        limits = self._map_with_rows(X, bands)
        lower, upper = limits[:, 0], limits[:, 1]
        if not as_frame:
            return lower, upper
        return columns_like(X, lower, self.classes_), columns_like(X, upper, self.classes_)

    def check_bands(
        self, X: ArrayLike, *, coverage: float = 0.9, n_simulations: int = 4, random_state: int = 0
    ) -> BandCheck:
        """Say how far bands and probabilities can be trusted on a table: simulations from the fitted model.

        Labels are drawn from the predicted probabilities, the estimator is fitted to them anew, and its bands
        and probabilities are compared with those from which the labels were drawn. All rows count once. It
        takes as long as `n_simulations` fits; for `ISBOR`, ``set_params(effort="fast")`` makes them shorter.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`: the training rows, or about as many others like them.
        coverage : float, default=0.9
            Posterior probability of each band, between 0 and 1.
        n_simulations : int, default=4
            Number of tables of labels that are drawn, at least 1.
        random_state : int, default=0
            Selects the labels.

        Returns
        -------
        report : BandCheck
            It prints as a verdict and a table: all rows, rows of which the model is more and less sure, and
            each class. `covered` is the share of true probabilities in their bands, `parts` has all numbers.

        Examples
        --------
        >>> from isbor import GPOR
        >>> from isbor.datasets import make_saddle
        >>> X, y = make_saddle(60, noise=2.0, random_state=0)
        >>> report = GPOR().fit(X, y).check_bands(X, n_simulations=2)
        >>> 0.5 < report.covered <= 1.0
        True
        """
        check_coverage(coverage)
        if n_simulations < 1:
            raise ValueError(f"n_simulations is {n_simulations}; at least 1 is needed, for example 4.")
        truth, std = self.predict_proba(X), self.latent(X, return_std=True)[1]
        random = np.random.default_rng(random_state)
        simulations = []
        for _ in range(n_simulations):
            labels = _drawn_labels(truth, random)
            again = clone(self).set_params(classes=list(self.classes_), class_weight=None)
            again.fit(X, self.classes_[labels])
            bands = again.predict_proba_interval(X, coverage)
            simulations.append(Simulated(truth, again.predict_proba(X), *bands))
        return BandCheck.of(simulations, coverage, std, self.classes_)

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
            Posterior mean of the latent score. It does not drift far outside the training rows, as
            probabilities do.
        std : ndarray of shape (n_samples,)
            Posterior standard deviation of the distance between the score and the thresholds, with all that
            the data leave open, see `predict_proba_interval`; only if `return_std`.
        """
        if not return_std:
            return (self._map_rows(X, lambda latent: latent.mean) - self._centre) / self._unit

        self._check_reference()

        def moments_of(latent: Latent, rows: FloatArray) -> FloatArray:
            std = score_std(latent, self._thresholds, self._reference, rows)
            return np.stack([latent.mean, std], axis=1)

        moments = self._map_with_rows(X, moments_of)
        return (moments[:, 0] - self._centre) / self._unit, moments[:, 1] / self._unit

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
        check_is_fitted(self)
        return self._encoded_thresholds(self._rows(X))

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

    def _mean_draws(self) -> MeanDraws | None:
        return self._mean_of_draws if hasattr(self, "_reference") else None

    def _mean_of_draws(self, rows: FloatArray, share: FloatArray) -> FloatArray:
        """Return the mean over encoded rows of draws of class probabilities, (q, r)."""

        def of_block(block: slice) -> FloatArray:
            latent = self._latent(rows[block])
            draws = probability_draws(latent, self._thresholds, self._reference, rows[block])
            mean: FloatArray = np.tensordot(share[block], draws, axes=1)
            return mean

        with Workers(self.n_jobs) as workers:
            n_values = self._model.n_functions + _VALUES_OF_BANDS * len(self.classes_)
            total = sum(workers.map(of_block, row_blocks(len(rows), n_values)))
        latent = self._model.latent(rows[:1])
        lapse = latent.parts[0].lapse if latent.parts else latent.lapse
        return with_lapses(np.asarray(total), lapse)

    def _check_reference(self) -> None:
        """Raise ValueError if nothing is known about bands yet, because only one class occurred."""
        check_is_fitted(self)
        if not hasattr(self, "_reference"):
            raise ValueError(
                f"All rows so far are of one class; bands need two. Pass more rows to {type(self).__name__}."
                "partial_fit first."
            )

    def _map_with_rows(
        self, X: ArrayLike, function: Callable[[Latent, FloatArray], FloatArray]
    ) -> FloatArray:
        """Apply a function of the latent score and the encoded rows to all rows, in blocks on all cores."""
        check_is_fitted(self)
        n_values = self._model.n_functions + _VALUES_OF_BANDS * len(self.classes_)
        with Workers(self.n_jobs) as workers:
            return map_rows(lambda rows: function(self._latent(rows), rows), n_values, self._rows(X), workers)


def _drawn_labels(probabilities: FloatArray, random: np.random.Generator) -> IntArray:
    """Return labels of at least two classes, drawn from the probabilities of each row."""
    below = np.cumsum(probabilities, axis=1)[:, :-1]
    for _ in range(_DRAWS_OF_LABELS):
        labels: IntArray = np.count_nonzero(random.random(len(below))[:, None] > below, axis=1)
        if np.ptp(labels):
            return labels
    raise ValueError(
        f"All labels drawn for the {len(below)} rows of X are of one class: the model is sure of it. At "
        "least two classes are needed. Pass the training rows."
    )
