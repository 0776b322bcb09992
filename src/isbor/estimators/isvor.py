"""`ISVOR`: incremental support vector ordinal regression."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from isbor._core.types import FloatArray, LabelArray
from isbor.data.cells import Missing
from isbor.data.folds import growing_fold_numbers
from isbor.data.rows import TrainingRows
from isbor.data.stream import further_training, unscaled_where_constant
from isbor.data.summary import TableSummary
from isbor.data.training_set import TrainingSet
from isbor.data.weights import ClassWeight
from isbor.estimators.base import all_or_nothing
from isbor.estimators.kernel_machines import FOLDS, KERNEL_PARAMETERS, Gamma, KernelClassifier
from isbor.estimators.parameters import POSITIVE, Allowed, choice
from isbor.files.checks import need
from isbor.kernel.incremental import extend
from isbor.kernel.kernels import CutScore, Kernel, KernelName
from isbor.kernel.machine import (
    Gram,
    Learned,
    Machine,
    cut_score,
    dual_objective,
    empty_machine,
    largest_violation,
    signed_bounds,
    with_thresholds,
)
from isbor.kernel.margins import margin_problem

__all__ = ["ISVOR"]


class ISVOR(KernelClassifier[CutScore]):
    r"""Incremental support vector ordinal regression.

    Ordered classes are separated by parallel hyperplanes in feature space, one for each threshold, with the
    largest margin:

    .. math::
        \min_{w, b, \xi \ge 0}\; \tfrac12 \|w\|^2 + C \sum_{i, j} \xi_{ij} \quad\text{such that}\quad
        w^\top\varphi(x_i) - b_j \le -1 + \xi_{ij} \;(y_i \le j), \qquad
        w^\top\varphi(x_i) - b_j \ge 1 - \xi_{ij} \;(y_i > j) .

    With implicit constraints, i and j run over all rows and all thresholds, and the thresholds are then in
    order at the optimum; this is the problem of `SVOR`. With adjacent constraints, a row has constraints only
    for the thresholds adjacent to its class, and the thresholds may be out of order. The predicted class is
    then the number of thresholds below the score, and `thresholds_` is sorted.

    Rows are learned one by one. For each new row, the solution follows a path on which all earlier rows stay
    optimal. So the result is the exact optimum for all rows seen, after any number of calls of `partial_fit`.
    A step of the path takes O(n m) time for n rows and m variables on the margin; with few classes, a new row
    takes about ten steps. The kernel matrix is stored, which takes O(n²) memory.

    Parameters
    ----------
    C : float, default=1.0
        Penalty per unit of slack. A larger C allows fewer rows on the wrong side of a margin. It should be
        tuned, together with `gamma`.
    constraints : "implicit" or "adjacent", default="implicit"
        Thresholds for which a row has constraints: all of them, or those adjacent to its class.
    kernel : "rbf", "linear", "poly" or "precomputed", default="rbf"
        Kernel of the standardised features. "precomputed" means that X is a matrix of kernel values; it can
        be used in `fit` only.
    gamma : "scale" or float, default="scale"
        Coefficient of "rbf" and "poly". "scale" is 1 / number of features that vary.
    degree : int, default=3
        Degree of "poly".
    coef0 : float, default=0.0
        Constant of "poly".
    tol : float, default=1e-8
        Largest violation of the optimality conditions, in units of the margin. Increase it if learning does
        not converge.
    probability : bool, default=True
        Whether to learn class probabilities, by an ordered probit on the scores of held-out rows. Five more
        machines are learned, each without a fifth of the rows, and learning takes four to six times as long.
        The first row of each class is never held out. Set False if labels are enough.
    missing : "auto", "indicator" or "error", default="auto"
        How to treat missing cells, see `ISBOR`.
    classes : sequence of labels, default=None
        All classes, lowest first. Required for strings, unless y is an ordered categorical. For other labels,
        it can name classes that do not occur in y.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by label; they multiply C and the sample weights. "balanced" gives all classes
        the same total weight; it can be used in `fit` only.
    n_jobs : int or None, default=None
        Number of threads for predictions. None means all cores.
    random_state : int, RandomState or None, default=None
        Selects the order of the rows in `fit`, and with it the folds of held-out rows. None means a fixed
        choice.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, lowest first.
    thresholds_ : ndarray of shape (n_classes - 1,)
        Thresholds of the score. A threshold that is free in an interval is set to its middle. The two
        thresholds of a class without rows are equal if it lies between others; at an end, the class lies
        beyond all rows.
    dual_coef_ : ndarray of shape (n_support,)
        Weights of the support vectors in the score.
    support_ : ndarray of shape (n_support,)
        Row numbers of the support vectors in the training data, counted over all calls of `partial_fit`.
    support_vectors_ : ndarray of shape (n_support, n_columns)
        The support vectors; categorical features are encoded.
    gamma_ : float
        Coefficient of the kernel.
    dual_objective_ : float
        Dual objective reached.
    violation_ : float
        Largest violation of the optimality conditions, computed from the dual variables alone.
    n_iter_ : int
        Number of steps of the path.
    column_names_ : ndarray of shape (n_columns,)
        Names of the encoded columns, see `ISBOR`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    SVOR : The same optimum for all rows at once, faster.
    ISBOR : ``partial_fit`` in time and memory that do not depend on the number of rows.

    References
    ----------
    B. Gu, V. S. Sheng, K. Y. Tay, W. Romano and S. Li, "Incremental Support Vector Learning for Ordinal
    Regression", IEEE Transactions on Neural Networks and Learning Systems, 2015.

    Examples
    --------
    >>> from isbor import ISVOR
    >>> from isbor.datasets import make_saddle
    >>> X, y = make_saddle(300, random_state=0)
    >>> model = ISVOR(C=100, probability=False).partial_fit(X[:200], y[:200], classes=[1, 2, 3, 4, 5])
    >>> before = (model.predict(X[200:]) == y[200:]).mean()
    >>> model = model.partial_fit(X[200:], y[200:])
    >>> bool((model.predict(X[200:]) == y[200:]).mean() > before)
    True
    """

    _allowed: ClassVar[dict[str, Allowed]] = {
        "C": POSITIVE,
        "constraints": choice("implicit", "adjacent"),
        "tol": POSITIVE,
        **KERNEL_PARAMETERS,
    }

    _of_training_rows: ClassVar[tuple[str, ...]] = ("_learned",)
    dual_objective_: float
    violation_: float
    _learned: Learned

    def __init__(
        self,
        *,
        C: float = 1.0,
        constraints: Literal["implicit", "adjacent"] = "implicit",
        kernel: KernelName = "rbf",
        gamma: Gamma = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-8,
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
        self.probability = probability

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: Sequence[Any] | LabelArray | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn a batch of rows, in addition to those learned before.

        The first call, of this method or of `fit`, determines the encoding and scaling of tables and the
        kernel. A feature that is constant in this call is not scaled. A class may have its first row in any
        call. If it lies between two classes that have rows already, the constraints of old rows change, and
        all rows are learned again.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            As in `fit`; one row is enough.
        y : array-like of shape (n_samples,)
            Labels, all among the classes.
        classes : sequence of labels, default=None
            All classes, lowest first. Required in the first call, unless the parameter `classes` is set.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights of the rows, as in `fit`.

        Returns
        -------
        self : object
            The fitted estimator. If the call fails, the estimator is left as it was.
        """
        self._check_parameters()
        self._refuse_what_needs_all_rows()
        self._need_training_rows()
        with all_or_nothing(self):
            if hasattr(self, "_learned"):
                if classes is not None:
                    _check_same_classes(classes, self.classes_)
                before: Learned | None = self._learned
                training = further_training(
                    self._learned.training, X, y, sample_weight, owner="ISVOR", class_weight=self.class_weight
                )
                kernel = self._learned.kernel
            else:
                before = None
                training = self._read_training(
                    X, y, sample_weight, classes=self._declared(classes), fewest_levels=1
                )
                kernel = self._kernel_for(training)
                training = unscaled_where_constant(training)
            self._learn(training, kernel, before)
        return self

    def _check_restored(self) -> None:
        super()._check_restored()
        if hasattr(self, "_learned"):
            training = self._learned.training
            need(np.array_equal(training.classes, self.classes_), "its training rows have other classes")
            need(
                len(training.encoding.categories) == self.n_features_in_,
                "its training rows have other features",
            )

    def _fit(self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None) -> None:
        training = self._read_training(X, y, sample_weight, pairwise=self.kernel == "precomputed")
        self._learn(training, self._kernel_for(training), None)

    def _learn(self, training: TrainingSet, kernel: Kernel, before: Learned | None) -> None:
        """Learn the rows that are new in `training`."""
        rows = training.rows
        gram = Gram(kernel.gram(rows)) if before is None else _grown(before, rows)
        known = np.zeros(0, np.intp) if before is None else before.fold
        fold = growing_fold_numbers(rows.y, FOLDS, known)
        machines: list[Machine] = []
        for number in range(-1, FOLDS if self.probability else 0):
            if number >= 0 and not np.any(fold == number):
                machines.append(machines[0])  # no row is held out in this fold so far
                continue
            C = self.C * np.where(fold == number, 0.0, rows.weight) if number >= 0 else self.C * rows.weight
            low, high = signed_bounds(margin_problem(rows.y, C, self.constraints), len(rows))
            start = _starting_point(training, before, number + 1)
            machines.append(extend(start, gram.values, low, high, tol=self.tol))
        self._learned = Learned(training, kernel, gram, fold, tuple(machines))
        self._table = TableSummary.of(training)
        self._set_fitted(training, kernel, cut_score(machines[0]))

    def _set_fitted(self, training: TrainingSet, kernel: Kernel, cut: CutScore) -> None:
        super()._set_fitted(training, kernel, cut)
        whole = self._learned.machines[0]
        self._thresholds = self.thresholds_ = _thresholds_of_all_levels(training, cut.thresholds, whole.score)
        self.dual_objective_ = dual_objective(whole)
        self.violation_ = largest_violation(whole, self._learned.gram.values)

    def _scores(
        self, rows: TrainingRows, kernel: Kernel, support: TrainingRows, coef: FloatArray
    ) -> FloatArray:
        return self._learned.machines[0].score

    def _held_out_scores(self, rows: TrainingRows, kernel: Kernel, cut: CutScore) -> FloatArray:
        whole, *others = self._learned.machines
        score = whole.score.copy()
        if len(cut.thresholds) == 0:
            return score
        for number, machine in enumerate(others):
            held_out = np.flatnonzero(self._learned.fold == number)
            # The scores of machines may differ by a constant, which their thresholds absorb.
            shift = cut.thresholds.mean() - cut_score(machine).thresholds.mean()
            score[held_out] = machine.score[held_out] + shift
        return score

    def _all_levels(self, training: TrainingSet, thresholds: FloatArray, scores: FloatArray) -> FloatArray:
        if len(thresholds):
            return super()._all_levels(training, thresholds, scores)
        # Only one class has rows so far: the others are too far away for the noise, but not for a lapse.
        k, n_levels = int(training.observed[0]), len(training.classes)
        places = np.arange(n_levels - 1) - k
        return np.where(places < 0, places - 10.0, places + 11.0)

    def _declared(self, classes: Sequence[Any] | LabelArray | None) -> Sequence[Any] | LabelArray:
        """Return the classes given in the first call of `partial_fit` or to the estimator."""
        declared = classes if self.classes is None else self.classes
        if declared is None:
            raise ValueError(
                "classes is needed in the first call of partial_fit, because some classes may have rows only "
                "in later calls. Pass all classes, lowest first, here or to the estimator: "
                "ISVOR(classes=[…])."
            )
        if classes is not None:
            _check_same_classes(classes, declared)
        return declared

    def _refuse_what_needs_all_rows(self) -> None:
        if self.kernel == "precomputed":
            raise ValueError(
                "kernel='precomputed' cannot be used in partial_fit, because it has no values for later "
                "rows. Use 'rbf', 'linear' or 'poly', or call fit with the kernel values of all rows."
            )
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' cannot be used in partial_fit, because it depends on later rows. "
                "Pass a dict, for example from sklearn.utils.class_weight.compute_class_weight."
            )


