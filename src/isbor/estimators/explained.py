"""Base class of estimators whose scores can be explained: `explain`, `effects` and `changes`."""

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from isbor._core.parallel import Workers, row_blocks
from isbor._core.types import FloatArray
from isbor.data.feature_values import FeatureValues
from isbor.data.training_set import TrainingSet
from isbor.estimators.base import OrdinalClassifier
from isbor.inspection.background import Background
from isbor.inspection.explanation import Explanation
from isbor.inspection.score import ScoreSum
from isbor.inspection.shapley import shapley_values
from isbor.model.latent import Latent
from isbor.prediction.probabilities import class_probabilities

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
        rows, values = self._encoding(type(self).__name__, X), FeatureValues(self._encoding)
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

    def _read_background(self, X: ArrayLike) -> Background:
        return Background.of_rows(self._encoding(type(self).__name__, X))

    def _of_functions(self, score: ScoreSum, rows: FloatArray) -> FloatArray:
        """Return what each function adds to the scores of encoded rows, (n, m)."""
        values = np.empty((len(rows), len(score.weights)))
        for block in row_blocks(len(rows), len(score.weights)):
            values[block] = score.values(score.prepare(rows[block]))
        return values

    def _encoded_thresholds(self, rows: FloatArray) -> FloatArray:
        """Return the thresholds at encoded rows, on the scale of the score, (n, r-1)."""

        def of_rows(latent: Latent) -> FloatArray:
            shape = len(latent.mean), len(self._thresholds)
            return np.broadcast_to(latent.thresholds(self._thresholds), shape)

        return (self._map_encoded(rows, of_rows) - self._centre) / self._unit

    def _encoded_probabilities(self, rows: FloatArray) -> FloatArray:
        """Return class probabilities at encoded rows, (n, r)."""
        return self._map_encoded(rows, lambda latent: class_probabilities(*self._response(latent)))
