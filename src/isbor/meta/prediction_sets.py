"""`PredictionSetClassifier`: sets of neighbouring labels that contain the true one with given probability."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.validation import check_is_fitted

from isbor._core.tables import columns_like
from isbor._core.types import BoolArray, FloatArray, IntArray, LabelArray
from isbor.estimators.parameters import (
    NONE,
    RANDOM_STATE,
    Allowed,
    check_coverage,
    check_parameters,
    choice,
    number,
)
from isbor.meta.conformal import Calibration, median_levels
from isbor.meta.routing import Passed, router_of
from isbor.meta.table import LabelledTable, ordered_proba, random_folds, set_features, tags_of_inside

__all__ = ["PredictionSetClassifier"]


class PredictionSetClassifier(ClassifierMixin, BaseEstimator):
    r"""Sets of neighbouring labels around any classifier of ordered classes, with conformal coverage.

    ``predict_set(X, coverage=0.9)`` gives each row a run of neighbouring classes around its median class. On
    new rows, such sets contain the true label with a probability of at least `coverage`, even if the
    probabilities of the classifier are wrong, as long as new rows are drawn like the rows of `fit`.

    Parameters
    ----------
    estimator : classifier with `predict_proba`
        `ISBOR`, another estimator of isbor, any classifier of scikit-learn or a pipeline of these.
    method : "split", "cross" or "prefit", default="split"
        "split": the estimator is fitted to a part of the rows, and the others, a share of `held_out`,
        calibrate the sets. "cross": it is fitted `cv` times, each time without one fold, so that all rows
        calibrate; probabilities are averages. "prefit": the estimator is fitted already, and all rows
        calibrate; they must not be those it was fitted to. Wrap it in scikit-learn's `FrozenEstimator` if
        copies of this object are made, as `GridSearchCV` does: a copy of an estimator is not fitted.
    conditional : "class" or None, default=None
        What the coverage holds for. None: all rows together. "class": the rows of each true class, however
        rare. That takes more calibration rows: a class with fewer than c/(1 - c) of them, c being the
        coverage, is in every set.
    held_out : float, default=0.25
        Share of the rows that calibrates; only for "split".
    cv : int, splitter or iterable of splits, default=5
        Folds of "cross". Random ones, if it is a number. Rows that belong together, such as several ratings
        of one item, must stay together: ``list(GroupKFold(5).split(X, y, groups))``.
    classes : sequence of labels, default=None
        All labels, lowest first. Needed for strings, unless the estimator has its own or y is an ordered
        categorical. It is passed on to an estimator inside that has the parameter and leaves it None.
    random_state : int, RandomState or None, default=0
        Draws the rows that calibrate.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in order.
    estimators_ : list
        The fitted classifier, or those of the folds.
    n_calibration_ : ndarray of shape (n_classes,)
        Number of calibration rows with which each class is compared.
    n_features_in_, feature_names_in_
        As in scikit-learn, if the classifier has them.

    See Also
    --------
    isbor.ISBOR.predict_proba_interval : Bands around class probabilities.
    TunedDecisionClassifier : One label for each row, chosen for a score.

    Notes
    -----
    With coverage :math:`c = 1 - \alpha` and n calibration rows, "split" and "prefit" guarantee
    :math:`P(y \in C) \ge 1 - \alpha`. "cross" guarantees :math:`1 - 2\alpha - \sqrt{2/n}`, and has about
    :math:`1 - \alpha` in practice. With ``conditional="class"``, "split" and "prefit" guarantee :math:`1 -
    \alpha` for each true class, "cross" has it in practice. These are probabilities over calibration rows and
    a new row: given the calibration rows, the coverage varies by about :math:`\sqrt{c(1-c)/n}` around them.
    Nothing is promised for a single row or a part of the feature space.

    Weights go to the estimator; rows of weight zero do not calibrate, and others calibrate once, whatever
    their weight. Sets that are valid for weighted rows need the weight of each new row as well.

    `isbor.meta.conformal` derives scores and sets.

    Examples
    --------
    >>> from isbor.datasets import make_saddle
    >>> from isbor.estimators.linear import OrderedProbit
    >>> from isbor.meta import PredictionSetClassifier
    >>> X, y = make_saddle(1000, noise=1.0, random_state=0)
    >>> model = PredictionSetClassifier(OrderedProbit()).fit(X[:600], y[:600])
    >>> sets = model.predict_set(X[600:], coverage=0.9)  # one column for each class
    >>> contained = sets[range(400), y[600:] - 1]  # the classes are 1, 2, …
    >>> bool(contained.mean() > 0.85)
    True
    >>> wider = model.predict_set(X[600:], coverage=0.95)
    >>> bool((wider >= sets).all())
    True
    """

    classes_: LabelArray
    estimators_: list[Any]
    n_calibration_: IntArray
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    _calibration: Calibration
    _allowed: ClassVar[dict[str, Allowed]] = {
        "method": choice("split", "cross", "prefit"),
        "conditional": choice("class") | NONE,
        "held_out": number(above=0, below=1),
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        estimator: Any,
        *,
        method: Literal["split", "cross", "prefit"] = "split",
        conditional: Literal["class"] | None = None,
        held_out: float = 0.25,
        cv: Any = 5,
        classes: Sequence[Any] | LabelArray | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.conditional = conditional
        self.held_out = held_out
        self.cv = cv
        self.classes = classes
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, **params: Any) -> Self:
        """Fit the classifier, unless it is fitted already, and calibrate the sets.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows, as the estimator takes them.
        y : array-like of shape (n_samples,)
            Ordered labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights for the estimator; in a pipeline, for its last step.
        **params
            With scikit-learn's metadata routing, what else the estimator and the splitter `cv` request, such
            as `groups`.

        Returns
        -------
        self : object
        """
        check_parameters(self, self._allowed)
        passed = Passed.from_fit(self, sample_weight, params)
        table = LabelledTable.read(self.estimator, X, y, self.classes, sample_weight, passed)
        if self.method == "prefit":
            check_is_fitted(self.estimator)
            table = table.with_classes_of(self.estimator)
            models, parts = [self.estimator], [np.arange(len(table))]
        else:
            folds = self._folds(table)
            models = [table.fit(self.estimator, training) for training, _ in folds]
            parts = [held_out for _, held_out in folds]
        parts = [np.intersect1d(part, table.counted) for part in parts]
        probas = [table.proba(model, part) for model, part in zip(models, parts, strict=True)]
        codes = [table.labels.codes[part] for part in parts]
        self._calibration = Calibration.of(probas, codes, by_class=self.conditional == "class")
        self.n_calibration_ = self._calibration.n_rows
        self.classes_, self.estimators_ = table.labels.classes, models
        set_features(self, models[0])
        return self

    def _folds(self, table: LabelledTable) -> list[tuple[IntArray, IntArray]]:
        random = check_random_state(self.random_state)
        if self.method == "cross":
            return random_folds(table.labels.codes, self.cv, random, table.passed)
        if len(table) < 2:
            raise ValueError(
                "There is one row (n_samples=1); at least 2 are needed: some train, some calibrate."
            )
        order = random.permutation(len(table))
        n_held_out = min(max(round(self.held_out * len(table)), 1), len(table) - 1)
        return [(np.sort(order[n_held_out:]), np.sort(order[:n_held_out]))]

    @overload
    def predict_set(
        self, X: ArrayLike, coverage: float = 0.9, *, as_frame: Literal[False] = False
    ) -> BoolArray: ...
    @overload
    def predict_set(self, X: ArrayLike, coverage: float = 0.9, *, as_frame: bool) -> Any: ...
    def predict_set(self, X: ArrayLike, coverage: float = 0.9, *, as_frame: bool = False) -> Any:
        """Predict a set of neighbouring classes for each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.
        coverage : float, default=0.9
            Probability with which a set contains the true label, between 0 and 1. It may be chosen anew at
            every call; sets grow with it.
        as_frame : bool, default=False
            Whether to return a data frame, as `predict_proba` does.

        Returns
        -------
        sets : ndarray or data frame of bool of shape (n_samples, n_classes)
            Whether the set has the class, with columns as in `classes_`. True values of a row are neighbours,
            and the class of `predict` is among them.
        """
        check_coverage(coverage)
        sets = self._calibration.sets(self._probas(X), coverage)
        return columns_like(X, sets, self.classes_) if as_frame else sets

    @overload
    def predict_proba(self, X: ArrayLike, *, as_frame: Literal[False] = False) -> FloatArray: ...
    @overload
    def predict_proba(self, X: ArrayLike, *, as_frame: bool) -> Any: ...
    def predict_proba(self, X: ArrayLike, *, as_frame: bool = False) -> Any:
        """Predict class probabilities: those of the classifier, or their average over the folds.

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
            P(y = k) for each row and class, with columns as in `classes_`.
        """
        mean: FloatArray = np.mean(self._probas(X), axis=0)
        return columns_like(X, mean, self.classes_) if as_frame else mean

    def predict(self, X: ArrayLike) -> LabelArray:
        """Predict the median class, which is in every set.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        proba = self.predict_proba(X)
        return self.classes_[median_levels(proba)]

    def _probas(self, X: ArrayLike) -> list[FloatArray]:
        check_is_fitted(self)
        return [ordered_proba(model, X, self.classes_) for model in self.estimators_]

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how arguments of `fit` reach the estimator and the splitter, see scikit-learn's user guide.

        Returns
        -------
        routing : MetadataRouter
        """
        return router_of(self, fits=self.method != "prefit", splits=self.method == "cross")

    def __sklearn_tags__(self) -> Tags:
        return tags_of_inside(super().__sklearn_tags__(), self.estimator)