def _check_same_classes(classes: Sequence[Any] | LabelArray, known: Sequence[Any] | LabelArray) -> None:
    given, needed = np.asarray(classes).tolist(), np.asarray(known).tolist()
    if given != needed:
        raise ValueError(
            f"classes is {given}, but the estimator has {needed} already. "
            "Leave classes out, or start with a new estimator."
        )


# Helpers that extend the state learned before to new rows and classes.


def _grown(before: Learned, rows: TrainingRows) -> Gram:
    """Return the kernel matrix extended to the new rows."""
    old, new = rows.take(slice(len(before.gram))), rows.take(slice(len(before.gram), None))
    if len(new) == 0:
        return before.gram
    return before.gram.append(before.kernel(new.X, old), before.kernel.gram(new))


def _starting_point(training: TrainingSet, before: Learned | None, number: int) -> Machine:
    """Return the earlier machine, or an empty one, with thresholds between all classes that have rows."""
    n_thresholds = len(training.observed) - 1
    if before is None or number >= len(before.machines):
        return empty_machine(n_thresholds)
    # A threshold remains the upper one of the class below it. The class above may be another one now.
    places = np.searchsorted(training.observed, before.training.observed[:-1])
    return with_thresholds(before.machines[number], places, n_thresholds)


def _thresholds_of_all_levels(training: TrainingSet, thresholds: FloatArray, score: FloatArray) -> FloatArray:
    """Return thresholds between all classes.

    The two thresholds of an empty class between others are equal; at an end, it lies beyond all rows.
    """
    observed, n_levels = training.observed, len(training.classes)
    lowest, highest = (
        np.min(thresholds, initial=score.min() - 1.0),
        np.max(thresholds, initial=score.max() + 1.0),
    )
    return np.concatenate(
        [
            np.full(observed[0], lowest),
            np.repeat(thresholds, np.diff(observed)),
            np.full(n_levels - 1 - observed[-1], highest),
        ]
    )
