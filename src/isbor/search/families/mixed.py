"""The basis family "mixed": functions with their own centres and metrics, averaged over searches.

Searches with different random proposals find different models that fit about equally well. Their average
usually predicts better than any of them, and its variance includes the disagreement between them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, Stage, StopReason
from isbor._core.types import IntArray
from isbor.data.rows import TrainingRows
from isbor.data.training import TrainingSet
from isbor.data.warps import prepare
from isbor.inference.sparse import SparseModel
from isbor.prediction.ensemble import Ensemble
from isbor.search.adaptive.joint import JointSettings, search_jointly
from isbor.search.adaptive.search import AdaptiveSettings, search_functions
from isbor.search.recorder import Recorder
from isbor.search.result import SearchResult
from isbor.search.settings import Effort, SearchSettings

__all__ = ["fit_mixed"]

# With more rows than this, functions are trained jointly.
_JOINT_ROWS = 1500


@dataclass(frozen=True, slots=True)
class _Limits:
    """Limits for a committee of automatic size, and of its searches.

    A committee that is not trained jointly searches for a few rounds first. If its members have few
    functions, members are added, up to this many functions in all; else the two members search on.
    """

    members: int
    functions: int  # of all members together
    few_functions: int
    first_rounds: int
    rounds: int
    joint_functions: float  # of each member that is trained jointly
    joint_rounds: int


_LIMITS: dict[Effort, _Limits] = {
    "fast": _Limits(
        members=2,
        functions=100,
        few_functions=0,
        first_rounds=2,
        rounds=2,
        joint_functions=50,
        joint_rounds=3,
    ),
    "default": _Limits(
        members=4,
        functions=200,
        few_functions=60,
        first_rounds=2,
        rounds=5,
        joint_functions=np.inf,
        joint_rounds=8,
    ),
    "thorough": _Limits(
        members=8,
        functions=400,
        few_functions=400,
        first_rounds=5,
        rounds=5,
        joint_functions=np.inf,
        joint_rounds=12,
    ),
}
_PRELIMINARY_ROUNDS = 3  # of a joint search
# `max_vectors` is shared among the members; there are fewer members if each would get less than this.
_MIN_MEMBER_VECTORS = 8


def fit_mixed(
    training: TrainingSet,
    settings: SearchSettings,
    stage: Stage,
    workers: Workers,
    callback: Callback | None,
    simplest: SearchResult | None = None,
) -> SearchResult:
    """Fit several models by separate searches and average them; `simplest` is ignored."""
    rows, preparation = prepare(training.rows, training.scaling, ~training.encoding.categorical)
    limits = _LIMITS[settings.effort]
    jointly = len(rows) > _JOINT_ROWS
    n_members = settings.n_members
    if n_members is None:
        n_members = limits.members if jointly and settings.has_automatic_size else 2
    if settings.max_vectors < np.inf:
        n_members = max(1, min(n_members, int(settings.max_vectors // _MIN_MEMBER_VECTORS)))
    each = settings.max_vectors // n_members if settings.max_vectors < np.inf else np.inf
    if settings.has_automatic_size:
        each = limits.joint_functions if jointly else limits.functions // n_members
    may_grow = settings.has_automatic_size and not settings.preliminary and not jointly
    if jointly:
        first_rounds = n_rounds = _PRELIMINARY_ROUNDS if settings.preliminary else limits.joint_rounds
    else:
        n_rounds = limits.rounds
        first_rounds = limits.first_rounds if may_grow or settings.preliminary else n_rounds
    searches = _Searches(rows, training.feature[preparation.source], settings, stage, workers, callback)
    how = _How(jointly, first_rounds, each)
    found = searches.members(range(n_members), how)
    n_total = _committee_size(found, limits.members, limits.few_functions) if may_grow else n_members
    if n_total > n_members:
        left = limits.functions - sum(len(member.model) for member in found)
        others = replace(how, max_vectors=left // (n_total - n_members))
        found += searches.members(range(n_members, n_total), others)
    elif may_grow and n_rounds > first_rounds:
        on = replace(how, n_rounds=n_rounds - first_rounds)
        found = searches.members(range(n_members, 2 * n_members), on, found)
    return SearchResult(
        ("mixed",),
        Ensemble.of(preparation, [member.model for member in found], rows.total_weight),
        gamma=None,
        steps=tuple(step for recorder in searches.recorders for step in recorder.steps),
        n_passes=sum(recorder.passes for recorder in searches.recorders),
        stop_reason=StopReason.of_all(member.reason for member in found),
    )


@dataclass(frozen=True, slots=True)
class _Member:
    model: SparseModel
    reason: StopReason  # why its search ended


@dataclass(frozen=True, slots=True)
class _How:
    """How members are searched for."""

    jointly: bool
    n_rounds: int
    max_vectors: float  # of each member


@dataclass(frozen=True, slots=True)
class _Searches:
    """The searches of a fit, and their records."""

    rows: TrainingRows
    feature: IntArray  # (d,) the feature of each column
    settings: SearchSettings
    stage: Stage
    workers: Workers
    callback: Callback | None
    recorders: list[Recorder] = field(default_factory=list)

    def members(self, numbers: range, how: _How, starts: Sequence[_Member] = ()) -> list[_Member]:
        """Return one member for each number, found with proposals of its own, from a start if there is one.

        If the time is up, there are fewer new members, and starts are returned as they are.
        """
        rows, feature = self.rows, self.feature
        seeds = np.random.SeedSequence(2 * self.settings.seed).spawn(numbers.stop)
        recorders = [Recorder(self.stage, rows.source, self.callback, runs=k) for k in numbers]
        self.recorders.extend(recorders)
        joint = JointSettings(
            size_prior=self.settings.size_prior,
            max_vectors=how.max_vectors,
            varying=self.settings.varying,
            max_rounds=how.n_rounds,
        )
        adaptive = AdaptiveSettings(
            size_prior=self.settings.size_prior,
            max_vectors=how.max_vectors,
            max_rounds=how.n_rounds,
            varying=self.settings.varying,
        )

        def member(k: int, workers: Workers) -> _Member | None:
            start = starts[k] if k < len(starts) else None
            if numbers[k] and workers.is_late():
                return start and replace(start, reason=StopReason.MAX_TIME)
            random = np.random.default_rng(seeds[numbers[k]])
            begin = None if start is None else start.model
            if how.jointly:
                found = search_jointly(rows, feature, joint, random, workers, recorders[k], begin)
            else:
                found = search_functions(rows, feature, adaptive, random, workers, recorders[k], begin)
            return _Member(*found)

        members = self.workers.side_by_side([partial(member, k) for k in range(len(numbers))])
        return [found for found in members if found is not None]


def _committee_size(first: Sequence[_Member], max_members: int, max_functions: int) -> int:
    """Return the number of members for a committee, given the first ones."""
    size = max(sum(len(member.model) for member in first) / len(first), 1.0)
    return max(len(first), min(max_members, int(max_functions / size)))
