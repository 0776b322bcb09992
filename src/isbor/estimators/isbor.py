"""`ISBOR`: incremental sparse Bayesian ordinal regression."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from isbor._core.checkpoints import Checkpoint
from isbor._core.parallel import Workers, row_blocks
from isbor._core.trace import Callback, StopReason
from isbor._core.types import LabelArray
from isbor.data.cells import Missing
from isbor.data.labels import rank_labels
from isbor.data.rows import TrainingRows
from isbor.data.training_set import TrainingSet
from isbor.data.weights import ClassWeight
from isbor.estimators.base import SHARED_PARAMETERS
from isbor.estimators.parameters import (
    BOOLEAN,
    CALLABLE,
    NONE,
    PATH,
    POSITIVE,
    Allowed,
    choice,
    integer,
    number,
)
from isbor.estimators.streaming import StreamClassifier
from isbor.model.cuts import Varying
from isbor.prediction.parallel_lines import ParallelLines, parallel_lines
from isbor.search.all_rows import fit_to_all_rows
from isbor.search.families.catalogue import fit_families
from isbor.search.result import Family, SearchResult
from isbor.search.selection import Known, Selection, select_families
from isbor.search.settings import Effort, SearchSettings

__all__ = ["ISBOR"]

_MAX_DENSE_ROWS = 20_000  # a matrix of 3.2 GB


class ISBOR(StreamClassifier):
    """Incremental sparse Bayesian ordinal regression.

    A latent score, a sum of a few dozen basis functions, plus Gaussian noise is cut into ordered classes by
    thresholds. The functions, their weights, centres and widths, and the thresholds are learned by maximising
    the evidence (marginal likelihood). Held-out log-likelihood selects the basis family, or an average of
    families. Nothing needs to be tuned.

    Parameters come in four groups: `basis` to `noise` define the model, `missing` to `class_weight` describe
    the data, `solver` to `max_iter` control the search for functions centred on training rows, and the others
    control the computation.

    Parameters
    ----------
    basis : "auto", "rbf" or "mixed", default="auto"
        The basis family. "rbf" is the model of the paper: Gaussians of one width, centred on training rows.
        In "mixed", each function has its own centre and its own metric on one, two, three or more features;
        functions are proposed at random and improved by gradient ascent of the log evidence, and the score is
        an average of `n_members` searches. "auto" selects the family with the best mean log probability of
        held-out labels, see `selection_`; on up to 2,500 rows, it also tries averages of families, on up to
        1,500 rows a Gaussian process ("gp"), which is not sparse and must be clearly better, and where that
        is not tried "rbf" with metric="ard". metric="ard", a number as `gamma` and solver="sequential" imply
        "rbf" and cannot be combined with "mixed". Set "rbf" for a model that is fast and easy to describe.
    metric : "isotropic" or "ard", default="isotropic"
        Metric of basis="rbf": one width for all features, or one scale for each feature (automatic relevance
        determination), shared by all functions and learned by gradient ascent of the log evidence. The
        columns of a categorical feature share one scale.
    gamma : "evidence" or float, default="evidence"
        Width of basis="rbf", exp(-gamma ‖x - z‖²) on standardised features. "evidence" chooses the width that
        maximises log evidence minus size-prior penalty. Set a positive number if the width is known, or to
        save time.
    size_prior : float, default=2.0
        Penalty for the size of the model, in nats per unit of cost: ln p(M) = -size_prior · cost. A function
        centred on a row costs 1. A function with its own metric on k features costs 1 + k, because it can
        adapt more to noise. Increase it for fewer functions.
    max_vectors : int or None, default=None
        Largest number of basis functions. None means no limit, but a "mixed" model with n_members="auto" has
        at most 400 if there are up to 1,500 rows. Set it to bound the time of predictions; then no Gaussian
        process is tried.
    n_members : int or "auto", default="auto"
        Number of searches that a "mixed" model averages. "auto" means eight with up to 1,500 rows, four with
        up to 20,000, and two longer ones with more (`effort` changes that). With `max_vectors`, there are
        two, or at most `max_vectors` / 8. More members take more time and reduce the variation between
        searches.
    noise : "varying" or "constant", default="varying"
        Whether the noise of a "mixed" model may vary between rows. If so, the logarithm of its standard
        deviation is a sum of the same functions as the score. Other families have constant noise.
    thresholds : "auto", "varying" or "constant", default="auto"
        Whether the thresholds of a "mixed" model may vary between rows. If so, the logarithm of each gap
        between thresholds is a sum of the same functions as the score, so features may separate some classes
        and not others (no parallel lines). The data decide how much they vary, if at all. "auto" means
        "varying", unless the noise is constant. `thresholds_at` returns them for each row.
    missing : "auto", "indicator" or "error", default="auto"
        How to treat missing cells. "indicator": in a numeric column, they are replaced by the mean and marked
        in an extra column; in a categorical column, they are a category of their own. "error": they raise an
        error. "auto": "indicator" for data frames, "error" for arrays.
    classes : sequence of labels, default=None
        All classes, lowest first. Required for strings, unless y is an ordered categorical. For other labels,
        it can name classes that do not occur in y.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by label; they multiply the sample weights. "balanced" gives all classes the
        same total weight. Set it if rare classes matter more than their frequency suggests.
    solver : "gram" or "sequential", default="gram"
        "gram" passes over the rows in blocks and selects functions by their inner products. Its time is
        linear in the number of rows, and it needs no more memory than a few copies of X. "sequential" is the
        paper's Algorithm 1, corrected: one move at a time on a dense matrix of rows × rows, for small
        problems and comparisons. (With gamma="evidence", the width is chosen by the gram solver.)
    n_candidates : int or "all", default=200
        Number of rows that the gram solver proposes as centres in each pass. "all" needs a matrix of rows ×
        rows.
    tol : float, default=0.01
        Smallest gain, in nats. A move that gains less is not made, and a pass that gains less is the last.
    patience : int, default=2
        The search ends after this many unsuccessful restarts in a row. A restart continues from the result
        with other functions added. 0 means no restarts, which is faster.
    max_iter : int, default=1000
        Largest number of passes (gram) or moves (sequential). A warning is issued if it is reached.
    effort : "fast", "default" or "thorough", default="default"
        How much is tried. "fast" does not compare families (basis="auto" means "mixed") and averages two
        short searches. "thorough" compares families by complete fits, and averages more and longer searches
        with more than 1,500 rows. docs/performance.md shows what each costs and gains.
    max_time : float or None, default=None
        Limit on the time of a fit, in seconds. When it is up, the searches end, and the model is the best so
        far; if weights are not fitted to all rows of a large table yet, it is that of a sample.
        `stop_reason_` says so. A fit takes at least the time to read the table and of one pass of the search,
        even if that is longer. The result then depends on the speed of the machine. None means no limit.
    half_life : float or None, default=None
        For `partial_fit`: the total weight of rows after which earlier rows count half, so that the model
        follows a stream that drifts. None means that no row is ever forgotten. `fit` ignores it.
    n_jobs : int or None, default=None
        Number of threads. None means all cores.
    random_state : int, RandomState or None, default=None
        Selects the pseudo-random order in which rows and functions are proposed. None means a fixed order, so
        that the fit depends on nothing but the set of training rows.
    checkpoint : str, path or None, default=None
        A folder for the results of finished steps of the fit: the sample of a table that is read block by
        block, each search (of a member of "mixed", of a family in a fold of the comparison), and each pass
        over all rows. If a fit is interrupted, the same call goes on where it was and ends with the same
        model. At the end, the folder is removed. Set it for fits of hours. It holds pickled files: do not use
        folders that others can write to.
    callback : callable or None, default=None
        Called with each `isbor.Step` of the fit. If it raises an exception, the fit ends, and the estimator
        is left as it was.
    verbose : int, default=0
        1 shows the progress on standard error: in a terminal or notebook, one line that is kept up to date;
        elsewhere, a line every second; then a summary. 2 writes one line per step, and the summary.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, lowest first.
    thresholds_ : ndarray of shape (n_classes - 1,)
        Thresholds between the classes; if they vary, those of the average row. All scores are reported on a
        scale on which the scores of the training rows have mean 0 and standard deviation 1.
    sigma_ : float
        Typical standard deviation of the noise on this scale (noise-to-signal ratio). `noise_scale` returns
        that of each row.
    basis_ : str
        The basis family, "rbf", "ard", "mixed" or "gp", or an average of families, such as "rbf + mixed".
    selection_ : Selection
        The families compared and the one selected. It prints as a table. Where families are compared by
        cross-validation (basis="auto", up to 2,500 rows), held-out labels also choose its `temperature`, by
        which predictions multiply the standard deviations of score and noise; it is 1 unless another value is
        clearly better.
    feature_relevance_ : ndarray of shape (n_features,)
        Relevance of each feature: the mean squared change of the score if the feature is replaced by that of
        another row, as a share of the sum over all features. Zeros if the score is constant.
    feature_importances_ : ndarray of shape (n_features,)
        The same as `feature_relevance_`, for scikit-learn's `SelectFromModel` and `RFE`.
    dual_coef_ : ndarray of shape (n_functions,)
        Weights of the basis functions.
    intercept_ : float
        Constant of the score.
    alpha_ : ndarray of shape (n_functions,)
        Prior precisions of the weights; for a Gaussian process, given the weights of the other rows.
    relevance_vectors_ : ndarray of shape (n_functions, n_columns)
        Centres of the basis functions, in the units of X; categorical features are encoded. A feature that a
        function does not use has its mean value here.
    relevance_ : ndarray of shape (n_functions,)
        Row numbers of the relevance vectors in the training data; for "mixed", the rows on which the
        functions were first centred. After `partial_fit`, rows are counted over all calls, and -1 stands for
        a row that is not kept any more.
    n_relevance_ : int
        Number of basis functions; with a Gaussian process, two for each distinct training row.
    gamma_ : float, ndarray of shape (n_columns,) or None
        Width ("rbf"), scale of each column ("ard"), or None if functions have different metrics.
    feature_scale_ : ndarray of shape (n_columns,)
        Standard deviations by which the columns are divided; infinite for constant columns.
    log_evidence_ : float
        Laplace approximation of the log marginal likelihood; its mean if models are averaged.
    n_iter_ : int
        Number of passes (gram) or moves (sequential), including those of unsuccessful restarts.
    trace_ : tuple of Step
        The steps that led to the model: those of the width search that lead to the chosen width, then those
        of the fit. Each run begins with the functions of its starting model; each member of a "mixed" model
        is one run. With more than 1,500 rows, it includes rounds that were not better and were given up.
    width_trials_ : tuple of WidthTrial
        Widths tried and the objectives reached; empty if `gamma` is a number or each function has its own
        metric.
    stop_reason_ : StopReason
        Why the fit ended. It prints as a sentence. After `partial_fit`, this, `n_iter_` and `trace_` are of
        the last call.
    column_names_ : ndarray of shape (n_columns,)
        Names of the encoded columns of `relevance_vectors_`, `gamma_` and `feature_scale_`, such as "age",
        "age missing", "color=red" and "color unseen".
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    GPOR : A Gaussian process, for few rows.
    SBOR : The model of basis="rbf", fitted from all rows down.
    SVOR : Support vectors, for classes that are separated without noise.
    isbor.meta.PredictionSetClassifier : Sets of labels with guaranteed coverage.
    isbor.meta.TunedDecisionClassifier : Labels chosen for a score.

    Notes
    -----
    For "rbf", the score is ``intercept_`` plus the sum of
    ``exp(-gamma_ ‖(x - z)/feature_scale_‖²) · dual_coef_`` over the relevance vectors z. The predicted label
    is the median of the predictive distribution, which is not always the most probable class. For a single
    model, it is the class whose thresholds enclose the score. The probabilities of an average of models are
    the averages of their probabilities.

    In a data frame, a column with strings or booleans or of a categorical type is encoded by one 0/1 column
    for each category; these columns are scaled together, as one feature. One more column marks unseen
    categories, which are thereby equidistant from all known ones. An ordered categorical has another column,
    with the ranks of the categories.

    `partial_fit` learns from a stream of batches, in time and memory that do not depend on its length. To go
    on from there, a fitted estimator keeps at most about 20,000 of its training rows.

    References
    ----------
    C. Li and M. de Rijke, "Incremental Sparse Bayesian Ordinal Regression", Neural Networks, 2018.

    Examples
    --------
    >>> from isbor import ISBOR
    >>> from isbor.datasets import make_saddle
    >>> X, y = make_saddle(1000, random_state=0)
    >>> model = ISBOR().fit(X, y)
    >>> model.n_relevance_ < 20  # sparse: there are 1000 rows
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
        "thresholds": choice("auto", "varying", "constant"),
        "solver": choice("gram", "sequential"),
        "n_candidates": integer(at_least=1) | choice("all"),
        "tol": POSITIVE,
        "patience": integer(at_least=0),
        "max_iter": integer(at_least=1),
        "effort": choice("fast", "default", "thorough"),
        "max_time": POSITIVE | NONE,
        "half_life": POSITIVE | NONE,
        "checkpoint": PATH | NONE,
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
        thresholds: Literal["auto", "varying", "constant"] = "auto",
        missing: Missing = "auto",
        classes: Sequence[Any] | LabelArray | None = None,
        class_weight: ClassWeight = None,
        solver: Literal["gram", "sequential"] = "gram",
        n_candidates: int | Literal["all"] = 200,
        tol: float = 1e-2,
        patience: int = 2,
        max_iter: int = 1000,
        effort: Effort = "default",
        max_time: float | None = None,
        half_life: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        checkpoint: str | PathLike[str] | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(missing, classes, class_weight, n_jobs, random_state)
        self.basis = basis
        self.metric = metric
        self.gamma = gamma
        self.size_prior = size_prior
        self.max_vectors = max_vectors
        self.n_members = n_members
        self.noise = noise
        self.thresholds = thresholds
        self.solver = solver
        self.n_candidates = n_candidates
        self.tol = tol
        self.patience = patience
        self.max_iter = max_iter
        self.effort = effort
        self.max_time = max_time
        self.half_life = half_life
        self.checkpoint = checkpoint
        self.callback = callback
        self.verbose = verbose

    def parallel_lines(self, X: ArrayLike, y: ArrayLike) -> ParallelLines:
        """Say what thresholds that vary with the row are worth on labelled rows (a test of parallel lines).

        With constant thresholds, a change of the score moves all cumulative probabilities together. For each
        inner class, the report says how the gap between its two thresholds varies, and what the mean log
        probability of the labels loses if this gap is the same for all rows, and all else as fitted.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            At least two rows with the same features as in `fit`. Take rows that the model was not fitted to:
            labels that it has seen flatter it.
        y : array-like of shape (n_samples,)
            Their labels.

        Returns
        -------
        report : ParallelLines
            It prints as a verdict and a table; `are_parallel` is the verdict, `cost` and `standard_error`
            have a number for each inner class, `total_cost` and `total_standard_error` are of all together.

        Examples
        --------
        >>> from isbor import ISBOR
        >>> from isbor.datasets import make_saddle
        >>> X, y = make_saddle(300, random_state=0)
        >>> ISBOR(basis="rbf").fit(X[:200], y[:200]).parallel_lines(X[200:], y[200:])
        Parallel lines: the thresholds of this model are the same for all rows.
        """
        check_is_fitted(self)
        rows, levels = self._rows(X), rank_labels(y, self.classes_)
        if len(rows) != len(levels) or len(rows) < 2:
            raise ValueError(
                f"X has {len(rows)} rows and y has {len(levels)} labels; two rows or more are needed, with "
                "a label for each."
            )
        places = self._model.threshold_places
        places = np.arange(len(self._thresholds)) if places is None else places
        blocks = [
            (self._model.latent(rows[block]), levels[block])
            for block in row_blocks(len(rows), max(self._model.n_functions, rows.shape[1]))
        ]
        return parallel_lines(blocks, self._thresholds, places, self.classes_)

    def _search(
        self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None, callback: Callback | None
    ) -> SearchResult:
        self._check_combination()
        checkpoint = Checkpoint(self.checkpoint, self._parameters_of_result())
        with Workers(self.n_jobs, self.max_time, checkpoint) as workers:
            training = self._read_training(
                X, y, sample_weight, samples=self.solver == "gram", checkpoint=checkpoint
            )
            self._check_size(training.rows)

            def search(workers: Workers) -> tuple[Selection, SearchResult]:
                settings = self._settings(training.seed)
                selection, known = self._select(training, settings, workers, callback)
                settings = known.guesses(settings)
                results = fit_families(selection.families, training, settings, "fit", workers, callback)
                result = SearchResult.average(list(results.values()), training.rows, workers)
                model = replace(result.model, temperature=selection.temperature.value)
                return selection, replace(result, model=model)

            selection, result = workers.once("search", search)
            if training.all_rows is not None:
                result = fit_to_all_rows(result, training.all_rows, workers, callback)
            if workers.was_late:
                reasons = result.stop_reason, StopReason.MAX_TIME
                result = replace(result, stop_reason=StopReason.of_all(reasons))
            self._set_fitted(training, result, workers)
            self._leave_for_stream(X, y, sample_weight, training, workers)
        checkpoint.end()
        self.selection_ = selection
        self.basis_ = selection.basis
        return result

    def _stream_conflict(self) -> str | None:
        given = {
            "basis='rbf'": self.basis == "rbf",
            "metric='ard'": self.metric == "ard",
            f"gamma={self.gamma!r}": self.gamma != "evidence",
            "solver='sequential'": self.solver == "sequential",
        }
        return next((text for text, is_given in given.items() if is_given), None)

    def _note_stream(self) -> None:
        self.selection_ = Selection(("mixed",), (), "the family that is learned from a stream.")
        self.basis_ = "mixed"

    def _parameters_of_result(self) -> dict[str, object]:
        """Return the parameters that the fitted model depends on."""
        others = ("callback", "checkpoint", "max_time", "n_jobs", "verbose")
        return {name: value for name, value in self.get_params().items() if name not in others}

    def _check_combination(self) -> None:
        """Raise ValueError if a parameter would have no effect because of another."""
        given = {
            "metric": ("metric='ard'", self.metric == "ard"),
            "gamma": (f"gamma={self.gamma!r}", self.gamma != "evidence"),
            "solver": ("solver='sequential'", self.solver == "sequential"),
        }
        if self.noise == "constant" and self.thresholds == "varying":
            raise ValueError(
                "thresholds='varying' cannot be combined with noise='constant': the noise is what all gaps "
                "between thresholds have in common. Remove one."
            )
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

    def _check_size(self, rows: TrainingRows) -> None:
        """Raise ValueError if there are too many rows for the solver."""
        if self.solver == "sequential" and len(rows) > _MAX_DENSE_ROWS:
            raise ValueError(
                f"X holds {len(rows)} distinct rows; solver='sequential' accepts at most {_MAX_DENSE_ROWS}, "
                "because it stores a matrix of rows × rows. Use solver='gram', or fit a sample of the rows."
            )

    def _select(
        self, training: TrainingSet, settings: SearchSettings, workers: Workers, callback: Callback | None
    ) -> tuple[Selection, Known]:
        """Return the basis family, as set by parameters or the best one, and guesses of its parameters."""
        if self.basis != "auto":
            family: Family = "mixed" if self.basis == "mixed" else "ard" if self.metric == "ard" else "rbf"
            return Selection((family,), (), f"set by basis={self.basis!r}."), Known()
        if self.metric == "ard":
            return Selection(("ard",), (), "set by metric='ard'."), Known()
        if self.gamma != "evidence":
            return Selection(("rbf",), (), f"set by gamma={self.gamma!r}."), Known()
        if self.solver == "sequential":
            return Selection(("rbf",), (), "set by solver='sequential'."), Known()
        return select_families(training, settings, workers, callback)

    def _varying(self) -> Varying:
        """Return what varies with the row besides the score."""
        if self.noise == "constant":
            return "nothing"
        return "noise" if self.thresholds == "constant" else "thresholds"

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
            varying=self._varying(),
            effort=self.effort,
            seed=seed,
        )
