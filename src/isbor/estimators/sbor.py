"""`SBOR`, the batch sparse Bayesian model."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from isbor._core.parallel import Workers
from isbor._core.trace import Callback
from isbor._core.types import LabelArray
from isbor.data.encoding import Missing
from isbor.data.training import ClassWeight, read_training
from isbor.estimators.base import SHARED_PARAMETERS
from isbor.estimators.parameters import BOOLEAN, CALLABLE, NONE, POSITIVE, Allowed, choice, integer
from isbor.estimators.sparse import SparseClassifier
from isbor.search.families.rbf import fit_rbf
from isbor.search.settings import SearchSettings

__all__ = ["SBOR"]

_MAX_ROWS = 10_000


class SBOR(SparseClassifier):
    r"""Sparse Bayesian ordinal regression, in batch.

    The model of `ISBOR` with rows as centres, fitted from the other end. A latent score :math:`f(x) = \sum_i
    w_i \exp(-\gamma\|x - x_i\|^2)`, with :math:`w_i \sim N(0, 1/\alpha_i)`, is cut by thresholds under
    Gaussian noise. All rows are centres at first; the precisions α maximise the evidence,

    .. math:: \max_\alpha\; \ln \int p(y \mid w, b)\, p(w \mid \alpha)\, dw\, db

    in Laplace's approximation, by MacKay's fixed point :math:`\alpha_i \leftarrow (1 -
    \alpha_i\Sigma_{ii})/w_i^2`, and functions whose precision grows beyond measure are dropped. The first
    steps take O(n³) time and O(n²) memory, later ones O(n m²) for the m functions left.

    Parameters
    ----------
    gamma : "evidence" or float, default="evidence"
        Width of the basis functions on standardised features. "evidence" takes the width that the search of
        `ISBOR` finds best; a positive number fixes it.
    tol : float, default=0.01
        Nats: how precisely the search for a width compares.
    max_iter : int, default=1000
        Limit on updates of the precisions.
    missing : "auto", "indicator" or "error", default="auto"
        What to do with missing cells, as in `ISBOR`.
    classes : sequence of labels, default=None
        All labels, lowest first. Needed for strings; for others it names levels that may be missing from y.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by label. "balanced" gives all classes the same total weight.
    n_jobs : int or None, default=None
        Threads. None means all cores.
    random_state : int, RandomState or None, default=None
        Chooses the pseudo-random order in which the search for a width proposes rows. None is a fixed order.
    callback : callable or None, default=None
        Called with each `isbor.Step`. If it raises, the estimator stays as it was.
    verbose : int, default=0
        1 writes a line an update to standard error, 2 a line a function that leaves.

    Attributes
    ----------
    classes_, thresholds_, sigma_, dual_coef_, intercept_, alpha_, relevance_vectors_, relevance_,
    n_relevance_, gamma_, feature_relevance_, feature_importances_, feature_scale_, log_evidence_, n_iter_,
    trace_, width_trials_, stop_reason_, column_names_
        As in `ISBOR` with basis="rbf".
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    X. Chang, Q. Zheng and P. Lin, "Ordinal Regression with Sparse Bayesian", ICIC 2009.

    Examples
    --------
    >>> from isbor import SBOR
    >>> from isbor.datasets import make_saddle
    >>> X, y = make_saddle(300, random_state=0)
    >>> model = SBOR().fit(X, y)
    >>> model.n_relevance_ < 30  # of 300 at first
    True
    >>> bool((model.predict(X) == y).mean() > 0.9)
    True
    """

    _allowed: ClassVar[dict[str, Allowed]] = {
        "gamma": POSITIVE | choice("evidence"),
        "tol": POSITIVE,
        "max_iter": integer(at_least=1),
        "callback": CALLABLE | NONE,
        "verbose": integer(at_least=0) | BOOLEAN,
        **SHARED_PARAMETERS,
    }

    def __init__(
        self,
        *,
        gamma: float | Literal["evidence"] = "evidence",
        tol: float = 1e-2,
        max_iter: int = 1000,
        missing: Missing = "auto",
        classes: Sequence[Any] | LabelArray | None = None,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.gamma = gamma
        self.tol = tol
        self.max_iter = max_iter
        self.missing = missing
        self.classes = classes
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _fit(self, X: object, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        training = read_training(self, X, y, sample_weight)
        rows = training.rows
        if len(rows) > _MAX_ROWS:
            raise ValueError(
                f"X holds {len(rows)} distinct rows; SBOR starts from all of them in O(n³) time and takes at "
                f"most {_MAX_ROWS}. Use ISBOR, which takes millions, or fit a sample of the rows."
            )
        settings = SearchSettings(
            gamma=None if self.gamma == "evidence" else float(self.gamma),
            size_prior=2.0,
            solver="batch",
            n_candidates=200,
            tol=self.tol,
            patience=0,
            max_iter=self.max_iter,
            max_vectors=np.inf,
            n_members=1,
            seed=training.seed,
        )
        with Workers(self.n_jobs) as workers:
            result = fit_rbf(training, settings, "fit", workers, self._progress())
            self._set_fitted(training, result, workers)
