"""Train jointly, let the evidence select: the search for tables of more than 1,500 rows.

One round is

    fill up with the best of many proposals → train all functions jointly → delete functions → fit the shape

A round starts from the functions that the best one so far kept and exchanges the rest. Training does not
select, and selection does not move functions, so each is cheap: a round costs about as much as a few passes
over the rows. The penalty of the size prior is applied in full at the end of each round, because functions
that are not worth it take the places of better ones. What a function is worth to noise and gaps (the shape of
the response) counts as well. Rounds are repeated until two were poor: they raised the objective by little. At
last, the functions that remain are trained once more, with short steps.

If rows are many, this happens on a stratified sample at first, where a round is cheap. Then the model is
refitted to more rows, for which more functions pay, and the search goes on there for a few rounds; at last,
it is refitted to all rows.
"""

from dataclasses import dataclass, replace

import numpy as np

from isbor._core.linalg import UnresolvedError
from isbor._core.parallel import Workers, row_blocks
from isbor._core.trace import StopReason
from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.inference.expansion import Columns, columns_of
from isbor.inference.shape import shape_at_rows
from isbor.inference.sparse import SparseModel, fit_weights
from isbor.model.basis import Functions
from isbor.model.cuts import Varying, n_shape_sums
from isbor.search.adaptive.entries import Entries
from isbor.search.adaptive.gains import Directions, Gains, best_candidates
from isbor.search.adaptive.proposals import Proposals
from isbor.search.adaptive.state import State, padded
from isbor.search.adaptive.training import Trainable, train_jointly
from isbor.search.recorder import Recorder
from isbor.search.solvers.passes import PassSettings
from isbor.search.starts import precisions_of_reach, start_from

__all__ = ["JointSearch", "JointSettings", "search_jointly"]

_REACH = 3.0  # prior reach of trained functions before selection
_MANY_MORE = 1.5  # rows over those of the first stage from which there is a second one
_POOR_ROUNDS = 2  # after as many, a search ends
_SHORTER = 0.5  # factor of the step length after a poor round
_LOST = 5.0  # a round whose objective is lower by as many of a poor round's rises lost what was learned
_POLISH_LENGTH = 0.01  # step length of the last training
_SHAPE_STEPS = 3  # Newton steps for each sum of the shape in a round


@dataclass(frozen=True, slots=True)
class JointSettings:
    """Settings of the search."""

    size_prior: float = 2.0  # nats per unit of cost
    max_vectors: float = np.inf
    varying: Varying = "thresholds"
    max_rounds: int = 8
    # Rows on which functions are searched for: at first, if there are many more, and at most.
    first_rows: int = 6_000
    most_rows: int = 128_000
    n_fresh: int = 600  # fresh functions proposed in each round
    n_children: int = 200  # children of the functions kept
    n_siblings: int = 600  # siblings of the functions kept
    n_oblique: int = 8  # oblique ramps, all of them trained
    # Of each training: how often a row is used, at least and at most, and steps that are enough in between.
    min_epochs: int = 12
    max_epochs: int = 30
    enough_steps: int = 300
    max_steps: int = 3000
    step_length: float = 0.03
    # A poor round raises the objective by less than this share of the log evidence, or than this many nats.
    round_rtol: float = 2e-3
    round_atol: float = 5.0
    tol: float = 0.1  # nats; moves that gain less are not made

    def stages(self, n_rows: int) -> list[tuple[int, int]]:
        """Return the number of rows and of rounds of each stage."""
        if n_rows <= _MANY_MORE * self.first_rows:
            return [(n_rows, self.max_rounds)]
        first, later = 3 * self.max_rounds // 4, max(self.max_rounds // 2, 1)
        return [(self.first_rows, first), (min(n_rows, self.most_rows), later)]

    def n_trained(self, n_rows: int) -> int:
        """Return how many functions are trained together."""
        return int(np.clip(4.2 * n_rows**0.36, 32, 384))

    def n_steps(self, n_rows: int) -> int:
        """Return the number of steps of a training, with batches of 256 rows."""
        each = n_rows / 256
        steps = max(self.min_epochs * each, min(self.enough_steps, self.max_epochs * each), 1)
        return int(min(steps, self.max_steps))


