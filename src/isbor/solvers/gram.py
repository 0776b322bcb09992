"""Sequential sparse Bayesian learning in Gram space.

A pass over the rows expands the log likelihood over the active basis functions and some proposed ones.
Given that expansion the paper's incremental loop (add, delete, reestimate, hundreds of times) runs on
an n × n matrix without touching the data. Then the mode is found on the active functions, other rows
are proposed as centres, and the next pass begins:

    propose → expand (one pass) → moves while they gain → mode of (w, b) → repeat

The moves are exact for the quadratic model of the likelihood, which is crude while the model is far
from its end. So a pass adds at most about as many functions as there are, and if the evidence
recomputed at the new mode did not rise, half of the moves are taken back, and half of those: on the
same rows the objective never falls from pass to pass.

Passes come in stages. The first runs without a size prior: functions that gain little by themselves
often gain much together, and a price on each would keep them all out. The next adds the price, and
the model shrinks to what pays. Where rows are many, both run on a stratified sample (a prefix of the
rows), which then grows by a constant factor a stage: only the last passes see all rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from isbor.arrays import FloatArray, IntArray
from isbor.basis import RowDictionary
from isbor.blocks import Workers
from isbor.evidence import Gaussian, GramModel, Move, apply_move, best_move, condition, gram_model, residual
from isbor.inputs import TrainingRows
from isbor.posterior import UnresolvedError, condition_thresholds
from isbor.solvers.model import Recorder, SparseModel, resettle, settle
from isbor.solvers.restarts import with_restarts
from isbor.statistics import Expansion, expand
from isbor.trace import StopReason

__all__ = ["GramSettings", "solve_gram"]

# Σ and μ are refactorised when the moves have cost more digits than this.
_DRIFT = 1e-10
# A stage other than the last ends when a pass raises the objective by less than this many nats.
_ENOUGH = 1.0
# With more rows than this, gains are so large that the size prior keeps nothing useful out.
_FREE_GROWTH_ROWS = 32_000


@dataclass(frozen=True, slots=True)
class GramSettings:
    """How the solver spends its time."""

    size_prior: float = 2.0  # nats a function
    tolerance: float = 1e-2  # nats; smaller gains are not worth a move or a pass
    max_passes: int = 1000
    n_candidates: int = 200  # proposed in each pass
    first_rows: int = 4000  # rows of the first stages; all levels must be among them
    patience: int = 2  # vain restarts in a row before the search is given up
    growth: int = 8  # factor by which the rows grow from stage to stage


@dataclass(frozen=True, slots=True)
class _Stage:
    size_prior: float
    max_functions: float  # no additions beyond that many
    enough: float  # rise of the objective in a pass below which the stage ends
    worthwhile: float  # gain below which a move is not made


def solve_gram(
    rows: TrainingRows,
    dictionary: RowDictionary,
    start: SparseModel,
    settings: GramSettings,
    workers: Workers,
    recorder: Recorder,
) -> tuple[SparseModel, StopReason]:
    """Raise the log evidence less the size prior from a starting model to a local maximum."""
    proposals = _Proposals(settings.n_candidates)

    def climb(model: SparseModel, n_rows: int) -> tuple[SparseModel, bool]:
        sample = rows.head(n_rows)
        if n_rows != model.n_rows:
            model = resettle(sample, dictionary, model, workers)
        for stage in _stages(n_rows, n_rows == len(rows), settings):
            rise = np.inf
            while rise >= stage.enough:
                if recorder.passes >= settings.max_passes:
                    return model, False
                fresh = proposals.draw(n_rows, model.chosen)
                improved = _one_pass(sample, dictionary, model, fresh, stage, workers, recorder)
                rise = improved.objective(stage.size_prior) - model.objective(stage.size_prior)
                model = improved
        return model, True

    size = min(len(rows), settings.first_rows)
    model, finished = with_restarts(
        lambda model: climb(model, size),
        start,
        rows=rows.head(size),
        dictionary=dictionary,
        size_prior=settings.size_prior,
        tolerance=settings.tolerance if size == len(rows) else _ENOUGH,
        patience=settings.patience,
        workers=workers,
        recorder=recorder,
    )
    while size < len(rows) and finished:
        size = min(len(rows), size * settings.growth)
        model, finished = climb(model, size)
    return model, StopReason.CONVERGED if finished else StopReason.MAX_ITER


def _stages(n_rows: int, last: bool, settings: GramSettings) -> Iterator[_Stage]:
    if settings.size_prior > 0 and n_rows <= _FREE_GROWTH_ROWS:
        yield _Stage(0.0, _free_functions(n_rows), _ENOUGH, 0.1 * _ENOUGH)
    if last:
        yield _Stage(settings.size_prior, np.inf, settings.tolerance, settings.tolerance)
    else:
        yield _Stage(settings.size_prior, np.inf, _ENOUGH, 0.1 * _ENOUGH)


def _free_functions(n_rows: int) -> int:
    """Return how large a model may grow before its functions have to pay.

    Free growth is to find functions that pay together. A width at which even this many are not enough
    is too narrow, and would take in nearly every row.
    """
    return int(2.0 * np.sqrt(n_rows))


class _Proposals:
    """Deals the rows out as candidates, a hand a pass, and starts again when all have been dealt."""

    def __init__(self, n_candidates: int) -> None:
        self._hand = n_candidates
        self._dealt = 0

    def draw(self, n_rows: int, active: IntArray) -> IntArray:
        hand = min(self._hand, n_rows)
        drawn = (self._dealt + np.arange(hand)) % n_rows
        self._dealt += hand
        return np.setdiff1d(drawn, active)


def _one_pass(
    rows: TrainingRows,
    dictionary: RowDictionary,
    model: SparseModel,
    fresh: IntArray,
    stage: _Stage,
    workers: Workers,
    recorder: Recorder,
) -> SparseModel:
    """Make the moves of one pass and record them; return the old model if none pays."""
    candidates = np.concatenate([model.chosen, fresh])
    weights = np.concatenate([model.mode.weights, np.zeros(len(fresh))])
    expansion = expand(rows, dictionary.basis(candidates), weights, model.mode.thresholds, workers)

    def settle_at(after: Gaussian) -> SparseModel:
        weights, thresholds = _starting_point(expansion, after)
        return settle(rows, dictionary, candidates[after.active], after.alpha, weights, thresholds, workers)

    try:
        moves, moved = _moves_that_pay(expansion, model, stage, settle_at)
    except UnresolvedError:  # the model itself is at the edge of what arithmetic resolves: leave it
        moves, moved = [], model
    recorder.record_pass(dictionary.rows, len(rows), candidates, moves, model, moved, stage.size_prior)
    return moved


def _moves_that_pay(
    expansion: Expansion,
    model: SparseModel,
    stage: _Stage,
    settle_at: Callable[[Gaussian], SparseModel],
) -> tuple[list[Move], SparseModel]:
    """Return moves after which the recomputed objective is no lower, and the model after them."""
    n_active = len(model.chosen)
    quadratic = gram_model(expansion)
    before = condition(quadratic, np.arange(n_active), model.mode.alpha)
    max_additions = min(max(10, n_active), stage.max_functions - n_active)
    max_moves = 100 + 10 * len(expansion.weights)
    while max_moves:
        after, moves = _make_moves(quadratic, before, stage, max_moves, max_additions)
        if not moves:
            break
        try:
            moved = settle_at(after)
            if moved.objective(stage.size_prior) >= model.objective(stage.size_prior):
                return moves, moved
        except UnresolvedError:
            pass
        max_moves = len(moves) // 2
    return [], model


def _make_moves(
    quadratic: GramModel, state: Gaussian, stage: _Stage, max_moves: int, max_additions: float
) -> tuple[Gaussian, list[Move]]:
    """Make the best move again and again, while it is worthwhile."""
    moves: list[Move] = []
    additions_left = max_additions
    while len(moves) < max_moves:
        move = best_move(state, quadratic.floor, size_prior=stage.size_prior, may_add=additions_left > 0)
        if move is None or move.gain < stage.worthwhile:
            break
        after = apply_move(quadratic, state, move)
        if residual(quadratic, after) > _DRIFT:
            try:
                after = condition(quadratic, after.active, after.alpha)
            except UnresolvedError:
                break
        state = after
        additions_left -= move.kind == "add"
        moves.append(move)
    return state, moves


def _starting_point(expansion: Expansion, after: Gaussian) -> tuple[FloatArray, FloatArray]:
    """Return where the quadratic model sees the new mode, or as far that way as thresholds stay ordered."""
    here = np.zeros_like(expansion.weights)
    here[after.active] = after.mean
    thresholds, step = condition_thresholds(expansion, here)
    start = expansion.weights[after.active]
    return start + step * (after.mean - start), thresholds
