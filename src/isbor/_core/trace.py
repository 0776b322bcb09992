"""What a fit records: each move it made, and why it stopped."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

__all__ = ["Callback", "MoveKind", "Stage", "Step", "StepKind", "StopReason"]

MoveKind: TypeAlias = Literal["add", "delete", "reestimate"]
Stage: TypeAlias = Literal["selection", "width", "fit"]
StepKind: TypeAlias = Literal["start", "add", "delete", "reestimate", "mode", "ascent", "noise"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a fit: a move of one basis function, or the search for the mode that ends a pass.

    A run (at one width, from one starting model) begins with a "start" for each function it starts from.
    After a move, `log_evidence` is the last recomputed value plus the gains predicted since. After
    "mode" it is the Laplace approximation recomputed at the new mode on the pass's rows, so the
    predictions can be checked; its `predicted_gain` is that of the whole pass. An "ascent" moves the
    centres and metrics of all functions at once, up the gradient of the log evidence; "noise" fits the noise
    of the rows anew, and its log evidence and those after it are given that noise.
    """

    kind: StepKind
    basis: int  # row of the training table that the function was first centred on; -1 for no function
    predicted_gain: float  # nats, the size prior included
    log_evidence: float  # nats, without the size prior
    n_active: int  # functions in the model after the step
    cost: float  # of these functions, in units of the size prior; a row at the centre costs 1
    size_prior: float  # nats a unit of cost, as in force in this pass
    pass_number: int  # from 1
    n_rows: int  # distinct rows that the pass ran on
    stage: Stage  # the comparison of kinds, the search for a width, or the fit proper
    run: int  # from 1; in a run the objective rises from pass to pass: same rows, same price, same noise

    @property
    def objective(self) -> float:
        """Log evidence less the size prior's price of all functions: what the moves of a pass raise."""
        return self.log_evidence - self.size_prior * self.cost

    def __str__(self) -> str:
        whole = {"mode": "mode found", "ascent": "centres and metrics moved", "noise": "noise fitted"}
        what = whole.get(self.kind, f"{self.kind} row {self.basis}")
        return (
            f"{self.stage}, pass {self.pass_number} on {self.n_rows} rows: {what}, "
            f"{self.n_active} functions, log evidence {self.log_evidence:.2f}"
        )


Callback: TypeAlias = Callable[[Step], object]


class StopReason(Enum):
    """Why a fit ended. The value is a sentence."""

    CONVERGED = "Nothing that was tried raised the objective by more than the tolerance."
    GAP_CLOSED = "The gap between primal and dual objective is within the tolerance."
    SETTLED = "The precisions of the functions that matter no longer change."
    MAX_ITER = "The limit on passes, moves or steps was reached before convergence: raise max_iter to go on."

    def __str__(self) -> str:
        return self.value
