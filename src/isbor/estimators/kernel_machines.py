"""Base classes of the kernel machines: kernel parameters, fitted attributes, calibrated probabilities."""

from abc import abstractmethod
from typing import Any, ClassVar, Generic, Literal, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from isbor._core.parallel import Workers, row_blocks
from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.data.training_set import TrainingSet
from isbor.estimators.base import SHARED_PARAMETERS, OrdinalClassifier
from isbor.estimators.explained import ExplainedClassifier
from isbor.estimators.parameters import BOOLEAN, POSITIVE, Allowed, choice, integer, number
from isbor.files.errors import ModelFileError
from isbor.inspection.score import Ridge, ScoreSum, plain_functions
from isbor.kernel.calibration import Calibration, calibrate, cross_fitted_scores
from isbor.kernel.kernels import CutScore, Kernel, KernelMachine, KernelName
from isbor.model.latent import Latent
from isbor.prediction.costs import Loss
from isbor.prediction.empty_classes import insert_empty_levels
from isbor.prediction.probabilities import class_probabilities, lapse_after

__all__ = ["FOLDS", "KERNEL_PARAMETERS", "Gamma", "BatchKernelClassifier", "KernelClassifier"]

Gamma = float | Literal["scale"]
Cut = TypeVar("Cut", bound=CutScore)

FOLDS = 5  # folds of the rows, to calibrate probabilities

KERNEL_PARAMETERS: dict[str, Allowed] = {
    "kernel": choice("rbf", "linear", "poly", "precomputed"),
    "gamma": POSITIVE | choice("scale"),
    "degree": integer(at_least=1),
    "coef0": number(),
    "probability": BOOLEAN,
    **SHARED_PARAMETERS,
}


def _has_probabilities(estimator: "KernelClassifier[Any]") -> bool:
    if not estimator.probability:
        raise AttributeError(
            f"This {type(estimator).__name__} has probability=False; class probabilities and losses other "
            'than "absolute" need probability=True, set before fit.'
        )
    return True


