"""`SVOR`: support vector ordinal regression."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from isbor._core.trace import StopReason
from isbor._core.types import LabelArray
from isbor._core.warnings import warn_user
from isbor.data.cells import Missing
from isbor.data.rows import TrainingRows
from isbor.data.training_set import TrainingSet
from isbor.data.weights import ClassWeight
from isbor.estimators.kernel_machines import KERNEL_PARAMETERS, BatchKernelClassifier, Gamma
from isbor.estimators.parameters import POSITIVE, Allowed, choice, integer
from isbor.kernel.kernels import Kernel, KernelName
from isbor.kernel.margins import MarginSolution, margin_problem

__all__ = ["SVOR"]


class SVOR(BatchKernelClassifier[MarginSolution]):
    r"""Support vector ordinal regression.

    Ordered classes are separated by parallel hyperplanes in feature space, one for each threshold, with the
    largest margin:

    .. math::
        \min_{w, b, \xi \ge 0}\; \tfrac12 \|w\|^2 + C \sum_{i, j} \xi_{ij} \quad\text{such that}\quad
        w^\top\varphi(x_i) - b_j \le -1 + \xi_{ij} \;(y_i \le j), \qquad
        w^\top\varphi(x_i) - b_j \ge 1 - \xi_{ij} \;(y_i > j) .

    With implicit constraints, i and j run over all rows and all thresholds, and the thresholds are then in
    order at the optimum. With explicit constraints, a row has constraints only for the thresholds adjacent to
    its class, and :math:`b_1 \le \dots \le b_{r-1}` is a further constraint.

    The dual is solved by sequential minimal optimisation, compiled by Numba when it is first used.
    The first fit after an installation takes about ten seconds to compile; the result is cached. The time
    grows between the square and the cube of the number of rows; the memory is that of the cache.

    Parameters
    ----------
    C : float, default=1.0
        Penalty per unit of slack. A larger C allows fewer rows on the wrong side of a margin. It should be
        tuned, together with `gamma`.
    constraints : "implicit" or "explicit", default="implicit"
        Thresholds for which a row has constraints: all of them, or those adjacent to its class.
    kernel : "rbf", "linear", "poly" or "precomputed", default="rbf"
        Kernel of the standardised features. "precomputed" means that X is a matrix of kernel values.
    gamma : "scale" or float, default="scale"
        Coefficient of "rbf" and "poly". "scale" is 1 / number of features that vary.
    degree : int, default=3
        Degree of "poly".
    coef0 : float, default=0.0
        Constant of "poly".
    tol : float, default=1e-3
        The fit ends if the gap between primal and dual objective is below this share of the primal objective.
    max_iter : int, default=10_000_000
        Largest number of steps. A warning is issued if it is reached.
    cache_size : float, default=500
        Size of the cache for the kernel matrix, in megabytes. The matrix of 8,000 rows takes 500. Increase it
        for more rows, if there is enough memory.
    probability : bool, default=True
        Whether to learn class probabilities, by an ordered probit on the scores of held-out rows. This takes
        five more fits, each to four fifths of the rows, and multiplies the total time by about four. The only
        row of a class is never held out. Set False if labels are enough.
    missing : "auto", "indicator" or "error", default="auto"
        How to treat missing cells, see `ISBOR`.
    classes : sequence of labels, default=None
        All classes, lowest first. Required for strings, unless y is an ordered categorical. For other labels,
        it can name classes that do not occur in y.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by label; they multiply C and the sample weights. "balanced" gives all classes
        the same total weight.
    n_jobs : int or None, default=None
        Number of threads for predictions. None means all cores.
    random_state : int, RandomState or None, default=None
        Selects the folds of held-out rows. None means a fixed choice.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, lowest first.
    thresholds_ : ndarray of shape (n_classes - 1,)
        Thresholds of the score. A threshold that is free in an interval is set to its middle.
    dual_coef_ : ndarray of shape (n_support,)
        Weights of the support vectors in the score.
    support_ : ndarray of shape (n_support,)
        Row numbers of the support vectors in the training data.
    support_vectors_ : ndarray of shape (n_support, n_columns)
        The support vectors; categorical features are encoded.
    gamma_ : float
        Coefficient of the kernel.
    dual_objective_ : float
        Dual objective reached.
    gap_ : float
        Primal minus dual objective.
    n_iter_ : int
        Number of steps.
    stop_reason_ : StopReason
        Why the fit ended. It prints as a sentence.
    column_names_ : ndarray of shape (n_columns,)
        Names of the encoded columns, see `ISBOR`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    ISVOR : The same optimum, learned row by row.
    KDLOR : A kernel machine that needs one factorisation instead of a search.
    ISBOR : Nothing to tune, and probabilities of its own.

    References
    ----------
    W. Chu and S. S. Keerthi, "Support Vector Ordinal Regression", Neural Computation, 2007.

    Examples
    --------
    >>> from isbor import SVOR
    >>> from isbor.datasets import make_saddle
    >>> X, y = make_saddle(400, random_state=0)
    >>> model = SVOR(C=100).fit(X, y)
    >>> bool((model.predict(X) == y).mean() > 0.9)
    True
    """

    _allowed: ClassVar[dict[str, Allowed]] = {
        "C": POSITIVE,
        "constraints": choice("implicit", "explicit"),
        "tol": POSITIVE,
        "max_iter": integer(at_least=1),
        "cache_size": POSITIVE,
        **KERNEL_PARAMETERS,
    }

    dual_objective_: float
    gap_: float
    stop_reason_: StopReason

    def __init__(
        self,
        *,
        C: float = 1.0,
        constraints: Literal["implicit", "explicit"] = "implicit",
        kernel: KernelName = "rbf",
        gamma: Gamma = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        max_iter: int = 10_000_000,
        cache_size: float = 500.0,
        probability: bool = True,
        missing: Missing = "auto",
        classes: Sequence[Any] | LabelArray | None = None,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(missing, classes, class_weight, n_jobs, random_state)
        self.C = C
        self.constraints = constraints
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.probability = probability

    def _solve(self, rows: TrainingRows, kernel: Kernel) -> MarginSolution:
        from isbor.kernel.smo import solve_margins  # loads Numba

        solution = solve_margins(
            margin_problem(rows.y, self.C * rows.weight, self.constraints),
            kernel,
            rows,
            tol=self.tol,
            max_iter=self.max_iter,
            cache_bytes=1e6 * self.cache_size,
        )
        # Thresholds are in order only up to the tolerance.
        return replace(solution, thresholds=np.maximum.accumulate(solution.thresholds))

    def _set_fitted(self, training: TrainingSet, kernel: Kernel, cut: MarginSolution) -> None:
        super()._set_fitted(training, kernel, cut)
        self.dual_objective_, self.gap_ = cut.objective, cut.gap
        self.stop_reason_ = StopReason.GAP_CLOSED if cut.converged else StopReason.MAX_ITER
        if not cut.converged:
            warn_user(str(self.stop_reason_), ConvergenceWarning)
