"""Learning from a stream of batches: what `ISBOR.partial_fit` does.

A call reads a batch (`isbor.data.schema`), adds its rows to a bounded sample of the stream
(`isbor.data.reservoir`), lets the members of a "mixed" model go on with these rows
(`isbor.search.families.streamed`), sets the fitted attributes, and thins out the sample, by what the model
says of its rows. After `fit`, the sample is one of its
rows, and the models that it found are the first members.

Until two classes have occurred, there is no score to learn. Predictions are then those of the rule of
succession: the class that occurred, but for lapses (`isbor.prediction.probabilities`).
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from isbor._core.parallel import Workers, row_blocks
from isbor._core.trace import Callback, StopReason
from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.data.blocks import is_source
from isbor.data.encoding import TableEncoding
from isbor.data.labels import OrderedLabels, encode_labels, rank_labels
from isbor.data.numbers import NumberTable, rows_at_once
from isbor.data.ranges import Ranges
from isbor.data.reservoir import Reservoir
from isbor.data.sampled import Kept, sampled_training
from isbor.data.schema import Schema
from isbor.data.summary import TableSummary
from isbor.data.training import checked_weights
from isbor.data.training_set import TrainingSet
from isbor.data.warps import Preparation
from isbor.data.weights import ClassWeight
from isbor.estimators.base import all_or_nothing
from isbor.estimators.sparse import SparseClassifier
from isbor.files.checks import need
from isbor.inference.expansion import Expansion
from isbor.inference.mode import Mode
from isbor.inference.sparse import SparseModel
from isbor.model.basis import RowDictionary
from isbor.prediction.ensemble import Ensemble
from isbor.prediction.probabilities import lapse_after, log_label_probabilities, with_lapses
from isbor.search.families.streamed import Streamed, learn_further
from isbor.search.result import SearchResult
from isbor.search.settings import SearchSettings

__all__ = ["StreamClassifier"]

_CAPACITY = 20_000  # rows kept of a stream
_CELLS = 4_000_000  # of these rows, at most; but of any table, a tenth of the rows
_BLOCK = 50_000  # rows of a fit that are offered to the sample at once, at most
_MOST_AT_ONCE = 1.5  # rows that are learned, times the capacity; of larger batches, a sample is learned
_GROWTH = 1.3  # factor of the total weight after which all attributes are computed again


@dataclass(frozen=True, slots=True)
class _Batch:
    """Checked rows of a batch."""

    schema: Schema  # after the batch
    cells: FloatArray  # (m, d)
    codes: IntArray  # (m,) positions of the labels among all classes
    weight: FloatArray  # (m,)


def _learns_from_streams(estimator: "StreamClassifier") -> bool:
    """Raise AttributeError if a parameter implies a model that is not learned from streams."""
    text = estimator._stream_conflict()
    if text is not None:
        raise AttributeError(
            f"partial_fit cannot be combined with {text}: it learns a model of basis='mixed'. Leave "
            f"{text.partition('=')[0]} out."
        )
    return True


class StreamClassifier(SparseClassifier):
    """Base class of sparse Bayesian estimators that can learn from a stream of batches.

    A subclass implements `_settings`, `_stream_conflict`, `_check_combination` and `_note_stream`, and calls
    `_leave_for_stream` at the end of a fit.
    """

    half_life: float | None
    max_time: float | None
    _of_training_rows: ClassVar[tuple[str, ...]] = ("_stream", "_renewed_at", "_renewed_for")
    _stream: Streamed
    _renewed_at: float  # total weight of all rows when all attributes were computed
    _renewed_for: tuple[TableEncoding, tuple[int, ...]]  # encoding and classes then

    @available_if(_learns_from_streams)
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: Sequence[Any] | LabelArray | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn a batch of rows, in addition to those learned before, by this method or by `fit`.

        The time of a call and the memory do not depend on the number of rows seen before: a sample of at most
        about 20,000 rows is kept, of the rows that tell most, which stand for the others. Encoding, scaling,
        functions, weights and thresholds follow the stream; with `half_life`, earlier rows count less and
        less. The model is that of basis="mixed". The result depends on the batches, their order and
        `random_state`; about the same is learned from the same rows in other batches, or in another order.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            As in `fit`; one row is enough. Categories may occur for the first time in any batch.
        y : array-like of shape (n_samples,)
            Labels, all among the classes; a batch may have rows of one class only. Until rows of two classes
            have been learned, the predicted class is the one that occurred, and there are no bands.
        classes : sequence of labels, default=None
            All classes, lowest first. Required in the first call, unless the parameter `classes` is set or y
            is an ordered categorical.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights of the rows, as in `fit`.

        Returns
        -------
        self : object
            The fitted estimator. If the call fails, the estimator is left as it was.

        Examples
        --------
        >>> from isbor import ISBOR
        >>> from isbor.datasets import make_saddle
        >>> X, y = make_saddle(2000, random_state=0)
        >>> model = ISBOR(classes=[1, 2, 3, 4, 5])
        >>> for batch in range(0, 1600, 400):
        ...     model = model.partial_fit(X[batch : batch + 400], y[batch : batch + 400])
        >>> bool((model.predict(X[1600:]) == y[1600:]).mean() > 0.97)
        True
        """
        self._check_parameters()
        self._check_combination()
        self._need_training_rows()
        with all_or_nothing(self):
            self._show(lambda callback: self._learn(X, y, classes, sample_weight, callback))
        return self

    @abstractmethod
    def _settings(self, seed: int) -> SearchSettings:
        """Return the settings of searches."""

    @abstractmethod
    def _stream_conflict(self) -> str | None:
        """Return a parameter that implies another model than the one that a stream is learned by."""

    @abstractmethod
    def _check_combination(self) -> None:
        """Raise ValueError if a parameter would have no effect because of another."""

    @abstractmethod
    def _note_stream(self) -> None:
        """Set attributes that say which family was selected."""

    def _check_restored(self) -> None:
        super()._check_restored()
        need(hasattr(self, "_renewed_at") == hasattr(self, "_renewed_for"), "it lacks attributes")
        if hasattr(self, "_stream"):
            kept = self._stream.kept
            need(np.array_equal(kept.classes, self.classes_), "its training rows have other classes")
            need(len(kept.schema.categories) == self.n_features_in_, "its training rows have other features")

    def _learn(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: Sequence[Any] | LabelArray | None,
        sample_weight: ArrayLike | None,
        callback: Callback | None,
    ) -> SearchResult:
        before = getattr(self, "_stream", None)
        declared = self._declared(y, classes)
        batch = self._read(X, y, sample_weight, None if before is None else before.kept.schema, declared)
        if before is None:
            seed = 0 if self.random_state is None else check_random_state(self.random_state).randint(1, 2**31)
            before = Streamed(_nothing_kept(batch, declared, seed))
        with Workers(self.n_jobs, self.max_time) as workers:
            kept = _with_batch(before.kept, batch, self.half_life)
            if len(kept.reservoir) > _MOST_AT_ONCE * kept.reservoir.capacity:
                known = len(before.kept.observed) > 1
                kept = self._thinned(kept, workers, known=known, whole=False)
            self.classes_ = declared
            if len(kept.observed) < 2:
                result = self._set_one_class(kept)
                kept = self._thinned(kept, workers, known=False, whole=True)
                self._stream = replace(before, kept=kept)
            else:
                stream, training, result = learn_further(
                    before,
                    kept,
                    self._settings(kept.reservoir.seed),
                    self.class_weight == "balanced",
                    workers,
                    callback,
                )
                self._set_features(training)
                renewed = self._is_to_renew(training, kept.reservoir)
                self._set_fitted(training, result, workers, renewed=renewed)
                kept = self._thinned(stream.kept, workers, known=True, whole=renewed)
                self._stream = replace(stream, kept=kept)
                if renewed:
                    self._renewed_at = kept.reservoir.seen
                    self._renewed_for = training.encoding, tuple(training.observed.tolist())
                self.relevance_ = np.concatenate([member.numbers for member in self._stream.members])
        self._note_stream()
        return result

    def _declared(self, y: ArrayLike, classes: Sequence[Any] | LabelArray | None) -> LabelArray:
        """Return all classes: those known, given in the call or to the estimator, or those of y's type."""
        if hasattr(self, "_stream"):
            if classes is not None:
                _check_same_classes(classes, self.classes_)
            return self.classes_
        labels = encode_labels(y, self.classes if classes is None else classes)
        if not labels.given_order:
            raise ValueError(
                "classes is needed in the first call of partial_fit, because some classes may have rows only "
                "in later calls. Pass all classes, lowest first, here or to the estimator: "
                f"{type(self).__name__}(classes=[…])."
            )
        if classes is not None and self.classes is not None:
            _check_same_classes(classes, self.classes)
        return labels.classes

    def _read(
        self,
        X: object,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        schema: Schema | None,
        classes: LabelArray,
    ) -> _Batch:
        """Check and read a batch; `schema` is what earlier batches said of the features."""
        codes, weight = self._labels_and_weights(X, y, sample_weight, classes)
        return _Batch(*self._cells(X, schema), codes, weight)

    def _labels_and_weights(
        self, X: object, y: ArrayLike, sample_weight: ArrayLike | None, classes: LabelArray
    ) -> tuple[IntArray, FloatArray]:
        labels = OrderedLabels(classes, rank_labels(y, classes))
        class_weight: ClassWeight = None if self.class_weight == "balanced" else self.class_weight
        return labels.codes, checked_weights(X, labels, sample_weight, class_weight)

    def _cells(self, X: object, schema: Schema | None) -> tuple[Schema, FloatArray]:
        owner = type(self).__name__
        return Schema.of(owner, X, self.missing) if schema is None else schema.read(owner, X)

    def _read_in_parts(
        self, X: object, y: ArrayLike, sample_weight: ArrayLike | None, classes: LabelArray
    ) -> Iterator[_Batch]:
        """Read a table of numbers part by part; others as a whole."""
        table = NumberTable.of(X)
        if table is None:
            yield from _in_parts(self._read(X, y, sample_weight, None, classes))
            return
        codes, weight = self._labels_and_weights(X, y, sample_weight, classes)
        schema: Schema | None = None
        for rows in _slices(*table.shape):
            schema, cells = self._cells(table[rows], schema)
            yield _Batch(schema, cells, codes[rows], weight[rows])

    def _thinned(self, kept: Kept, workers: Workers, *, known: bool, whole: bool) -> Kept:
        """Return what is kept after the rows that came are learned.

        If `known`, the model says what they tell; if `whole`, also what the earlier ones tell now.
        """
        reservoir = kept.reservoir
        told = reservoir.information if known else np.zeros(len(reservoir))
        if known and not reservoir.is_complete:
            rows = np.flatnonzero(reservoir.new | whole)
            if len(rows):
                told = told.copy()
                told[rows] = self._information(
                    kept.schema, reservoir.cells[rows], reservoir.codes[rows], workers
                )
        return replace(kept, reservoir=reservoir.thinned(told))

    def _information(
        self, schema: Schema, cells: FloatArray, codes: IntArray, workers: Workers
    ) -> FloatArray:
        """Return the probability that the model gives to all labels but those of the rows."""
        X = schema.encoded(self._encoding, cells)

        def surprise(block: slice) -> FloatArray:
            latent = self._latent(X[block])
            log_p = log_label_probabilities(latent, self._thresholds, codes[block])
            missed: FloatArray = -np.expm1(np.minimum(log_p, 0.0))
            return missed

        blocks = row_blocks(len(X), self._model.n_functions + 10 * len(self.classes_))
        return np.concatenate(list(workers.map(surprise, blocks)))

    def _set_features(self, training: TrainingSet) -> None:
        self._encoding, self._table = training.encoding, TableSummary.of(training)
        self.n_features_in_ = len(training.encoding.categories)
        names = training.encoding.feature_names
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _is_to_renew(self, training: TrainingSet, reservoir: Reservoir) -> bool:
        """Whether attributes that take long are to be computed again."""
        if not hasattr(self, "_reference") or not hasattr(self, "_renewed_for"):
            return True
        encoding, observed = self._renewed_for
        if encoding is not training.encoding or observed != tuple(training.observed.tolist()):
            return True
        # With a half-life, the rows since then may be most of what counts.
        return reservoir.seen - self._renewed_at >= (1.0 - 1.0 / _GROWTH) * reservoir.total_weight

    def _set_one_class(self, kept: Kept) -> SearchResult:
        """Set the fitted attributes when all rows are of one class."""
        training = sampled_training(kept, None, balanced=False)
        self._set_features(training)
        n_levels, n_columns = len(kept.classes), training.X.shape[1]
        # The others are too far away for the noise, but not for a lapse.
        places = np.arange(n_levels - 1) - int(training.observed[0])
        thresholds = np.where(places < 0, places - 10.0, places + 11.0)
        flat = np.zeros((n_levels - 1, n_levels - 1))
        expansion = Expansion(np.zeros(0), thresholds, 0.0, thresholds * 0.0, flat, 0.0, 0.0)
        preparation = Preparation.plain(training.scaling)
        none = RowDictionary(preparation.of_rows(training.rows), 1.0).basis(np.zeros(0, np.intp))
        model = SparseModel(none, Mode(np.zeros(0), expansion), 0.0, len(training.rows))
        weight = kept.reservoir.total_weight
        ensemble = Ensemble.of(preparation, [model], weight)
        self._model, self._thresholds, self._centre, self._unit = ensemble, thresholds, 0.0, 1.0
        nothing = np.zeros(n_columns)
        self._keep_background(training)
        self._ranges = Ranges.of(nothing, nothing, np.zeros(n_columns, np.bool_))
        rates = np.zeros((1, n_levels))
        rates[0, training.observed[0]] = 1.0
        self._base_rates = with_lapses(rates, lapse_after(weight))[0]
        self.thresholds_, self.sigma_, self.intercept_ = thresholds, 1.0, 0.0
        self.dual_coef_, self.alpha_ = np.zeros(0), np.zeros(0)
        self.relevance_, self.n_relevance_ = np.zeros(0, np.intp), 0
        self.relevance_vectors_ = np.zeros((0, n_columns))
        self.gamma_, self.feature_scale_ = None, training.scaling.spread
        self.feature_relevance_ = np.zeros(self.n_features_in_)
        self.log_evidence_, self.n_iter_ = 0.0, 0
        self.trace_, self.width_trials_, self.stop_reason_ = (), (), StopReason.CONVERGED
        return SearchResult(("mixed",), ensemble, None, (), 0)

    def _leave_for_stream(
        self,
        X: object,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        training: TrainingSet,
        workers: Workers,
    ) -> None:
        """After a fit, keep a sample of its rows, from which `partial_fit` can go on, if it can be called."""
        vars(self).pop("_stream", None)
        if self._stream_conflict() is not None:
            return
        if is_source(X):
            batches = _in_parts(_sample_of_source(training))
        else:
            batches = self._read_in_parts(X, cast(ArrayLike, y), sample_weight, training.classes)
        kept: Kept | None = None
        for batch in batches:
            kept = _nothing_kept(batch, training.classes, training.seed) if kept is None else kept
            kept = self._thinned(_with_batch(kept, batch, None), workers, known=True, whole=False)
        assert kept is not None
        self._stream = Streamed.after_fit(kept.compacted(), training, self._model)
        for name in ("_renewed_at", "_renewed_for"):
            vars(self).pop(name, None)


