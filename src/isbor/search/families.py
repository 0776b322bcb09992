"""The kinds of dictionary that a model can be made from, each fitted in its own way.

======  ===========================================================================================
rbf     rows as centres, one width: the paper's model
ard     rows as centres, one scale for each feature, shared by all functions
mixed   functions with centres and metrics of their own, an average of several searches
======  ===========================================================================================
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, Stage, Step, StopReason
from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import Scaling, TrainingRows
from isbor.data.warps import prepare
from isbor.model.basis import RowDictionary
from isbor.search.adaptive.ascent import share_metric
from isbor.search.adaptive.committee import solve_committee
from isbor.search.adaptive.search import MixedSettings
from isbor.search.batch import solve_batch
from isbor.search.gram import GramSettings, solve_gram
from isbor.search.model import Recorder, SparseModel, initial_model, resettle
from isbor.search.result import Fit, Kind
from isbor.search.sequential import solve_sequential
from isbor.search.width import Chosen, WidthTrial, choose_width

__all__ = ["KINDS", "Plan", "Table", "fit_kind", "fit_kinds"]

KINDS: tuple[Kind, ...] = ("rbf", "ard", "mixed")  # the simplest first

# Scales are learned on at most so many rows, in so many rounds of selection and ascent.
_SCALE_ROWS = 4000
_SCALE_ROUNDS = 4
_SCALE_STEPS = 20
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


@dataclass(frozen=True, slots=True)
class Table:
    """Training rows, and what their columns are."""

    rows: TrainingRows  # scaled
    scaling: Scaling
    feature: IntArray  # (d,) the feature that each column belongs to
    categorical: NDArray[np.bool_]  # (d,)

    @property
    def scale_groups(self) -> IntArray:
        """Number, by column, of the scale that it shares with others: the levels of a category have one."""
        alone = len(self.feature) + np.arange(len(self.feature))
        return np.where(self.categorical, self.feature, alone)

    def with_rows(self, rows: TrainingRows) -> "Table":
        """Return the table of other rows."""
        return replace(self, rows=rows)

    def read(self, rows: TrainingRows) -> TrainingRows:
        """Return other rows as if the levels that this table's rows lack had never been seen.

        The last column of a category marks such levels.
        """
        if not self.categorical.any():
            return rows
        X = rows.X.copy()
        constant = self.rows.X[0]
        lacking = self.categorical & (self.rows.X == constant).all(axis=0)
        last = np.append(self.feature[1:] != self.feature[:-1], True)
        for column in np.flatnonzero(lacking & ~last):
            new = np.flatnonzero(X[:, column] != constant[column])
            X[new, column] = constant[column]
            mark = np.searchsorted(self.feature, self.feature[column], side="right") - 1
            X[new, mark] = self.scaling.factor[mark]
        return replace(rows, X=X)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a model is to be fitted, whatever its kind."""

    gamma: float | None  # None: by evidence
    size_prior: float
    solver: Literal["gram", "sequential", "batch"]
    n_candidates: int | None  # None: all rows
    tolerance: float
    patience: int
    max_passes: int
    max_vectors: int | None
    n_members: int | None  # None: two, or more where that is worth the time
    seed: int
    varying_noise: bool = True  # where the kind knows of it
    preliminary: bool = False  # another fit is to follow: a short search will do

    @property
    def has_automatic_size(self) -> bool:
        """Whether a committee may be as large as is worth the time."""
        return self.n_members is None and self.max_vectors is None

    @property
    def max_functions(self) -> float:
        """Limit on the functions of a model."""
        return np.inf if self.max_vectors is None else self.max_vectors


def fit_kinds(
    kinds: Sequence[Kind],
    table: Table,
    plan: Plan,
    workers: Workers,
    callback: Callback | None,
    start: Fit | None = None,
) -> Fit:
    """Fit models of some kinds to a table, the simplest first, and return their average.

    `start` is a fit of the only kind to some of the rows.
    """
    fits: dict[Kind, Fit] = {}
    for kind in kinds:
        begin = fits.get("rbf") if kind == "ard" else start
        fits[kind] = fit_kind(kind, table, plan, "fit", workers, callback, begin)
    return Fit.average(list(fits.values()), table.rows, workers)


