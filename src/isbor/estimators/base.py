"""Base class of all estimators: fitting, and predictions of a score cut by thresholds."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from isbor._core.checkpoints import Checkpoint
from isbor._core.parallel import Workers
from isbor._core.tables import columns_like
from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.data.blocks import Source
from isbor.data.cells import Missing
from isbor.data.encoding import EncodedTable, TableEncoding
from isbor.data.summary import TableSummary
from isbor.data.training import read_training
from isbor.data.training_set import TrainingSet
from isbor.data.weights import ClassWeight
from isbor.estimators.blocks import A, map_latent
from isbor.estimators.notebook import ShownInNotebooks
from isbor.estimators.parameters import DICT, NONE, RANDOM_STATE, Allowed, check_parameters, choice, integer
from isbor.estimators.restoring import file_content
from isbor.files.checks import ascend, need
from isbor.files.models import write_file
from isbor.model.latent import Latent, LatentModel
from isbor.prediction.costs import Loss, in_order_of
from isbor.prediction.decisions import decide, margins
from isbor.prediction.probabilities import class_probabilities, log_class_probabilities

__all__ = ["SHARED_PARAMETERS", "OrdinalClassifier", "all_or_nothing"]

# Allowed values of the parameters that all estimators have.
SHARED_PARAMETERS: dict[str, Allowed] = {
    "missing": choice("auto", "indicator", "error"),
    "class_weight": DICT | choice("balanced") | NONE,
    "n_jobs": integer() | NONE,
    "random_state": RANDOM_STATE,
}


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """Restore the estimator if the block raises an exception, including KeyboardInterrupt."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


