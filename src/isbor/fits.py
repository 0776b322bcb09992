"""Fitted models: of one kind of dictionary, or an average over kinds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeAlias

from isbor.arrays import FloatArray, IntArray
from isbor.predictive import LatentModel
from isbor.selection import WidthTrial
from isbor.solvers.model import SparseModel
from isbor.trace import Step, StopReason
from isbor.warps import Preparation

__all__ = ["Fit", "Kind"]

Kind: TypeAlias = Literal["rbf", "ard", "mixed"]


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted model: the average of one or more members."""

    kinds: tuple[Kind, ...]
    preparation: Preparation
    models: tuple[SparseModel, ...]
    shares: tuple[float, ...]  # of the models in the average
    gamma: float | FloatArray | None  # the common width or metric, if there is one
    steps: tuple[Step, ...]
    n_passes: int
    width_trials: tuple[WidthTrial, ...] = ()
    reason: StopReason = StopReason.CONVERGED

    @classmethod
    def average(cls, fits: Sequence[Self]) -> Self:
        """Return the average of fits of different kinds to the same rows, with equal shares."""
        if len(fits) == 1:
            return fits[0]
        # The columns of one preparation are all that any of the models see.
        widest = max((fit.preparation for fit in fits), key=lambda preparation: len(preparation.source))
        return cls(
            kinds=tuple(kind for fit in fits for kind in fit.kinds),
            preparation=widest,
            models=tuple(model for fit in fits for model in fit._over(widest)),
            shares=tuple(share / len(fits) for fit in fits for share in fit.shares),
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
        fitted = [(model.functions, model.mode, model.noise_weights) for model in self.models]
        return LatentModel.average(self.preparation, fitted, self.shares, total_weight)

    def _over(self, preparation: Preparation) -> tuple[SparseModel, ...]:
        """Return the models as functions of the columns of a preparation that has all of theirs."""
        if preparation is self.preparation:
            return self.models
        columns = preparation.plain_columns()
        sources = preparation.source[columns]
        return tuple(
            replace(model, functions=model.functions.moved(sources, columns, len(preparation.source)))
            for model in self.models
        )


def _one_after_the_other(traces: Sequence[tuple[Step, ...]]) -> tuple[Step, ...]:
    """Return the steps of all fits, their runs numbered through."""
    steps: list[Step] = []
    for trace in traces:
        runs = max((step.run for step in steps), default=0)
        steps += [replace(step, run=runs + step.run) for step in trace]
    return tuple(steps)
