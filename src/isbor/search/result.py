r"""Fitted models: of one kind of dictionary, or an average over kinds.

A score is only known up to its scale: the unit is the noise, and one kind may find twice as much of it as
another that orders the rows alike. What all kinds have in common is the latent response, score plus noise:
thresholds cut it at the same quantiles. So before scores of different kinds are averaged, each is divided by
the standard deviation of its response over the training rows, and with it its thresholds and its noise. A
common factor makes the mean variance of the noise 1 again:

.. math:: d_k = \sqrt{1 + \mathrm{Var} f_k}, \qquad c_k = d_k^{-1} \Big/ \sqrt{\tfrac1K \sum_l d_l^{-2}} .

(Searches of one kind find about the same noise and are averaged as they are.)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeAlias

import numpy as np

from isbor._core.parallel import Workers, row_blocks
from isbor._core.trace import Step, StopReason
from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.data.warps import Preparation
from isbor.prediction.probabilities import FittedScore, LatentModel
from isbor.search.model import SparseModel
from isbor.search.width import WidthTrial

__all__ = ["Fit", "Kind"]

Kind: TypeAlias = Literal["rbf", "ard", "mixed"]


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted model: the average of one or more members."""

    kinds: tuple[Kind, ...]
    preparation: Preparation
    models: tuple[SparseModel, ...]
    shares: tuple[float, ...]  # of the models in the average
    scales: tuple[float, ...]  # by which the models' scores are multiplied before
    gamma: float | FloatArray | None  # the common width or metric, if there is one
    steps: tuple[Step, ...]
    n_passes: int
    width_trials: tuple[WidthTrial, ...] = ()
    reason: StopReason = StopReason.CONVERGED

    @classmethod
    def average(cls, fits: Sequence[Self], rows: TrainingRows, workers: Workers) -> Self:
        """Return the average of fits of different kinds, the simplest first, to the same scaled rows.

        All kinds have equal shares.
        """
        if len(fits) == 1:
            return fits[0]
        # The most adaptive kind sees the columns that vary and their warps, others may see all columns.
        prepared = fits[-1].preparation.with_all_columns()
        precision = np.array([1.0 / (1.0 + fit.score_moments(rows, workers)[1]) for fit in fits])
        scales = np.sqrt(precision / precision.mean()).tolist()
        return cls(
            kinds=tuple(kind for fit in fits for kind in fit.kinds),
            preparation=prepared,
            models=tuple(model for fit in fits for model in fit._over(prepared)),
            shares=tuple(share / len(fits) for fit in fits for share in fit.shares),
            scales=tuple(scale for fit, scale in zip(fits, scales, strict=True) for _ in fit.models),
            gamma=None,
            steps=_one_after_the_other([fit.steps for fit in fits]),
            n_passes=sum(fit.n_passes for fit in fits),
            width_trials=fits[0].width_trials,
            reason=max((fit.reason for fit in fits), key=lambda reason: reason is StopReason.MAX_ITER),
        )

    @property
    def n_functions(self) -> int:
        """Functions of all members."""
        return sum(map(len, self.models))

    def renumbered(self, rows: IntArray) -> Self:
        """Return the fit to some rows of a table, as a start for a fit to all of them."""
        models = [
            replace(model, functions=replace(model.functions, origin=rows[model.functions.origin]))
            for model in self.models
        ]
        return replace(self, models=tuple(models))

    def latent(self, total_weight: float) -> LatentModel:
        """Return the model that predicts, after training on rows of some weight."""
        fitted = [
            FittedScore(model.functions, model.mode, model.noise_weights, share, scale)
            for model, share, scale in zip(self.models, self.shares, self.scales, strict=True)
        ]
        return LatentModel.average(self.preparation, fitted, total_weight)

    def score_moments(self, rows: TrainingRows, workers: Workers) -> tuple[float, float]:
        """Return mean and variance of the scores of the scaled training rows."""
        if len(self.models) == 1:
            expansion = self.models[0].mode.expansion
            return expansion.score_mean, expansion.score_variance
        latent = self.latent(float(rows.weight.sum()))

        def block_scores(block: slice) -> FloatArray:
            return latent.prepared_score(latent.prepare.widen(rows.X[block])).mean

        blocks = row_blocks(len(rows), latent.n_functions)
        score = np.concatenate(list(workers.map(block_scores, blocks)))
        share = rows.weight / rows.weight.sum()
        mean = float(share @ score)
        return mean, float(share @ (score - mean) ** 2)

    def _over(self, preparation: Preparation) -> tuple[SparseModel, ...]:
        """Return the models as functions of the columns of a preparation that has all that matter to them."""
        if preparation is self.preparation:
            return self.models
        columns, places = self.preparation.places_in(preparation)
        return tuple(
            replace(model, functions=model.functions.moved(columns, places, len(preparation.source)))
            for model in self.models
        )


def _one_after_the_other(traces: Sequence[tuple[Step, ...]]) -> tuple[Step, ...]:
    """Return the steps of all fits, their runs numbered through."""
    steps: list[Step] = []
    for trace in traces:
        runs = max((step.run for step in steps), default=0)
        steps += [replace(step, run=runs + step.run) for step in trace]
    return tuple(steps)
