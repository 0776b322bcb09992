r"""Support vector machines that learn row by row: the exact path from the optimum of n rows to that of n + 1.

The problem is the dual of `isbor.kernel.margins`, thresholds not linked. In signed variables
:math:`\alpha_v = s_v \gamma_v`, each in an interval [l, u], which is [0, C] for a row above the threshold and
[-C, 0] for one below, it reads

.. math::
    \min_\alpha\; \tfrac12 \beta^\top K \beta - \sum_v s_v \alpha_v, \quad l_v \le \alpha_v \le u_v, \quad
    \sum_{v: j(v) = j} \alpha_v = 0 \;\text{ for each } j, \qquad \beta_i = \sum_{v: i(v) = i} \alpha_v .

Let f = Kβ and :math:`g_v = f_{i(v)} - s_v - b_{j(v)}`, the gradient with the thresholds b as multipliers of
the equalities. At the optimum every variable is in one of three places:

========================  ==============================================================================
on the margin, g = 0      the set S; its variables may be anywhere in their intervals
at the lower end, g ≥ 0   γ = 0 if the row belongs above the threshold, γ = C if it belongs below
at the upper end, g ≤ 0   γ = C if the row belongs above the threshold, γ = 0 if it belongs below
========================  ==============================================================================

**A row is added** with α = 0, an end of each of its intervals. A variable c that has the wrong sign of g
there is driven off its end, against its gradient: dα_c = σ = ±1 a unit of the path. S follows so that its g
stays zero and the equalities hold,

.. math::
    \begin{pmatrix} 0 & E^\top \\ E & K_{SS} \end{pmatrix}
    \begin{pmatrix} -db \\ d\alpha_S \end{pmatrix}
    = -\sigma \begin{pmatrix} e_{j(c)} \\ K_{Sc} \end{pmatrix} ,

where E says which threshold a member of S belongs to. g of c changes by σρ, ρ ≥ 0 being the Schur complement
of c in the bordered matrix. The path turns, or ends, at the first of these events:

* c arrives on the margin, and joins S, or at the other end of its interval: the path ends;
* a member of S arrives at an end of its interval, and leaves S;
* a variable at an end arrives on the margin, and joins S.

So who is on the right side stays there, and the objective falls all along, its slope being -\|g_c\|. The
inverse of the bordered matrix changes by matrices of rank one (`MarginSet`); a step takes O(n m) for n rows
and m members.

**No member of S at the threshold of c.** Then its equality lets nothing move, but b_j is free between the
values f - s of the variables that can fall and of those that can rise. It goes towards that of c. Either it
gets there, and c is on the margin; or it is stopped by a variable that can move against c, which joins S.

**Dependence.** Where ρ = 0, as with equal rows, or with two rows on the margins of the same two thresholds, c
moves without changing any score, until a member of S arrives at an end, whose place c can take, or c does. A
variable whose column depends on those of S cannot join, nor does it need to: its g stays zero as theirs does.
In floating point ρ counts as zero if it is no more than rounding, or so small that c could go through all of
its interval without changing g. If that was wrong, a variable may end up on the wrong side; it is driven
later.

**Ties.** Of the variables that arrive at the same point, up to half of the tolerance, the fastest is the
event. Steps of length zero could still go round in circles. So after many of them in a row no variable may
join until the path gets on; members only leave, and when enough have left it does. Who is on the wrong side
then is driven later; the objective has fallen meanwhile, so there is no way back.

**Rounding.** A direction is refined until its residual is that of rounding, and the inverse is computed
afresh where that fails. From time to time, and at the end, the scores are computed from α, and what g of S
and the equalities are then off by is made up for by a step in S.

**A bound is raised** where a row is repeated: variables at the old bound are driven on. l = u = 0 means that
the machine does not see the row, though it knows its score; so machines of different rows share a kernel
matrix.

Source: Gu, Sheng, Tay, Romano & Li (2015), for the thresholds next to a row's class. The treatment of free
thresholds, dependence and ties is ours.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from isbor._core.types import FloatArray, IntArray
from isbor.kernel.machine import Machine, empty_machine, middle, signs, threshold_range
from isbor.kernel.margin_set import MarginSet, Reaction

__all__ = ["extend"]

_EPS = float(np.finfo(float).eps)
_AT_END = 1e-14  # share of its interval that a variable may be off its end
_IDLE_STEPS = 30  # that are fine in a row, besides three a member of S
_MOST_STEPS = 10_000  # for a new row, besides a hundred a variable
_ROWS_BETWEEN_CORRECTIONS = 16


def extend(machine: Machine, gram: FloatArray, low: FloatArray, high: FloatArray, *, tol: float) -> Machine:
    """Return the optimum of more rows, or of wider intervals, on the path from the machine.

    Parameters
    ----------
    machine : optimum of the first rows
    gram : (n, n) kernel of all rows
    low, high : (n, J) intervals of all rows; if they do not contain the machine's, it learns all rows anew
    tol : by how much g may be on the wrong side
    """
    n = len(machine)
    if np.any(low[:n] > machine.low) or np.any(high[:n] < machine.high):
        machine = empty_machine(low.shape[1])
    path = _Path(machine, gram, low, high, tol)
    path.widen()
    for row in range(len(machine), len(gram)):
        path.add_row(row)
    return path.arrive()


@dataclass(frozen=True, slots=True)
class _Direction:
    """How everything changes a unit of the path."""

    members: FloatArray  # (m,) dα of S
    score: FloatArray  # (n,) df
    thresholds: FloatArray  # (J,) db


@dataclass(frozen=True, slots=True)
class _Event:
    """Where the path turns, or ends."""

    kind: Literal["stop", "leave", "join"]
    time: float
    which: int = -1  # position in S of who leaves, number of the variable that joins


class _Path:
    """A machine on the way to its next optimum.

    `side` says what a variable that is not in S has to fulfil: side · g ≥ 0; +1 at the lower end, -1 at the
    upper. It is 0 in S, for the variable that is being driven, and where there is no constraint.
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
        # Where an interval was widened, its end is for the moment where it was.
        self.side = np.zeros_like(low)
        at_low = self.alpha[:n] == machine.low
        self.side[:n] = np.where(
            machine.high > machine.low, np.where(at_low, 1.0, -1.0), self._side_at_zero(slice(n))
        )
        self.side[self.members.row, self.members.threshold] = 0.0
        self.tolerance = np.full(len(gram), tol)

    def widen(self) -> None:
        """Drive those variables on whose interval no longer ends where they are."""
        n = self.n
        off_end = (
            (self.side[:n] != 0.0) & (self.alpha[:n] != self.low[:n]) & (self.alpha[:n] != self.high[:n])
        )
        for row, threshold in np.argwhere(off_end):
            if self.side[row, threshold] != 0.0:  # it may have come to the margin meanwhile
                self._drive(int(row), int(threshold))
        self._settle()

    def add_row(self, row: int) -> None:
        """Go from the optimum of the rows before it to that with the row."""
        self.n = row + 1
        self.score[row] = self.gram[row, :row] @ self.alpha[:row].sum(axis=1)
        self.members.see_row(row, self.gram[row])
        self.side[row] = self._side_at_zero(row)
        self._settle()
        if self.n % _ROWS_BETWEEN_CORRECTIONS == 0:
            self._correct()

    def arrive(self) -> Machine:
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
        """Return the sides of variables that are zero."""
        low, high = self.low[rows], self.high[rows]
        return np.where(high > low, np.where(low == 0.0, 1.0, -1.0), 0.0)

    def _gap(self, rows: int | IntArray | slice, thresholds: int | IntArray | slice) -> FloatArray:
        """Return g of some variables."""
        score = self.score[rows]
        if isinstance(thresholds, slice):
            score = score[:, None]
        gap: FloatArray = score - self.sign[rows, thresholds] - self.thresholds[thresholds]
        return gap

    def _settle(self) -> None:
        """Drive the worst variable on the wrong side until there is none."""
        start, most = self.n_steps, _MOST_STEPS + 100 * self.side[: self.n].size
        while (worst := self._worst()) is not None:
            if self.n_steps > start + most:
                raise ArithmeticError(
                    f"Adding a row to {self.n - 1} others takes more than {most:,} steps; dozens are usual. "
                    f"tol={self.tol:g} may be less than rounding allows. Raise it, or lower C."
                )
            self._drive(*worst)

    def _worst(self) -> tuple[int, int] | None:
        """Return the variable that is furthest on the wrong side, beyond the tolerance."""
        if self.side[: self.n].size == 0:
            return None
        n = self.n
        self._centre_free_thresholds()
        # The scores are sums of terms that are as large as this, and rounded.
        reach = self.root[:n] @ np.abs(self.alpha[:n].sum(axis=1))
        self.tolerance[:n] = self.tol + 4.0 * _EPS * reach * self.root[:n]
        excess = -self.side[:n] * self._gap(slice(n), slice(None)) - self.tolerance[:n, None]
        worst = int(np.argmax(excess))
        return divmod(worst, excess.shape[1]) if excess.flat[worst] > 0.0 else None

    def _centre_free_thresholds(self) -> None:
        """Put thresholds without members in the middle of their interval; one that has none stays."""
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
        barred: list[int] = []  # variables that depend on S
        n_idle = 0  # steps of length zero in a row
        while True:
            if self.members.count[threshold] == 0 and self._find_partner(row, threshold, sigma):
                return
            reaction = self._reaction(row, threshold)
            direction = self._direction(-sigma * reaction.solution, sigma * kernel)
            distance = max(-sigma * float(self._gap(row, threshold)), 0.0)
            to_end = abs(end - self.alpha[row, threshold])
            to_margin = np.inf if reaction.dependent else distance / reaction.schur
            crowded = n_idle > 3 * self.members.size + _IDLE_STEPS
            event = self._next_event(direction, min(to_end, to_margin), None if crowded else barred)
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
                self._let_go(event.which, at_high=direction.members[event.which] > 0.0)
                barred.clear()
            elif not self._admit(*divmod(event.which, self.side.shape[1])):
                barred.append(event.which)

    def _find_partner(self, row: int, threshold: int, sigma: float) -> bool:
        """Move a threshold without members towards a variable; return whether it got there.

        If not, the variable that stopped it, which can move against this one, is now in S.
        """
        F = self.score[: self.n] - self.sign[: self.n, threshold]
        able = np.flatnonzero(self.side[: self.n, threshold] == -sigma)
        chosen = row
        if len(able):
            partner = int(able[np.argmax(sigma * F[able])])
            if sigma * (F[partner] - F[row]) > 0.0:
                chosen = partner
        self.thresholds[threshold] = F[chosen]
        self._admit(chosen, threshold)
        return chosen == row

    def _reaction(self, row: int, threshold: int) -> Reaction:
        """Return how S reacts to a variable."""
        # If ρ is this small, g stays where it is, wherever in its interval the variable goes.
        negligible = 1e-3 * self.tol / float(self.high[row, threshold] - self.low[row, threshold])
        return self.members.reaction(row, threshold, self.gram[row, : self.n], negligible)

    def _admit(self, row: int, threshold: int) -> bool:
        """Take a variable into S, unless it depends on S; return whether it was taken."""
        reaction = self._reaction(row, threshold)
        if not reaction.dependent:
            self.members.add(row, threshold, self.gram[row, : self.n], reaction)
            self.side[row, threshold] = 0.0
        return not reaction.dependent

    def _direction(self, solution: FloatArray, score: FloatArray | float = 0.0) -> _Direction:
        """Return the direction of a solution of the bordered system, `score` being what changes besides."""
        n_thresholds = self.members.n_thresholds
        members = solution[n_thresholds:]
        return _Direction(members, members @ self.members.kernel(self.n) + score, -solution[:n_thresholds])

    def _next_event(self, direction: _Direction, own: float, barred: list[int] | None) -> _Event:
        """Return what happens next if the variable that is driven stops after `own`.

        Variables may pass the margin by half of the tolerance, and members their ends by rounding. Who would
        go further limits the step; of all that pass on the way, the fastest is the event. `barred` are
        variables that cannot join; None: all are.
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
        if barred is None:
            return event
        n = self.n
        side, tolerance = self.side[:n], self.tolerance[:n, None]
        speed = side * (direction.thresholds - direction.score[:, None])
        slack = side * self._gap(slice(n), slice(None))
        beyond = slack + 0.5 * tolerance
        coming = np.flatnonzero(speed * event.time > beyond)
        speed, slack, beyond = speed.flat[coming], slack.flat[coming], beyond.flat[coming]
        able = (speed > 0.0) & (slack >= -self.tolerance[coming // side.shape[1]])
        if barred:
            able &= ~np.isin(coming, barred)
        if able.any():
            speed, slack, beyond, coming = speed[able], slack[able], beyond[able], coming[able]
            times = np.maximum(slack, 0.0) / speed
            ready = np.flatnonzero(times <= np.min(np.maximum(beyond, 0.0) / speed))
            first = ready[np.argmax(speed[ready])]
            event = _Event("join", float(times[first]), int(coming[first]))
        return event

    def _room(self, change: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how far members are from the ends they move to, how fast, and their intervals' widths."""
        at = self.members.number
        alpha, low, high = self.alpha.take(at), self.low.take(at), self.high.take(at)
        room = np.maximum(np.where(change > 0.0, high - alpha, alpha - low), 0.0)
        return room, np.abs(change), high - low

    def _move(self, direction: _Direction, step: float) -> None:
        """Go a step; the variable that is driven is moved by who drives it."""
        if step == 0.0:
            return
        at = self.members.number
        moved = self.alpha.take(at) + step * direction.members
        self.alpha.put(at, np.minimum(np.maximum(moved, self.low.take(at)), self.high.take(at)))
        self.score[: self.n] += step * direction.score
        self.thresholds += step * direction.thresholds

    def _let_go(self, position: int, at_high: bool) -> None:
        """Let a member go, which is at an end of its interval."""
        at = int(self.members.row[position]), int(self.members.threshold[position])
        self.alpha[at] = self.high[at] if at_high else self.low[at]
        self.side[at] = -1.0 if at_high else 1.0
        self.members.remove(position)

    def _correct(self) -> None:
        """Compute the scores from α; then correct g of S, and the equalities, by a step in S."""
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
                self._let_go(first, at_high=direction.members[first] > 0.0)
        self._settle()

    def _residual(self) -> FloatArray | None:
        """Return what the equalities and g of S are off by, (J + m,); None where that is nothing much."""
        members = self.members
        gap = self._gap(members.row, members.threshold)
        total = np.where(members.count > 0, self.alpha[: self.n].sum(axis=0), 0.0)
        width = np.where(members.count > 0, (self.high - self.low)[: self.n].sum(axis=0), 0.0)
        exact = np.abs(gap).max(initial=0.0) <= 0.01 * self.tol and np.all(np.abs(total) <= _AT_END * width)
        return None if exact else np.concatenate([total, gap])