def search_jointly(
    rows: TrainingRows,
    feature: IntArray,
    settings: JointSettings,
    random: np.random.Generator,
    workers: Workers,
    recorder: Recorder,
) -> tuple[SparseModel, StopReason]:
    """Search for a model of functions with their own centres and metrics; return why it ended, too.

    `feature`, (d,), is the feature of each column.
    """
    (n_rows, n_rounds), *later = settings.stages(len(rows))
    sample = rows.head(n_rows)
    search = JointSearch(feature, settings, rows.n_levels, random, workers, recorder)
    state = search.start(sample)
    reason = StopReason.MAX_ROUNDS
    try:
        state, reason, _ = search.rounds(state, n_rounds, settings.step_length)
        for n_rows, n_rounds in later:
            if reason is not StopReason.MAX_TIME:
                on_more = search.on_more_rows(state, rows.head(n_rows))
                state, reason, _ = search.rounds(on_more, n_rounds, settings.step_length)
        if reason is not StopReason.MAX_TIME:
            state = search.polished(state)
        if len(state.rows) < len(rows):
            state = search.on_more_rows(state, rows)
    except UnresolvedError:  # some functions are collinear: keep what there is
        pass
    return State.of(rows, state.model, workers).model, reason


@dataclass(frozen=True, slots=True)
class JointSearch:
    """A search: what stays the same from round to round."""

    feature: IntArray
    settings: JointSettings
    n_levels: int
    random: np.random.Generator
    workers: Workers
    recorder: Recorder

    @property
    def n_sums(self) -> int:
        """Number of sums of the shape."""
        return n_shape_sums(self.settings.varying, self.n_levels - 1)

    def start(self, rows: TrainingRows) -> State:
        """Return the state without functions."""
        nothing = Proposals.of(self.random, rows, self.feature).fresh(0).functions(rows.X)
        state = State(rows, start_from(rows, nothing, self.workers), None)
        self.recorder.begin_run(state.model, self.settings.size_prior)
        return state

    def rounds(self, state: State, max_rounds: int, step_length: float) -> tuple[State, StopReason, int]:
        """Return the best state after some rounds, why they ended, and how many lost what was learned.

        A round may fail by bad luck. The next one starts from the best state, with shorter steps.
        """
        settings, best, n_poor, n_lost = self.settings, state, 0, 0
        proposals = Proposals.of(self.random, state.rows, self.feature)
        for _ in range(max_rounds):
            try:
                added = _proposed(best, proposals, settings, self.workers)
                found = self._after(best, added, step_length)
            except UnresolvedError:  # some functions are collinear
                if not len(best.model):
                    raise
                return best, StopReason.CONVERGED, n_lost
            rise = found.objective(settings.size_prior) - best.objective(settings.size_prior)
            best = self._better(best, found)
            enough = max(settings.round_rtol * abs(best.model.log_evidence), settings.round_atol)
            n_lost += rise < -_LOST * enough
            if rise < enough:
                n_poor += 1
                step_length *= _SHORTER
                if n_poor == _POOR_ROUNDS:
                    return best, StopReason.CONVERGED, n_lost
            if self.workers.is_late():
                return best, StopReason.MAX_TIME, n_lost
        return best, StopReason.MAX_ROUNDS, n_lost

    def polished(self, state: State) -> State:
        """Return the state after a training with short steps, if it is better."""
        nothing = state.model.functions.take(slice(0))
        return self._better(state, self._after(state, nothing, _POLISH_LENGTH))

    def on_more_rows(self, state: State, rows: TrainingRows) -> State:
        """Return a state refitted to more rows, after deletions."""
        workers = self.workers
        whole = replace(
            State.of(rows, state.model, workers, rough=True), shape_precision=state.shape_precision
        )
        if not self.n_sums:
            return whole.pruned(self._penalised, workers, self.recorder)
        whole = self._with_new_shape(whole)
        columns = columns_of(rows, whole.model.functions, workers)
        kept = whole.with_shape_model(columns, workers).pruned(self._penalised, workers, self.recorder)
        return self._with_new_shape(kept)

    @property
    def _penalised(self) -> PassSettings:
        settings = self.settings
        return PassSettings(settings.size_prior, settings.max_vectors, settings.tol, rough=True)

    def _better(self, one: State, other: State) -> State:
        """Return the state with the higher objective."""
        return max(one, other, key=lambda found: found.objective(self.settings.size_prior))

    def _after(self, state: State, added: Functions, step_length: float) -> State:
        """Return the state after training, deletions and a new fit of the shape."""
        settings, workers, recorder = self.settings, self.workers, self.recorder
        trained = _trained(state, added, settings, self.n_sums, self.random, step_length, workers)
        recorder.record_whole("training", state.model, trained.model, settings.size_prior)
        kept = trained.pruned(self._penalised, workers, recorder)
        return self._with_new_shape(kept) if self.n_sums else kept

    def _with_new_shape(self, state: State) -> State:
        """Return the state after a few steps of the shape; in the next round it is fitted again."""
        return state.with_new_shape(
            self.n_sums,
            self.workers,
            self.recorder,
            self.settings.size_prior,
            max_rounds=1,
            max_steps=_SHAPE_STEPS,
            rough=True,
        )


