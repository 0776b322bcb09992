"""The basis family "mixed": functions with centres and metrics of their own, averaged over searches."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, Stage
from isbor.data.training import TrainingSet
from isbor.data.warps import prepare
from isbor.prediction.ensemble import Ensemble
from isbor.prediction.sparse import SparseModel
from isbor.search.adaptive.committee import search_committee
from isbor.search.adaptive.search import AdaptiveSettings
from isbor.search.recorder import Recorder
from isbor.search.result import SearchResult
from isbor.search.settings import SearchSettings

__all__ = ["fit_mixed"]

# With more rows than this, there is more to find and it pays to search longer.
_MANY_ROWS = 8000
# A committee of automatic size has no more members, and no more functions, than this.
_MOST_MEMBERS = 4
_MOST_FUNCTIONS = 200
# Where rows are not many, it has more than two members only if they have no more functions than this. Then
# all search for so many rounds; two that stay alone go on.
_FEW_FUNCTIONS = 45
_BROAD_ROUNDS = 2
# No member of a committee has fewer functions than this because of a limit on all of them.
_SMALLEST_MEMBER = 8


def fit_mixed(
    training: TrainingSet,
    settings: SearchSettings,
    stage: Stage,
    workers: Workers,
    callback: Callback | None,
    start: SearchResult | None = None,
) -> SearchResult:
    """Search several times and average; `start` is a result of this family for some of the rows."""
    rows, preparation = prepare(training.rows, training.scaling, ~training.encoding.categorical)
    n_members = 2 if settings.n_members is None else settings.n_members
    if settings.max_vectors < np.inf:
        n_members = max(1, min(n_members, int(settings.max_vectors // _SMALLEST_MEMBER)))
    most = _MOST_FUNCTIONS if settings.has_automatic_size else settings.max_vectors
    adaptive = AdaptiveSettings(
        size_prior=settings.size_prior,
        max_vectors=most // n_members,
        varying_noise=settings.varying_noise,
        first_rows=rows.prefix_size(AdaptiveSettings().first_rows),
    )
    may_grow = settings.has_automatic_size and not settings.preliminary
    many = len(rows) > _MANY_ROWS
    n_rounds = adaptive.max_rounds * (2 if many else 1)
    if settings.preliminary:
        n_rounds = adaptive.first_rounds
    first_rounds = _BROAD_ROUNDS if may_grow and not many else n_rounds
    feature = training.feature[preparation.source]
    seed = 2 * settings.seed + (start is not None)  # what goes on from a start is to see other proposals
    seeds = np.random.SeedSequence(seed).spawn(max(2 * n_members, _MOST_MEMBERS))
    recorders: list[Recorder] = []

    def search(numbers: range, how: AdaptiveSettings, starts: Sequence[SparseModel]) -> list[SparseModel]:
        begun = [Recorder(stage, rows.source, callback, runs=k) for k in numbers]
        recorders.extend(begun)
        return search_committee(rows, feature, how, [seeds[k] for k in numbers], begun, workers, starts)

    first = replace(adaptive, max_rounds=first_rounds)
    models = search(range(n_members), first, start.model.models if start else ())
    room = _room_for_members(models, len(rows)) if may_grow else n_members
    if room > n_members:
        left = _MOST_FUNCTIONS - sum(map(len, models))
        others = replace(first, max_vectors=left // (room - n_members))
        models += search(range(n_members, room), others, ())
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


def _room_for_members(models: Sequence[SparseModel], n_rows: int) -> int:
    """Return how many members a committee may have that begins with some models."""
    size = max(sum(map(len, models)) / len(models), 1.0)
    limit = _MOST_FUNCTIONS if n_rows > _MANY_ROWS else _FEW_FUNCTIONS
    return max(len(models), min(_MOST_MEMBERS, int(limit / size)))
