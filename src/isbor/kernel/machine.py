"""The state of an incremental support vector machine at an optimum, and its optimality conditions.

Symbols are those of `isbor.kernel.incremental`.
"""

from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isbor._core.types import FloatArray, IntArray
from isbor.data.training_set import TrainingSet
from isbor.kernel.kernels import CutScore, Kernel
from isbor.kernel.margins import MarginProblem

__all__ = [
    "Gram",
    "Learned",
    "Machine",
    "cut_score",
    "dual_objective",
    "empty_machine",
    "largest_violation",
    "middle",
    "signed_bounds",
    "signs",
    "threshold_range",
    "with_thresholds",
]

BoolArray: TypeAlias = NDArray[np.bool_]

_AT_END = 1e-10  # a variable this close to an end of its interval, as a share of it, counts as at the end


class Gram:
    """A kernel matrix to which rows can be appended.

    A matrix never changes. Appended rows are written to the same buffer, after the last row, if no other
    matrix has used that space; else to a copy. A full buffer is doubled in size.
    """

    def __init__(self, values: FloatArray) -> None:
        self._buffer, self._n = values, len(values)
        self._written = [self._n]  # rows in the buffer, shared by all matrices in it

    def __len__(self) -> int:
        return self._n

    @property
    def values(self) -> FloatArray:
        """The matrix, (n, n)."""
        return self._buffer[: self._n, : self._n]

    def append(self, cross: FloatArray, own: FloatArray) -> "Gram":
        """Return the matrix with m rows added: their kernel with old rows, (m, n), and with each other."""
        n, end = self._n, self._n + len(own)
        grown = Gram.__new__(Gram)
        grown._n = end
        if self._written[0] == n and end <= len(self._buffer):
            grown._buffer, grown._written = self._buffer, self._written
        else:
            room = max(2 * n, end)
            grown._buffer, grown._written = np.empty((room, room)), [n]
            grown._buffer[:n, :n] = self.values
        grown._buffer[n:end, :n], grown._buffer[:n, n:end] = cross, cross.T
        grown._buffer[n:end, n:end] = own
        grown._written[0] = end
        return grown

    def __reduce__(self) -> tuple[type[Self], tuple[FloatArray]]:
        return type(self), (self.values.copy(),)


@dataclass(frozen=True, slots=True)
class Machine:
    """The optimum for n rows and J thresholds, with the state needed to continue from it."""

    alpha: FloatArray  # (n, J)
    low: FloatArray  # (n, J) lower ends l
    high: FloatArray  # (n, J) upper ends u; u = l means that row and threshold have no constraint
    score: FloatArray  # (n,) f
    thresholds: FloatArray  # (J,) b, not necessarily in order
    member_row: IntArray  # (m,) rows of the variables in S
    member_threshold: IntArray  # (m,) thresholds of the variables in S
    inverse: FloatArray  # (J + m, J + m) inverse of the bordered matrix
    n_steps: int  # steps of the path so far

    def __len__(self) -> int:
        return len(self.score)

    @property
    def coef(self) -> FloatArray:
        """Coefficients β of the kernels, (n,)."""
        coef: FloatArray = self.alpha.sum(axis=1)
        return coef


@dataclass(frozen=True, slots=True)
class Learned:
    """The state after all rows so far, from which learning can continue."""

    training: TrainingSet
    kernel: Kernel
    gram: Gram  # of the distinct rows
    fold: IntArray  # (n,) fold in which each row is held out; -1 if in none
    machines: tuple[Machine, ...]  # of all rows, then of all rows but each fold


def empty_machine(n_thresholds: int) -> Machine:
    """Return the machine for no rows."""
    nothing, none = np.zeros((0, n_thresholds)), np.zeros(0, np.intp)
    return Machine(
        nothing, nothing, nothing, np.zeros(0), np.zeros(n_thresholds), none, none, np.eye(n_thresholds), 0
    )


