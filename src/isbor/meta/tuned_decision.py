"""`TunedDecisionClassifier`: labels chosen for a score, from the probabilities of any classifier."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer as get_scikit_learn_scorer
from sklearn.metrics import get_scorer_names as get_scikit_learn_scorer_names
from sklearn.utils import Tags, check_random_state
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.validation import check_is_fitted

from isbor._core.tables import columns_like
from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.meta.cutoffs import best_cutoffs, labels_by_cutoffs
from isbor.meta.routing import Passed, router_of
from isbor.meta.table import (
    Folds,
    LabelledTable,
    ordered_proba,
    set_features,
    stratified_folds,
    tags_of_inside,
)
from isbor.metrics import OrdinalScorer, get_scorer, scorer_names
from isbor.prediction.costs import Loss, least_expected_loss

__all__ = ["TunedDecisionClassifier"]

_CUTOFFS, _MEDIAN = "cutoffs", "absolute"
_LOSSES: tuple[Loss, ...] = ("absolute", "zero_one", "quadratic")


class TunedDecisionClassifier(ClassifierMixin, BaseEstimator):
    """Labels chosen to maximise an ordinal score, from the probabilities of any classifier.

    `predict` of a classifier is the best answer for one score only: the median for the absolute error, the
    most probable class for accuracy. Here the step from probabilities to labels is tuned for a score that you
    name, such as quadratic weighted kappa or the absolute error averaged over classes, on the probabilities
    of held-out rows. The classifier itself and its probabilities remain as they are.

    Parameters
    ----------
    estimator : classifier with `predict_proba`
        `ISBOR`, another estimator of isbor, any classifier of scikit-learn or a pipeline of these.
    scoring : str or scorer, default="amae"
        What is maximised. A name of `isbor.metrics.scorer_names` ("qwk", "amae", "mmae", "kendall", …), a
        name of scikit-learn such as "f1_macro", or a scorer, called as ``scorer(estimator, X, y)``. It must
        score labels, not probabilities.
    cv : int, splitter or iterable of splits, default=5
        Folds of the held-out probabilities. Random ones with about the same class frequencies, if it is a
        number.
    classes : sequence of labels, default=None
        All labels, lowest first. Needed for strings, unless the estimator has its own or y is an ordered
        categorical. It is passed on to an estimator inside that has the parameter and leaves it None.
    random_state : int, RandomState or None, default=0
        Draws the folds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in order.
    estimator_ : classifier
        The classifier, fitted to all rows.
    rule_ : str
        How labels are chosen: "cutoffs", or the loss whose expected value they minimise, "absolute" (the
        median), "zero_one" (the most probable class) or "quadratic" (the class nearest to the mean rank).
    cutoffs_ : ndarray of shape (n_classes - 1,)
        With the rule "cutoffs", the label is the highest class k with P(y ≥ k) > cutoffs_[k - 1], the lowest
        class being 0.
    scores_ : dict
        The score of each rule on held-out rows. For "cutoffs", cut-offs were tuned on the other folds.
    n_features_in_, feature_names_in_
        As in scikit-learn, if the classifier has them.

    See Also
    --------
    isbor.ISBOR.predict : ``predict(X, loss=cost)`` for known costs: nothing is tuned.
    PredictionSetClassifier : Sets of labels instead of a single one.
    sklearn.model_selection.TunedThresholdClassifierCV : The same for two classes.

    Notes
    -----
    Rules are compared on held-out rows. The median is used unless the score of another rule is greater by
    more than a standard error; then the one with the greatest score. If you know what each error costs, use
    `predict` with these costs instead of this object.

    Weights go to the estimator and to the scorer. `isbor.meta.cutoffs` has the mathematics.

    Examples
    --------
    >>> import numpy as np
    >>> from isbor.estimators.linear import OrderedProbit
    >>> from isbor.meta import TunedDecisionClassifier
    >>> from isbor.metrics import average_mae
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 2))
    >>> y = np.digitize(X[:, 0] + rng.normal(size=3000), [1.5, 2.5])  # most labels are 0
    >>> train, test = slice(1000), slice(1000, None)
    >>> plain = OrderedProbit().fit(X[train], y[train])
    >>> tuned = TunedDecisionClassifier(OrderedProbit(), scoring="amae").fit(X[train], y[train])
    >>> bool(average_mae(y[test], tuned.predict(X[test])) < average_mae(y[test], plain.predict(X[test])))
    True
    """

    classes_: LabelArray
    estimator_: Any
    rule_: str
    cutoffs_: FloatArray
    scores_: dict[str, float]
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    def __init__(
        self,
        estimator: Any,
        *,
        scoring: Any = "amae",
        cv: Any = 5,
        classes: Sequence[Any] | LabelArray | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.estimator = estimator
        self.scoring = scoring
        self.cv = cv
        self.classes = classes
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, **params: Any) -> Self:
        """Fit the classifier and tune the decisions.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows, as the estimator takes them.
        y : array-like of shape (n_samples,)
            Ordered labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights for the estimator (in a pipeline, for its last step) and for the scorer.
        **params
            With scikit-learn's metadata routing, what else the estimator and the splitter `cv` request, such
            as `groups`.

        Returns
        -------
        self : object
        """
        scorer = _scorer(self.scoring)
        passed = Passed.from_fit(self, sample_weight, params)
        table = LabelledTable.read(self.estimator, X, y, self.classes, sample_weight, passed)
        folds = stratified_folds(
            table.labels.codes, self.cv, check_random_state(self.random_state), table.passed
        )
        proba = table.cross_fitted(self.estimator, folds)
        score = _scores(scorer, table)
        everything = np.arange(len(table))
        labels = {str(loss): least_expected_loss(proba, loss) for loss in _LOSSES}
        labels[_CUTOFFS] = _held_out_labels(proba, folds, score)
        scores = {rule: score(codes, everything) for rule, codes in labels.items()}
        self.estimator_ = table.fit(self.estimator)
        self.classes_, self.scores_ = table.labels.classes, scores
        self.rule_ = _chosen(labels, scores, folds, score)
        self.cutoffs_ = best_cutoffs(proba, partial(score, rows=everything))
        set_features(self, self.estimator_)
        return self

    def predict(self, X: ArrayLike) -> LabelArray:
        """Predict labels by the tuned rule.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        proba = self.predict_proba(X)
        if self.rule_ == _CUTOFFS:
            return self.classes_[labels_by_cutoffs(proba, self.cutoffs_)]
        return self.classes_[least_expected_loss(proba, self.rule_)]

    @overload
    def predict_proba(self, X: ArrayLike, *, as_frame: Literal[False] = False) -> FloatArray: ...
    @overload
    def predict_proba(self, X: ArrayLike, *, as_frame: bool) -> Any: ...
    def predict_proba(self, X: ArrayLike, *, as_frame: bool = False) -> Any:
        """Predict class probabilities: those of the classifier.

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
        check_is_fitted(self)
        proba = ordered_proba(self.estimator_, X, self.classes_)
        return columns_like(X, proba, self.classes_) if as_frame else proba

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how arguments of `fit` reach the estimator and the splitter, see scikit-learn's user guide.

        Returns
        -------
        routing : MetadataRouter
        """
        return router_of(self)

    def __sklearn_tags__(self) -> Tags:
        return tags_of_inside(super().__sklearn_tags__(), self.estimator)