class KernelClassifier(ExplainedClassifier, Generic[Cut]):
    """Base class of kernel machines: `predict` uses their own thresholds, `predict_proba` a calibration."""

    kernel: KernelName
    gamma: Gamma
    degree: int
    coef0: float
    probability: bool
    _allowed: ClassVar[dict[str, Allowed]] = KERNEL_PARAMETERS

    thresholds_: FloatArray
    dual_coef_: FloatArray
    support_: IntArray
    support_vectors_: FloatArray
    gamma_: float
    n_iter_: int
    _model: KernelMachine
    _calibration: Calibration | None
    _response_thresholds: FloatArray
    _lapse: float

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _check_restored(self) -> None:
        super()._check_restored()
        if self._calibration is not None:
            self._check_thresholds(self._response_thresholds)
            rows = np.zeros((1, len(self._encoding.feature)))
            self._check_finite(
                self._map_encoded(rows, lambda latent: class_probabilities(*self._response(latent)))
            )
        elif self.probability:
            raise ModelFileError(
                "The model was fitted with probability=False, and has probability=True now. Fit it again, or "
                "set probability=False."
            )

    def _kernel_for(self, training: TrainingSet) -> Kernel:
        gamma = 1.0 / training.n_varying if self.gamma == "scale" else float(self.gamma)
        return Kernel(self.kernel, gamma, self.degree, self.coef0)

    def _set_fitted(self, training: TrainingSet, kernel: Kernel, cut: Cut) -> None:
        """Set the fitted attributes, and calibrate probabilities."""
        rows = training.rows
        chosen = np.flatnonzero(cut.coef)
        support = rows.take(chosen)
        machine = KernelMachine(training.scaling, kernel, support, cut.coef[chosen])
        own = self._scores(rows, kernel, support, cut.coef[chosen])
        self._model = machine
        if kernel.name != "precomputed":
            self._keep_background(training)
        self._thresholds = self._all_levels(training, cut.thresholds, own)
        self._calibration = None
        if self.probability:
            self._calibration = calibrate(self._held_out_scores(rows, kernel, cut), rows.y, rows.weight)
            thresholds, slope = self._calibration.thresholds, self._calibration.slope
            self._response_thresholds = self._all_levels(training, thresholds, slope * own)
            self._lapse = lapse_after(training.rows.total_weight)
        self.thresholds_ = self._thresholds
        self.dual_coef_ = machine.coef
        self.support_ = support.source
        self.support_vectors_ = training.X[support.source]
        self.gamma_ = kernel.gamma
        self.n_iter_ = cut.n_iter

    def _score_sum(self) -> ScoreSum:
        machine = self._model
        kernel, z = machine.kernel, machine.anchors.X
        if kernel.name == "precomputed":
            raise ValueError(
                "kernel='precomputed' leaves the features unknown, so nothing can be said of them. Fit the "
                "model to the features, with kernel 'rbf', 'linear' or 'poly'."
            )
        if kernel.name == "rbf":
            functions = plain_functions(z, np.full(z.shape, kernel.gamma), ramp=False)
            ridge = Ridge()
        else:
            is_linear = kernel.name == "linear"
            slopes = z if is_linear else kernel.gamma * z
            functions = plain_functions(np.zeros_like(z), slopes, ramp=True)
            ridge = Ridge(degree=1) if is_linear else Ridge(kernel.degree, kernel.coef0)
        return ScoreSum(
            machine.scaling,
            self._encoding.feature,
            functions,
            machine.coef,
            0.0,
            machine.anchors.source,
            ridge,
        )

    @abstractmethod
    def _held_out_scores(self, rows: TrainingRows, kernel: Kernel, cut: Cut) -> FloatArray:
        """Return the scores of the training rows by machines that were not trained on them."""

    @abstractmethod
    def _scores(
        self, rows: TrainingRows, kernel: Kernel, support: TrainingRows, coef: FloatArray
    ) -> FloatArray:
        """Return the scores of the training rows."""

    def _all_levels(self, training: TrainingSet, thresholds: FloatArray, scores: FloatArray) -> FloatArray:
        """Return thresholds between all classes, including those without rows."""
        n_levels = len(training.classes)
        if len(training.observed) == n_levels:
            return thresholds
        return insert_empty_levels(
            thresholds,
            training.observed,
            n_levels,
            total_weight=training.rows.total_weight,
            responses=np.stack([scores, np.ones(len(scores))], axis=1),
        )

    def latent(self, X: ArrayLike) -> FloatArray:
        """Return the score of each row, on the scale of `thresholds_`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.

        Returns
        -------
        score : ndarray of shape (n_samples,)
        """
        return self._map_rows(X, lambda latent: latent.mean)

    @overload
    def predict_proba(self, X: ArrayLike, *, as_frame: Literal[False] = False) -> FloatArray: ...
    @overload
    def predict_proba(self, X: ArrayLike, *, as_frame: bool) -> Any: ...
    @available_if(_has_probabilities)
    def predict_proba(self, X: ArrayLike, *, as_frame: bool = False) -> Any:
        """Predict class probabilities, by an ordered probit fitted to the scores of held-out rows.

        `predict` uses the thresholds of the machine itself, so its label need not be the median of these
        probabilities.

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

    predict_log_proba = available_if(_has_probabilities)(OrdinalClassifier.predict_log_proba)

    def _decide(self, latent: Latent, loss: Loss) -> IntArray:
        if not (isinstance(loss, str) and loss == "absolute"):
            _has_probabilities(self)
        return super()._decide(latent, loss)

    def _response(self, latent: Latent) -> tuple[Latent, FloatArray]:
        calibration = cast(Calibration, self._calibration)
        return calibration.response(latent, self._lapse), self._response_thresholds


class BatchKernelClassifier(KernelClassifier[Cut]):
    """Base class of kernel machines that are fitted to all rows at once."""

    @abstractmethod
    def _solve(self, rows: TrainingRows, kernel: Kernel) -> Cut:
        """Fit a machine to the rows."""

    def _fit(self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None) -> None:
        training = self._read_training(X, y, sample_weight, pairwise=self.kernel == "precomputed")
        kernel = self._kernel_for(training)
        cut = self._solve(training.rows, kernel)
        self._set_fitted(training, kernel, cut)

    def _held_out_scores(self, rows: TrainingRows, kernel: Kernel, cut: Cut) -> FloatArray:
        return cross_fitted_scores(rows, cut, lambda part: self._solve(part, kernel), kernel, FOLDS)

    def _scores(
        self, rows: TrainingRows, kernel: Kernel, support: TrainingRows, coef: FloatArray
    ) -> FloatArray:
        with Workers(self.n_jobs) as workers:
            blocks = row_blocks(len(rows), len(support))
            return np.concatenate(
                list(workers.map(lambda block: kernel(rows.X[block], support) @ coef, blocks))
            )
