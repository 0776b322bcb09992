"""The basis family "mixed": functions with their own centres and metrics, averaged over searches.

Searches with different random proposals find different models that fit about equally well. Their average
usually predicts better than any of them, and its variance includes the disagreement between them.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, Stage, Step, StopReason
from isbor._core.types import IntArray
from isbor.data.rows import TrainingRows
from isbor.data.training_set import TrainingSet
from isbor.data.warps import prepare
from isbor.inference.sparse import SparseModel
from isbor.prediction.ensemble import Ensemble
from isbor.search.adaptive.joint import JointSettings, search_jointly
from isbor.search.adaptive.search import AdaptiveSettings, search_functions
from isbor.search.recorder import Recorder
from isbor.search.result import SearchResult
from isbor.search.settings import Effort, SearchSettings

__all__ = ["fit_mixed"]

_JOINT_ROWS = 1500  # with more, functions are trained jointly
_MANY_ROWS = 20_000  # with more, models differ less, and rounds are worth more than members


@dataclass(frozen=True, slots=True)
class _Limits:
    """Limits for a committee of automatic size, and of its searches."""

    members: int
    functions: float  # of each member
    rounds: int


_FEW: dict[Effort, _Limits] = {
    "fast": _Limits(members=2, functions=50, rounds=2),
    "default": _Limits(members=8, functions=50, rounds=4),
    "thorough": _Limits(members=8, functions=50, rounds=5),
}
_SOME: dict[Effort, _Limits] = {
    "fast": _Limits(members=2, functions=50, rounds=3),
    "default": _Limits(members=4, functions=np.inf, rounds=8),
    "thorough": _Limits(members=8, functions=np.inf, rounds=12),
}
_MANY: dict[Effort, _Limits] = {
    "fast": _Limits(members=2, functions=50, rounds=3),
    "default": _Limits(members=2, functions=np.inf, rounds=12),
    "thorough": _Limits(members=4, functions=np.inf, rounds=16),
}
# Rounds of a search that another one follows.
_PRELIMINARY_ROUNDS = 2
_PRELIMINARY_JOINT_ROUNDS = 3
_FIXED_MEMBERS = 2  # members that share `max_vectors`, at most
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
    jointly = len(rows) > _JOINT_ROWS
    limits = _limits(len(rows))[settings.effort]
    automatic = settings.has_automatic_size
    n_members = settings.n_members
    if n_members is None:
        n_members = limits.members if automatic else _FIXED_MEMBERS
    if settings.max_vectors < np.inf:
        n_members = max(1, min(n_members, int(settings.max_vectors // _MIN_MEMBER_VECTORS)))
    each = settings.max_vectors // n_members if settings.max_vectors < np.inf else np.inf
    if automatic:
        each = limits.functions
    if settings.preliminary:
        n_rounds = _PRELIMINARY_JOINT_ROUNDS if jointly else _PRELIMINARY_ROUNDS
    else:
        n_rounds = limits.rounds
    searches = _Searches(rows, training.feature[preparation.source], settings, stage, workers, callback)
    found = searches.members(n_members, _How(jointly, n_rounds, each))
    return SearchResult(
        ("mixed",),
        Ensemble.of(preparation, [member.model for member in found], rows.total_weight),
        gamma=None,
        steps=tuple(step for member in found for step in member.steps),
        n_passes=sum(member.n_passes for member in found),
        stop_reason=StopReason.of_all(member.reason for member in found),
    )


def _limits(n_rows: int) -> dict[Effort, _Limits]:
    """Return the limits for as many rows, by effort."""
    if n_rows > _MANY_ROWS:
        return _MANY
    return _SOME if n_rows > _JOINT_ROWS else _FEW


@dataclass(frozen=True, slots=True)
class _Member:
    model: SparseModel
    reason: StopReason  # why its search ended
    steps: tuple[Step, ...]
    n_passes: int


@dataclass(frozen=True, slots=True)
class _How:
    """How members are searched for."""

    jointly: bool
    n_rounds: int
    max_vectors: float  # of each member


@dataclass(frozen=True, slots=True)
class _Searches:
    """The searches of a fit."""

    rows: TrainingRows
    feature: IntArray  # (d,) the feature of each column
    settings: SearchSettings
    stage: Stage
    workers: Workers
    callback: Callback | None

    def members(self, n_members: int, how: _How) -> list[_Member]:
        """Return members found with proposals of their own; fewer if the time is up."""
        rows, feature = self.rows, self.feature
        seeds = np.random.SeedSequence(2 * self.settings.seed).spawn(n_members)
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

        def search(k: int, workers: Workers) -> _Member | None:
            if k and workers.is_late():
                return None
            random = np.random.default_rng(seeds[k])
            recorder = Recorder(self.stage, rows.source, self.callback, runs=k)
            if how.jointly:
                model, reason = search_jointly(rows, feature, joint, random, workers, recorder)
            else:
                model, reason = search_functions(rows, feature, adaptive, random, workers, recorder)
            return _Member(model, reason, tuple(recorder.steps), recorder.passes)

        def member(k: int, workers: Workers) -> _Member | None:
            return workers.once(f"member {k + 1}", partial(search, k))

        members = self.workers.side_by_side([partial(member, k) for k in range(n_members)])
        return [found for found in members if found is not None]
