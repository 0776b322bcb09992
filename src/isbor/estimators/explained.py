"""Base class of estimators whose scores can be explained: `explain`, `effects` and `changes`."""

from abc import abstractmethod
from collections.abc import Sequence
from numbers import Integral
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from isbor._core.parallel import Workers, row_blocks
from isbor._core.types import FloatArray
from isbor.data.encoding import EncodedTable
from isbor.data.feature_values import FeatureValues
from isbor.data.training_set import TrainingSet
from isbor.estimators.base import OrdinalClassifier
from isbor.files.checks import need
from isbor.inspection.background import Background
from isbor.inspection.changes import MOST_FEATURES, Change, Changes, nearest_change
from isbor.inspection.effects import Effects, Kind, MeanDraws, Predictor, accumulated, grid_of, partial
from isbor.inspection.explanation import Explanation
from isbor.inspection.score import ScoreSum
from isbor.inspection.shapley import shapley_values
from isbor.model.latent import Latent
from isbor.prediction.probabilities import class_probabilities, normal_scores

__all__ = ["ExplainedClassifier"]

_COMPARED = 100  # rows of the default background of explanations


class ExplainedClassifier(OrdinalClassifier):
    """Base class of estimators whose score is a sum of functions of the features.

    A subclass implements `_score_sum`, and calls `_keep_background` at the end of a fit.
    """

    _background: Background

    @abstractmethod
    def _score_sum(self) -> ScoreSum:
        """Return the reported score as a sum of functions."""

    def _keep_background(self, training: TrainingSet) -> None:
        """Keep the rows with which others are compared."""
        self._background = Background.of_training(training)

    def _check_restored(self) -> None:
        super()._check_restored()
        if hasattr(self, "_background"):
            n_columns = self._background.X.shape[1]
            need(n_columns == len(self._encoding.feature), "its background is of another encoding")
            score = self._score_sum()
            need(len(score.source) == len(score.weights), "its functions come from other rows")

    def explain(
        self, X: ArrayLike, *, background: ArrayLike | None = None, functions: bool = True
    ) -> Explanation:
        """Say where the scores of some rows come from: contributions of features and of basis functions.

        The contributions of the features are exact Shapley values of the score: the difference between the
        score of a row and the mean score of a background is shared among the features. A feature gets the
        mean change of the score when its value replaces that of a row of the background, after some others,
        in random order. All encoded columns of a feature switch together. Contributions describe the model,
        not causes.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.
        background : array-like or data frame, default=None
            Rows to compare with, with the same features. The time is proportional to their number. None means
            100 of the training rows, a stratified sample that the model keeps.
        functions : bool, default=True
            Whether to return what each basis function adds. It takes one number for each row and function, so
            set False for many rows of a model with many functions.

        Returns
        -------
        explanation : Explanation
            Scores with their thresholds, probabilities and contributions. It prints as text; `to_frame` gives
            a table.

        Examples
        --------
        >>> from isbor import ISBOR
        >>> from isbor.datasets import make_saddle
        >>> X, y = make_saddle(500, random_state=0)
        >>> model = ISBOR(basis="rbf").fit(X, y)
        >>> found = model.explain(X[:5])
        >>> bool(np.allclose(found.baseline + found.contributions.sum(axis=1), model.latent(X[:5])))
        True
        """
        check_is_fitted(self)
        rows, values = self._rows(X)[:], FeatureValues(self._encoding)
        score = self._score_sum()
        others = self._background.head(_COMPARED) if background is None else self._read_background(background)
        with Workers(self.n_jobs) as workers:
            contributions = shapley_values(score, rows, others, self.n_features_in_, workers)
        of_functions = self._of_functions(score, rows) if functions else None
        columns = [values.of_rows(rows, j) for j in range(self.n_features_in_)]
        has_probabilities = hasattr(self, "predict_proba")
        return Explanation(
            score=self._encoded_latent(rows),
            thresholds=self._encoded_thresholds(rows),
            classes=self.classes_,
            predicted=self.classes_[self._map_encoded(rows, lambda some: self._decide(some, "absolute"))],
            probabilities=self._encoded_probabilities(rows) if has_probabilities else None,
            feature_names=values.names,
            values=tuple(zip(*columns, strict=True)),
            baseline=float(others.share @ self._encoded_latent(others.X)),
            contributions=contributions,
            intercept=score.intercept,
            functions=of_functions,
            typical=others.share @ self._of_functions(score, others.X) if functions else None,
            source=score.source,
        )

    def effects(
        self,
        features: int | str | tuple[int | str, ...],
        X: ArrayLike | None = None,
        *,
        kind: Kind = "partial",
        grid_size: int = 20,
        values: Sequence[Any] | None = None,
        coverage: float = 0.9,
    ) -> Effects:
        """Return how predictions change along one feature or two, averaged over rows.

        Parameters
        ----------
        features : int, str, or tuple of two
            Column number or name of the feature, or of two features.
        X : array-like or data frame, default=None
            Rows to average over, with the same features as in `fit`. None means at most 500 of the training
            rows, a stratified sample that the model keeps.
        kind : "partial" or "ale", default="partial"
            Partial dependence, the mean prediction if the feature has this value in all rows; or accumulated
            local effects of one number, which move rows no farther than to neighbouring values. Prefer "ale"
            if the feature depends on others.
        grid_size : int, default=20
            Largest number of values of a number: quantiles of the rows, for partial dependence from the 5 %
            to the 95 % quantile; of fewer distinct numbers, all. Two numbers have so many each. Of
            categories, all known ones are shown. If training had missing cells in the feature, they are the
            last value of a partial dependence.
        values : sequence, default=None
            Values of one feature at which its partial dependence is computed, instead.
        coverage : float, default=0.9
            Posterior probability of bands, between 0 and 1.

        Returns
        -------
        effects : Effects
            Mean score, expected rank (0 is the lowest class) and class probabilities. It prints as a table;
            `to_frame` gives one. The partial dependence of a Bayesian model on one feature has bands: they
            come from the same distribution as `predict_proba_interval`, with errors at all rows taken to go
            together, and say how far the mean at one value may be off, not how sure the shape of the curve
            is. At the ends of the range of a feature they are too narrow.

        Examples
        --------
        >>> from isbor import ISBOR
        >>> from isbor.datasets import make_saddle
        >>> X, y = make_saddle(500, random_state=0)
        >>> effects = ISBOR(basis="rbf").fit(X, y).effects(0, grid_size=5)
        >>> effects.probabilities.shape
        (5, 5)
        """
        check_is_fitted(self)
        if not 0 < coverage < 1:
            raise ValueError(f"coverage is {coverage}; a number between 0 and 1 is needed, for example 0.9.")
        if kind not in get_args(Kind):
            raise ValueError(f"kind is {kind!r}; 'partial' or 'ale' is needed.")
        if not isinstance(grid_size, Integral) or grid_size < 2:
            raise ValueError(f"grid_size is {grid_size!r}; a whole number, at least 2, is needed.")
        known = FeatureValues(self._encoding)
        given = features if isinstance(features, tuple) else (features,)
        numbers = [known.number_of(feature, "features") for feature in given]
        if len(numbers) not in (1, 2) or len(set(numbers)) < len(numbers):
            raise ValueError(
                f"features is {features!r}; one feature or a tuple of two different ones is needed."
            )
        if (kind == "ale" or values is not None) and len(numbers) == 2:
            raise ValueError(
                "kind='ale' and values are for one feature. Give one, or use kind='partial' alone."
            )
        if kind == "ale" and values is not None:
            raise ValueError("values is for kind='partial'; the intervals of kind='ale' come from the rows.")
        self._score_sum()  # refuses a model of unknown features
        rows = self._background if X is None else self._read_background(X)
        is_curve = kind == "partial" and len(numbers) == 1
        predictor = Predictor(self._respond, self._mean_draws() if is_curve else None)
        if kind == "ale":
            ends, curve = accumulated(known, numbers[0], rows, int(grid_size), predictor)
            shown = [ends]
        else:
            shown = [grid_of(known, j, rows, int(grid_size)) for j in numbers]
            if values is not None:
                shown = [known.checked(numbers[0], values)]
            grids = [known.encoded(j, some) for j, some in zip(numbers, shown, strict=True)]
            curve = partial([known.columns(j) for j in numbers], grids, rows, predictor)
        return Effects.of(
            curve,
            features=tuple(known.names[j] for j in numbers),
            values=tuple(map(tuple, shown)),
            kind=kind,
            classes=self.classes_,
            thresholds=(self._thresholds - self._centre) / self._unit,
            coverage=coverage,
        )

    def changes(
        self,
        X: ArrayLike,
        *,
        to: int = 1,
        allowed: Sequence[int | str] | None = None,
        max_features: int = 3,
    ) -> list[Changes]:
        """Say for each row what would have to change for another class to be predicted.

        The nearest row of that class, or one beyond, is searched for that differs in as few features as
        possible. Numbers stay within the range of the training rows and categories among the known ones. It
        says what the model would predict, not what would happen if somebody changed these features.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`. A row takes some hundred to some ten thousand
            predictions.
        to : int, default=1
            Classes from the predicted one to the one that is wanted: 1 is the next higher class, -1 the next
            lower one.
        allowed : sequence of int or str, default=None
            Features that may change, by column number or name. None means all.
        max_features : int, default=3
            Largest number of features that change, at most 3.

        Returns
        -------
        changes : list of Changes
            One for each row. It prints as a sentence, also if there is no such class, or if no change was
            found.

        Examples
        --------
        >>> from isbor import ISBOR
        >>> from isbor.datasets import make_saddle
        >>> X, y = make_saddle(500, random_state=0)
        >>> model = ISBOR(basis="rbf").fit(X, y)
        >>> (found,) = model.changes(X[:1], allowed=[0])
        >>> found.is_found
        True
        """
        check_is_fitted(self)
        if not isinstance(to, Integral) or to == 0:
            raise ValueError(f"to is {to!r}; a whole number other than 0 is needed, such as 1 or -1.")
        if not isinstance(max_features, Integral) or not 1 <= max_features <= MOST_FEATURES:
            raise ValueError(
                f"max_features is {max_features!r}; a whole number from 1 to {MOST_FEATURES} is needed."
            )
        self._score_sum()  # refuses a model of unknown features
        known = FeatureValues(self._encoding)
        names = range(self.n_features_in_) if allowed is None else allowed
        if isinstance(names, str) or not len(names):
            raise ValueError(f"allowed is {allowed!r}; a list of one or more features is needed.")
        numbers = sorted({known.number_of(name, "allowed") for name in names})
        rows = self._rows(X)[:]
        ranks = self._map_encoded(rows, lambda latent: self._decide(latent, "absolute"))
        return [
            self._changes_of(number, row, int(rank), int(to), known, numbers, int(max_features))
            for number, (row, rank) in enumerate(zip(rows, ranks, strict=True))
        ]

    def _changes_of(
        self,
        number: int,
        row: FloatArray,
        rank: int,
        to: int,
        known: FeatureValues,
        allowed: Sequence[int],
        max_features: int,
    ) -> Changes:
        """Return what would have to change in an encoded row of this predicted rank."""
        labels, wanted = self.classes_, rank + to
        if not 0 <= wanted < len(labels):
            return Changes(number, labels[rank], None, None, (), np.inf)

        def within(latent: Latent) -> FloatArray:
            scores = normal_scores(latent, self._thresholds)
            return -scores[:, wanted] if to > 0 else scores[:, wanted + 1]

        def margin(rows: FloatArray) -> FloatArray:
            # Mostly few rows, for which threads would take longer than they save.
            blocks = row_blocks(len(rows), self._model.n_functions)
            return np.concatenate([within(self._latent(rows[block])) for block in blocks])

        found = nearest_change(row, known, allowed, max_features, self._background, margin)
        if found is None:
            return Changes(number, labels[rank], labels[wanted], None, (), np.inf)
        changed, features, distance = found
        after = self._map_encoded(changed[None], lambda latent: self._decide(latent, "absolute"))[0]
        changes = tuple(
            Change(known.names[j], *(known.of_rows(some[None], j)[0] for some in (row, changed)))
            for j in features
        )
        return Changes(number, labels[rank], labels[wanted], labels[after], changes, distance)

    def _respond(self, rows: FloatArray) -> FloatArray:
        """Return reported scores and, if there are any, class probabilities, (n, 1 + r)."""

        def response(latent: Latent) -> FloatArray:
            score = (latent.mean[:, None] - self._centre) / self._unit
            if not hasattr(self, "predict_proba"):
                return score
            return np.hstack([score, class_probabilities(*self._response(latent))])

        return self._map_encoded(rows, response)

    def _mean_draws(self) -> MeanDraws | None:
        """Return the function that averages draws of class probabilities; None if there are no bands."""
        return None

    def _read_background(self, X: ArrayLike) -> Background:
        return Background.of_rows(self._rows(X)[:])

    def _of_functions(self, score: ScoreSum, rows: FloatArray) -> FloatArray:
        """Return what each function adds to the scores of encoded rows, (n, m)."""
        values = np.empty((len(rows), len(score.weights)))
        for block in row_blocks(len(rows), len(score.weights)):
            values[block] = score.values(score.prepare(rows[block]))
        return values

    def _encoded_thresholds(self, rows: FloatArray | EncodedTable) -> FloatArray:
        """Return the thresholds at encoded rows, on the scale of the score, (n, r-1)."""

        def of_rows(latent: Latent) -> FloatArray:
            shape = len(latent.mean), len(self._thresholds)
            return np.broadcast_to(latent.thresholds(self._thresholds), shape)

        return (self._map_encoded(rows, of_rows) - self._centre) / self._unit

    def _encoded_probabilities(self, rows: FloatArray) -> FloatArray:
        """Return class probabilities at encoded rows, (n, r)."""
        return self._map_encoded(rows, lambda latent: class_probabilities(*self._response(latent)))
