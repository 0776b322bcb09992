"""Recording of a search: each step is stored and passed to the callback."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from isbor._core.trace import Callback, Stage, Step, StepKind
from isbor._core.types import IntArray
from isbor.inference.evidence import Move
from isbor.inference.sparse import SparseModel
from isbor.model.basis import Functions

__all__ = ["Recorder"]


@dataclass(slots=True)
class Recorder:
    """Stores the steps of a fit and passes each to the callback."""

    stage: Stage
    source: IntArray  # row number of each training row in the user's table
    callback: Callback | None = None
    earlier: tuple[Step, ...] = ()  # steps that led to the starting model
    steps: list[Step] = field(default_factory=list)  # of the current run
    passes: int = 0
    runs: int = 0

    def begin_run(self, start: SparseModel, size_prior: float) -> None:
        """Discard the steps of the last run and record the functions of the new starting model."""
        self.steps = []
        self.runs += 1
        cost = np.cumsum(start.functions.cost).tolist()
        for k, origin in enumerate(start.functions.origin):
            self._emit("start", origin, 0.0, start.log_evidence, k + 1, cost[k], size_prior, start.n_rows)

    def record_pass(
        self,
        candidates: Functions,
        moves: Sequence[Move],
        before: SparseModel,
        after: SparseModel,
        size_prior: float,
    ) -> None:
        """Record the moves of a pass and the mode found after them."""
        self.passes += 1
        predicted = 0.0
        n_active = len(before)
        cost = float(before.functions.cost.sum())
        for move in moves:
            predicted += move.gain
            change = (move.kind == "add") - (move.kind == "delete")
            n_active += change
            cost += change * float(candidates.cost[move.candidate])
            evidence = before.objective(size_prior) + predicted + size_prior * cost
            origin = candidates.origin[move.candidate]
            self._emit(move.kind, origin, move.gain, evidence, n_active, cost, size_prior, before.n_rows)
        self._record_model("mode", after, predicted, size_prior)

    def record_whole(
        self,
        kind: Literal["training", "ascent", "noise"],
        before: SparseModel,
        after: SparseModel,
        size_prior: float,
    ) -> None:
        """Record a step that changed all functions at once."""
        self._record_model(kind, after, after.log_evidence - before.log_evidence, size_prior)

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """The steps that led to the starting model, and those of the current run."""
        return (*self.earlier, *self.steps)

    def _record_model(self, kind: StepKind, model: SparseModel, gain: float, size_prior: float) -> None:
        cost = float(model.functions.cost.sum())
        self._emit(kind, -1, gain, model.log_evidence, len(model), cost, size_prior, model.n_rows)

    def _emit(
        self,
        kind: StepKind,
        origin: int,
        gain: float,
        evidence: float,
        n_active: int,
        cost: float,
        size_prior: float,
        n_rows: int,
    ) -> None:
        before = self.earlier[-1] if self.earlier else None
        number = self.passes + (before.pass_number if before else 0)
        run = self.runs + (before.run if before else 0)
        row = int(self.source[origin]) if origin >= 0 else -1
        step = Step(kind, row, gain, evidence, n_active, cost, size_prior, number, n_rows, self.stage, run)
        self.steps.append(step)
        if self.callback is not None:
            self.callback(step)