def fit_kind(
    kind: Kind,
    table: Table,
    plan: Plan,
    stage: Stage,
    workers: Workers,
    callback: Callback | None,
    start: Fit | None = None,
) -> Fit:
    """Fit a model of a kind to a table.

    `start` is for "mixed" a fit of that kind to some of the rows, for "ard" a fit of one width to all.
    """
    if kind == "mixed":
        return _fit_mixed(table, plan, stage, workers, callback, start)
    if kind == "ard":
        return _fit_shared_metric(table, plan, stage, workers, callback, start)
    return _fit_one_width(table, plan, stage, workers, callback)


def _fit_one_width(
    table: Table, plan: Plan, stage: Stage, workers: Workers, callback: Callback | None
) -> Fit:
    rows = table.rows.in_fewer_dimensions()
    chosen, trials = _width(rows, table, plan, workers, callback)
    dictionary = RowDictionary(rows, chosen.gamma if chosen else float(plan.gamma or 1.0))
    recorder = Recorder(stage, rows.source, callback, chosen.steps if chosen else ())
    settings = _gram_settings(rows, plan)
    if plan.solver == "sequential":
        model, reason = solve_sequential(
            rows,
            dictionary,
            initial_model(rows, dictionary, workers),
            size_prior=plan.size_prior,
            tolerance=plan.tolerance,
            patience=plan.patience,
            max_moves=plan.max_passes,
            workers=workers,
            recorder=recorder,
        )
    elif plan.solver == "batch":
        model, reason = solve_batch(
            rows, dictionary, max_iterations=plan.max_passes, workers=workers, recorder=recorder
        )
    else:
        sample = rows.head(settings.first_rows)
        start = chosen.model if chosen else initial_model(sample, dictionary, workers)
        model, reason = solve_gram(rows, dictionary, start, settings, workers, recorder)
    gamma = float(dictionary.gamma)
    if rows is not table.rows:  # distances were kept, coordinates were not
        centres = table.rows.X[model.functions.origin]
        functions = replace(model.functions, centres=centres, metric=np.full(centres.shape, gamma))
        model = replace(model, functions=functions)
    steps = (*recorder.earlier, *recorder.steps)
    return _alone("rbf", table, model, gamma, steps, recorder.passes, trials, reason)


def _fit_shared_metric(
    table: Table,
    plan: Plan,
    stage: Stage,
    workers: Workers,
    callback: Callback | None,
    start: Fit | None,
) -> Fit:
    rows = table.rows
    earlier: tuple[Step, ...] = ()
    n_passes = 0
    if start is None:
        start = _fit_one_width(table, replace(plan, patience=0, max_vectors=None), stage, workers, callback)
        earlier, n_passes = start.steps, start.n_passes
    dictionary = RowDictionary(rows, float(np.asarray(start.gamma)))
    settings = _gram_settings(rows, plan)
    n_levels = int(rows.y.max()) + 1
    sample = rows.head(max(_SCALE_ROWS, 4 * n_levels))
    quick = replace(settings, first_rows=len(sample), patience=0, max_functions=np.inf)
    recorder = Recorder(stage, rows.source, callback, earlier)
    model = resettle(sample, dictionary, start.models[0], workers)
    for _ in range(_SCALE_ROUNDS):
        before = model.objective(plan.size_prior)
        model, _ = solve_gram(sample, dictionary, model, quick, workers, recorder)
        scaled = share_metric(sample, model, table.scale_groups, _SCALE_STEPS, workers)
        recorder.record_whole("ascent", model, scaled, plan.size_prior)
        if scaled is not model:
            dictionary = RowDictionary(rows, scaled.functions.metric[0])
        model = scaled
        if model.objective(plan.size_prior) - before < 1.0:
            break
    model, reason = solve_gram(rows, dictionary, model, settings, workers, recorder)
    steps = (*recorder.earlier, *recorder.steps)
    metric = np.broadcast_to(np.asarray(dictionary.gamma, dtype=np.float64), rows.X.shape[1:]).copy()
    n_passes += recorder.passes
    trials = start.width_trials
    return _alone("ard", table, model, metric, steps, n_passes, trials, reason)


