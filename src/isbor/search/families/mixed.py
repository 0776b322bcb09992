"""The basis family "mixed": functions with their own centres and metrics, averaged over searches."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, Stage
from isbor.data.training import TrainingSet
from isbor.data.warps import prepare
from isbor.inference.sparse import SparseModel
from isbor.prediction.ensemble import Ensemble
from isbor.search.adaptive.committee import search_committee
from isbor.search.adaptive.search import AdaptiveSettings
from isbor.search.recorder import Recorder
from isbor.search.result import SearchResult
from isbor.search.settings import SearchSettings

__all__ = ["fit_mixed"]

# With more rows than this, the search takes twice as many rounds.
_MANY_ROWS = 8000
# Limits for a committee of automatic size.
_MAX_MEMBERS = 4
_MAX_FUNCTIONS = 200
# With at most _MANY_ROWS rows, such a committee searches for a few rounds first. If its members have few
# functions, members are added, up to this many functions in all; else the two members search on.
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

    `start` is a result of this family for a subset of the rows.
    """
    rows, preparation = prepare(training.rows, training.scaling, ~training.encoding.categorical)
    n_members = 2 if settings.n_members is None else settings.n_members
    if settings.max_vectors < np.inf:
        n_members = max(1, min(n_members, int(settings.max_vectors // _MIN_MEMBER_VECTORS)))
    max_vectors = _MAX_FUNCTIONS if settings.has_automatic_size else settings.max_vectors
    adaptive = AdaptiveSettings(
        size_prior=settings.size_prior,
        max_vectors=max_vectors // n_members if max_vectors < np.inf else np.inf,
        varying_noise=settings.varying_noise,
        first_rows=rows.prefix_size(AdaptiveSettings().first_rows),
    )
    may_grow = settings.has_automatic_size and not settings.preliminary
    many = len(rows) > _MANY_ROWS
    n_rounds = adaptive.max_rounds * (2 if many else 1)
    if settings.preliminary:
        n_rounds = adaptive.first_rounds
    first_rounds = _FIRST_ROUNDS if may_grow and not many else n_rounds
    feature = training.feature[preparation.source]
    seed = 2 * settings.seed + (start is not None)  # other proposals than in the search that made the start
    seeds = np.random.SeedSequence(seed).spawn(max(2 * n_members, _MAX_MEMBERS))
    recorders: list[Recorder] = []

    def search(numbers: range, how: AdaptiveSettings, starts: Sequence[SparseModel]) -> list[SparseModel]:
        begun = [Recorder(stage, rows.source, callback, runs=k) for k in numbers]
        recorders.extend(begun)
        return search_committee(rows, feature, how, [seeds[k] for k in numbers], begun, workers, starts)

    first = replace(adaptive, max_rounds=first_rounds)
    models = search(range(n_members), first, start.model.models if start else ())
    n_total = _committee_size(models, len(rows)) if may_grow else n_members
    if n_total > n_members:
        left = _MAX_FUNCTIONS - sum(map(len, models))
        others = replace(first, max_vectors=left // (n_total - n_members))
        models += search(range(n_members, n_total), others, ())
    elif first_rounds < n_rounds:
        rest = replace(adaptive, max_rounds=n_rounds - first_rounds)
        models = search(range(n_members, 2 * n_members), rest, models)
    return SearchResult(
        ("mixed",),
        Ensemble.of(preparation, models, rows.total_weight),
        gamma=None,
        steps=tuple(step for recorder in recorders for step in recorder.steps),
        n_passes=sum(recorder.passes for recorder in recorders),
    )


def _committee_size(models: Sequence[SparseModel], n_rows: int) -> int:
    """Return the number of members for a committee whose first members are `models`."""
    size = max(sum(map(len, models)) / len(models), 1.0)
    limit = _MAX_FUNCTIONS if n_rows > _MANY_ROWS else _FEW_FUNCTIONS
    return max(len(models), min(_MAX_MEMBERS, int(limit / size)))
