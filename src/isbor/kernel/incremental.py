r"""Incremental support vector machines: the exact path from the optimum for n rows to that for n + 1 rows.

The problem is the dual of `isbor.kernel.margins` without linked thresholds. In signed variables
:math:`\alpha_v = s_v \gamma_v`, each in an interval [l, u], which is [0, C] for a row above the threshold and
[-C, 0] for one below, it is

.. math::
    \min_\alpha\; \tfrac12 \beta^\top K \beta - \sum_v s_v \alpha_v, \quad l_v \le \alpha_v \le u_v, \quad
    \sum_{v: j(v) = j} \alpha_v = 0 \;\text{ for each } j, \qquad \beta_i = \sum_{v: i(v) = i} \alpha_v .

Let f = Kβ and :math:`g_v = f_{i(v)} - s_v - b_{j(v)}`, the gradient with the thresholds b as multipliers of
the equalities. At the optimum every variable is in one of three states:

========================  ==============================================================================
on the margin, g = 0      a member of the set S, anywhere in its interval
at the lower end, g ≥ 0   γ = 0 if the row belongs above the threshold, γ = C if it belongs below
at the upper end, g ≤ 0   γ = C if the row belongs above the threshold, γ = 0 if it belongs below
========================  ==============================================================================

**Adding a row.** A row starts with α = 0, an end of each of its intervals. If g of one of its variables c has
the wrong sign, c is driven away from its end, against its gradient: dα_c = σ = ±1 per unit of the path. S
follows such that its g stays zero and the equalities hold,

.. math::
    \begin{pmatrix} 0 & E^\top \\ E & K_{SS} \end{pmatrix}
    \begin{pmatrix} -db \\ d\alpha_S \end{pmatrix}
    = -\sigma \begin{pmatrix} e_{j(c)} \\ K_{Sc} \end{pmatrix} ,

where E indicates the threshold of each member of S. g of c changes at the rate σρ, where ρ ≥ 0 is the Schur
complement of c in the bordered matrix. The path changes direction, or ends, at the first of these events:

* c reaches the margin and joins S, or reaches the other end of its interval: the path ends;
* a member of S reaches an end of its interval and leaves S;
* a variable at an end reaches the margin and joins S.

So variables on the right side stay there, and the objective decreases along the whole path, with slope
-\|g_c\|. The inverse of the bordered matrix changes by matrices of rank one (`MarginSet`). A step takes
O(n m) time for n rows and m members.

**Free thresholds.** If S has no member at the threshold j of c, the equality allows no change of α. But b_j
is free between the values f - s of the variables that can fall and of those that can rise. It is moved
towards f - s of c. Either it reaches that value, and c is on the margin; or it is stopped by a variable that
can move against c, which joins S.

**Dependence.** If ρ = 0, as for equal rows, or for two rows on the margins of the same two thresholds, c
moves without changing any score, until c reaches an end, or a member of S does, which c can then replace. A
variable whose column depends on those of S cannot join and need not: its g stays zero like theirs. In
floating point, ρ counts as zero if it is a rounding error, or so small that c could traverse its interval
without changing g. If that is wrong, a variable may end up on the wrong side; it is driven later.

**Ties.** Of the variables that reach the same point, within half of the tolerance, the fastest one is the
event. Steps of length zero could still cycle. So after many of them in a row, no variable may join until the
path advances; members only leave, and after enough have left, it does advance. Variables on the wrong side
are then driven later. The objective has decreased meanwhile, so the path cannot return to the same point.

**Rounding.** A direction is refined until its residual is at the level of rounding; if this fails, the
inverse is recomputed. From time to time, and at the end, the scores are recomputed from α, and the errors of
g of S and of the equalities are corrected by a step in S.

**Raising a bound.** If a row is repeated, its intervals are widened, and variables at the old bound are
driven on. l = u = 0 means that the machine ignores the row but knows its score; so machines of different rows
can share a kernel matrix.

Source: Gu, Sheng, Tay, Romano & Li (2015), for constraints with the thresholds adjacent to a row's class. The
treatment of free thresholds, dependence and ties is ours.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from isbor._core.types import FloatArray, IntArray
from isbor.kernel.machine import Machine, empty_machine, middle, signs, threshold_range
from isbor.kernel.margin_set import MarginSet, Reaction

__all__ = ["extend"]

_EPS = float(np.finfo(float).eps)
_AT_END = 1e-14  # share of its interval by which a variable may be off its end
_IDLE_STEPS = 30  # steps of length zero allowed in a row, plus three per member of S
_MAX_STEPS = 10_000  # steps allowed for a new row, plus a hundred per variable
_ROWS_BETWEEN_CORRECTIONS = 16


def extend(machine: Machine, gram: FloatArray, low: FloatArray, high: FloatArray, *, tol: float) -> Machine:
    """Follow the path from a machine to the optimum for more rows or wider intervals.

    Parameters
    ----------
    machine : optimum for the first rows
    gram : (n, n) kernel matrix of all rows
    low, high : (n, J) intervals of all rows; if they do not contain those of the machine, all rows are
        learned again from the beginning
    tol : largest allowed violation of the sign of g
    """
    n = len(machine)
    if np.any(low[:n] > machine.low) or np.any(high[:n] < machine.high):
        machine = empty_machine(low.shape[1])
    path = _Path(machine, gram, low, high, tol)
    path.widen()
    for row in range(len(machine), len(gram)):
        path.add_row(row)
    return path.machine()


@dataclass(frozen=True, slots=True)
class _Direction:
    """Changes per unit of the path."""

    members: FloatArray  # (m,) dα of S
    score: FloatArray  # (n,) df
    thresholds: FloatArray  # (J,) db


@dataclass(frozen=True, slots=True)
class _Event:
    """An event at which the path changes direction or ends."""

    kind: Literal["stop", "leave", "join"]
    time: float
    which: int = -1  # position in S of the member that leaves, or flat index of the variable that joins


class _Path:
    """A machine on the path to its next optimum.

    A variable outside of S must satisfy side · g ≥ 0, where `side` is +1 at the lower end and -1 at the
    upper. `side` is 0 for members of S, for the variable being driven, and where there is no constraint.
    """

    def __init__(
        self, machine: Machine, gram: FloatArray, low: FloatArray, high: FloatArray, tol: float
    ) -> None:
        n = len(machine)
        self.gram, self.low, self.high, self.tol = gram, low, high, tol
        self.n = n
        self.root = np.sqrt(np.abs(np.diagonal(gram)))
        self.sign = signs(high)
        self.alpha = np.zeros_like(low)
        self.alpha[:n] = machine.alpha
        self.score = np.zeros(len(gram))
        self.score[:n] = machine.score
        self.thresholds = machine.thresholds.copy()
        self.members = MarginSet.restore(
            low.shape[1], machine.member_row, machine.member_threshold, machine.inverse, gram[:n, :n]
        )
        self.n_steps = machine.n_steps
        # For widened intervals, the side refers to the old ends for now.
        self.side = np.zeros_like(low)
        at_low = self.alpha[:n] == machine.low
        self.side[:n] = np.where(
            machine.high > machine.low, np.where(at_low, 1.0, -1.0), self._side_at_zero(slice(n))
        )
        self.side[self.members.row, self.members.threshold] = 0.0
        self.tolerance = np.full(len(gram), tol)

    def widen(self) -> None:
        """Drive the variables that are no longer at an end, because their interval was widened."""
        n = self.n
        off_end = (
            (self.side[:n] != 0.0) & (self.alpha[:n] != self.low[:n]) & (self.alpha[:n] != self.high[:n])
        )
        for row, threshold in np.argwhere(off_end):
            if self.side[row, threshold] != 0.0:  # it may have reached the margin meanwhile
                self._drive(int(row), int(threshold))
        self._settle()

    def add_row(self, row: int) -> None:
        """Follow the path from the optimum for the earlier rows to the one that includes this row."""
        self.n = row + 1
        self.score[row] = self.gram[row, :row] @ self.alpha[:row].sum(axis=1)
        self.members.see_row(row, self.gram[row])
        self.side[row] = self._side_at_zero(row)
        self._settle()
        if self.n % _ROWS_BETWEEN_CORRECTIONS == 0:
            self._correct()

    def machine(self) -> Machine:
        """Return the machine at this point of the path."""
        self._correct()
        members = self.members
        return Machine(
            self.alpha,
            self.low,
            self.high,
            self.score,
            self.thresholds,
            members.row.copy(),
            members.threshold.copy(),
            members.inverse.copy(),
            self.n_steps,
        )

    def _side_at_zero(self, rows: int | slice) -> FloatArray:
        """Return the sides of variables with value zero."""
        low, high = self.low[rows], self.high[rows]
        return np.where(high > low, np.where(low == 0.0, 1.0, -1.0), 0.0)

    def _gap(self, rows: int | IntArray | slice, thresholds: int | IntArray | slice) -> FloatArray:
        """Return g of the given variables."""
        score = self.score[rows]
        if isinstance(thresholds, slice):
            score = score[:, None]
        gap: FloatArray = score - self.sign[rows, thresholds] - self.thresholds[thresholds]
        return gap

    def _settle(self) -> None:
        """Drive the variable with the largest violation, until there is none."""
        start, max_steps = self.n_steps, _MAX_STEPS + 100 * self.side[: self.n].size
        while (worst := self._worst()) is not None:
            if self.n_steps > start + max_steps:
                raise ArithmeticError(
                    f"Adding a row to {self.n - 1} others did not converge in {max_steps:,} steps. "
                    f"tol={self.tol:g} may be too small for floating point. Raise it, or lower C."
                )
            self._drive(*worst)

    def _worst(self) -> tuple[int, int] | None:
        """Return the variable with the largest violation beyond the tolerance, None if there is none."""
        if self.side[: self.n].size == 0:
            return None
        n = self.n
        self._centre_free_thresholds()
        # The rounding error of the scores is proportional to the size of the terms that they sum up.
        reach = self.root[:n] @ np.abs(self.alpha[:n].sum(axis=1))
        self.tolerance[:n] = self.tol + 4.0 * _EPS * reach * self.root[:n]
        excess = -self.side[:n] * self._gap(slice(n), slice(None)) - self.tolerance[:n, None]
        worst = int(np.argmax(excess))
        return divmod(worst, excess.shape[1]) if excess.flat[worst] > 0.0 else None

    def _centre_free_thresholds(self) -> None:
        """Move thresholds without members to the middle of their interval, if it is not empty."""
        free = np.flatnonzero(self.members.count == 0)
        if len(free) == 0:
            return
        side = self.side[: self.n, free]
        F = self.score[: self.n, None] - self.sign[: self.n, free]
        lower, upper = threshold_range(F, side < 0.0, side > 0.0)
        self.thresholds[free] = np.where(lower <= upper, middle(lower, upper), self.thresholds[free])

    def _drive(self, row: int, threshold: int) -> None:
        """Drive a variable against its gradient until it is on the margin or at an end."""
        sigma = 1.0 if self._gap(row, threshold) < 0.0 else -1.0
        self.side[row, threshold] = 0.0
        end = self.high[row, threshold] if sigma > 0.0 else self.low[row, threshold]
        kernel = self.gram[row, : self.n]
        excluded: list[int] = []  # variables that depend on S
        n_idle = 0  # steps of length zero in a row
        while True:
            if self.members.count[threshold] == 0 and self._find_partner(row, threshold, sigma):
                return
            reaction = self._reaction(row, threshold)
            direction = self._direction(-sigma * reaction.solution, sigma * kernel)
            distance = max(-sigma * float(self._gap(row, threshold)), 0.0)
            to_end = abs(end - self.alpha[row, threshold])
            to_margin = np.inf if reaction.dependent else distance / reaction.schur
            stalled = n_idle > 3 * self.members.size + _IDLE_STEPS
            event = self._next_event(direction, min(to_end, to_margin), None if stalled else excluded)
            self._move(direction, event.time)
            self.alpha[row, threshold] += sigma * event.time
            self.n_steps += 1
            n_idle = 0 if event.time > 0.0 else n_idle + 1
            if event.kind == "stop":
                if to_margin <= to_end:
                    self.members.add(row, threshold, kernel, reaction)
                else:
                    self.alpha[row, threshold] = end
                    self.side[row, threshold] = -sigma
                return
            if event.kind == "leave":
                self._remove(event.which, at_high=direction.members[event.which] > 0.0)
                excluded.clear()
            elif not self._add(*divmod(event.which, self.side.shape[1])):
                excluded.append(event.which)

    def _find_partner(self, row: int, threshold: int, sigma: float) -> bool:
        """Move a threshold without members towards a variable; return whether it reached the variable.

        If not, the variable that stopped it, which can move against this one, joins S.
        """
        F = self.score[: self.n] - self.sign[: self.n, threshold]
        able = np.flatnonzero(self.side[: self.n, threshold] == -sigma)
        chosen = row
        if len(able):
            partner = int(able[np.argmax(sigma * F[able])])
            if sigma * (F[partner] - F[row]) > 0.0:
                chosen = partner
        self.thresholds[threshold] = F[chosen]
        self._add(chosen, threshold)
        return chosen == row

    def _reaction(self, row: int, threshold: int) -> Reaction:
        """Return the reaction of S to a variable."""
        # If ρ is this small, g does not change over the whole interval of the variable.
        negligible = 1e-3 * self.tol / float(self.high[row, threshold] - self.low[row, threshold])
        return self.members.reaction(row, threshold, self.gram[row, : self.n], negligible)

    def _add(self, row: int, threshold: int) -> bool:
        """Add a variable to S, unless it depends on S; return whether it was added."""
        reaction = self._reaction(row, threshold)
        if not reaction.dependent:
            self.members.add(row, threshold, self.gram[row, : self.n], reaction)
            self.side[row, threshold] = 0.0
        return not reaction.dependent

    def _direction(self, solution: FloatArray, score: FloatArray | float = 0.0) -> _Direction:
        """Return the direction of a solution of the bordered system; `score` is a further change of f."""
        n_thresholds = self.members.n_thresholds
        members = solution[n_thresholds:]
        return _Direction(members, members @ self.members.kernel(self.n) + score, -solution[:n_thresholds])

    def _next_event(self, direction: _Direction, own: float, excluded: list[int] | None) -> _Event:
        """Return the next event, if the variable being driven stops after `own`.

        Variables may pass the margin by half of the tolerance, and members their ends by rounding errors. The
        first that would go farther limits the step. Of all that pass before, the fastest is the event.
        `excluded` variables cannot join; None means that no variable can.
        """
        room, rate, width = self._room(direction.members)
        moving = np.flatnonzero(rate > 0.0)
        rate = rate[moving]
        times = room[moving] / rate
        event = _Event("stop", own)
        limit = float(np.min(times + _AT_END * width[moving] / rate, initial=np.inf))
        if limit < own:
            ready = np.flatnonzero(times <= limit)
            first = ready[np.argmax(rate[ready] / width[moving[ready]])]
            event = _Event("leave", float(times[first]), int(moving[first]))
        if excluded is None:
            return event
        n = self.n
        side, tolerance = self.side[:n], self.tolerance[:n, None]
        speed = side * (direction.thresholds - direction.score[:, None])
        slack = side * self._gap(slice(n), slice(None))
        beyond = slack + 0.5 * tolerance
        coming = np.flatnonzero(speed * event.time > beyond)
        speed, slack, beyond = speed.flat[coming], slack.flat[coming], beyond.flat[coming]
        able = (speed > 0.0) & (slack >= -self.tolerance[coming // side.shape[1]])
        if excluded:
            able &= ~np.isin(coming, excluded)
        if able.any():
            speed, slack, beyond, coming = speed[able], slack[able], beyond[able], coming[able]
            times = np.maximum(slack, 0.0) / speed
            ready = np.flatnonzero(times <= np.min(np.maximum(beyond, 0.0) / speed))
            first = ready[np.argmax(speed[ready])]
            event = _Event("join", float(times[first]), int(coming[first]))
        return event

    def _room(self, change: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the members' distances to the ends they move to, their speeds, and their interval widths."""
        at = self.members.number
        alpha, low, high = self.alpha.take(at), self.low.take(at), self.high.take(at)
        room = np.maximum(np.where(change > 0.0, high - alpha, alpha - low), 0.0)
        return room, np.abs(change), high - low

    def _move(self, direction: _Direction, step: float) -> None:
        """Take a step along the path; the variable being driven is moved by `_drive`."""
        if step == 0.0:
            return
        at = self.members.number
        moved = self.alpha.take(at) + step * direction.members
        self.alpha.put(at, np.minimum(np.maximum(moved, self.low.take(at)), self.high.take(at)))
        self.score[: self.n] += step * direction.score
        self.thresholds += step * direction.thresholds

    def _remove(self, position: int, at_high: bool) -> None:
        """Remove a member that is at an end of its interval."""
        at = int(self.members.row[position]), int(self.members.threshold[position])
        self.alpha[at] = self.high[at] if at_high else self.low[at]
        self.side[at] = -1.0 if at_high else 1.0
        self.members.remove(position)

    def _correct(self) -> None:
        """Recompute the scores from α, then correct g of S and the equalities by a step in S."""
        n = self.n
        self.score[:n] = self.gram[:n, :n] @ self.alpha[:n].sum(axis=1)
        corrected = False
        while not corrected and (residual := self._residual()) is not None:
            direction = self._direction(self.members.solve(-residual))
            room, rate, _ = self._room(direction.members)
            moving = np.flatnonzero(rate > 0.0)
            times = room[moving] / rate[moving]
            step = float(np.min(times, initial=1.0))
            self._move(direction, step)
            corrected = step == 1.0
            if not corrected:
                first = int(moving[np.argmin(times)])
                self._remove(first, at_high=direction.members[first] > 0.0)
        self._settle()

    def _residual(self) -> FloatArray | None:
        """Return the errors of the equalities and of g of S, (J + m,); None if they are negligible."""
        members = self.members
        gap = self._gap(members.row, members.threshold)
        total = np.where(members.count > 0, self.alpha[: self.n].sum(axis=0), 0.0)
        width = np.where(members.count > 0, (self.high - self.low)[: self.n].sum(axis=0), 0.0)
        exact = np.abs(gap).max(initial=0.0) <= 0.01 * self.tol and np.all(np.abs(total) <= _AT_END * width)
        return None if exact else np.concatenate([total, gap])
