"""Which basis family, by cross-validated log predictive score.

Evidence ranks models within a family. Across families it does not: the more a family adapts to the rows, the
more its evidence flatters it. So each family is fitted to a part of the rows and judged by the probability
that it gives to the labels of the held-out rest: the validation log score.

Up to 2,500 rows, every row is held out once, in one of three folds. Families err on different rows, so their
averages are compared as well, and of all that do about as well the simplest is selected. With more rows, one
part is held out and the families are compared on a sample of the rest; there the most adaptive is selected,
which gains most from the rows that the sample leaves out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.trace import Callback
from isbor._core.types import BoolArray, FloatArray, IntArray
from isbor.data.folds import units_in_fold
from isbor.data.rows import TrainingRows
from isbor.data.training import TrainingSet
from isbor.prediction.ensemble import Ensemble
from isbor.prediction.probabilities import log_class_probabilities
from isbor.search.families import FAMILIES, fit_families
from isbor.search.result import Family, SearchResult
from isbor.search.settings import SearchSettings

__all__ = ["FamilyTrial", "Selection", "select_families"]

_FOLDS = 3
_FOLDED_ROWS = 2500  # with more rows, one part is held out
_COMPARED_ROWS = 2000  # that each family is then fitted to
_HELD_OUT_ROWS = 4000
_FEWEST_ROWS = 40  # with fewer, the simplest family is selected
_FEWEST_OF_CLASS = 6  # rows; of a class with fewer none is held out
_SHARED_METRIC_ROWS = 2500  # with more, the family "ard" is not tried
_SEARCHED_COLUMNS = 1000  # with more, the family "mixed" is not tried
# In standard errors of the difference between two log scores:
_CLEARLY = 0.5  # from here on a better one is clearly so
_HOPELESS = 4.0  # a family that lacks more after the first fold is given up


@dataclass(frozen=True, slots=True)
class FamilyTrial:
    """One family, or an average of several, and its log score on held-out labels."""

    families: tuple[Family, ...]
    log_score: float  # mean log probability of a held-out label, in nats
    deficit: float  # difference to the best one's
    standard_error: float  # of the deficit
    n_vectors: float  # on average over the fits
    n_fits: int  # a family without a chance is given up after the first

    @property
    def basis(self) -> str:
        """The families in words."""
        return _in_words(self.families)


@dataclass(frozen=True, slots=True, repr=False)
class Selection:
    """The families that were compared, and the one, or the average, that was selected."""

    families: tuple[Family, ...]  # more than one are averaged
    trials: tuple[FamilyTrial, ...]
    reason: str

    @property
    def basis(self) -> str:
        """The selected families in words."""
        return _in_words(self.families)

    def __str__(self) -> str:
        lines = [f"{self.basis}: {self.reason}"]
        if self.trials:
            header = f"{'basis':20}{'log score':>10}{'deficit':>10}{'std. error':>12}{'vectors':>9}"
            lines.append(header + (f"{'folds':>7}" if self._is_uneven else ""))
        for trial in self.trials:
            line = f"{trial.basis:20}{trial.log_score:10.4f}{trial.deficit:10.4f}{trial.standard_error:12.4f}"
            line += f"{trial.n_vectors:9.1f}"
            lines.append(line + (f"{trial.n_fits:7}" if self._is_uneven else ""))
        if self._is_uneven:
            lines.append("Deficits are on the folds shared with the best one.")
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def _is_uneven(self) -> bool:
        """Whether a family was given up, so that log scores are not of the same rows."""
        return len({trial.n_fits for trial in self.trials}) > 1


def _in_words(families: Sequence[Family]) -> str:
    """Return "rbf", or "rbf + mixed" for an average."""
    return " + ".join(families)


def select_families(
    training: TrainingSet, settings: SearchSettings, workers: Workers, callback: Callback | None
) -> tuple[Selection, SearchResult | None]:
    """Compare the families on held-out rows.

    Return the selection, and where rows are many the winner's fit to a sample, to start from. Averages are
    compared where rows are few and the number of functions has no limit that families would have to share.
    """
    rows = training.rows
    n = len(rows)
    if n < _FEWEST_ROWS:
        return _simplest(f"{n} distinct rows are too few to compare families"), None
    if len(np.unique(rows.y[_in_large_classes(rows.y)])) < 2:
        return _simplest(f"fewer than two classes have {_FEWEST_OF_CLASS} rows, to hold some out"), None
    parts = list(_folds(rows) if n <= _FOLDED_ROWS else _one_part(rows))
    members = 2 if settings.n_members is None else settings.n_members
    quick = replace(settings, patience=0, n_members=members, preliminary=True)
    families = [family for family in FAMILIES if _is_tried(family, rows)]
    most = len(FAMILIES) if len(parts) > 1 and settings.max_vectors == np.inf else 1
    found: _Found = {}
    results: dict[Family, SearchResult] = {}
    for part in parts:
        of_part = replace(training, rows=replace(rows.take(part.train), weight=part.train_weight))
        test = of_part.with_unseen_categories(replace(rows.take(part.test), weight=part.test_weight))
        results = fit_families(families, of_part, quick, "selection", workers, callback)
        for some in _averages(families, most):
            model = Ensemble.of_families([results[family].model for family in some], of_part.rows, workers)
            found.setdefault(some, []).append(_validate(model, test))
        families = _hopeful(families, found)
    selection = _select(found, len(parts))
    if len(parts) > 1:
        return selection, None
    winner = results[selection.families[0]]
    return selection, replace(winner, model=winner.model.renumbered(parts[0].train))


def _simplest(why: str) -> Selection:
    """Return the selection where families cannot be compared."""
    return Selection(("rbf",), (), f"{why}; this is the simplest.")


def _averages(families: Sequence[Family], most: int) -> list[tuple[Family, ...]]:
    """Return the families and the averages of up to so many of them, the simplest first.

    What adapts more comes later, and is averaged with others later still.
    """
    order = list(FAMILIES)
    some = (chosen for size in range(1, most + 1) for chosen in combinations(families, size))
    return sorted(some, key=lambda chosen: (order.index(chosen[-1]), len(chosen)))


def _is_tried(family: Family, rows: TrainingRows) -> bool:
    """Whether a family is worth its time: scales for many rows, or a search among many columns, may not be.

    With one column its scale is the width.
    """
    n, d = rows.X.shape
    limits = {"rbf": True, "ard": n <= _SHARED_METRIC_ROWS and d > 1, "mixed": d <= _SEARCHED_COLUMNS}
    return bool(limits[family])


@dataclass(frozen=True, slots=True)
class _Validation:
    """Log probabilities of held-out labels."""

    log_p: FloatArray
    weight: FloatArray
    n_functions: int


def _validate(model: Ensemble, rows: TrainingRows) -> _Validation:
    log_p = log_class_probabilities(model.latent_of_scaled(rows.X), model.thresholds)
    return _Validation(log_p[np.arange(len(rows)), rows.y], rows.weight, model.n_functions)


def _compare(best: Sequence[_Validation], other: Sequence[_Validation]) -> tuple[float, float]:
    """Return how much lower the second's mean log score is, and the standard error, on the rows of both."""
    pairs = list(zip(best, other, strict=False))
    difference = np.concatenate([a.log_p - b.log_p for a, b in pairs])
    weight = np.concatenate([a.weight for a, _ in pairs])
    share = weight / weight.sum()
    deficit = float(share @ difference)
    return deficit, float(np.sqrt(np.sum(share**2 * (difference - deficit) ** 2)))


