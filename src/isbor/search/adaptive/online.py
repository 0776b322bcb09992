r"""The joint search in a stream: its members go on with the rows that are kept.

When rows have come in, each member is refitted to the rows that are kept now (weights, thresholds and the
Laplace approximation around them). Some members make rounds of the joint search
(`isbor.search.adaptive.joint`), in which functions enter, move and leave; a round is kept if it raises the
objective.

**How many rounds.** What a round can gain depends on how much is new. So a member owes rounds,

.. math:: \frac{1}{g} \ln \frac{\text{total weight now}}{\text{total weight before}}, \qquad g = 0.025,

whatever the batches are: as many for one large batch as for many small ones. The number of rounds in a stream
grows as the logarithm of its length. With a half-life, earlier weight counts as it does now.

**What a call costs.** A round costs about as much as the product of its rows and the functions that are
trained. The sum of these products is limited in a call, to a constant plus a share for each new row; each
member makes at most eight rounds, and all together at least two. The members that owe most come first; what
they still owe is left to later calls. A member that begins makes three rounds at least.

**Step lengths.** Where classes are nearly free of noise, the noise of a model that has learned much is small
beside the steps of joint training, which then lose what was learned: labels become so improbable on the way
that training learns nothing from them. So a member keeps a step length from call to call. It is halved for
each round that lowered the objective clearly, and a quarter longer after a call without such rounds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from isbor._core.linalg import UnresolvedError
from isbor._core.trace import StopReason
from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.inference.mode import starting_thresholds
from isbor.inference.sparse import SparseModel
from isbor.search.adaptive.carried import Prepared, carried
from isbor.search.adaptive.joint import JointSearch, JointSettings
from isbor.search.adaptive.state import State

__all__ = ["Member", "advanced", "in_other_columns", "owing", "rounds_of"]

_GROWTH = 0.025  # of the logarithm of the total weight, for a round
_MAX_ROUNDS = 8  # of a member in a call
_FIRST_ROUNDS = 3  # of a member that begins, at least
_LONGEST, _SHORTEST = JointSettings().step_length, 0.002  # steps of joint training
_LONGER, _SHORTER = 1.25, 0.5  # factors of the step length
# Rows times functions for the rounds of a call: in any call, and for each new row.
_WORK_OF_CALL = 2e6
_WORK_FOR_A_ROW = 3800.0


@dataclass(frozen=True, slots=True)
class Member:
    """A model in a stream."""

    model: SparseModel | None  # None before the first search
    shape_precision: FloatArray  # λ of the weights of its shape
    observed: IntArray  # (r,) the classes that its thresholds separate
    numbers: IntArray  # (m,) of the rows on which functions were first centred, counted over the stream
    owed: float  # rounds
    step_length: float = _LONGEST  # of the next round

    @classmethod
    def new(cls) -> "Member":
        """Return a member that has learned nothing yet."""
        nothing = np.zeros(0, np.intp)
        return cls(None, np.zeros(0), nothing, nothing, _MAX_ROUNDS)


def owing(members: Sequence[Member], before: float, new: float) -> list[Member]:
    """Return the members with the rounds that they owe when total weight `new` comes to that `before`."""
    rounds = np.log1p(new / before) / _GROWTH if before > 0.0 else np.inf
    return [replace(member, owed=min(member.owed + rounds, _MAX_ROUNDS)) for member in members]


def rounds_of(members: Sequence[Member], work: float, n_new: int) -> list[int]:
    """Return the rounds that each member makes in a call; `work` is that of a round."""
    left = max(round((_WORK_OF_CALL + _WORK_FOR_A_ROW * n_new) / work), 2)
    owed, rounds = [member.owed for member in members], [0] * len(members)
    while left and max(owed) >= 1.0:
        most = owed.index(max(owed))
        owed[most] -= 1.0
        rounds[most] += 1
        left -= 1
    return rounds


def in_other_columns(member: Member, before: Prepared, after: Prepared) -> Member:
    """Return the member with functions of the columns of another preparation."""
    model = member.model
    if model is None:
        return member
    functions, kept = carried(model.functions, before, after)
    expansion = model.mode.expansion
    thresholds = expansion.thresholds
    chosen = np.append(np.flatnonzero(kept), len(kept) + np.arange(len(thresholds)))
    expansion = replace(
        expansion,
        weights=expansion.weights[kept],
        gradient=expansion.gradient[chosen],
        precision=expansion.precision[np.ix_(chosen, chosen)],
    )
    shape_weights = None if model.shape_weights is None else model.shape_weights[:, kept]
    moved = replace(
        model,
        functions=functions,
        mode=replace(model.mode, alpha=model.mode.alpha[kept], expansion=expansion),
        shape_weights=shape_weights,
        shape_model=None,
    )
    return replace(member, model=moved, numbers=member.numbers[kept])


def advanced(
    member: Member,
    rows: TrainingRows,
    observed: IntArray,
    numbers: IntArray,
    n_rounds: int,
    search: JointSearch,
) -> tuple[Member, StopReason]:
    """Return the member after refitting it to the rows, and after some rounds; and why they ended.

    `observed`, (r,), are the classes of the rows. `numbers`, (n,), are those of the rows in the stream.
    """
    reason = StopReason.CONVERGED
    resumed = _resumed(member, rows, observed, numbers, search)
    if resumed is None:
        n_rounds = max(n_rounds, _FIRST_ROUNDS)
    state = search.start(rows) if resumed is None else resumed
    step_length = _LONGEST if resumed is None else member.step_length
    if n_rounds:
        state, reason, n_lost = search.rounds(state, n_rounds, step_length)
        factor = _SHORTER**n_lost if n_lost else _LONGER
        step_length = float(np.clip(factor * step_length, _SHORTEST, _LONGEST))
    owed = 0.0 if reason is StopReason.CONVERGED and n_rounds else max(member.owed - n_rounds, 0.0)
    origin = state.model.functions.origin
    known = np.where(origin >= 0, numbers[origin], -1)
    return Member(state.model, state.shape_precision, observed, known, owed, step_length), reason


def _resumed(
    member: Member, rows: TrainingRows, observed: IntArray, numbers: IntArray, search: JointSearch
) -> State | None:
    """Return the state of a member refitted to the rows; None if it has no model yet, or that fails."""
    model = member.model
    if model is None:
        return None
    order = np.argsort(numbers)
    place = order[np.minimum(np.searchsorted(numbers[order], member.numbers), len(order) - 1)]
    # The row may not be kept any more; -1 stands for it.
    origin = np.where(numbers[place] == member.numbers, place, -1)
    model = replace(model, functions=replace(model.functions, origin=origin))
    if not np.array_equal(member.observed, observed):
        model = _of_other_classes(model, rows)
    try:
        state = State.of(rows, model, search.workers, rough=True)
    except UnresolvedError:  # some functions are collinear on these rows
        return None
    search.recorder.begin_run(state.model, search.settings.size_prior)
    return replace(state, shape_precision=member.shape_precision)


def _of_other_classes(model: SparseModel, rows: TrainingRows) -> SparseModel:
    """Return a model to begin with, whose thresholds separate the classes of the rows."""
    score = model.functions.centred_on(rows)(rows.reference.X) @ model.mode.weights
    thresholds = np.mean(score) + np.hypot(1.0, np.std(score)) * starting_thresholds(rows.y, rows.weight)
    expansion = replace(model.mode.expansion, thresholds=thresholds)
    noise = None if model.shape_weights is None else model.shape_weights[:1]
    return replace(
        model, mode=replace(model.mode, expansion=expansion), shape_weights=noise, shape_model=None
    )
