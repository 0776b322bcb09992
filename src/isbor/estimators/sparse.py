"""What the sparse Bayesian estimators share: how a fit becomes attributes, and progress."""

import sys
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, Step, StopReason
from isbor._core.types import FloatArray, IntArray
from isbor.data.training import Training
from isbor.estimators.base import LatentClassifier, thresholds_of_all_levels
from isbor.inspection import feature_relevance
from isbor.prediction.probabilities import LatentModel
from isbor.search.families import Table
from isbor.search.result import Fit
from isbor.search.width import WidthTrial

__all__ = ["SparseClassifier"]

_ROUNDING = 1e-24  # of squares: what is less says nothing


class SparseClassifier(LatentClassifier):
    """A sparse sum of basis functions with all that was learned about it."""

    callback: Callback | None
    verbose: int

    thresholds_: FloatArray
    sigma_: float
    coef_: FloatArray
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
    _latent: LatentModel

    def _take_over(self, training: Training, table: Table, fit: Fit, workers: Workers) -> None:
        """Set the fitted attributes."""
        latent = fit.latent(training.total_weight)
        cuts = thresholds_of_all_levels(training, latent, latent.thresholds, workers)
        centre, variance = fit.score_moments(table.rows, workers)
        # All scores may be equal, but for rounding.
        unit = float(np.sqrt(variance)) if variance > _ROUNDING * (1.0 + centre**2) else 1.0
        self._latent, self._cuts, self._centre, self._unit = latent, cuts, centre, unit
        self._table, self.classes_ = training.table, training.classes
        self.thresholds_ = (cuts - centre) / unit
        self.sigma_ = 1.0 / unit
        self._describe_functions(fit, table, training.X)
        self.feature_relevance_ = feature_relevance(latent, table.rows, table.feature, self.n_features_in_)
        self.log_evidence_ = float(np.dot(fit.shares, [model.log_evidence for model in fit.models]))
        self.n_iter_ = fit.n_passes
        self.trace_ = fit.steps
        self.width_trials_ = fit.width_trials
        self.stop_reason_ = fit.reason
        if fit.reason is StopReason.MAX_ITER:
            warnings.warn(str(fit.reason), ConvergenceWarning, stacklevel=4)

    def _describe_functions(self, fit: Fit, table: Table, X: FloatArray) -> None:
        """Set what tells the functions of the score apart, in the units of the table and of the score."""
        members, scaling, unit = self._latent.members, table.scaling, self._unit
        self.coef_ = np.concatenate([member.share * member.weights for member in members]) / unit
        offsets = [member.shift - member.functions.offset @ member.weights for member in members]
        self.intercept_ = (float(np.dot(fit.shares, offsets)) - self._centre) / unit
        parts = zip(fit.models, fit.shares, fit.scales, strict=True)
        alphas = [model.mode.alpha / (share * scale) ** 2 for model, share, scale in parts]
        self.alpha_ = np.concatenate(alphas) * unit**2
        functions = [model.functions for model in fit.models]
        self.relevance_ = table.rows.source[np.concatenate([some.origin for some in functions])]
        if "mixed" in fit.kinds:
            self.relevance_vectors_ = np.concatenate(
                [fit.preparation.centres(some.centres, some.metric != 0.0) for some in functions]
            )
        else:
            self.relevance_vectors_ = X[self.relevance_]
        self.n_relevance_ = len(self.coef_)
        self.gamma_ = fit.gamma
        with np.errstate(divide="ignore"):
            self.feature_scale_ = 1.0 / scaling.factor

    def _progress(self) -> Callback | None:
        if not self.verbose:
            return self.callback

        def report(step: Step) -> None:
            if step.kind == "mode" or self.verbose > 1:
                sys.stderr.write(f"[{type(self).__name__}] {step}\n")
            if self.callback is not None:
                self.callback(step)

        return report
