"""`ISVOR`, the support vector machine that learns row by row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.data.encoding import Missing
from isbor.data.folds import growing_fold_numbers
from isbor.data.rows import TrainingRows
from isbor.data.stream import further_training, unscaled_where_constant
from isbor.data.training import ClassWeight, TrainingSet, read_training
from isbor.estimators.base import all_or_nothing
from isbor.estimators.kernel_machines import FOLDS, KERNEL_PARAMETERS, Gamma, KernelClassifier
from isbor.estimators.parameters import POSITIVE, Allowed, choice
from isbor.kernel.incremental import extend
from isbor.kernel.kernels import CutScore, Kernel, KernelName
from isbor.kernel.machine import (
    Gram,
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


@dataclass(frozen=True, slots=True)
class _Learned:
    """All that was learned so far, enough to go on."""

    training: TrainingSet
    kernel: Kernel
    gram: Gram  # of the distinct rows
    fold: IntArray  # (n,) in which each is held out; -1: in none
    machines: tuple[Machine, ...]  # that of all rows, then those of all rows but one fold's


class ISVOR(KernelClassifier[CutScore]):
    r"""Incremental support vector ordinal regression.

    Parallel hyperplanes in feature space, one for each threshold, with the largest margin between the
    classes:

    .. math::
        \min_{w, b, \xi \ge 0}\; \tfrac12 \|w\|^2 + C \sum_{i, j} \xi_{ij} \quad\text{such that}\quad
        w^\top\varphi(x_i) - b_j \le -1 + \xi_{ij} \;(y_i \le j), \qquad
        w^\top\varphi(x_i) - b_j \ge 1 - \xi_{ij} \;(y_i > j) .

    With implicit constraints i and j run over all rows and all thresholds, and the thresholds come out in
    order: this is the problem of `SVOR`. With adjacent ones a row has only the thresholds next to its class,
    and nothing keeps them in order: the class is the number of thresholds below the score, whatever their
    order, and `thresholds_` is sorted.

    Rows are learned one by one. Each takes the solution along a path on which the rows before it stay
    optimal, so the result is the exact optimum of all rows seen, after any number of calls of `partial_fit`.
    A step of the path takes O(n m) for n rows and m variables on a margin, and a new row takes some ten steps
    where classes are few. The kernel matrix is kept: O(n²) memory.

    Parameters
    ----------
    C : float, default=1.0
        Price of a slack: the larger, the fewer rows on the wrong side of a margin.
    constraints : "implicit" or "adjacent", default="implicit"
        Which thresholds a row has to keep its distance from.
    kernel : "rbf", "linear", "poly" or "precomputed", default="rbf"
        Kernel of the standardised features; "precomputed" means that X holds kernel values, for `fit` only.
    gamma : "scale" or float, default="scale"
        Coefficient of "rbf" and "poly"; "scale" is one over the number of features that vary.
    degree : int, default=3
        Degree of "poly".
    coef0 : float, default=0.0
        Constant of "poly".
    tol : float, default=1e-8
        By how much a row may be on the wrong side of its margin, which is 1, without paying for it.
    probability : bool, default=True
        Whether to learn class probabilities, by an ordered probit on the scores of rows held back. Five more
        machines, each of which does not see a fifth of the rows, learn along: everything takes four to six
        times as long. The first row of each class is never held back.
    missing : "auto", "indicator" or "error", default="auto"
        What to do with missing cells, as in `ISBOR`.
    classes : sequence of labels, default=None
        All labels, lowest first. Needed for strings; for others it names levels that may be missing from y.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by label: factors of C. "balanced" gives all classes the same total weight, in
        `fit` only.
    n_jobs : int or None, default=None
        Threads of predictions. None means all cores.
    random_state : int, RandomState or None, default=None
        Chooses the order of rows in `fit`, and so which are held back together. None is a fixed choice.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in order.
    thresholds_ : ndarray of shape (n_classes - 1,)
        Thresholds of the score. Where the solution leaves one an interval, its middle. A class without rows
        has no room between two others, and is beyond all rows at the ends.
    dual_coef_ : ndarray of shape (n_support,)
        Weights of the support vectors in the score.
    support_ : ndarray of shape (n_support,)
        Their row numbers in the training data, counted over all calls of `partial_fit`.
    support_vectors_ : ndarray of shape (n_support, n_columns)
        The rows, as they were encoded.
    gamma_ : float
        Coefficient of the kernel.
    dual_objective_ : float
        The dual objective that was reached.
    violation_ : float
        By how much the conditions of the optimum are violated, computed from the dual variables alone.
    n_iter_ : int
        Steps of the path.
    n_features_in_, feature_names_in_
        As in scikit-learn.

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

    dual_objective_: float
    violation_: float
    _learned: _Learned

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
        self.C = C
        self.constraints = constraints
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.probability = probability
        self.missing = missing
        self.classes = classes
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: Sequence[Any] | LabelArray | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn further rows, or the first ones.

        The first call, of this method or of `fit`, decides how tables are encoded and scaled, and on the
        kernel. A feature that is constant in it is not scaled. A class may have its first row in any call. If
        it lies between two that have rows already, old rows get a threshold more, with adjacent constraints
        another one, and all rows are learned anew.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As in `fit`; one row is enough.
        y : array-like of shape (n_samples,)
            Labels, all among the classes.
        classes : sequence of labels, default=None
            All labels, lowest first. Needed in the first call, unless the estimator has its `classes`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight 2 means the same as the row twice, weight 0 as its absence.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._refuse_what_needs_all_rows()
        with all_or_nothing(self):
            if hasattr(self, "_learned"):
                if classes is not None:
                    _check_same_classes(classes, self.classes_)
                before: _Learned | None = self._learned
                training = further_training(self, self._learned.training, X, y, sample_weight)
                kernel = self._learned.kernel
            else:
                before = None
                training = read_training(
                    self, X, y, sample_weight, classes=self._declared(classes), fewest_levels=1
                )
                kernel = self._kernel_for(training)
                training = unscaled_where_constant(training)
            self._learn(training, kernel, before)
        return self

    def _fit(self, X: object, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        training = read_training(self, X, y, sample_weight, pairwise=self.kernel == "precomputed")
        self._learn(training, self._kernel_for(training), None)

    def _learn(self, training: TrainingSet, kernel: Kernel, before: _Learned | None) -> None:
        """Learn those rows that were not there before."""
        rows = training.rows
        gram = Gram(kernel.gram(rows)) if before is None else _grown(before, rows)
        known = np.zeros(0, np.intp) if before is None else before.fold
        fold = growing_fold_numbers(rows.y, FOLDS, known)
        machines: list[Machine] = []
        for number in range(-1, FOLDS if self.probability else 0):
            if number >= 0 and not np.any(fold == number):
                machines.append(machines[0])  # it has seen all rows so far
                continue
            price = (
                self.C * np.where(fold == number, 0.0, rows.weight) if number >= 0 else self.C * rows.weight
            )
            low, high = signed_bounds(margin_problem(rows.y, price, self.constraints), len(rows))
            start = _starting_point(training, before, number + 1)
            machines.append(extend(start, gram.values, low, high, tol=self.tol))
        self._learned = _Learned(training, kernel, gram, fold, tuple(machines))
        self._set_fitted(training, kernel, cut_score(machines[0]))

    def _set_fitted(self, training: TrainingSet, kernel: Kernel, cut: CutScore) -> None:
        super()._set_fitted(training, kernel, cut)
        whole = self._learned.machines[0]
        self._cuts = self.thresholds_ = _thresholds_of_all_levels(training, cut.thresholds, whole.score)
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
            # Machines may differ by a constant, which their thresholds take up.
            shift = cut.thresholds.mean() - cut_score(machine).thresholds.mean()
            score[held_out] = machine.score[held_out] + shift
        return score

    def _all_levels(self, training: TrainingSet, thresholds: FloatArray, scores: FloatArray) -> FloatArray:
        if len(thresholds):
            return super()._all_levels(training, thresholds, scores)
        # One class so far: the others are out of reach of the noise, though not of a lapse.
        k, n_levels = int(training.observed[0]), len(training.classes)
        places = np.arange(n_levels - 1) - k
        return np.where(places < 0, places - 10.0, places + 11.0)

    def _declared(self, classes: Sequence[Any] | LabelArray | None) -> Sequence[Any] | LabelArray:
        """Return the classes that the first call of `partial_fit` has been given."""
        declared = classes if self.classes is None else self.classes
        if declared is None:
            raise ValueError(
                "classes is needed in the first call of partial_fit: rows of some classes may come later. "
                "Pass all labels, lowest first, or give them to the estimator: ISVOR(classes=[…])."
            )
        if classes is not None:
            _check_same_classes(classes, declared)
        return declared

    def _refuse_what_needs_all_rows(self) -> None:
        if self.kernel == "precomputed":
            raise ValueError(
                "kernel='precomputed' has no values for rows to come; partial_fit needs 'rbf', 'linear' or "
                "'poly'. Or call fit with the kernel values of all rows."
            )
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' depends on rows to come; partial_fit needs weights that do not. "
                "Pass a dict, for instance from sklearn.utils.class_weight.compute_class_weight."
            )


