"""`ISBOR`, the incremental sparse Bayesian model."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from isbor._core.parallel import Workers
from isbor._core.trace import Callback
from isbor._core.types import LabelArray
from isbor.data.encoding import Missing
from isbor.data.training import ClassWeight, TrainingSet, read_training
from isbor.estimators.base import SHARED_PARAMETERS
from isbor.estimators.parameters import BOOLEAN, CALLABLE, NONE, POSITIVE, Allowed, choice, integer, number
from isbor.estimators.sparse import SparseClassifier
from isbor.search.families.catalogue import fit_families
from isbor.search.result import Family, SearchResult
from isbor.search.selection import Selection, select_families
from isbor.search.settings import SearchSettings

__all__ = ["ISBOR"]

_MAX_DENSE_ROWS = 20_000  # 3.2 GB


class ISBOR(SparseClassifier):
    """Incremental sparse Bayesian ordinal regression.

    A latent score, the sum of a few dozen basis functions, is cut into ordered classes by thresholds under
    Gaussian noise. Which functions, how strongly, where they are centred and how wide, and where the
    thresholds lie: all of it follows from the evidence (the marginal likelihood), and labels that are held
    back say which kind of function suits the data. So there is nothing to tune.

    Parameters
    ----------
    basis : "auto", "rbf" or "mixed", default="auto"
        The kind of basis functions. "rbf": the paper's model, Gaussians of one width centred on training
        rows. "mixed": functions with centres and metrics of their own, on one, two, three or more features,
        found by search and improved along the gradient of the log evidence; the score is an average of
        `n_members` searches. "auto" compares the kinds (and "rbf" with metric="ard" where rows are few) by
        the probability they give to labels that are held back, and up to 2,500 rows their averages too; see
        `selection_`. A given `gamma`, metric="ard" or solver="sequential" mean rows as centres and are
        refused with "mixed".
    metric : "isotropic" or "ard", default="isotropic"
        For rows as centres: one width, or one scale for each feature (a category's levels are one), shared
        by all functions and learned by the gradient of the log evidence.
    gamma : "evidence" or float, default="evidence"
        Width of the basis functions exp(-gamma ‖x - z‖²) on standardised features. "evidence" chooses it by
        maximising the log evidence less the size prior; a positive number fixes it.
    size_prior : float, default=2.0
        Prior on the size of the model, in nats: ln p(M) = -size_prior · cost. A function centred on a row
        costs 1; one of k features with a metric of its own costs 1 + k, because there is more in it that
        can adapt to noise. Larger means fewer functions.
    max_vectors : int or None, default=None
        Largest number of basis functions. None: no limit, except that a "mixed" model with an automatic
        number of searches has at most 200.
    n_members : int or "auto", default="auto"
        Searches that a "mixed" model averages. "auto": two, or as many up to four as have no more than
        about 45 functions together; above 8,000 rows no more than 200. With `max_vectors` as many at most as
        may have eight functions each.
    noise : "varying" or "constant", default="varying"
        Whether the noise of a "mixed" model may differ from row to row: its logarithm is then a sum of the
        same functions as the score. The other kinds, like the paper's model, have constant noise.
    missing : "auto", "indicator" or "error", default="auto"
        What to do with missing cells. "indicator": in a column of numbers the mean takes their place and a
        column of its own marks them; in a category they are a level of their own. "error": refuse them.
        "auto": "indicator" for data frames, "error" for arrays.
    solver : "gram" or "sequential", default="gram"
        "gram" streams over the rows and selects in the space of inner products: time linear in the number
        of rows, and no more memory than a few copies of X. "sequential" is the paper's Algorithm 1,
        corrected: one move at a time on the dense N × N matrix, for small problems (with
        gamma="evidence" the width is still chosen by the gram solver).
    classes : sequence of labels, default=None
        All labels, lowest first. Needed for strings; for others it names levels that may be missing from y.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by label. "balanced" gives all classes the same total weight.
    n_candidates : int or "all", default=200
        Rows proposed as centres in each pass of the gram solver. "all" takes a matrix of rows × rows.
    tol : float, default=0.01
        Nats. With rows as centres, a move that gains less is not made, a pass that gains less is the last.
    patience : int, default=2
        With rows as centres, selection ends when this many restarts in a row, each with other functions
        thrown in, have not raised the objective. 0 means no restarts.
    max_iter : int, default=1000
        With rows as centres, a limit on passes (gram) or moves (sequential).
    n_jobs : int or None, default=None
        Threads. None means all cores.
    random_state : int, RandomState or None, default=None
        Chooses the pseudo-random order in which rows and functions are proposed. None is a fixed order: the
        fit is a function of the data alone, whatever the order of its rows.
    callback : callable or None, default=None
        Called with each `isbor.Step`. If it raises, the estimator stays as it was.
    verbose : int, default=0
        1 writes a line a pass to standard error, 2 a line a move.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in order.
    thresholds_ : ndarray of shape (n_classes - 1,)
        Thresholds between the classes. Like all scores they are on the scale on which the scores of the
        training rows have mean 0 and standard deviation 1.
    sigma_ : float
        Typical standard deviation of the noise in these units: noise to signal. `noise_scale` returns that
        of each row.
    basis_ : str
        The basis family: "rbf", "ard" or "mixed", or several that are averaged, as "rbf + mixed".
    selection_ : Selection
        The families that were compared and the one that was selected; prints as a table.
    feature_relevance_ : ndarray of shape (n_features,)
        Share of the score's variation that goes with each feature: how much the score changes, in mean
        square, when the feature alone is taken from another row. Sums to one; zeros if the score is constant.
    feature_importances_ : ndarray of shape (n_features,)
        The same, under the name that scikit-learn's `SelectFromModel` and `RFE` look for.
    dual_coef_ : ndarray of shape (n_relevance_,)
        Weights of the basis functions.
    intercept_ : float
        Constant of the score.
    alpha_ : ndarray of shape (n_relevance_,)
        Prior precisions of the weights.
    relevance_vectors_ : ndarray of shape (n_relevance_, n_columns)
        Centres of the basis functions, in the units of X; columns of categories as they are encoded. A
        feature that a function does not use has its mean there.
    relevance_ : ndarray of shape (n_relevance_,)
        Their row numbers in the training data; for "mixed" the rows that the search first centred them on.
    n_relevance_ : int
        Number of basis functions.
    gamma_ : float, ndarray of shape (n_columns,) or None
        Width ("rbf"), scale of each column ("ard"), or None: each function has its own.
    feature_scale_ : ndarray of shape (n_columns,)
        Standard deviations that the columns are divided by; infinite for a constant one.
    log_evidence_ : float
        Laplace approximation of the log marginal likelihood; the members' mean in an average.
    n_iter_ : int
        Passes (gram) or moves (sequential) made, those of vain restarts included.
    trace_ : tuple of Step
        The moves that led to the model, in order: the winning chain of the width search, then the fit. Each
        run begins with the functions it starts from; each member of a "mixed" model is a run.
    width_trials_ : tuple of WidthTrial
        Widths tried and what each reached; empty if gamma is a number or each function has its own.
    stop_reason_ : StopReason
        Why the fit ended; prints as a sentence.
    column_names_ : ndarray of shape (n_columns,)
        Names of the encoded columns that vectors and scales refer to: "age", "color=red", "color missing",
        and "color new" for levels that training did not have.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    For "rbf" the score is intercept_ plus exp(-gamma_ ‖(x - z)/feature_scale_‖²) · dual_coef_ summed over
    the relevance vectors z. The label is the class whose thresholds enclose the score: the median of the
    predicted distribution, which is not always its most probable class.

    In a data frame, columns that are categorical or hold strings or booleans become a column of zeros and
    ones for each level, scaled together as one feature. One more column marks levels that training did not
    have: they are as far from all others as those are from each other. A category that says its levels are
    in order has a column with their places as well.

    References
    ----------
    C. Li and M. de Rijke, "Incremental Sparse Bayesian Ordinal Regression", Neural Networks, 2018.

    Examples
    --------
    >>> from isbor import ISBOR
    >>> from isbor.datasets import make_saddle
    >>> X, y = make_saddle(1000, random_state=0)
    >>> model = ISBOR().fit(X, y)
    >>> model.n_relevance_ < 20  # sparse: 1000 rows were offered
    True
    >>> bool((model.predict(X) == y).mean() > 0.98)
    True
    """

    _allowed: ClassVar[dict[str, Allowed]] = {
        "basis": choice("auto", "rbf", "mixed"),
        "metric": choice("isotropic", "ard"),
        "gamma": POSITIVE | choice("evidence"),
        "size_prior": number(at_least=0),
        "max_vectors": integer(at_least=1) | NONE,
        "n_members": integer(at_least=1) | choice("auto"),
        "noise": choice("varying", "constant"),
        "solver": choice("gram", "sequential"),
        "n_candidates": integer(at_least=1) | choice("all"),
        "tol": POSITIVE,
        "patience": integer(at_least=0),
        "max_iter": integer(at_least=1),
        "callback": CALLABLE | NONE,
        "verbose": integer(at_least=0) | BOOLEAN,
        **SHARED_PARAMETERS,
    }

    basis_: str
    selection_: Selection

    def __init__(
        self,
        *,
        basis: Literal["auto", "rbf", "mixed"] = "auto",
        metric: Literal["isotropic", "ard"] = "isotropic",
        gamma: float | Literal["evidence"] = "evidence",
        size_prior: float = 2.0,
        max_vectors: int | None = None,
        n_members: int | Literal["auto"] = "auto",
        noise: Literal["varying", "constant"] = "varying",
        missing: Missing = "auto",
        solver: Literal["gram", "sequential"] = "gram",
        classes: Sequence[Any] | LabelArray | None = None,
        class_weight: ClassWeight = None,
        n_candidates: int | Literal["all"] = 200,
        tol: float = 1e-2,
        patience: int = 2,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.basis = basis
        self.metric = metric
        self.gamma = gamma
        self.size_prior = size_prior
        self.max_vectors = max_vectors
        self.n_members = n_members
        self.noise = noise
        self.missing = missing
        self.solver = solver
        self.classes = classes
        self.class_weight = class_weight
        self.n_candidates = n_candidates
        self.tol = tol
        self.patience = patience
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _fit(self, X: object, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        self._check_combination()
        training = read_training(self, X, y, sample_weight)
        rows = training.rows
        if self.solver == "sequential" and len(rows) > _MAX_DENSE_ROWS:
            raise ValueError(
                f"X holds {len(rows)} distinct rows; solver='sequential' keeps a matrix of rows × rows "
                f"and takes at most {_MAX_DENSE_ROWS}. Use solver='gram', or fit a sample of the rows."
            )
        settings = self._settings(training.seed)
        callback = self._progress()
        with Workers(self.n_jobs) as workers:
            selection, start = self._select(training, settings, workers, callback)
            results = fit_families(selection.families, training, settings, "fit", workers, callback, start)
            result = SearchResult.average(list(results.values()), rows, workers)
            self._set_fitted(training, result, workers)
        self.selection_ = selection
        self.basis_ = selection.basis

    def _check_combination(self) -> None:
        """Raise ValueError if a parameter would have no effect because of another."""
        given = {
            "metric": ("metric='ard'", self.metric == "ard"),
            "gamma": (f"gamma={self.gamma!r}", self.gamma != "evidence"),
            "solver": ("solver='sequential'", self.solver == "sequential"),
        }
        for name, (text, is_given) in given.items():
            if is_given and self.basis == "mixed":
                raise ValueError(
                    f"basis='mixed' cannot be combined with {text}: {name} applies to basis='rbf' only. "
                    "Remove one."
                )
            if is_given and self.metric == "ard" and name != "metric":
                raise ValueError(
                    f"metric='ard' cannot be combined with {text}: {name} applies to metric='isotropic' "
                    "only. Remove one."
                )

    def _select(
        self, training: TrainingSet, settings: SearchSettings, workers: Workers, callback: Callback | None
    ) -> tuple[Selection, SearchResult | None]:
        """Return the basis family, the one asked for or the best, and a result to start from."""
        if self.basis != "auto":
            family: Family = "mixed" if self.basis == "mixed" else "ard" if self.metric == "ard" else "rbf"
            return Selection((family,), (), "asked for."), None
        if self.metric == "ard":
            return Selection(("ard",), (), "asked for by metric='ard'."), None
        if self.gamma != "evidence":
            return Selection(("rbf",), (), "a width was given."), None
        if self.solver == "sequential":
            return Selection(("rbf",), (), "the sequential solver has no other."), None
        return select_families(training, settings, workers, callback)

    def _settings(self, seed: int) -> SearchSettings:
        return SearchSettings(
            gamma=None if self.gamma == "evidence" else float(self.gamma),
            size_prior=self.size_prior,
            solver=self.solver,
            n_candidates=None if self.n_candidates == "all" else int(self.n_candidates),
            tol=self.tol,
            patience=self.patience,
            max_iter=self.max_iter,
            max_vectors=np.inf if self.max_vectors is None else self.max_vectors,
            n_members=None if self.n_members == "auto" else int(self.n_members),
            varying_noise=self.noise == "varying",
            seed=seed,
        )
