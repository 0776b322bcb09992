"""The basis family "mixed": functions with their own centres and metrics, averaged over searches.

Searches with different random proposals find different models that fit about equally well. Their average
usually predicts better than any of them, and its variance includes the disagreement between them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, Stage
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
from isbor.search.settings import SearchSettings

__all__ = ["fit_mixed"]

# With more rows than this, functions are trained jointly.
_JOINT_ROWS = 1500
# Limits for a committee of automatic size: members, and functions of all members together.
_MAX_MEMBERS = 4
_MAX_FUNCTIONS = 200
# A committee that is not trained jointly searches for a few rounds first. If its members have few functions,
# members are added, up to this many functions in all; else the two members search on.
_FEW_FUNCTIONS = 60
_FIRST_ROUNDS = 2
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
    n_members = 2 if settings.n_members is None else settings.n_members
    if settings.max_vectors < np.inf:
        n_members = max(1, min(n_members, int(settings.max_vectors // _MIN_MEMBER_VECTORS)))
    max_vectors = _MAX_FUNCTIONS if settings.has_automatic_size else settings.max_vectors
    each = max_vectors // n_members if max_vectors < np.inf else np.inf
    may_grow = settings.has_automatic_size and not settings.preliminary
    jointly = len(rows) > _JOINT_ROWS
    if jointly:
        n_rounds = JointSettings().max_rounds
        first_rounds = _PRELIMINARY_ROUNDS if settings.preliminary else n_rounds
    else:
        n_rounds = AdaptiveSettings().max_rounds
        first_rounds = _FIRST_ROUNDS if may_grow or settings.preliminary else n_rounds
    searches = _Searches(rows, training.feature[preparation.source], settings, stage, workers, callback)
    how = _How(jointly, first_rounds, each)
    models = searches.members(range(n_members), how)
    max_functions = _MAX_FUNCTIONS if jointly else _FEW_FUNCTIONS
    n_total = _committee_size(models, max_functions) if may_grow else n_members
    if n_total > n_members:
        left = _MAX_FUNCTIONS - sum(map(len, models))
        others = replace(how, max_vectors=left // (n_total - n_members))
        models += searches.members(range(n_members, n_total), others)
    elif may_grow and not jointly:
        on = replace(how, n_rounds=n_rounds - first_rounds)
        models = searches.members(range(n_members, 2 * n_members), on, models)
    return SearchResult(
        ("mixed",),
        Ensemble.of(preparation, models, rows.total_weight),
        gamma=None,
        steps=tuple(step for recorder in searches.recorders for step in recorder.steps),
        n_passes=sum(recorder.passes for recorder in searches.recorders),
    )


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

    def members(self, numbers: range, how: _How, starts: Sequence[SparseModel] = ()) -> list[SparseModel]:
        """Return one model for each number, found with proposals of its own, from a start if there is one."""
        rows, feature = self.rows, self.feature
        seeds = np.random.SeedSequence(2 * self.settings.seed).spawn(numbers.stop)
        recorders = [Recorder(self.stage, rows.source, self.callback, runs=k) for k in numbers]
        self.recorders.extend(recorders)
        joint = JointSettings(
            size_prior=self.settings.size_prior,
            max_vectors=how.max_vectors,
            varying_noise=self.settings.varying_noise,
            max_rounds=how.n_rounds,
        )
        adaptive = AdaptiveSettings(
            size_prior=self.settings.size_prior,
            max_vectors=how.max_vectors,
            max_rounds=how.n_rounds,
            varying_noise=self.settings.varying_noise,
        )

        def member(k: int, workers: Workers) -> SparseModel:
            random = np.random.default_rng(seeds[numbers[k]])
            start = starts[k] if k < len(starts) else None
            if how.jointly:
                return search_jointly(rows, feature, joint, random, workers, recorders[k], start)
            return search_functions(rows, feature, adaptive, random, workers, recorders[k], start)

        return self.workers.side_by_side([partial(member, k) for k in range(len(numbers))])


def _committee_size(models: Sequence[SparseModel], max_functions: int) -> int:
    """Return the number of members for a committee whose first members are `models`."""
    size = max(sum(map(len, models)) / len(models), 1.0)
    return max(len(models), min(_MAX_MEMBERS, int(max_functions / size)))
