"""`SBOR`: sparse Bayesian ordinal regression, in batch."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from isbor._core.parallel import Workers
from isbor._core.trace import Callback
from isbor._core.types import LabelArray
from isbor.data.cells import Missing
from isbor.data.weights import ClassWeight
from isbor.estimators.base import SHARED_PARAMETERS
from isbor.estimators.parameters import BOOLEAN, CALLABLE, NONE, POSITIVE, Allowed, choice, integer
from isbor.estimators.sparse import SparseClassifier
from isbor.search.families.rbf import fit_rbf
from isbor.search.result import SearchResult
from isbor.search.settings import SearchSettings

__all__ = ["SBOR"]

_MAX_ROWS = 10_000


class SBOR(SparseClassifier):
    r"""Sparse Bayesian ordinal regression, in batch.

    The model of `ISBOR` with basis="rbf", fitted by deleting functions instead of adding them. A latent score
    :math:`f(x) = \sum_i w_i \exp(-\gamma\|x - x_i\|^2)`, with :math:`w_i \sim N(0, 1/\alpha_i)`, plus
    Gaussian noise is cut into classes by thresholds. At first, every row is a centre. The precisions α
    maximise the Laplace approximation of the evidence,

    .. math:: \max_\alpha\; \ln \int p(y \mid w, b)\, p(w \mid \alpha)\, dw\, db ,

    by MacKay's fixed-point iteration :math:`\alpha_i \leftarrow (1 - \alpha_i\Sigma_{ii})/w_i^2`. Functions
    whose precision grows without limit are deleted. The first steps take O(n³) time and O(n²) memory, later
    ones O(n m²) time for the m remaining functions. More than 10,000 distinct rows are refused.

    Parameters
    ----------
    gamma : "evidence" or float, default="evidence"
        Width of the basis functions on standardised features. "evidence" chooses it by the width search of
        `ISBOR`. Set a positive number if the width is known, or to save time.
    tol : float, default=0.01
        Smallest gain, in nats, of a move in the width search.
    max_iter : int, default=1000
        Largest number of updates of the precisions. A warning is issued if it is reached.
    missing : "auto", "indicator" or "error", default="auto"
        How to treat missing cells, see `ISBOR`.
    classes : sequence of labels, default=None
        All classes, lowest first. Required for strings, unless y is an ordered categorical. For other labels,
        it can name classes that do not occur in y.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by label; they multiply the sample weights. "balanced" gives all classes the
        same total weight.
    n_jobs : int or None, default=None
        Number of threads. None means all cores.
    random_state : int, RandomState or None, default=None
        Selects the pseudo-random order in which the width search proposes rows. None means a fixed order.
    callback : callable or None, default=None
        Called with each `isbor.Step` of the fit. If it raises an exception, the fit ends, and the estimator
        is left as it was.
    verbose : int, default=0
        1 shows the progress on standard error: in a terminal or notebook, one line that is kept up to date;
        elsewhere, a line every second; then a summary. 2 writes one line per step, and the summary.

    Attributes
    ----------
    classes_, thresholds_, sigma_, dual_coef_, intercept_, alpha_, relevance_vectors_, relevance_,
    n_relevance_, gamma_, feature_relevance_, feature_importances_, feature_scale_, log_evidence_, n_iter_,
    trace_, width_trials_, stop_reason_, column_names_
        As in `ISBOR` with basis="rbf".
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    ISBOR : Adds functions instead of deleting them; for tables of any size.

    References
    ----------
    X. Chang, Q. Zheng and P. Lin, "Ordinal Regression with Sparse Bayesian", ICIC 2009.

    Examples
    --------
    >>> from isbor import SBOR
    >>> from isbor.datasets import make_saddle
    >>> X, y = make_saddle(300, random_state=0)
    >>> model = SBOR().fit(X, y)
    >>> model.n_relevance_ < 30  # from 300 at the start
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
        super().__init__(missing, classes, class_weight, n_jobs, random_state)
        self.gamma = gamma
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.verbose = verbose

    def _search(
        self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None, callback: Callback | None
    ) -> SearchResult:
        training = self._read_training(X, y, sample_weight)
        rows = training.rows
        if len(rows) > _MAX_ROWS:
            raise ValueError(
                f"X holds {len(rows)} distinct rows; SBOR accepts at most {_MAX_ROWS}, because its time "
                "grows with the cube of their number. Use ISBOR, which has no such limit, or fit a sample of "
                "the rows."
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
            result = fit_rbf(training, settings, "fit", workers, callback)
            self._set_fitted(training, result, workers)
        return result
