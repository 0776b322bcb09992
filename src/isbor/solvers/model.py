"""What the solvers of sparse Bayesian models share: the model at its mode, its start, its record."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from isbor.arrays import FloatArray, IntArray
from isbor.basis import RowDictionary
from isbor.blocks import Workers
from isbor.evidence import Move
from isbor.inputs import TrainingRows
from isbor.posterior import Mode, find_mode, log_evidence, starting_thresholds
from isbor.statistics import expand
from isbor.trace import Callback, Stage, Step

__all__ = ["Recorder", "SparseModel", "initial_model", "settle"]

# The prior standard deviation of each starting function's part of the score, in units of the noise:
# wide enough not to hold back a signal that is nearly free of noise.
_INITIAL_REACH = 30.0
_INITIAL_FUNCTIONS = 30


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


def initial_model(rows: TrainingRows, dictionary: RowDictionary, workers: Workers) -> SparseModel:
    """Start from a few functions of each class, all with weak priors, not from none.

    On an interaction (a saddle) single functions may gain nothing where several gain everything.
    """
    n_levels = int(rows.y.max()) + 1
    each = max(2, _INITIAL_FUNCTIONS // n_levels)
    chosen = np.sort(np.concatenate([np.flatnonzero(rows.y == k)[:each] for k in range(n_levels)]))
    sample = rows.head(1000)
    size = np.square(dictionary.basis(chosen)(sample.X)).mean(axis=0)
    varying = size > 1e-14  # the rest is constant up to rounding
    chosen, size = chosen[varying], size[varying]
    alpha = size / _INITIAL_REACH**2
    thresholds = starting_thresholds(rows.y, rows.weight)
    return settle(rows, dictionary, chosen, alpha, np.zeros(len(chosen)), thresholds, workers)


@dataclass(slots=True)
class Recorder:
    """Collects the steps of a fit and hands each to the callback."""

    stage: Stage
    callback: Callback | None = None
    steps: list[Step] = field(default_factory=list)
    passes: int = 0

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
        objective = before.objective(size_prior)
        size = len(before.chosen)
        for move in moves:
            objective += move.gain
            size += (move.kind == "add") - (move.kind == "delete")
            evidence = objective + size_prior * size
            source = int(rows.source[candidates[move.candidate]])
            self._emit(
                Step(move.kind, source, move.gain, evidence, objective, size, self.passes, n_rows, self.stage)
            )
        predicted = objective - before.objective(size_prior)
        self._emit(
            Step(
                "mode",
                -1,
                predicted,
                after.log_evidence,
                after.objective(size_prior),
                len(after.chosen),
                self.passes,
                n_rows,
                self.stage,
            )
        )

    def _emit(self, step: Step) -> None:
        self.steps.append(step)
        if self.callback is not None:
            self.callback(step)
