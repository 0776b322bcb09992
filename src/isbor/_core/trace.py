"""The trace of a fit: each step, and why the fit stopped."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Self, TypeAlias

__all__ = ["Callback", "MoveKind", "Stage", "Step", "StepKind", "StopReason"]

MoveKind: TypeAlias = Literal["add", "delete", "reestimate"]
Stage: TypeAlias = Literal["selection", "width", "fit", "all rows"]
StepKind: TypeAlias = Literal["start", "add", "delete", "reestimate", "mode", "training", "ascent", "noise"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a fit: a move of one basis function, or the search for the mode that ends a pass.

    A run (at one width, from one starting model) begins with one "start" step for each function of the
    starting model. After a move, `log_evidence` is the last recomputed value plus the gains predicted since.
    After "mode" it is the Laplace approximation, recomputed at the new mode on the rows of the pass, and
    `predicted_gain` is that of the whole pass: the prediction can be checked. A "training" step
    adds functions and trains all of them jointly. An "ascent" step moves the centres and metrics of all
    functions along the gradient of the log evidence. A "noise" step refits the
    noise variances of the rows; log evidences from then on are conditional on these variances.

    See Also
    --------
    StopReason : Why a fit ended.

    Examples
    --------
    >>> from isbor import ISBOR
    >>> from isbor.datasets import make_saddle
    >>> steps = []
    >>> model = ISBOR(basis="rbf", gamma=0.1, callback=steps.append).fit(*make_saddle(200, random_state=0))
    >>> len(steps) >= len(model.trace_)  # with the steps of restarts that were given up
    True
    >>> model.trace_[-1].n_active == model.n_relevance_
    True
    """

    kind: StepKind
    row: int  # row of the training table on which the function was first centred; -1 for no function
    predicted_gain: float  # of the objective, in nats
    log_evidence: float  # nats, without the size prior
    n_active: int  # functions in the model after the step
    cost: float  # total cost of these functions, in units of the size prior; one centred on a row costs 1
    size_prior: float  # nats per unit of cost in this pass
    pass_number: int  # from 1
    n_rows: int  # distinct rows used in the pass
    stage: Stage  # comparison of families, search for the width, final fit, or weights fitted to all rows
    run: int  # from 1; with rows, size prior and noise unchanged, the objective never falls within a run

    @property
    def objective(self) -> float:
        """Log evidence minus the size-prior penalty of all functions. Moves increase it."""
        return self.log_evidence - self.size_prior * self.cost

    def __str__(self) -> str:
        whole = {
            "mode": "mode found",
            "training": "functions trained",
            "ascent": "centres and metrics moved",
            "noise": "noise fitted",
        }
        what = whole.get(self.kind, f"{self.kind} row {self.row}")
        return (
            f"{self.stage}, pass {self.pass_number} on {self.n_rows} rows: {what}, "
            f"{self.n_active} functions, log evidence {self.log_evidence:.2f}"
        )


Callback: TypeAlias = Callable[[Step], object]


class StopReason(Enum):
    """Why a fit ended. The value is a sentence. Limits come last.

    See Also
    --------
    Step : What a fit did before.

    Examples
    --------
    >>> from isbor import StopReason
    >>> print(StopReason.CONVERGED)
    No step tried increased the objective by more than the tolerance.
    """

    CONVERGED = "No step tried increased the objective by more than the tolerance."
    GAP_CLOSED = "The gap between primal and dual objective is within the tolerance."
    SETTLED = "The prior precisions no longer change."
    MAX_ROUNDS = "The searches made as many rounds as effort allows, which is the usual end."
    MAX_ITER = "The limit on passes, moves or steps was reached before convergence: raise max_iter."
    MAX_TIME = (
        "The time was up before the search ended: max_time allows no more. The model is the best so far."
    )
    ONLY_SAMPLE = (
        "The time was up before weights and thresholds were fitted to all rows: max_time allows no more. The "
        "model is that of a sample of the rows, the best so far."
    )

    def __str__(self) -> str:
        return self.value

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:  # which skops asks for, other than pickle
        return type(self), (self.value,)

    @classmethod
    def of_all(cls, reasons: "Iterable[StopReason]") -> "StopReason":
        """Return why a fit of several searches ended: the reason listed last."""
        order = list(cls)
        return max(reasons, key=order.index)
