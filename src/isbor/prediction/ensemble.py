r"""Averages of sparse models, with which the sparse estimators predict.

Class probabilities are averages of those of the models. The average of their scores is again a sum of basis
functions: this is the score that is reported. Its variance is the mean variance of the models plus the
variance between them; its noise variance is the mean of theirs. A temperature may then multiply the standard
deviations of the models (`isbor.prediction.probabilities`).

Models are averaged over searches and over basis families. The scale of a latent score is arbitrary: its unit
is the noise, and one model may leave twice as much to the noise as another that orders the rows in the same
way. If there is hardly any noise, scores of two searches may differ by a factor of ten. The latent response,
score plus noise, is comparable: thresholds cut it at the same quantiles in all models. So before averaging,
the scores, thresholds and noise of each model are divided by a measure of its latent response: the standard
deviation over the training rows for models of different families, the range of the thresholds for searches
of one family. A common factor then makes the mean noise variance 1 again. For families,

.. math:: d_k = \sqrt{1 + \mathrm{Var} f_k}, \qquad c_k = d_k^{-1} \Big/ \sqrt{\tfrac1K \sum_l d_l^{-2}} .
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Self, TypeAlias

import numpy as np

from isbor._core.parallel import Workers, row_blocks
from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import Scaling, TrainingRows
from isbor.data.warps import Preparation
from isbor.gp.dense import DenseModel
from isbor.inference.sparse import SparseModel
from isbor.model.basis import Functions
from isbor.model.latent import Latent
from isbor.prediction.probabilities import lapse_after

__all__ = ["Ensemble", "Model"]

Model: TypeAlias = SparseModel | DenseModel


@dataclass(frozen=True, slots=True)
class Ensemble:
    """The fitted latent score: a Gaussian at every row, the average of one or more sparse models."""

    preparation: Preparation
    models: tuple[Model, ...]
    shares: tuple[float, ...]  # weights of the models in the average
    scales: tuple[float, ...]  # factors for the score, thresholds and noise of each model, before averaging
    lapse: float  # share of labels assumed to be drawn at random, ε
    # (r-1,) of all thresholds, the fitted one with which each varies, if some classes have no training rows
    threshold_places: IntArray | None = None
    temperature: float = 1.0  # factor of the standard deviations of score and noise, by held-out labels

    @classmethod
    def of(cls, preparation: Preparation, models: Sequence[Model], total_weight: float) -> Self:
        """Return the average, with equal shares, of models trained on the same rows of this total weight."""
        n = len(models)
        scales = _common_scales([_spread(model) for model in models])
        return cls(preparation, tuple(models), (1.0 / n,) * n, tuple(scales), lapse_after(total_weight))

    @classmethod
    def of_families(cls, ensembles: Sequence[Self], rows: TrainingRows, workers: Workers) -> Self:
        """Return the average, with equal shares, of ensembles of different families fitted to `rows`.

        The simplest family comes first.
        """
        if len(ensembles) == 1:
            return ensembles[0]
        # One family may use varying columns and their warps, the others use all columns.
        warped = max(reversed(ensembles), key=lambda some: len(list(filter(None, some.preparation.warps))))
        prepared = warped.preparation.with_all_columns()
        scales = _common_scales([1.0 + some.latent_moments(rows, workers)[1] for some in ensembles])
        return cls(
            prepared,
            models=tuple(model for some in ensembles for model in some._over(prepared)),
            shares=tuple(share / len(ensembles) for some in ensembles for share in some.shares),
            scales=tuple(
                scale * inner for some, scale in zip(ensembles, scales, strict=True) for inner in some.scales
            ),
            lapse=ensembles[0].lapse,
        )

    @property
    def scaling(self) -> Scaling:
        """How encoded rows are scaled."""
        return self.preparation.scaling

    @property
    def n_functions(self) -> int:
        """Number of functions of all models."""
        return sum(map(len, self.models))

    @property
    def functions(self) -> Functions:
        """The functions of all models, concatenated."""
        return reduce(Functions.followed_by, [model.functions for model in self.models])

    @property
    def thresholds(self) -> FloatArray:
        """Thresholds of the average, (r-1,)."""
        of_models = [scale * model.mode.thresholds for model, _, scale in self._parts()]
        thresholds: FloatArray = np.average(of_models, axis=0, weights=self.shares)
        return thresholds

    @property
    def coef(self) -> FloatArray:
        """Weights of all functions in the average, (m,)."""
        return np.concatenate([share * (scale * model.mode.weights) for model, share, scale in self._parts()])

    @property
    def alpha(self) -> FloatArray:
        """Prior precisions of these weights, (m,)."""
        return np.concatenate(
            [model.mode.alpha / (share * scale) ** 2 for model, share, scale in self._parts()]
        )

    @property
    def intercept(self) -> float:
        """The constant of the score as a sum of functions without offsets."""
        offsets = [
            shift - model.functions.offset @ (scale * model.mode.weights)
            for (model, _, scale), shift in zip(self._parts(), self._shifts(), strict=True)
        ]
        return float(np.dot(self.shares, offsets))

    @property
    def log_evidence(self) -> float:
        """Mean log evidence of the models."""
        return float(np.dot(self.shares, [model.log_evidence for model in self.models]))

    def objective(self, size_prior: float) -> float:
        """Return the highest objective of the models: log evidence minus the penalties of all functions."""
        return max(model.objective(size_prior) for model in self.models)

    def latent(self, X: FloatArray) -> Latent:
        """Return the latent score at encoded rows."""
        return self._latent(self.preparation(X))

    def slopes(self, scaled: FloatArray) -> FloatArray:
        """Return the slopes of the score along each scaled column at scaled rows, (n, d)."""
        preparation = self.preparation
        of_prepared = self.functions.slopes_of_sum(self.coef, preparation.widen(scaled))
        slopes = np.zeros_like(scaled)
        for p, (j, warp) in enumerate(zip(preparation.source, preparation.warps, strict=True)):
            inner = 1.0 if warp is None else warp.slope(scaled[:, j])
            slopes[:, j] += of_prepared[:, p] * inner
        return slopes

    def latent_of_scaled(self, scaled: FloatArray) -> Latent:
        """Return the latent score at scaled rows."""
        return self._latent(self.preparation.widen(scaled))

    def latents_of_scaled(self, scaled: FloatArray) -> list[Latent]:
        """Return the latent scores of all models at scaled rows, each on its own scale."""
        return self._latents(self.preparation.widen(scaled))

    def average(self, latents: Sequence[Latent]) -> Latent:
        """Return the latent score, given those of all models on their own scales."""
        return self._average(latents).tempered(self.temperature)

    def latent_moments(self, rows: TrainingRows, workers: Workers) -> tuple[float, float]:
        """Return the weighted mean and variance of the latent score over the scaled training rows."""
        if len(self.models) == 1:
            expansion = self.models[0].mode.expansion
            return expansion.latent_mean, expansion.latent_variance
        blocks = row_blocks(len(rows), self.n_functions)
        means = workers.map(lambda block: self.latent_of_scaled(rows.X[block]).mean, blocks)
        score = np.concatenate(list(means))
        share = rows.weight / rows.weight.sum()
        mean = float(share @ score)
        return mean, float(share @ (score - mean) ** 2)

    def _latent(self, prepared: FloatArray) -> Latent:
        return self.average(self._latents(prepared))

    def _latents(self, prepared: FloatArray) -> list[Latent]:
        return [model.latent(prepared) for model in self.models]

    def _average(self, latents: Sequence[Latent]) -> Latent:
        alone = [latent.scaled(scale) for latent, scale in zip(latents, self.scales, strict=True)]
        parts = [
            self._member(latent, scale * model.mode.thresholds, shift)
            for latent, (model, _, scale), shift in zip(alone, self._parts(), self._shifts(), strict=True)
        ]
        if len(parts) == 1:
            return parts[0]
        shares, means = np.array(self.shares), np.stack([part.mean for part in parts])
        mean = shares @ means
        variance = shares @ (np.stack([part.variance for part in parts]) + (means - mean) ** 2)
        noise_variance = shares @ np.stack([part.noise_variance for part in parts])
        offsets = None  # on average, the models have the common thresholds, unless these vary
        if any(latent.offsets is not None for latent in alone):
            offsets = sum(share * part.offsets for share, part in zip(shares, parts, strict=True))
        return Latent(mean, variance, noise_variance, self.lapse, offsets, tuple(parts), self.shares)

    def _member(self, latent: Latent, thresholds: FloatArray, shift: float) -> Latent:
        """Return the shifted score of a model, with its own thresholds as offsets of the common ones."""
        offsets = latent.offsets
        if len(self.models) > 1:
            offsets = (thresholds + shift - self.thresholds)[None] + (0.0 if offsets is None else offsets)
        if offsets is not None and self.threshold_places is not None:
            offsets = offsets[:, self.threshold_places]
        return replace(latent, mean=latent.mean + shift, lapse=self.lapse, offsets=offsets)

    def _parts(self) -> list[tuple[Model, float, float]]:
        """Return each model with its share and scale."""
        return list(zip(self.models, self.shares, self.scales, strict=True))

    def _shifts(self) -> list[float]:
        """Return the shift of each model's score after which all models have the same mean threshold."""
        if len(self.models) == 1:
            return [0.0]
        thresholds = self.thresholds
        return [
            float(np.mean(thresholds - scale * model.mode.thresholds)) for model, _, scale in self._parts()
        ]

    def _over(self, preparation: Preparation) -> tuple[Model, ...]:
        """Return the models as functions of the columns of a preparation that has all columns they use."""
        if preparation is self.preparation:
            return self.models
        columns, places = self.preparation.places_in(preparation)
        return tuple(
            replace(model, functions=model.functions.embedded(columns, places, len(preparation.source)))
            for model in self.models
        )


def _spread(model: Model) -> float:
    """Return the squared range of the thresholds; of a single one, the variance of the latent response.

    The thresholds of searches for one family differ by their scale only. The variance of the scores would do
    as well, but for a few rows with extreme scores.
    """
    thresholds, expansion = model.mode.thresholds, model.mode.expansion
    return float(np.ptp(thresholds)) ** 2 if len(thresholds) > 1 else 1.0 + expansion.latent_variance


def _common_scales(spreads: Sequence[float]) -> list[float]:
    """Return the factors after which models have the same scale, given the squares of their scales."""
    precision = 1.0 / np.array(spreads)
    scales: list[float] = np.sqrt(precision / precision.mean()).tolist()
    return scales