def with_thresholds(machine: Machine, places: IntArray, n_thresholds: int) -> Machine:
    """Return the machine with more thresholds, still without constraints; its own ones go to `places`."""
    n_members = len(machine.member_row)

    def spread(matrix: FloatArray) -> FloatArray:
        wide = np.zeros((len(matrix), n_thresholds))
        wide[:, places] = matrix
        return wide

    thresholds = np.zeros(n_thresholds)
    thresholds[places] = machine.thresholds
    # The slots of thresholds without members are decoupled.
    inverse = np.eye(n_thresholds + n_members)
    slots = np.concatenate([places, n_thresholds + np.arange(n_members)])
    inverse[np.ix_(slots, slots)] = machine.inverse
    return replace(
        machine,
        alpha=spread(machine.alpha),
        low=spread(machine.low),
        high=spread(machine.high),
        thresholds=thresholds,
        member_threshold=places[machine.member_threshold],
        inverse=inverse,
    )


def signed_bounds(problem: MarginProblem, n_rows: int) -> tuple[FloatArray, FloatArray]:
    """Return the intervals of all pairs of a row and a threshold: lower and upper ends, (n, J)."""
    if problem.linked:
        raise ValueError(
            'Incremental learning does not support constraints="explicit"; choose "implicit" or "adjacent".'
        )
    low, high = np.zeros((2, n_rows, problem.n_thresholds))
    above = problem.sign > 0.0
    high[problem.row[above], problem.threshold[above]] = problem.bound[above]
    low[problem.row[~above], problem.threshold[~above]] = -problem.bound[~above]
    return low, high


def cut_score(machine: Machine) -> CutScore:
    """Return coefficients and ordered thresholds; a threshold free in an interval is set to its middle."""
    F = machine.score[:, None] - signs(machine.high)
    lower, upper = threshold_range(F, *_can_move(machine))
    return CutScore(machine.coef, np.sort(middle(lower, upper)), machine.n_steps)


def dual_objective(machine: Machine) -> float:
    """Return Σ γ - ½ βᵀKβ."""
    return float(np.sum(signs(machine.high) * machine.alpha) - 0.5 * machine.coef @ machine.score)


def largest_violation(machine: Machine, gram: FloatArray) -> float:
    """Return the largest violation of the optimality conditions, computed from α and b alone.

    Considered are wrong signs of g, violated equalities, and variables outside of their intervals.
    """
    if machine.alpha.size == 0:
        return 0.0
    gap = (gram @ machine.coef)[:, None] - signs(machine.high) - machine.thresholds
    can_fall, can_rise = _can_move(machine)
    sides = np.maximum(np.where(can_fall, gap, 0.0), np.where(can_rise, -gap, 0.0))
    outside = np.maximum(machine.low - machine.alpha, machine.alpha - machine.high)
    return float(max(sides.max(), np.abs(machine.alpha.sum(axis=0)).max(), outside.max()))


def signs(high: FloatArray) -> FloatArray:
    """Return s: +1 if a row belongs above the threshold, -1 if below."""
    return np.where(high > 0.0, 1.0, -1.0)


def _can_move(machine: Machine) -> tuple[BoolArray, BoolArray]:
    """Return which variables are above the lower end of their interval, and which below the upper end."""
    margin = _AT_END * (machine.high - machine.low)
    return machine.alpha > machine.low + margin, machine.alpha < machine.high - margin


def threshold_range(F: FloatArray, can_fall: BoolArray, can_rise: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return L and U of `isbor.kernel.margins`, (J,) each, infinite if a threshold is not bounded."""
    lower = np.max(np.where(can_fall, F, -np.inf), axis=0, initial=-np.inf)
    upper = np.min(np.where(can_rise, F, np.inf), axis=0, initial=np.inf)
    return lower, upper


def middle(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return the middle of each interval; if only one end is finite, that end; if none is, zero."""
    one_end = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper, 0.0))
    return 0.5 * (one_end + np.where(np.isfinite(upper), upper, one_end))
