"""The basis family "mixed": functions with their own centres and metrics, averaged over searches."""

from collections.abc import Sequence

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, Stage
from isbor.data.training import TrainingSet
from isbor.data.warps import prepare
from isbor.inference.sparse import SparseModel
from isbor.model.basis import column_costs
from isbor.prediction.ensemble import Ensemble
from isbor.search.adaptive.committee import Member, search_committee
from isbor.search.adaptive.joint import JointSettings, search_jointly
from isbor.search.adaptive.proposals import Proposals
from isbor.search.adaptive.search import AdaptiveSettings, search_functions
from isbor.search.recorder import Recorder
from isbor.search.result import SearchResult
from isbor.search.settings import SearchSettings

__all__ = ["fit_mixed"]

# With more rows than this, functions are trained jointly.
_JOINT_ROWS = 2500
# Limits for a committee of automatic size: members, and functions of all members together.
_MAX_MEMBERS = 4
_MAX_FUNCTIONS = 200
# A committee that is not trained jointly searches for a few rounds first. If its members have few functions,
# members are added, up to this many functions in all; else the two members search on.
_FEW_FUNCTIONS = 45
_FIRST_ROUNDS = 2
# `max_vectors` is shared among the members; there are fewer members if each would get less than this.
_MIN_MEMBER_VECTORS = 8


def fit_mixed(
    training: TrainingSet,
    settings: SearchSettings,
    stage: Stage,
    workers: Workers,
    callback: Callback | None,
    start: SearchResult | None = None,
) -> SearchResult:
    """Fit several models by separate searches and average them.

    `start` is ignored: a result for a subset of the rows is not worth more than random functions.
    """
    rows, preparation = prepare(training.rows, training.scaling, ~training.encoding.categorical)
    feature, costs = training.feature[preparation.source], column_costs(rows)
    jointly = len(rows) > _JOINT_ROWS
    n_members = 2 if settings.n_members is None else settings.n_members
    if settings.max_vectors < np.inf:
        n_members = max(1, min(n_members, int(settings.max_vectors // _MIN_MEMBER_VECTORS)))
    max_vectors = _MAX_FUNCTIONS if settings.has_automatic_size else settings.max_vectors
    each = max_vectors // n_members if max_vectors < np.inf else np.inf
    seeds = np.random.SeedSequence(2 * settings.seed).spawn(max(2 * n_members, _MAX_MEMBERS))
    recorders: list[Recorder] = []

    def search(
        numbers: range, n_rounds: int, max_vectors: float = each, starts: Sequence[SparseModel] = ()
    ) -> list[SparseModel]:
        begun = [Recorder(stage, rows.source, callback, runs=k) for k in numbers]
        recorders.extend(begun)
        return search_committee(
            member(numbers, n_rounds, max_vectors, starts), begun, workers, parallel=jointly
        )

    def member(numbers: range, n_rounds: int, max_vectors: float, starts: Sequence[SparseModel]) -> Member:
        def found(k: int, workers: Workers, recorder: Recorder) -> SparseModel:
            proposals = Proposals(np.random.default_rng(seeds[numbers[k]]), feature, costs)
            if jointly:
                joint = JointSettings(settings.size_prior, max_vectors, settings.varying_noise)
                return search_jointly(rows, proposals, joint, workers, recorder)
            adaptive = AdaptiveSettings(
                size_prior=settings.size_prior,
                max_vectors=max_vectors,
                max_rounds=n_rounds,
                varying_noise=settings.varying_noise,
            )
            start = starts[k] if starts else None
            return search_functions(rows, proposals, adaptive, workers, recorder, start)

        return found

    may_grow = settings.has_automatic_size and not settings.preliminary
    n_rounds = AdaptiveSettings().max_rounds
    first_rounds = _FIRST_ROUNDS if may_grow or settings.preliminary else n_rounds
    models = search(range(n_members), first_rounds)
    n_total = (
        _committee_size(models, _MAX_FUNCTIONS if jointly else _FEW_FUNCTIONS) if may_grow else n_members
    )
    if n_total > n_members:
        left = _MAX_FUNCTIONS - sum(map(len, models))
        models += search(range(n_members, n_total), first_rounds, left // (n_total - n_members))
    elif may_grow and not jointly:
        models = search(range(n_members, 2 * n_members), n_rounds - first_rounds, each, models)
    return SearchResult(
        ("mixed",),
        Ensemble.of(preparation, models, rows.total_weight),
        gamma=None,
        steps=tuple(step for recorder in recorders for step in recorder.steps),
        n_passes=sum(recorder.passes for recorder in recorders),
    )


def _committee_size(models: Sequence[SparseModel], max_functions: int) -> int:
    """Return the number of members for a committee whose first members are `models`."""
    size = max(sum(map(len, models)) / len(models), 1.0)
    return max(len(models), min(_MAX_MEMBERS, int(max_functions / size)))