_Found: TypeAlias = dict[tuple[Family, ...], list[_Validation]]  # by fold


def _best(found: _Found) -> tuple[Family, ...]:
    """Return the candidate with the best mean log score, compared pairwise on common rows."""
    best, *others = found
    for families in others:
        if _compare(found[families], found[best])[0] > 0:
            best = families
    return best


def _hopeful(families: Sequence[Family], found: _Found) -> list[Family]:
    """Return the families that may still win."""
    best = _best(found)
    lacks = {family: _compare(found[best], found[family,]) for family in families}
    return [family for family, (deficit, error) in lacks.items() if deficit <= _HOPELESS * error]


def _select(found: _Found, n_parts: int) -> Selection:
    best = _best(found)
    trials = []
    for families, validations in found.items():
        deficit, error = _compare(found[best], validations)
        log_p = np.concatenate([v.log_p for v in validations])
        log_score = float(np.average(log_p, weights=np.concatenate([v.weight for v in validations])))
        n_vectors = float(np.mean([v.n_functions for v in validations]))
        trials.append(FamilyTrial(families, log_score, deficit, error, n_vectors, len(validations)))
    folded = n_parts > 1
    # A family that adapts more gains more from the rows that a sample leaves out.
    preferred = trials if folded else reversed(trials)
    winner = next(trial for trial in preferred if trial.deficit <= _CLEARLY * trial.standard_error)
    where = f"on held-out labels ({n_parts} folds)" if folded else "on held-out labels of a sample"
    if winner.families == best:
        reason = f"the best log score {where}."
    else:
        advantage = "simpler" if folded else "more adaptive"
        reason = f"{advantage} than {_in_words(best)}, whose log score {where} is not clearly better."
    return Selection(winner.families, tuple(trials), reason)


class _Part(NamedTuple):
    """Training rows and held-out rows, each with their weights."""

    train: IntArray
    train_weight: FloatArray
    test: IntArray
    test_weight: FloatArray


def _folds(rows: TrainingRows) -> Iterator[_Part]:
    """Yield the parts of each fold.

    A row that stands for several equal ones is dealt out like them: some may be held out while others stay.
    """
    whole = bool((rows.weight == np.round(rows.weight)).all())
    units = rows.weight if whole else np.ones(len(rows))
    for k in range(_FOLDS):
        held_out = units_in_fold(rows.y, units, k, _FOLDS)
        held_out = np.where(_in_large_classes(rows.y), held_out if whole else held_out * rows.weight, 0.0)
        kept = rows.weight - held_out
        train, test = np.flatnonzero(kept > 0), np.flatnonzero(held_out > 0)
        yield _Part(train, kept[train], test, held_out[test])


def _one_part(rows: TrainingRows) -> Iterator[_Part]:
    n = len(rows)
    head = np.arange(n) < min(_COMPARED_ROWS, int(0.7 * n))
    stays = head | ~_in_large_classes(rows.y)
    train, test = np.flatnonzero(stays), np.flatnonzero(~stays)[:_HELD_OUT_ROWS]
    yield _Part(train, rows.weight[train], test, rows.weight[test])


def _in_large_classes(y: IntArray) -> BoolArray:
    """Return which rows may be held out: a class must stay in training."""
    counts = np.bincount(y)
    return counts[y] >= _FEWEST_OF_CLASS
