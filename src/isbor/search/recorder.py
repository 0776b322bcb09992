"""The record of a search: each step it makes, handed to the callback as it is made."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from isbor._core.trace import Callback, Stage, Step, StepKind
from isbor._core.types import IntArray
from isbor.inference.evidence import Move
from isbor.model.basis import Functions
from isbor.prediction.sparse import SparseModel

__all__ = ["Recorder", "StoppedError"]


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

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """What led to the starting model, and the steps of the current run."""
        return (*self.earlier, *self.steps)

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