class OrdinalClassifier(ClassifierMixin, ShownInNotebooks, ABC):
    """Base class of all estimators.

    A subclass implements `_fit`, which reads the training data by `_read_training` and sets `_model` (the
    latent score), `_thresholds` (between all classes) and, if scores are reported in other units, `_centre`
    and `_unit`.
    """

    classes_: LabelArray
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    _encoding: TableEncoding
    _table: TableSummary
    _model: LatentModel
    _thresholds: FloatArray
    _centre: float = 0.0  # scores are reported as (score - centre) / unit
    _unit: float = 1.0
    _rows_left_out: bool = False  # whether it comes from a file without its training rows
    _of_training_rows: ClassVar[tuple[str, ...]] = ()  # attributes that hold them, for `partial_fit` only
    _allowed: ClassVar[dict[str, Allowed]] = SHARED_PARAMETERS

    def __init__(
        self,
        missing: Missing,
        classes: Sequence[Any] | LabelArray | None,
        class_weight: ClassWeight,
        n_jobs: int | None,
        random_state: int | np.random.RandomState | None,
    ) -> None:
        self.missing = missing
        self.classes = classes
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: ArrayLike | Source, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features), or source
            An array or a sparse matrix of numbers, on any scale, or a data frame (pandas, polars, pyarrow,
            modin), which may have categorical columns and missing cells. Or a table that is read block by
            block, with its labels and weights, see `isbor.sources.open_table`.
        y : array-like of shape (n_samples,)
            Ordered labels: integers, booleans, an ordered categorical, or strings together with `classes`.
            None if X is a source.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights of the rows. A row of weight 2 counts as two equal rows, a row of weight 0 is
            ignored. None means weight 1 for all rows.

        Returns
        -------
        self : object
            The fitted estimator. If the fit fails, the estimator is left as it was.
        """
        self._check_parameters()
        with all_or_nothing(self):
            vars(self).pop("_rows_left_out", None)
            self._fit(X, y, sample_weight)
        return self

    def save(self, path: str | PathLike[str], *, training_rows: bool = False) -> None:
        """Write the fitted estimator to a file, which `isbor.load` reads.

        The file holds data only, so it can be opened without trusting who wrote it. It is written as a whole
        or not at all, and the same model gives the same bytes. Parameters may be numbers, strings, None, or
        lists, tuples, dicts and arrays of them; a RandomState is refused. `callback` and `checkpoint` are
        left out: they belong to the process and the machine that fitted the model.

        Parameters
        ----------
        path : path
            The file, which is replaced if it exists. Its folder must exist.
        training_rows : bool, default=False
            Whether to store what `ISBOR.partial_fit` and `ISVOR.partial_fit` go on from: training rows with
            their labels, of `ISBOR` at most about 20,000. Without them, the file is smaller and tells less of
            the data, and `partial_fit` of the loaded estimator raises an error. Rows that predictions need
            are always stored: those of a Gaussian process, relevance vectors and support vectors.
        """
        check_is_fitted(self)
        if training_rows:
            self._need_training_rows()
        write_file(Path(path), file_content(self, training_rows))

    def _need_training_rows(self) -> None:
        """Raise ValueError if the estimator comes from a file without its training rows."""
        if self._rows_left_out:
            raise ValueError(
                f"This {type(self).__name__} was loaded from a file without the training rows that "
                "partial_fit goes on from. Save the original model with save(path, training_rows=True), or "
                "call fit with all rows."
            )

    def _check_restored(self) -> None:
        """Raise an error unless all attributes belong together, and the model can predict with them."""
        self._check_parameters()
        encoding, n_levels = self._encoding, len(self.classes_)
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else tuple(names.tolist())
        need(n_levels > 1 and len(set(self.classes_.tolist())) == n_levels, "its classes are not distinct")
        need(self.n_features_in_ == len(encoding.categories), "the number of features is another one")
        need(names == encoding.feature_names, "the names of features are others")
        need(len(self._table.low) == self.n_features_in_, "its summary is of other features")
        need(len(self._model.scaling.mean) == len(encoding.feature), "its model is of another encoding")
        self._check_thresholds(self._thresholds)
        rows = np.zeros((1, len(encoding.feature)))
        self._check_finite(self._map_encoded(rows, lambda latent: margins(latent, self._thresholds)))

    def _check_thresholds(self, thresholds: FloatArray) -> None:
        is_list = thresholds.shape == (len(self.classes_) - 1,)
        need(
            is_list and np.isfinite(thresholds).all() and ascend(thresholds),
            "its thresholds are not in order",
        )

    def _check_finite(self, predicted: FloatArray) -> None:
        need(np.isfinite(predicted).all(), "its predictions are not finite")

    @abstractmethod
    def _fit(self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None) -> None:
        """Fit the model. Parameters have been checked; if it fails, attributes are restored."""

    def _check_parameters(self) -> None:
        check_parameters(self, self._allowed)

    def _read_training(
        self,
        X: object,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        *,
        classes: object = None,
        pairwise: bool = False,
        fewest_levels: int = 2,
        samples: bool = False,
        checkpoint: Checkpoint | None = None,
    ) -> TrainingSet:
        """Check and encode training data; set what they determine: classes, features and their encoding.

        `classes` lists all classes, by default those of the parameter. If `samples`, a sample of many rows
        will do.
        """
        with Workers(self.n_jobs) as workers:
            training = read_training(
                X,
                y,
                sample_weight,
                owner=type(self).__name__,
                workers=workers,
                missing=self.missing,
                classes=self.classes if classes is None else classes,
                class_weight=self.class_weight,
                random_state=self.random_state,
                pairwise=pairwise,
                fewest_levels=fewest_levels,
                samples=samples,
                checkpoint=checkpoint,
            )
        self._encoding, self.classes_ = training.encoding, training.classes
        self._table = TableSummary.of(training)
        self.n_features_in_ = len(training.encoding.categories)
        names = training.encoding.feature_names
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return training

    def predict(self, X: ArrayLike, loss: Loss = "absolute") -> LabelArray:
        """Predict a label for each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.
        loss : "absolute", "zero_one", "quadratic" or array-like, default="absolute"
            The loss whose expected value the predicted label minimises. "absolute": the median of the
            predictive distribution, without lapses (see `predict_proba`) for a Bayesian model; for a single
            model and rows within the range of the training rows, this is the class whose thresholds enclose
            the score. "zero_one": the most probable class.
            "quadratic": the class nearest to the mean rank. An array of shape (n_classes, n_classes) is a
            matrix of costs, cost[true, predicted], with the classes in order. A pandas data frame whose rows
            and columns have the names of the classes may have them in any order.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels, of the same type as in `fit`.
        """
        check_is_fitted(self)
        ordered = in_order_of(self.classes_, loss)
        codes: IntArray = self._map_rows(X, lambda latent: self._decide(latent, ordered))
        return self.classes_[codes]

    @overload
    def predict_proba(self, X: ArrayLike, *, as_frame: Literal[False] = False) -> FloatArray: ...
    @overload
    def predict_proba(self, X: ArrayLike, *, as_frame: bool) -> Any: ...
    def predict_proba(self, X: ArrayLike, *, as_frame: bool = False) -> Any:
        """Predict class probabilities.

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
            P(y = k) for each row and class, with columns as in `classes_`. Rows sum to 1.
        """
        proba = self._map_rows(X, lambda latent: class_probabilities(*self._response(latent)))
        return columns_like(X, proba, self.classes_) if as_frame else proba

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Predict the logarithms of class probabilities, even if the probabilities would underflow.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.

        Returns
        -------
        log_proba : ndarray of shape (n_samples, n_classes)
            ln P(y = k) for each row and class, with columns as in `classes_`.
        """
        return self._map_rows(X, lambda latent: log_class_probabilities(*self._response(latent)))

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return the distances of the score from the thresholds.

        For Bayesian models, the unit is the standard deviation of the latent response (score plus noise).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.

        Returns
        -------
        distance : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, score minus threshold, positive for the upper class. For more, the distance to
            the nearer threshold of each class, positive for the predicted class only.
        """
        result = self._map_rows(X, lambda latent: margins(latent, self._thresholds))
        return result[:, 1] if len(self.classes_) == 2 else result

    def _decide(self, latent: Latent, loss: Loss) -> IntArray:
        if isinstance(loss, str) and loss == "absolute":
            return decide(latent, self._thresholds, loss)
        return decide(*self._response(latent), loss)

    def _response(self, latent: Latent) -> tuple[Latent, FloatArray]:
        """Return the score and the thresholds from which class probabilities are computed."""
        return latent, self._thresholds

    @property
    def column_names_(self) -> NDArray[np.object_]:
        """Names of the encoded columns, such as "age", "age missing", "color=red" and "color unseen"."""
        check_is_fitted(self)
        return np.array(self._encoding.names, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "indicator"
        tags.input_tags.sparse = True
        return tags

    def _map_rows(self, X: ArrayLike, function: Callable[[Latent], A]) -> A:
        check_is_fitted(self)
        return self._map_encoded(self._rows(X), function)

    def _rows(self, X: object) -> FloatArray | EncodedTable:
        """Return the encoded rows of a table that has the features of the training table."""
        return self._encoding.rows(type(self).__name__, X)

    def _map_encoded(self, rows: FloatArray | EncodedTable, function: Callable[[Latent], A]) -> A:
        n_columns = 10 * len(self.classes_)  # results and temporary arrays have one column per class
        with Workers(self.n_jobs) as workers:
            return map_latent(self._latent, self._model.n_functions + n_columns, rows, function, workers)

    def _latent(self, rows: FloatArray) -> Latent:
        """Return the latent score of encoded rows."""
        return self._model.latent(rows)

    def _encoded_latent(self, rows: FloatArray) -> FloatArray:
        """Return the latent score, as `latent` does, for encoded rows."""
        return (self._map_encoded(rows, lambda latent: latent.mean) - self._centre) / self._unit
