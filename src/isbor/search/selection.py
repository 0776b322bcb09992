"""Which kind of dictionary, by cross-validated log predictive score.

Evidence ranks models within a kind. Across kinds it does not: the more a dictionary adapts to the rows, the
more its evidence flatters it. So each kind is fitted to a part of the rows and asked for the probability of
the labels of the rest.

Where rows are few, the parts are folds, each of which is held back once. Kinds err on different rows, so
their averages are compared as well, and of all that does about as well the simplest is taken. Where rows are
many, one part is held back and the kinds are compared on a sample of the rest; there the most adaptive is
taken, which gains most from the rows that the sample leaves out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from isbor._core.parallel import Workers
from isbor._core.trace import Callback
from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows
from isbor.prediction.probabilities import log_class_probabilities
from isbor.search.families import KINDS, Plan, Table, fit_kind
from isbor.search.result import Fit, Kind

__all__ = ["KindTrial", "Selection", "choose_kinds"]

_FOLDS = 3
_FOLDED_ROWS = 2500  # with more rows, one part is held back
_COMPARED_ROWS = 2000  # that each kind is then fitted to
_HELD_ROWS = 4000
_FEWEST_ROWS = 40  # with fewer, the simplest kind is taken
_FEWEST_OF_CLASS = 6  # rows; of a class with fewer none is held back
_SHARED_METRIC_ROWS = 2500  # with more, the kind "ard" is not tried
_SEARCHED_COLUMNS = 1000  # with more, the kind "mixed" is not tried
# In standard errors of the difference between two scores:
_CLEARLY = 0.5  # from here on a better one is clearly so
_HOPELESS = 4.0  # a kind that lacks more after the first fold is given up


@dataclass(frozen=True, slots=True)
class KindTrial:
    """One kind, or an average of several, and how well it predicted labels that were held back."""

    kinds: tuple[Kind, ...]
    score: float  # mean log probability of a label, in nats
    deficit: float  # what it lacks to the best kind
    standard_error: float  # of the deficit
    n_vectors: float  # on average over the fits
    n_fits: int  # a kind beyond hope is given up after the first

    @property
    def kind(self) -> str:
        """The kinds in words."""
        return _in_words(self.kinds)


@dataclass(frozen=True, slots=True, repr=False)
class Selection:
    """The kinds that were compared, and what came of it."""

    kinds: tuple[Kind, ...]  # more than one are averaged
    trials: tuple[KindTrial, ...]
    reason: str

    @property
    def kind(self) -> str:
        """The kinds in words."""
        return _in_words(self.kinds)

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.reason}"]
        if self.trials:
            header = f"{'kind':20}{'log score':>10}{'deficit':>10}{'std. error':>12}{'vectors':>9}"
            lines.append(header + (f"{'folds':>7}" if self._is_uneven else ""))
        for trial in self.trials:
            line = f"{trial.kind:20}{trial.score:10.4f}{trial.deficit:10.4f}{trial.standard_error:12.4f}"
            line += f"{trial.n_vectors:9.1f}"
            lines.append(line + (f"{trial.n_fits:7}" if self._is_uneven else ""))
        if self._is_uneven:
            lines.append("Deficits are on the folds that a kind shares with the best one.")
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def _is_uneven(self) -> bool:
        """Whether a kind was given up, so that scores are not of the same rows."""
        return len({trial.n_fits for trial in self.trials}) > 1


def _in_words(kinds: Sequence[Kind]) -> str:
    """Return "rbf", or "rbf + mixed" for an average."""
    return " + ".join(kinds)


def choose_kinds(
    table: Table, plan: Plan, workers: Workers, callback: Callback | None
) -> tuple[Selection, Fit | None]:
    """Compare the kinds on rows that were held back.

    Return the verdict, and where rows are many the winner's fit to a sample, to start from. Averages are
    compared where rows are few and the number of functions has no limit that kinds would have to share.
    """
    rows = table.rows
    n = len(rows)
    if n < _FEWEST_ROWS:
        return _simplest(f"{n} distinct rows are too few to compare kinds"), None
    if len(np.unique(rows.y[_in_large_classes(rows.y)])) < 2:
        return _simplest(f"no two classes have {_FEWEST_OF_CLASS} distinct rows, to hold some back"), None
    parts = list(_folds(rows) if n <= _FOLDED_ROWS else _one_part(rows))
    members = 2 if plan.n_members is None else plan.n_members
    quick = replace(plan, patience=0, n_members=members, preliminary=True)
    kinds = [kind for kind in KINDS if _is_tried(kind, table)]
    most = len(KINDS) if len(parts) > 1 and plan.max_vectors is None else 1
    found: _Found = {}
    fits: dict[Kind, Fit] = {}
    for train, train_weight, test, test_weight in parts:
        training = table.with_rows(replace(rows.take(train), weight=train_weight))
        held = training.read(replace(rows.take(test), weight=test_weight))
        fits = {}
        for kind in kinds:
            start = fits.get("rbf") if kind == "ard" else None
            fits[kind] = fit_kind(kind, training, quick, "selection", workers, callback, start)
        for some in _averages(kinds, most):
            fit = Fit.average([fits[kind] for kind in some], training.rows, workers)
            found.setdefault(some, []).append(_held_back(fit, training.rows, held))
        kinds = _hopeful(kinds, found)
    selection = _verdict(found, len(parts))
    if len(parts) > 1:
        return selection, None
    return selection, fits[selection.kinds[0]].renumbered(parts[0][0])


def _simplest(why: str) -> Selection:
    """Return the verdict where kinds cannot be compared."""
    return Selection(("rbf",), (), f"{why}; this is the simplest.")


def _averages(kinds: Sequence[Kind], most: int) -> list[tuple[Kind, ...]]:
    """Return the kinds and the averages of up to so many of them, the simplest first.

    What adapts more comes later, and is averaged with others later still.
    """
    some = (chosen for size in range(1, most + 1) for chosen in combinations(kinds, size))
    return sorted(some, key=lambda chosen: (KINDS.index(chosen[-1]), len(chosen)))


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


_Found: TypeAlias = dict[tuple[Kind, ...], list[_Held]]  # by fold


def _best(found: _Found) -> tuple[Kind, ...]:
    """Return what has the highest score on the rows that it shares with each other."""
    best, *others = found
    for kind in others:
        if _compare(found[kind], found[best])[0] > 0:
            best = kind
    return best


def _hopeful(kinds: Sequence[Kind], found: _Found) -> list[Kind]:
    """Return the kinds that may still win."""
    best = _best(found)
    lacks = {kind: _compare(found[best], found[kind,]) for kind in kinds}
    return [kind for kind, (deficit, error) in lacks.items() if deficit <= _HOPELESS * error]


def _verdict(found: _Found, n_parts: int) -> Selection:
    best = _best(found)
    trials = []
    for kinds, held in found.items():
        deficit, error = _compare(found[best], held)
        score = float(
            np.average(
                np.concatenate([h.log_p for h in held]), weights=np.concatenate([h.weight for h in held])
            )
        )
        n_vectors = float(np.mean([h.n_functions for h in held]))
        trials.append(KindTrial(kinds, score, deficit, error, n_vectors, len(held)))
    folded = n_parts > 1
    # A kind that adapts more gains more from the rows that a sample leaves out.
    preferred = trials if folded else reversed(trials)
    winner = next(trial for trial in preferred if trial.deficit <= _CLEARLY * trial.standard_error)
    where = f"on labels held back ({n_parts} folds)" if folded else "on labels held back from a sample"
    if winner.kinds == best:
        reason = f"the best log score {where}."
    else:
        advantage = "simpler" if folded else "more adaptive"
        reason = f"{advantage} than {_in_words(best)}, whose log score {where} is not clearly better."
    return Selection(winner.kinds, tuple(trials), reason)


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
    return counts[y] >= _FEWEST_OF_CLASS
