"""The basis family "mixed" in a stream of rows: a few searches that go on as rows come in.

A call takes the rows that are kept of the stream (`isbor.data.reservoir`), brings the functions of its
members to their encoding, scaling and warps, and lets the members go on (`isbor.search.adaptive.online`).
Their average predicts, as in `isbor.search.families.mixed`.

Encoding, scaling and warps are learned again whenever the encoding lacks a category or a mark of missing
cells, the scaling has moved, or the total weight has grown by half.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, StopReason
from isbor.data.sampled import Kept, sampled_training
from isbor.data.training_set import TrainingSet
from isbor.data.warps import prepare
from isbor.inference.sparse import SparseModel
from isbor.prediction.ensemble import Ensemble
from isbor.search.adaptive.carried import Prepared
from isbor.search.adaptive.joint import JointSearch, JointSettings
from isbor.search.adaptive.online import Member, advanced, in_other_columns, owing, rounds_of
from isbor.search.recorder import Recorder
from isbor.search.result import SearchResult
from isbor.search.settings import Effort, SearchSettings

__all__ = ["Streamed", "learn_further"]

_MEMBERS: dict[Effort, int] = {"fast": 2, "default": 4, "thorough": 8}
_MIN_MEMBER_VECTORS = 8  # there are fewer members if each would get less
_RENEWED = 1.5  # factor of the total weight after which scaling and warps are learned again


@dataclass(frozen=True, slots=True)
class Streamed:
    """What is known after the rows so far."""

    kept: Kept
    prepared: Prepared | None = None  # None before there were two classes
    members: tuple[Member, ...] = ()
    renewed_at: float = 0.0  # total weight of all rows when scaling and warps were learned
    calls: int = 0

    @classmethod
    def after_fit(cls, kept: Kept, training: TrainingSet, model: Ensemble) -> "Streamed":
        """Return what is known after a fit: its sparse models become members."""
        members = [
            Member(
                some,
                np.zeros(0),
                training.observed,
                training.rows.source[some.functions.origin],
                owed=0.0,
            )
            for some in model.models
            if isinstance(some, SparseModel)
        ]
        prepared = Prepared(training.encoding, model.preparation)
        return cls(kept, prepared, tuple(members))


def learn_further(
    before: Streamed,
    kept: Kept,
    settings: SearchSettings,
    balanced: bool,
    workers: Workers,
    callback: Callback | None,
) -> tuple[Streamed, TrainingSet, SearchResult]:
    """Learn the rows that are kept now; two classes or more occur."""
    reservoir, earlier = kept.reservoir, before.kept.reservoir
    # With a half-life, the rows since then may be most of what counts.
    is_old = reservoir.seen - before.renewed_at >= (1.0 - 1.0 / _RENEWED) * reservoir.total_weight
    known = None
    if before.prepared is not None and not is_old:
        known = before.prepared.encoding, before.prepared.preparation.scaling
    training = sampled_training(kept, known, balanced=balanced)
    if before.prepared is None or known is None or training.scaling is not known[1]:
        rows, preparation = prepare(training.rows, training.scaling, ~training.encoding.categorical)
        renewed_at, kept = reservoir.seen, kept.compacted()
    else:
        preparation, renewed_at = before.prepared.preparation, before.renewed_at
        rows = preparation.of_rows(training.rows)
    prepared = Prepared(training.encoding, preparation)
    n_members, each = _sizes(settings)
    members = list(before.members[:n_members])
    while members and len(members) < n_members:  # after a fit with fewer models
        members.append(members[len(members) - len(before.members)])
    if before.prepared is not None and preparation is not before.prepared.preparation:
        members = [in_other_columns(member, before.prepared, prepared) for member in members]
    past = reservoir.total_weight - (reservoir.seen - earlier.seen)
    members = members or [Member.new()] * n_members
    members = owing(members, max(past, 0.0), reservoir.seen - earlier.seen)
    numbers = reservoir.number[rows.source]
    recorders = [Recorder("fit", numbers, callback, runs=k) for k in range(n_members)]
    joint = JointSettings(size_prior=settings.size_prior, max_vectors=each, varying=settings.varying)
    work = float(len(rows) * joint.n_trained(len(rows)))
    rounds = rounds_of(members, work, reservoir.n_rows - earlier.n_rows)
    feature = training.feature[preparation.source]

    def task(k: int, workers: Workers) -> tuple[Member, StopReason]:
        random = np.random.default_rng([settings.seed, before.calls, k])
        search = JointSearch(feature, joint, rows.n_levels, random, workers, recorders[k])
        return advanced(members[k], rows, training.observed, numbers, rounds[k], search)

    found = workers.side_by_side([partial(task, k) for k in range(n_members)])
    result = SearchResult(
        ("mixed",),
        Ensemble.of(
            preparation, [member.model for member, _ in found if member.model is not None], rows.total_weight
        ),
        gamma=None,
        steps=tuple(step for recorder in recorders for step in recorder.steps),
        n_passes=sum(recorder.passes for recorder in recorders),
        stop_reason=StopReason.of_all(reason for _, reason in found),
    )
    after = Streamed(kept, prepared, tuple(member for member, _ in found), renewed_at, before.calls + 1)
    return after, training, result


def _sizes(settings: SearchSettings) -> tuple[int, float]:
    """Return the number of members, and the largest number of functions of each."""
    n_members = _MEMBERS[settings.effort] if settings.n_members is None else settings.n_members
    if settings.max_vectors == np.inf:
        return n_members, np.inf
    n_members = max(1, min(n_members, int(settings.max_vectors // _MIN_MEMBER_VECTORS)))
    return n_members, settings.max_vectors // n_members
