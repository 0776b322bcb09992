"""Which kind of dictionary, by cross-validated log predictive score.

Evidence ranks models within a kind. Across kinds it does not: the more a dictionary adapts to the rows, the
more its evidence flatters it. So each kind is fitted to a part of the rows and asked for the probability of
the labels of the rest.

Where rows are few, the parts are folds, each of which is held back once. Few labels cannot tell kinds apart
that do about as well, and their errors differ: such kinds are averaged, which is better than the luck of a
choice. Where rows are many, one part is held back and the kinds are compared on a sample of the rest; of
those that do about as well the most adaptive is taken, which gains most from the rows that the sample leaves
out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from isbor.arrays import FloatArray, IntArray
from isbor.blocks import Workers
from isbor.fits import Fit, Kind
from isbor.inputs import TrainingRows
from isbor.kinds import KINDS, Plan, Table, fit_kind
from isbor.predictive import log_class_probabilities
from isbor.trace import Callback

__all__ = ["KindTrial", "Selection", "choose_kinds"]

_FOLDS = 3
_FOLDED_ROWS = 2500  # with more rows, one part is held back
_COMPARED_ROWS = 2000  # that each kind is then fitted to
_HELD_ROWS = 4000
_FEWEST_ROWS = 40  # with fewer, the simplest kind is taken
_SHARED_METRIC_ROWS = 2500  # with more, the kind "ard" is not tried
_SEARCHED_COLUMNS = 1000  # with more, the kind "mixed" is not tried
# In standard errors of the difference between two scores:
_CLEARLY = 0.5  # where one kind is taken, a better one is clearly so from here
_CLOSE = 1.5  # where kinds are averaged, the best and all that lack no more
_HOPELESS = 4.0  # a kind that lacks more after the first fold is given up


@dataclass(frozen=True, slots=True)
class KindTrial:
    """One kind, and how well it predicted labels that were held back."""

    kind: Kind
    score: float  # mean log probability of a label, in nats
    deficit: float  # what it lacks to the best kind
    standard_error: float  # of the deficit
    n_vectors: float  # on average over the fits
    n_fits: int  # a kind beyond hope is given up after the first


@dataclass(frozen=True, slots=True)
class Selection:
    """The kinds that were compared, and what came of it."""

    kinds: tuple[Kind, ...]  # more than one are averaged
    trials: tuple[KindTrial, ...]
    reason: str

    @property
    def kind(self) -> str:
        """The kinds in words, as "rbf" or "rbf + mixed"."""
        return " + ".join(self.kinds)

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.reason}"]
        if self.trials:
            lines.append(f"{'kind':8}{'log score':>12}{'deficit':>12}{'std. error':>12}{'vectors':>9}")
        lines += [
            f"{trial.kind:8}{trial.score:12.4f}{trial.deficit:12.4f}{trial.standard_error:12.4f}"
            f"{trial.n_vectors:9.1f}"
            for trial in self.trials
        ]
        return "\n".join(lines)


def choose_kinds(
    table: Table, plan: Plan, workers: Workers, callback: Callback | None
) -> tuple[Selection, Fit | None]:
    """Compare the kinds on rows that were held back.

    Return the verdict, and where rows are many the winner's fit to a sample, to start from. Where the number
    of functions is limited one kind gets all of them.
    """
    rows = table.rows
    n = len(rows)
    if n < _FEWEST_ROWS:
        reason = f"{n} distinct rows are too few to compare kinds; this is the simplest."
        return Selection(("rbf",), (), reason), None
    parts = list(_folds(rows) if n <= _FOLDED_ROWS else _one_part(rows))
    members = 2 if plan.n_members is None else plan.n_members
    quick = replace(plan, patience=0, n_members=members, preliminary=True)
    kinds = [kind for kind in KINDS if _is_tried(kind, table)]
    found: dict[Kind, list[_Held]] = {kind: [] for kind in kinds}
    fits: dict[Kind, Fit] = {}
    for train, train_weight, test, test_weight in parts:
        training = table.with_rows(replace(rows.take(train), weight=train_weight))
        held = replace(rows.take(test), weight=test_weight)
        of_part: dict[Kind, Fit] = {}
        for kind in kinds:
            start = of_part.get("rbf") if kind == "ard" else None
            of_part[kind] = fit_kind(kind, training, quick, "selection", workers, callback, start)
            found[kind].append(_held_back(of_part[kind], training.rows, held))
            fits[kind] = of_part[kind].renumbered(train)
        kinds = _hopeful(kinds, found)
    trials = _trials(found)
    if len(parts) == 1:
        # A kind that adapts more gains more from the rows that a sample leaves out.
        selection = _one_of(trials, "on labels held back from a sample", adaptive=True)
        return selection, fits[selection.kinds[0]]
    where = f"on labels held back ({len(parts)} folds)"
    if plan.max_vectors is not None:
        return _one_of(trials, where, adaptive=False), None
    return _average_of(trials, where), None


def _is_tried(kind: Kind, table: Table) -> bool:
    """Whether a kind is worth its time: scales for many rows, or a search among many columns, may not be.

    With one column its scale is the width.
    """
    n, d = table.rows.X.shape
    limits = {"rbf": True, "ard": n <= _SHARED_METRIC_ROWS and d > 1, "mixed": d <= _SEARCHED_COLUMNS}
    return bool(limits[kind])


@dataclass(frozen=True, slots=True)
class _Held:
    """Log probabilities of the labels of rows that were held back."""

    log_p: FloatArray
    weight: FloatArray
    n_functions: int


def _held_back(fit: Fit, training: TrainingRows, rows: TrainingRows) -> _Held:
    latent = fit.latent(float(training.weight.sum()))
    score = latent.prepared_score(latent.prepare.widen(rows.X))
    log_p = log_class_probabilities(score, latent.thresholds)
    return _Held(log_p[np.arange(len(rows)), rows.y], rows.weight, fit.n_functions)


def _compare(best: Sequence[_Held], other: Sequence[_Held]) -> tuple[float, float]:
    """Return how much lower the mean score of the second is, and the standard error, on the rows of both."""
    pairs = list(zip(best, other, strict=False))
    difference = np.concatenate([a.log_p - b.log_p for a, b in pairs])
    weight = np.concatenate([a.weight for a, _ in pairs])
    share = weight / weight.sum()
    deficit = float(share @ difference)
    return deficit, float(np.sqrt(np.sum(share**2 * (difference - deficit) ** 2)))


def _best(found: dict[Kind, list[_Held]]) -> Kind:
    """Return the kind of the highest score on the rows that it shares with each other."""
    best, *others = found
    for kind in others:
        if _compare(found[kind], found[best])[0] > 0:
            best = kind
    return best


def _hopeful(kinds: Sequence[Kind], found: dict[Kind, list[_Held]]) -> list[Kind]:
    """Return the kinds that may still win."""
    best = _best(found)
    lacks = {kind: _compare(found[best], found[kind]) for kind in kinds}
    return [kind for kind, (deficit, error) in lacks.items() if deficit <= _HOPELESS * error]


def _trials(found: dict[Kind, list[_Held]]) -> list[KindTrial]:
    best = _best(found)
    trials = []
    for kind, held in found.items():
        deficit, error = _compare(found[best], held)
        score = float(
            np.average(
                np.concatenate([h.log_p for h in held]), weights=np.concatenate([h.weight for h in held])
            )
        )
        n_vectors = float(np.mean([h.n_functions for h in held]))
        trials.append(KindTrial(kind, score, deficit, error, n_vectors, len(held)))
    return trials


def _one_of(trials: Sequence[KindTrial], where: str, *, adaptive: bool) -> Selection:
    """Take the most adaptive kind, or the simplest, that no other is clearly better than."""
    preferred = reversed(trials) if adaptive else trials
    winner = next(trial for trial in preferred if trial.deficit <= _CLEARLY * trial.standard_error)
    best = min(trials, key=lambda trial: trial.deficit)
    reason = f"the best log score {where}."
    if winner is not best:
        advantage = "more adaptive" if adaptive else "simpler"
        reason = f"{advantage} than {best.kind}, whose log score {where} is not clearly better."
    return Selection((winner.kind,), tuple(trials), reason)


def _average_of(trials: Sequence[KindTrial], where: str) -> Selection:
    """Average the kinds whose score is close to the best."""
    close = tuple(trial.kind for trial in trials if trial.deficit <= _CLOSE * trial.standard_error)
    reason = f"the best log score {where}"
    if len(close) > 1:
        reason = f"averaged, as none has a clearly better log score {where}"
    return Selection(close, tuple(trials), f"{reason}.")


_Part: TypeAlias = tuple[
    IntArray, FloatArray, IntArray, FloatArray
]  # training rows and weights, held ones and theirs


def _folds(rows: TrainingRows) -> Iterator[_Part]:
    """Yield the parts of each fold.

    The rows of each class are dealt out in turn. A row that stands for several equal ones is dealt out like
    them: some may be held back while others stay.
    """
    whole = bool((rows.weight == np.round(rows.weight)).all())
    units = rows.weight if whole else np.ones(len(rows))
    begin = np.empty(len(rows))
    for level in range(int(rows.y.max()) + 1):
        of_class = np.flatnonzero(rows.y == level)
        begin[of_class] = np.cumsum(units[of_class]) - units[of_class]
    end = begin + units
    for k in range(_FOLDS):
        # How many of the units begin … end - 1 leave the rest k when divided by the number of folds.
        held = np.floor((end - 1 - k) / _FOLDS) - np.floor((begin - 1 - k) / _FOLDS)
        held = np.where(_in_large_classes(rows.y), held if whole else held * rows.weight, 0.0)
        yield _split(rows.weight - held, held)


def _one_part(rows: TrainingRows) -> Iterator[_Part]:
    n = len(rows)
    head = np.arange(n) < min(_COMPARED_ROWS, int(0.7 * n))
    stays = head | ~_in_large_classes(rows.y)
    held = np.flatnonzero(~stays)[:_HELD_ROWS]
    kept = np.flatnonzero(stays)
    yield kept, rows.weight[kept], held, rows.weight[held]


def _split(kept: FloatArray, held: FloatArray) -> _Part:
    train, test = np.flatnonzero(kept > 0), np.flatnonzero(held > 0)
    return train, kept[train], test, held[test]


def _in_large_classes(y: IntArray) -> NDArray[np.bool_]:
    """Return which rows may be held back: a class must stay in training."""
    counts = np.bincount(y)
    return counts[y] >= 2 * _FOLDS