def _check_same_classes(classes: Sequence[Any] | LabelArray, known: Sequence[Any] | LabelArray) -> None:
    given, needed = np.asarray(classes).tolist(), np.asarray(known).tolist()
    if given != needed:
        raise ValueError(
            f"classes is {given}, but the estimator has {needed} already. "
            "Leave classes out, or start with a new estimator."
        )


# What was learned before, brought into the form of what is to be learned.


def _grown(before: _Learned, rows: TrainingRows) -> Gram:
    """Return the kernel matrix with those rows that are new."""
    old, new = rows.take(slice(len(before.gram))), rows.take(slice(len(before.gram), None))
    if len(new) == 0:
        return before.gram
    return before.gram.append(before.kernel(new.X, old), before.kernel.gram(new))


def _starting_point(training: TrainingSet, before: _Learned | None, number: int) -> Machine:
    """Return a machine with thresholds between all classes that have rows: that of before, or a new one."""
    n_thresholds = len(training.observed) - 1
    if before is None or number >= len(before.machines):
        return empty_machine(n_thresholds)
    # A threshold stays the upper one of the class below it. What was above may have got another.
    places = np.searchsorted(training.observed, before.training.observed[:-1])
    return with_thresholds(before.machines[number], places, n_thresholds)


def _thresholds_of_all_levels(training: TrainingSet, thresholds: FloatArray, score: FloatArray) -> FloatArray:
    """Return thresholds for all levels: an empty one has no room between others, at the ends it is beyond."""
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
