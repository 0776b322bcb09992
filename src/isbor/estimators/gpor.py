"""`GPOR`: Gaussian process ordinal regression."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from isbor._core.parallel import Workers
from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor._core.warnings import warn_user
from isbor.data.cells import Missing
from isbor.data.training_set import TrainingSet
from isbor.data.weights import ClassWeight
from isbor.estimators.base import SHARED_PARAMETERS
from isbor.estimators.latent import LatentClassifier, thresholds_of_all_levels
from isbor.estimators.parameters import POSITIVE, Allowed, choice, integer
from isbor.gp.ep import expectation_propagation
from isbor.gp.hyperparameters import ProcessFit, ProcessSettings, fit_process
from isbor.gp.laplace import laplace
from isbor.gp.process import Inference, Process
from isbor.inspection.score import ScoreSum, score_of_process
from isbor.prediction.probabilities import lapse_after

__all__ = ["GPOR"]

_MAX_ROWS = 10_000  # several matrices of 0.8 GB each
_INFERENCE: dict[str, Inference] = {"laplace": laplace, "ep": expectation_propagation}


class GPOR(LatentClassifier):
    r"""Gaussian process ordinal regression.

    A latent score with a Gaussian process prior, plus Gaussian noise, is cut into ordered classes by
    thresholds,

    .. math::
        f \sim \mathrm{GP}(0, k), \quad k(x, x') = \exp\Big(-\sum_d \gamma_d (x_d - x'_d)^2\Big), \quad
        p(y \le k \mid f) = \Psi\big((b_k - f)/\sigma\big) .

    The posterior of the score is approximated by a Gaussian. Width, noise and thresholds maximise the
    approximate evidence (marginal likelihood) by L-BFGS with exact gradients, so nothing needs to be tuned.
    But every prediction uses all rows: with n distinct rows, one evaluation of the evidence takes O(n³) time
    and O(n²) memory, a fit takes about forty evaluations, and the prediction of one row takes O(n²) time.
    More than 10,000 distinct rows are refused; `ISBOR` has no such limit.

    Parameters
    ----------
    inference : "laplace" or "ep", default="laplace"
        Approximation of the posterior: Laplace's, around the mode, or expectation propagation, which matches
        means and variances for each row. "ep" takes several times as long and is more accurate, most of all
        if there is little noise.
    metric : "isotropic" or "ard", default="isotropic"
        One width for all columns, or one scale for each column (automatic relevance determination). Set "ard"
        if some features may be irrelevant.
    gamma : "evidence" or float, default="evidence"
        Width of the covariance exp(-gamma ‖x - x'‖²) on standardised features. "evidence" learns it with the
        other hyperparameters. Set a positive number if the width is known.
    n_restarts : int, default=0
        Number of searches from random hyperparameters, in addition to those from a fixed wide and a fixed
        narrow width. The result with the highest evidence is used. Increase it if the evidence may have
        several maxima.
    max_iter : int, default=200
        Largest number of iterations of each search. A warning is issued if it is reached.
    tol : float, default=1e-7
        A search ends if an iteration increases the log evidence by less than this share of it.
    missing : "auto", "indicator" or "error", default="auto"
        How to treat missing cells, see `ISBOR`.
    classes : sequence of labels, default=None
        All classes, lowest first. Required for strings, unless y is an ordered categorical. For other labels,
        it can name classes that do not occur in y.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by label; they multiply the sample weights. "balanced" gives all classes the
        same total weight.
    n_jobs : int or None, default=None
        Number of threads for predictions. None means all cores. `fit` uses the threads of the linear algebra
        library.
    random_state : int, RandomState or None, default=None
        Selects the starting points of restarts. None means a fixed choice, so that the fit depends on nothing
        but the set of training rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, lowest first.
    thresholds_ : ndarray of shape (n_classes - 1,)
        Thresholds between the classes. All scores are reported in units of the prior standard deviation.
    sigma_ : float
        Standard deviation of the noise in these units (noise-to-signal ratio).
    gamma_ : float or ndarray of shape (n_columns,)
        Width, or with metric="ard" the scale of each column; 0 for a constant column.
    log_evidence_ : float
        Approximation of the log marginal likelihood.
    n_iter_ : int
        Number of iterations of the best search.
    column_names_ : ndarray of shape (n_columns,)
        Names of the encoded columns, see `ISBOR`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    ISBOR : Sparse, for tables of any size; on small ones, it compares with a Gaussian process.

    Notes
    -----
    For a row of weight w, the likelihood is taken to the power of w.

    References
    ----------
    W. Chu and Z. Ghahramani, "Gaussian Processes for Ordinal Regression", Journal of Machine Learning
    Research, 2005.

    Examples
    --------
    >>> from isbor import GPOR
    >>> from isbor.datasets import make_saddle
    >>> X, y = make_saddle(100, random_state=0)
    >>> model = GPOR().fit(X, y)
    >>> bool((model.predict(X) == y).mean() > 0.95)
    True
    >>> model.sigma_ < 0.1  # the labels follow the score closely
    True
    """

    _allowed: ClassVar[dict[str, Allowed]] = {
        "inference": choice(*_INFERENCE),
        "metric": choice("isotropic", "ard"),
        "gamma": POSITIVE | choice("evidence"),
        "n_restarts": integer(at_least=0),
        "max_iter": integer(at_least=1),
        "tol": POSITIVE,
        **SHARED_PARAMETERS,
    }

    _model: Process
    thresholds_: FloatArray
    sigma_: float
    gamma_: float | FloatArray
    log_evidence_: float
    n_iter_: int
    _source: IntArray  # (n,) numbers of the training rows of the process

    def __init__(
        self,
        *,
        inference: Literal["laplace", "ep"] = "laplace",
        metric: Literal["isotropic", "ard"] = "isotropic",
        gamma: float | Literal["evidence"] = "evidence",
        n_restarts: int = 0,
        max_iter: int = 200,
        tol: float = 1e-7,
        missing: Missing = "auto",
        classes: Sequence[Any] | LabelArray | None = None,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(missing, classes, class_weight, n_jobs, random_state)
        self.inference = inference
        self.metric = metric
        self.gamma = gamma
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.tol = tol

    def _fit(self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None) -> None:
        if self.metric == "ard" and self.gamma != "evidence":
            raise ValueError(
                f"metric='ard' cannot be combined with gamma={self.gamma!r}: gamma applies to "
                "metric='isotropic' only. Remove one."
            )
        training = self._read_training(X, y, sample_weight)
        if len(training.rows) > _MAX_ROWS:
            raise ValueError(
                f"X holds {len(training.rows)} distinct rows; GPOR accepts at most {_MAX_ROWS}, because its "
                "time grows with the cube of their number and its memory with the square. Use ISBOR, which "
                "has no such limit, or fit a sample of the rows."
            )
        fit = fit_process(training.rows, _INFERENCE[self.inference], self._settings(training))
        if not fit.converged:
            warn_user(
                f"The search for hyperparameters reached the limit of {self.max_iter} iterations: raise "
                "max_iter.",
                ConvergenceWarning,
            )
        self._set_fitted(training, fit)

    def _settings(self, training: TrainingSet) -> ProcessSettings:
        return ProcessSettings(
            n_features=training.n_varying,
            gamma=None if self.gamma == "evidence" else float(self.gamma),
            ard=self.metric == "ard",
            n_restarts=self.n_restarts,
            max_iter=self.max_iter,
            tol=self.tol,
            seed=training.seed,
        )

    def _set_fitted(self, training: TrainingSet, fit: ProcessFit) -> None:
        """Set the fitted attributes."""
        lapse = lapse_after(training.rows.total_weight)
        model = Process(training.scaling, training.rows.X, fit.covariance, fit.posterior, lapse)
        with Workers(self.n_jobs) as workers:
            thresholds = thresholds_of_all_levels(training, model, fit.thresholds, workers)
            amplitude, scales = fit.covariance.amplitude, fit.covariance.scales
            self._model, self._thresholds, self._centre, self._unit = model, thresholds, 0.0, amplitude
            self._learn_beside(training, fit.log_evidence, workers)
        self._source = training.rows.source
        self.thresholds_ = thresholds / amplitude
        self.sigma_ = 1.0 / amplitude
        if self.metric == "ard":
            self.gamma_ = np.where(training.scaling.factor > 0.0, scales, 0.0)
        else:
            self.gamma_ = float(scales[0] if self.gamma == "evidence" else self.gamma)
        self.log_evidence_ = fit.log_evidence
        self.n_iter_ = fit.n_iter

    def _score_sum(self) -> ScoreSum:
        return score_of_process(self._model, self._encoding.feature, self._source, self._centre, self._unit)