def _proposed(state: State, proposals: Proposals, settings: JointSettings, workers: Workers) -> Functions:
    """Return the proposals that fill the model up to the number that is trained."""
    rows, kept = state.rows, Entries.of(state.model.functions)
    gains = Gains.of(rows, state.model, workers, state.shape)
    oblique = proposals.oblique(settings.n_oblique, Directions.of(gains))
    n_oblique = oblique.n_functions
    count = max(settings.n_trained(len(rows)) - kept.n_functions - n_oblique, n_oblique)
    if not kept.n_functions:  # gains of single functions say little before there are others
        return proposals.fresh(count).followed_by(oblique).functions(rows.X)
    proposed = (
        proposals.fresh(settings.n_fresh)
        .followed_by(proposals.children(kept, settings.n_children))
        .followed_by(proposals.siblings(kept, settings.n_siblings))
    )
    return best_candidates(
        proposed, oblique, gains, size_prior=0.1 * settings.size_prior, keep=count, n_steps=0, workers=workers
    ).functions(rows.X)


def _trained(
    state: State,
    added: Functions,
    settings: JointSettings,
    n_sums: int,
    random: np.random.Generator,
    step_length: float,
    workers: Workers,
) -> State:
    """Return the state with functions added and all of them trained, all with weak priors."""
    rows, model = state.rows, state.model
    added = added.take((added.metric != 0.0).any(axis=1))  # a function of no feature is a constant
    n = len(model) + len(added)
    if not n:
        return state
    start = Trainable(
        model.functions.followed_by(added).centred_on(rows),
        np.concatenate([model.mode.weights, np.zeros(len(added))]),
        model.mode.thresholds,
        padded(model.shape_weights, n_sums, n),
        state.precision_of_shape(n_sums),
    )
    trained = train_jointly(rows, start, settings.n_steps(len(rows)), step_length, random)
    functions, thresholds = trained.functions, trained.thresholds
    shape_weights = trained.shape_weights if n_sums else None
    columns = columns_of(rows, functions, workers)
    shape = shape_at_rows(rows, columns, shape_weights, len(thresholds), workers)
    alpha = precisions_of_reach(_mean_squares(columns, len(rows), workers), _REACH)
    varying = np.isfinite(alpha)
    if not varying.all():
        functions, alpha = functions.take(varying), alpha[varying]
        columns = columns_of(rows, functions, workers)
        shape_weights = None if shape_weights is None else shape_weights[:, varying]
    weights = trained.weights[varying]
    fitted = fit_weights(
        rows, functions, alpha, weights, thresholds, workers, shape, columns=columns, rough=True
    )
    after = replace(state, model=replace(fitted, shape_weights=shape_weights), shape=shape)
    return after.with_shape_model(columns, workers)


def _mean_squares(columns: Columns, n_rows: int, workers: Workers) -> FloatArray:
    """Return the mean square of each function over the rows."""
    blocks = row_blocks(n_rows, len(columns))
    parts = workers.map(lambda block: np.einsum("mn,mn->m", columns(block), columns(block)), blocks)
    size: FloatArray = np.sum(list(parts), axis=0) / n_rows
    return size
