"""What the solvers of sparse Bayesian models share: the model at its mode, its start, its record."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from isbor.arrays import FloatArray, IntArray
from isbor.basis import RowDictionary
from isbor.blocks import Workers
from isbor.evidence import Move
from isbor.inputs import TrainingRows
from isbor.posterior import Mode, UnresolvedError, find_mode, log_evidence, starting_thresholds
from isbor.statistics import expand
from isbor.trace import Callback, Stage, Step, StepKind

__all__ = ["Recorder", "SparseModel", "enlarged_model", "initial_model", "resettle", "settle"]

# The prior standard deviation of each starting function's part of the score, in units of the noise:
# wide enough not to hold back a signal that is nearly free of noise.
_INITIAL_REACH = 30.0
_INITIAL_FUNCTIONS = 30
# The same for functions thrown into a model, in units of the standard deviation of its score.
_RESTART_REACH = 3.0


@dataclass(frozen=True, slots=True)
class SparseModel:
    """An active set at its mode, on the rows it was settled on."""

    chosen: IntArray  # (m,) rows at the centres
    mode: Mode
    log_evidence: float
    n_rows: int

    def objective(self, size_prior: float) -> float:
        """Return the log evidence less the size prior's price of all functions."""
        return self.log_evidence - size_prior * len(self.chosen)


def settle(
    rows: TrainingRows,
    dictionary: RowDictionary,
    chosen: IntArray,
    alpha: FloatArray,
    weights: FloatArray,
    thresholds: FloatArray,
    workers: Workers,
) -> SparseModel:
    """Find the mode for an active set and its precisions, from a starting point."""
    basis = dictionary.basis(chosen)
    mode = find_mode(lambda w, b: expand(rows, basis, w, b, workers), alpha, weights, thresholds)
    return SparseModel(chosen, mode, log_evidence(mode), len(rows))


def resettle(
    rows: TrainingRows, dictionary: RowDictionary, model: SparseModel, workers: Workers
) -> SparseModel:
    """Bring a model to its mode on other rows or at another width, or start anew where it has none."""
    mode = model.mode
    try:
        return settle(rows, dictionary, model.chosen, mode.alpha, mode.weights, mode.thresholds, workers)
    except UnresolvedError:
        return initial_model(rows, dictionary, workers)


def initial_model(rows: TrainingRows, dictionary: RowDictionary, workers: Workers) -> SparseModel:
    """Start from a few functions of each class, all with weak priors, not from none.

    On an interaction (a saddle) single functions may gain nothing where several gain everything.
    """
    n_levels = int(rows.y.max()) + 1
    each = max(2, _INITIAL_FUNCTIONS // n_levels)
    chosen = np.sort(np.concatenate([np.flatnonzero(rows.y == k)[:each] for k in range(n_levels)]))
    size, varying = _sizes(dictionary, chosen, rows.head(1000))
    chosen = chosen[varying]
    alpha = size[varying] / _INITIAL_REACH**2
    thresholds = starting_thresholds(rows.y, rows.weight)
    return settle(rows, dictionary, chosen, alpha, np.zeros(len(chosen)), thresholds, workers)


def enlarged_model(
    rows: TrainingRows, dictionary: RowDictionary, model: SparseModel, fresh: IntArray, workers: Workers
) -> SparseModel:
    """Return the model with other functions thrown in under weak priors: a place to start again from."""
    sample = rows.head(1000)
    size, varying = _sizes(dictionary, fresh, sample)
    fresh = fresh[varying]
    spread = float(np.std(dictionary.basis(model.chosen)(sample.X) @ model.mode.weights))
    alpha = size[varying] / (_RESTART_REACH * max(spread, 1.0)) ** 2
    return settle(
        rows,
        dictionary,
        np.concatenate([model.chosen, fresh]),
        np.concatenate([model.mode.alpha, alpha]),
        np.concatenate([model.mode.weights, np.zeros(len(fresh))]),
        model.mode.thresholds,
        workers,
    )


def _sizes(
    dictionary: RowDictionary, chosen: IntArray, sample: TrainingRows
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the mean squares of functions, and which of them are more than constants up to rounding."""
    size = np.square(dictionary.basis(chosen)(sample.X)).mean(axis=0)
    return size, size > 1e-14


@dataclass(slots=True)
class Recorder:
    """Collects the steps of a fit and hands each to the callback."""

    stage: Stage
    callback: Callback | None = None
    earlier: tuple[Step, ...] = ()  # what led to the starting model
    steps: list[Step] = field(default_factory=list)  # of the current run
    passes: int = 0
    runs: int = 0

    def begin_run(self, rows: TrainingRows, start: SparseModel, size_prior: float) -> None:
        """Forget the steps of the last run and record the functions that a new one starts from."""
        self.steps = []
        self.runs += 1
        for k, row in enumerate(start.chosen):
            self._emit(
                "start", int(rows.source[row]), 0.0, start.log_evidence, k + 1, size_prior, start.n_rows
            )

    def record_pass(
        self,
        rows: TrainingRows,
        n_rows: int,
        candidates: IntArray,
        moves: Sequence[Move],
        before: SparseModel,
        after: SparseModel,
        size_prior: float,
    ) -> None:
        """Record the moves of a pass and the mode it ended in."""
        self.passes += 1
        predicted = 0.0
        n_active = len(before.chosen)
        for move in moves:
            predicted += move.gain
            n_active += (move.kind == "add") - (move.kind == "delete")
            evidence = before.objective(size_prior) + predicted + size_prior * n_active
            row = int(rows.source[candidates[move.candidate]])
            self._emit(move.kind, row, move.gain, evidence, n_active, size_prior, n_rows)
        self._emit("mode", -1, predicted, after.log_evidence, len(after.chosen), size_prior, n_rows)

    def _emit(
        self,
        kind: StepKind,
        basis: int,
        gain: float,
        evidence: float,
        n_active: int,
        size_prior: float,
        n_rows: int,
    ) -> None:
        before = self.earlier[-1] if self.earlier else None
        number = self.passes + (before.pass_number if before else 0)
        run = self.runs + (before.run if before else 0)
        step = Step(kind, basis, gain, evidence, n_active, size_prior, number, n_rows, self.stage, run)
        self.steps.append(step)
        if self.callback is not None:
            self.callback(step)
