"""What the solvers of sparse Bayesian models share: the model at its mode, its start, its record."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, Stage, Step, StepKind
from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.inference.evidence import Move
from isbor.inference.expansion import columns_of, expand
from isbor.inference.mode import Mode, UnresolvedError, find_mode, log_evidence, starting_thresholds
from isbor.model.basis import Functions, RowDictionary

__all__ = [
    "INITIAL_FUNCTIONS",
    "INITIAL_REACH",
    "Recorder",
    "SparseModel",
    "StoppedError",
    "enlarged_model",
    "initial_model",
    "resettle",
    "settle",
    "start_from",
]

# The prior standard deviation of each starting function's part of the score, in units of the noise:
# wide enough not to hold back a signal that is nearly free of noise.
INITIAL_REACH = 30.0
INITIAL_FUNCTIONS = 30
# The same for functions thrown into a model, in units of the standard deviation of its score.
_RESTART_REACH = 3.0


@dataclass(frozen=True, slots=True)
class SparseModel:
    """Active functions at their mode, on the rows it was settled on."""

    functions: Functions  # (m,)
    mode: Mode
    log_evidence: float
    n_rows: int
    noise_weights: FloatArray | None = None  # (m,) of the functions in the log of the noise, if it varies

    def __len__(self) -> int:
        return len(self.functions)

    def objective(self, size_prior: float) -> float:
        """Return the log evidence less the size prior's price of all functions."""
        return self.log_evidence - size_prior * float(self.functions.cost.sum())


def settle(
    rows: TrainingRows,
    functions: Functions,
    alpha: FloatArray,
    weights: FloatArray,
    thresholds: FloatArray,
    workers: Workers,
) -> SparseModel:
    """Find the mode for active functions and their precisions, from a starting point."""
    columns = columns_of(rows, functions, workers)
    mode = find_mode(lambda w, b: expand(rows, columns, w, b, workers), alpha, weights, thresholds)
    return SparseModel(functions, mode, log_evidence(mode), len(rows))


def start_from(
    rows: TrainingRows, functions: Functions, workers: Workers, reach: float = INITIAL_REACH
) -> SparseModel:
    """Return a model of some functions, all with weak priors."""
    functions, alpha = _weakly_held(functions, reach, rows)
    thresholds = starting_thresholds(rows.y, rows.weight)
    return settle(rows, functions, alpha, np.zeros(len(functions)), thresholds, workers)


def initial_model(rows: TrainingRows, dictionary: RowDictionary, workers: Workers) -> SparseModel:
    """Start from a few functions of each class, all with weak priors, not from none.

    On an interaction (a saddle) single functions may gain nothing where several gain everything.
    """
    n_levels = int(rows.y.max()) + 1
    each = max(2, INITIAL_FUNCTIONS // n_levels)
    chosen = np.sort(np.concatenate([np.flatnonzero(rows.y == k)[:each] for k in range(n_levels)]))
    return start_from(rows, dictionary.basis(chosen), workers)


def resettle(
    rows: TrainingRows, dictionary: RowDictionary, model: SparseModel, workers: Workers
) -> SparseModel:
    """Bring a model to its mode on other rows or in another metric, or start anew where it has none."""
    mode = model.mode
    functions = dictionary.basis(model.functions.origin)
    try:
        return settle(rows, functions, mode.alpha, mode.weights, mode.thresholds, workers)
    except UnresolvedError:
        return initial_model(rows, dictionary, workers)


def enlarged_model(rows: TrainingRows, model: SparseModel, fresh: Functions, workers: Workers) -> SparseModel:
    """Return the model with other functions thrown in under weak priors: a place to start again from."""
    spread = float(np.std(model.functions(rows.head(1000).X) @ model.mode.weights))
    fresh, alpha = _weakly_held(fresh, _RESTART_REACH * max(spread, 1.0), rows)
    return settle(
        rows,
        model.functions.followed_by(fresh),
        np.concatenate([model.mode.alpha, alpha]),
        np.concatenate([model.mode.weights, np.zeros(len(fresh))]),
        model.mode.thresholds,
        workers,
    )


def _weakly_held(functions: Functions, reach: float, rows: TrainingRows) -> tuple[Functions, FloatArray]:
    """Return the functions that are more than constants, and precisions that let each reach so far."""
    size = np.square(functions(rows.head(1000).X)).mean(axis=0)
    varying: NDArray[np.bool_] = size > 1e-14
    return functions.take(varying), size[varying] / reach**2


class StoppedError(Exception):
    """Another part of the same fit failed, or was interrupted."""


@dataclass(slots=True)
class Recorder:
    """Collects the steps of a fit and hands each to the callback."""

    stage: Stage
    source: IntArray  # the row of the user's table that each training row came from
    callback: Callback | None = None
    earlier: tuple[Step, ...] = ()  # what led to the starting model
    steps: list[Step] = field(default_factory=list)  # of the current run
    passes: int = 0
    runs: int = 0
    stopped: threading.Event | None = None  # set from outside: the next step is not to be made

    def begin_run(self, start: SparseModel, size_prior: float) -> None:
        """Forget the steps of the last run and record the functions that a new one starts from."""
        self.steps = []
        self.runs += 1
        paid = np.cumsum(start.functions.cost).tolist()
        for k, origin in enumerate(start.functions.origin):
            self._emit("start", origin, 0.0, start.log_evidence, k + 1, paid[k], size_prior, start.n_rows)

    def record_pass(
        self,
        candidates: Functions,
        moves: Sequence[Move],
        before: SparseModel,
        after: SparseModel,
        size_prior: float,
    ) -> None:
        """Record the moves of a pass and the mode it ended in."""
        self.passes += 1
        predicted = 0.0
        n_active = len(before)
        paid = float(before.functions.cost.sum())
        for move in moves:
            predicted += move.gain
            change = (move.kind == "add") - (move.kind == "delete")
            n_active += change
            paid += change * float(candidates.cost[move.candidate])
            evidence = before.objective(size_prior) + predicted + size_prior * paid
            origin = candidates.origin[move.candidate]
            self._emit(move.kind, origin, move.gain, evidence, n_active, paid, size_prior, before.n_rows)
        self._record_model("mode", after, predicted, size_prior)

    def record_whole(
        self, kind: Literal["ascent", "noise"], before: SparseModel, after: SparseModel, size_prior: float
    ) -> None:
        """Record a step that changed the model as a whole."""
        self._record_model(kind, after, after.log_evidence - before.log_evidence, size_prior)

    def _record_model(self, kind: StepKind, model: SparseModel, gain: float, size_prior: float) -> None:
        paid = float(model.functions.cost.sum())
        self._emit(kind, -1, gain, model.log_evidence, len(model), paid, size_prior, model.n_rows)

    def _emit(
        self,
        kind: StepKind,
        origin: int,
        gain: float,
        evidence: float,
        n_active: int,
        paid: float,
        size_prior: float,
        n_rows: int,
    ) -> None:
        if self.stopped is not None and self.stopped.is_set():
            raise StoppedError
        before = self.earlier[-1] if self.earlier else None
        number = self.passes + (before.pass_number if before else 0)
        run = self.runs + (before.run if before else 0)
        basis = int(self.source[origin]) if origin >= 0 else -1
        step = Step(kind, basis, gain, evidence, n_active, paid, size_prior, number, n_rows, self.stage, run)
        self.steps.append(step)
        if self.callback is not None:
            self.callback(step)