Score: TypeAlias = Callable[..., float]  # of predicted codes, and of the rows they belong to


class _Predicted(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose predictions are known: what a scorer asks for."""

    def __init__(self, classes: LabelArray, codes: IntArray) -> None:
        self.classes_ = classes
        self.codes = codes

    def predict(self, X: object) -> LabelArray:
        return self.classes_[self.codes]


def _scorer(scoring: Any) -> Any:
    """Return a scorer of labels."""
    if isinstance(scoring, str):
        if scoring not in {*scorer_names(), *get_scikit_learn_scorer_names()}:
            raise ValueError(
                f"scoring is {scoring!r}, which is no name of a score. Use one of isbor.metrics, "
                f"{', '.join(scorer_names())}, or of sklearn.metrics.get_scorer_names()."
            )
        scoring = get_scorer(scoring) if scoring in scorer_names() else get_scikit_learn_scorer(scoring)
    if not callable(scoring):
        raise TypeError(
            f"scoring is of type {type(scoring).__name__}; the name of a score or a scorer is needed. For a "
            "matrix of costs nothing is tuned: call predict(X, loss=cost) of the estimator."
        )
    if getattr(scoring, "response", "predict") != "predict":
        raise ValueError(
            f"scoring is {scoring!r}, which scores probabilities; they do not depend on decisions. Pass a "
            "score of labels, such as 'qwk' or 'amae'."
        )
    return scoring


def _scores(scorer: Any, table: LabelledTable) -> Score:
    """Return a function that scores codes of rows of the table."""
    codes, classes = table.labels.codes, table.labels.classes
    if isinstance(scorer, OrdinalScorer):
        return partial(_score_of_counts, replace(scorer, labels=None), table)

    def score(predicted: IntArray, rows: IntArray) -> float:
        weights = {} if table.weight is None else {"sample_weight": table.weight[rows]}
        X = np.zeros((len(rows), 1))
        return float(scorer(_Predicted(classes, predicted), X, classes[codes[rows]], **weights))

    return score


def _score_of_counts(
    scorer: OrdinalScorer, table: LabelledTable, predicted: IntArray, rows: IntArray
) -> float:
    """Return a score of isbor: it depends on how often each pair of labels occurs, whatever the rows."""
    n_levels = len(table.labels.classes)
    pairs = table.labels.codes[rows] * n_levels + predicted
    weight = None if table.weight is None else table.weight[rows]
    counts = np.bincount(pairs, weights=weight, minlength=n_levels**2)
    true, label = np.divmod(np.arange(n_levels**2), n_levels)
    return scorer(_Predicted(np.arange(n_levels), label), np.zeros((n_levels**2, 1)), true, counts)


def _chosen(labels: dict[str, IntArray], scores: dict[str, float], folds: Folds, score: Score) -> str:
    """Return the rule with the greatest score among those clearly better than the median, if there are any.

    The standard error of a difference of scores is that of the jackknife which leaves out one fold at a time.
    """
    better = [_MEDIAN]
    for rule, codes in labels.items():
        without = [score(codes[rows], rows) - score(labels[_MEDIAN][rows], rows) for rows, _ in folds]
        error = np.sqrt((len(folds) - 1) * np.var(without))
        if scores[rule] - scores[_MEDIAN] > error:
            better.append(rule)
    return max(better, key=lambda rule: scores[rule])


def _held_out_labels(proba: FloatArray, folds: Folds, score: Score) -> IntArray:
    """Return the codes of all rows, each by cut-offs that were tuned on the other folds."""
    codes = np.empty(len(proba), dtype=np.intp)
    for training, held_out in folds:
        cutoffs = best_cutoffs(proba[training], partial(score, rows=training))
        codes[held_out] = labels_by_cutoffs(proba[held_out], cutoffs)
    return codes