def _fit_mixed(
    table: Table,
    plan: Plan,
    stage: Stage,
    workers: Workers,
    callback: Callback | None,
    start: Fit | None,
) -> Fit:
    rows, preparation = prepare(table.rows, table.scaling, ~table.categorical)
    n_members = 2 if plan.n_members is None else plan.n_members
    if plan.max_vectors is not None:
        n_members = max(1, min(n_members, plan.max_vectors // _SMALLEST_MEMBER))
    n_levels = int(rows.y.max()) + 1
    settings = MixedSettings(
        size_prior=plan.size_prior,
        max_functions=(_MOST_FUNCTIONS if plan.has_automatic_size else plan.max_functions) // n_members,
        varying_noise=plan.varying_noise,
    )
    settings = replace(settings, first_rows=max(settings.first_rows, 4 * n_levels))
    may_grow = plan.has_automatic_size and not plan.preliminary
    many = len(rows) > _MANY_ROWS
    n_rounds = settings.max_rounds * (2 if many else 1)
    if plan.preliminary:
        n_rounds = settings.first_rounds
    first_rounds = _BROAD_ROUNDS if may_grow and not many else n_rounds
    feature = table.feature[preparation.source]
    seed = 2 * plan.seed + (start is not None)  # what goes on from a start is to see other proposals
    seeds = np.random.SeedSequence(seed).spawn(max(2 * n_members, _MOST_MEMBERS))
    recorders: list[Recorder] = []

    def search(numbers: range, how: MixedSettings, starts: Sequence[SparseModel]) -> list[SparseModel]:
        begun = [Recorder(stage, rows.source, callback, runs=k) for k in numbers]
        recorders.extend(begun)
        return solve_committee(rows, feature, how, [seeds[k] for k in numbers], begun, workers, starts)

    first = replace(settings, max_rounds=first_rounds)
    models = search(range(n_members), first, start.models if start else ())
    room = _with_room_for(models, len(rows)) if may_grow else n_members
    if room > n_members:
        left = _MOST_FUNCTIONS - sum(map(len, models))
        others = replace(first, max_functions=left // (room - n_members))
        models += search(range(n_members, room), others, ())
    elif first_rounds < n_rounds:
        rest = replace(settings, max_rounds=n_rounds - first_rounds)
        models = search(range(n_members, 2 * n_members), rest, models)
    steps = tuple(step for recorder in recorders for step in recorder.steps)
    n_passes = sum(recorder.passes for recorder in recorders)
    n = len(models)
    return Fit(("mixed",), preparation, tuple(models), (1.0 / n,) * n, (1.0,) * n, None, steps, n_passes)


def _with_room_for(models: Sequence[SparseModel], n_rows: int) -> int:
    """Return how many members a committee may have that begins with some models."""
    size = max(sum(map(len, models)) / len(models), 1.0)
    limit = _MOST_FUNCTIONS if n_rows > _MANY_ROWS else _FEW_FUNCTIONS
    return max(len(models), min(_MOST_MEMBERS, int(limit / size)))


def _alone(
    kind: Kind,
    table: Table,
    model: SparseModel,
    gamma: float | FloatArray,
    steps: tuple[Step, ...],
    n_passes: int,
    trials: tuple[WidthTrial, ...],
    reason: StopReason,
) -> Fit:
    """Return the fit of one model that sees scaled columns."""
    plain = prepare(table.rows.head(0), table.scaling, None)[1]
    return Fit((kind,), plain, (model,), (1.0,), (1.0,), gamma, steps, n_passes, trials, reason)


def _width(
    rows: TrainingRows, table: Table, plan: Plan, workers: Workers, callback: Callback | None
) -> tuple[Chosen | None, tuple[WidthTrial, ...]]:
    """Choose a width by evidence, if it is not given."""
    if plan.gamma is not None:
        return None, ()
    n_features = max(1, len(np.unique(table.feature[table.scaling.varying])))
    settings = replace(_gram_settings(rows, plan), max_functions=np.inf)
    return choose_width(rows, n_features, settings, workers, callback)


def _gram_settings(rows: TrainingRows, plan: Plan) -> GramSettings:
    settings = GramSettings(
        size_prior=plan.size_prior,
        tolerance=plan.tolerance,
        max_passes=plan.max_passes,
        n_candidates=len(rows) if plan.n_candidates is None else plan.n_candidates,
        patience=plan.patience,
        max_functions=plan.max_functions,
    )
    # A prefix of the rows holds all levels once it is as long as there are levels.
    n_levels = int(rows.y.max()) + 1
    return replace(settings, first_rows=max(settings.first_rows, 4 * n_levels))