def _sample_of_source(training: TrainingSet) -> _Batch:
    """Return the rows of a fit to a source that are in memory; a sample of all, for which they stand."""
    rows, encoding = training.rows, training.encoding
    cells = encoding.decoded(training.encoded(slice(None)))
    weight = rows.weight * (training.total_weight / rows.total_weight)
    return _Batch(Schema.of_encoding(encoding), cells, training.observed[rows.y], weight)


def _in_parts(batch: _Batch) -> Iterator[_Batch]:
    for rows in _slices(*batch.cells.shape):
        yield _Batch(batch.schema, batch.cells[rows], batch.codes[rows], batch.weight[rows])


def _slices(n_rows: int, n_columns: int) -> list[slice]:
    """Return the rows of a fit that are offered to the sample at once."""
    size = min(_BLOCK, rows_at_once(n_columns))
    return [slice(first, first + size) for first in range(0, n_rows, size)]


def _nothing_kept(batch: _Batch, classes: LabelArray, seed: int) -> Kept:
    """Return what is kept before the first batch."""
    n_features = batch.cells.shape[1]
    capacity = int(np.clip(_CELLS // n_features, _CAPACITY // 10, _CAPACITY))
    return Kept(batch.schema, Reservoir.empty(capacity, seed, n_features, len(classes)), classes)


def _with_batch(kept: Kept, batch: _Batch, half_life: float | None) -> Kept:
    """Return what is kept with all rows of a batch."""
    kept = replace(kept, schema=batch.schema)
    reservoir = kept.reservoir.with_rows(
        batch.cells,
        batch.schema.contents(batch.cells),
        kept.contents(),
        batch.codes,
        batch.weight,
        half_life,
    )
    return replace(kept, reservoir=reservoir)


def _check_same_classes(classes: object, known: object) -> None:
    """Raise ValueError if other classes are given than those that are known."""
    given, needed = np.asarray(classes).tolist(), np.asarray(known).tolist()
    if given != needed:
        raise ValueError(
            f"classes is {given}, but the estimator has {needed} already. "
            "Leave classes out, or start with a new estimator."
        )
