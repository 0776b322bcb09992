"""The result of a search: the model, and how it was found."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeAlias

from isbor._core.parallel import Workers
from isbor._core.trace import Step, StopReason
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.gp.two_scales import TwoScales
from isbor.prediction.ensemble import Ensemble
from isbor.search.width import WidthTrial

__all__ = ["Family", "SearchResult"]

Family: TypeAlias = Literal["rbf", "ard", "mixed", "gp"]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A fitted model of one basis family, or an average of families, and the trace of the search."""

    families: tuple[Family, ...]
    model: Ensemble
    gamma: float | FloatArray | None  # the width or metric shared by all functions, if there is one
    steps: tuple[Step, ...]
    n_passes: int
    width_trials: tuple[WidthTrial, ...] = ()
    stop_reason: StopReason = StopReason.CONVERGED
    process: TwoScales | None = None  # parameters of a Gaussian process

    @classmethod
    def average(cls, results: Sequence[Self], rows: TrainingRows, workers: Workers) -> Self:
        """Return the average of results of different families, the simplest first, for the same rows."""
        if len(results) == 1:
            return results[0]
        return cls(
            families=tuple(family for result in results for family in result.families),
            model=Ensemble.of_families([result.model for result in results], rows, workers),
            gamma=None,
            steps=_in_sequence([result.steps for result in results]),
            n_passes=sum(result.n_passes for result in results),
            width_trials=results[0].width_trials,
            stop_reason=StopReason.of_all(result.stop_reason for result in results),
        )


def _in_sequence(traces: Sequence[tuple[Step, ...]]) -> tuple[Step, ...]:
    """Concatenate the traces and number their runs consecutively."""
    steps: list[Step] = []
    for trace in traces:
        runs = max((step.run for step in steps), default=0)
        steps += [replace(step, run=runs + step.run) for step in trace]
    return tuple(steps)
