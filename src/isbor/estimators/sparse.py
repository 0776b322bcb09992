"""Base class of the sparse Bayesian estimators: fitted attributes and verbose output."""

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, Step, StopReason
from isbor._core.types import FloatArray, IntArray
from isbor._core.warnings import warn_user
from isbor.data.cells import read_table
from isbor.data.frames import data_frame
from isbor.data.labels import encode_labels
from isbor.data.training_set import TrainingSet
from isbor.estimators.latent import LatentClassifier, thresholds_of_all_levels
from isbor.estimators.progress import Progress
from isbor.inspection.relevance import feature_relevance
from isbor.inspection.score import ScoreSum, score_of_ensemble
from isbor.prediction.empty_classes import places_of_thresholds
from isbor.prediction.ensemble import Ensemble
from isbor.search.compilation import ensure_compiled, is_compiled
from isbor.search.result import SearchResult
from isbor.search.width import WidthTrial

__all__ = ["SparseClassifier"]

_PRICE = 2.0  # nats per unit of cost, when the evidence of a model is compared with that of a process
_ROUNDING = 1e-24  # a relative variance below this is a rounding error


class SparseClassifier(LatentClassifier):
    """Base class of the sparse Bayesian estimators.

    A subclass implements `_search`, which reads the training data, searches for the model and hands it to
    `_set_fitted`.
    """

    callback: Callback | None
    verbose: int

    thresholds_: FloatArray
    sigma_: float
    dual_coef_: FloatArray
    intercept_: float
    alpha_: FloatArray
    relevance_vectors_: FloatArray
    relevance_: IntArray
    n_relevance_: int
    gamma_: float | FloatArray | None
    feature_relevance_: FloatArray
    feature_scale_: FloatArray
    log_evidence_: float
    n_iter_: int
    trace_: tuple[Step, ...]
    width_trials_: tuple[WidthTrial, ...]
    stop_reason_: StopReason
    _model: Ensemble

    @property
    def feature_importances_(self) -> FloatArray:
        """The same as `feature_relevance_`, under the name that scikit-learn's feature selection uses."""
        return self.feature_relevance_

    def _fit(self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None) -> None:
        if y is not None and not is_compiled():
            # A mistake in the data is found at once, and not after half a minute of compilation.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the fit warns
                encode_labels(y, self.classes)
                if data_frame(X) is not None:
                    read_table(type(self).__name__, X, self.missing)
        self._show(lambda callback: self._search(X, y, sample_weight, callback))

    def _show(self, search: Callable[[Callback | None], SearchResult]) -> None:
        """Call a search that sets the fitted attributes; show its progress, if that is wanted."""
        ensure_compiled()
        if self.verbose:
            name = type(self).__name__
            with Progress(name, every_step=self.verbose > 1, callback=self.callback) as progress:
                families = search(progress).families
                progress.summary = (
                    f"{' + '.join(families)}, {self.n_relevance_} functions, "
                    f"log evidence {self.log_evidence_:.1f}"
                )
        else:
            search(self.callback)
        if self.stop_reason_ is StopReason.MAX_ITER:
            warn_user(str(self.stop_reason_), ConvergenceWarning)

    @abstractmethod
    def _search(
        self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None, callback: Callback | None
    ) -> SearchResult:
        """Fit the model, and return how it was found."""

    def _score_sum(self) -> ScoreSum:
        return score_of_ensemble(
            self._model, self._encoding.feature, self.relevance_, self._centre, self._unit
        )

    def _set_fitted(
        self, training: TrainingSet, result: SearchResult, workers: Workers, *, renewed: bool = True
    ) -> None:
        """Set the fitted attributes; unless `renewed`, those that take long stay as they are."""
        model, rows = result.model, training.rows
        n_levels = len(training.classes)
        thresholds = thresholds_of_all_levels(
            training, model, model.thresholds, workers, noise_scale=model.temperature
        )
        if len(training.observed) < n_levels:
            model = replace(model, threshold_places=places_of_thresholds(training.observed, n_levels))
        centre, variance = model.latent_moments(rows, workers)
        # If all scores are equal up to rounding, they are not divided by their standard deviation.
        unit = float(np.sqrt(variance)) if variance > _ROUNDING * (1.0 + centre**2) else 1.0
        self._model, self._thresholds, self._centre, self._unit = model, thresholds, centre, unit
        self.thresholds_ = (thresholds - centre) / unit
        self.sigma_ = model.temperature / unit
        self.dual_coef_ = model.coef / unit
        self.intercept_ = (model.intercept - centre) / unit
        self.alpha_ = model.alpha * unit**2
        functions = model.functions
        self.relevance_ = rows.source[functions.origin]
        self.relevance_vectors_ = model.preparation.centres(functions.centres, functions.metric != 0.0)
        self.n_relevance_ = len(functions)
        self.gamma_ = result.gamma
        self.feature_scale_ = training.scaling.spread
        self.log_evidence_ = model.log_evidence
        if renewed:
            self.feature_relevance_ = feature_relevance(
                model, rows, training.feature, self.n_features_in_, workers
            )
        process = None if renewed else self._reference.process
        self._learn_beside(training, model.objective(_PRICE), workers, process)
        self.n_iter_ = result.n_passes
        self.trace_ = result.steps
        self.width_trials_ = result.width_trials
        self.stop_reason_ = result.stop_reason
