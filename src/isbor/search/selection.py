"""Selection of the basis family by the validation log score.

The evidence ranks models within a family, but not across families: it favours families that adapt more to the
training rows. So each family is fitted to part of the rows and evaluated on the held-out rest. Its validation
log score is the mean log probability of the held-out labels.

Up to 2,500 rows, three-fold cross-validation is used. Families make their errors on different rows, so
averages of families are compared as well. What is clearly behind after the first fold is dropped. Of all
candidates whose score is not clearly worse than the best, the simplest is selected. Up to 1,500 rows, one of
the families is a Gaussian process, which has a function for each row; it must be better than all sparse
candidates by a standard error. The held-out labels of the selected candidate then choose a temperature
(`isbor.search.temperature`).

With more rows, one part is held out, and the families are compared on a sample of the rest, first on a small
one, which decides unless the most adaptive family is clearly worse there. The most adaptive of these
candidates is then selected, because it gains most from the full data.
"""

from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Self, TypeAlias

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.trace import Callback
from isbor.data.rows import TrainingRows
from isbor.data.training_set import TrainingSet
from isbor.gp.two_scales import TwoScales
from isbor.prediction.ensemble import Ensemble
from isbor.search.families.catalogue import FAMILIES, Results, family_tasks
from isbor.search.result import Family
from isbor.search.settings import SearchSettings
from isbor.search.temperature import Temperature, choose_temperature
from isbor.search.validation import (
    COMPARED_ROWS,
    MIN_ROWS_OF_CLASS,
    Part,
    Validation,
    compare,
    folds,
    in_large_classes,
    is_close,
    one_part,
    validate,
)

__all__ = ["FamilyTrial", "Known", "Selection", "select_families"]

_FOLDED_ROWS = 2500  # with more rows, one part is held out instead of cross-validation
_QUICK_ROWS = 200  # with more rows, families are fitted more roughly for the comparison
_COMPARED_MEMBERS = 4  # of "mixed" in the comparison, half of those in the end
_SHARE_OF_TIME = 0.5  # of the time of a fit, if it is limited
_MIN_ROWS = 40  # with fewer, the simplest family is selected
_MAX_ARD_ROWS = 2500  # with more, the family "ard" is not tried
_MAX_GP_ROWS = 1500  # with more, the family "gp" is not tried
_MAX_MIXED_COLUMNS = 1000  # with more, the families "mixed" and "gp" are not tried
# Limits on the difference between two validation log scores, in standard errors:
_CLEARLY_WORSE = 0.5  # a larger difference is not ignored
_WORTH_A_DENSE_MODEL = 1.0  # a sparse model with a smaller deficit is preferred to a Gaussian process
_GIVEN_UP = 2.0  # a candidate with a larger deficit after a fold is dropped
_DENSE_GIVEN_UP = 1.0  # a Gaussian process is dropped if sparse models are ahead by more after a fold
_SETTLED = 0.5  # a temperature that gains less after a fold is not looked for on others


@dataclass(frozen=True, slots=True)
class FamilyTrial:
    """The validation log score of one family, or of an average of several."""

    families: tuple[Family, ...]
    log_score: float  # mean log probability of a held-out label, in nats
    deficit: float  # how much lower it is than the best one
    standard_error: float  # of the deficit
    n_vectors: float  # relevance vectors, on average over the fits
    n_fits: int  # number of folds; fewer than the others if the family was dropped

    @property
    def basis(self) -> str:
        """Name of the family or average."""
        return _name(self.families)


@dataclass(frozen=True, slots=True, repr=False)
class Selection:
    """The families that were compared, and the family or average that was selected."""

    families: tuple[Family, ...]  # several families are averaged
    trials: tuple[FamilyTrial, ...]
    reason: str
    temperature: Temperature = Temperature()

    @property
    def basis(self) -> str:
        """Name of the selected family or average."""
        return _name(self.families)

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
            lines.append("Deficits are computed on the folds shared with the best.")
        if self.temperature.value != 1.0:
            lines.append(str(self.temperature))
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def _is_uneven(self) -> bool:
        """Whether a family was dropped, so that log scores are not of the same rows."""
        return len({trial.n_fits for trial in self.trials}) > 1


@dataclass(frozen=True, slots=True)
class Known:
    """What a comparison of families learned of their parameters: starts for other fits to similar rows."""

    gamma: float | None = None  # width of "rbf"
    process: TwoScales | None = None  # parameters of "gp"

    @classmethod
    def of(cls, results: Results) -> Self:
        """Return what these fits learned."""
        gamma = float(np.asarray(results["rbf"].gamma)) if "rbf" in results else None
        return cls(gamma, results["gp"].process if "gp" in results else None)

    def guesses(self, settings: SearchSettings) -> SearchSettings:
        """Return the settings of a fit that starts from what is known."""
        return replace(settings, first_gamma=self.gamma, first_process=self.process)


def _name(families: Sequence[Family]) -> str:
    """Return "rbf", or "rbf + mixed" for an average."""
    return " + ".join(families)


def select_families(
    training: TrainingSet, settings: SearchSettings, workers: Workers, callback: Callback | None
) -> tuple[Selection, Known]:
    """Select the family, or average of families, with the best validation log score.

    Averages are compared only in cross-validation, and only if the number of functions is not limited. What
    the comparison learned of the families' parameters is returned as well.
    """
    rows, n = training.rows, len(training.rows)
    if n < _MIN_ROWS:
        return _simplest(f"{n} distinct rows are too few to compare families"), Known()
    if len(np.unique(rows.y[in_large_classes(rows.y)])) < 2:
        return _simplest(f"fewer than two classes have {MIN_ROWS_OF_CLASS} rows"), Known()
    families = [family for family in FAMILIES if _is_tried(family, rows, settings)]
    if settings.effort == "fast":
        family: Family = "mixed" if "mixed" in families else "rbf"
        return Selection((family,), (), "set by effort='fast'."), Known()
    if len(families) == 1:
        return Selection(tuple(families), (), "the only family for a table of this size."), Known()
    quick = replace(settings, patience=0, effort="default")
    if settings.effort == "default":
        members = _COMPARED_MEMBERS if n <= _MAX_GP_ROWS else 2
        n_members = members if settings.has_automatic_size else settings.n_members
        quick = replace(quick, n_members=n_members, preliminary=n > _QUICK_ROWS)
    comparison = _Comparison(training, quick, workers.with_share(_SHARE_OF_TIME), callback)
    if n <= _FOLDED_ROWS:
        max_size = len(FAMILIES) if settings.max_vectors == np.inf else 1
        found, known = comparison.cross_validate(families, max_size)
    else:
        found, known = comparison.race(families)
    return _select(found, folded=n <= _FOLDED_ROWS), known


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Fits families to some rows and evaluates them on others."""

    training: TrainingSet
    settings: SearchSettings
    workers: Workers
    callback: Callback | None

    def cross_validate(self, families: Sequence[Family], max_size: int) -> tuple["_Found", Known]:
        """Evaluate families and averages of up to `max_size` of them; return what was learned, too.

        After the first fold, families that other folds would hardly select are dropped, the width of "rbf"
        is known, and the search of "gp" has a start. If that leaves one candidate that needs no temperature,
        the first fold decides.
        """
        splits = enumerate(folds(self.training.rows), 1)
        first, *others = [(f"fold {k}", Part.of(self.training, *split)) for k, split in splits]
        found, known = self._evaluate([first], families, max_size, Known())
        left = _contenders(found)
        settled = len(left) == 1 and choose_temperature(found[left[0]], _SETTLED).value == 1.0
        if settled or self.workers.is_late():
            return found, known
        remaining = [family for family in families if any(family in candidate for candidate in left)]
        more, _ = self._evaluate(others, remaining, max_size, known)
        return {chosen: found[chosen] + more.get(chosen, []) for chosen in found}, known

    def race(self, families: Sequence[Family]) -> tuple["_Found", Known]:
        """Evaluate families that are fitted to a small sample, and on a larger one if that does not decide.

        More rows are of most use to the most adaptive family, so it decides if that one is not clearly worse.
        """
        found: _Found = {}
        known = Known()
        for n_rows in COMPARED_ROWS:
            if found and self.workers.is_late():
                break
            part = Part.of(self.training, *one_part(self.training.rows, n_rows))
            found, known = self._evaluate([(f"{n_rows} rows", part)], families, 1, Known())
            deficit, error = compare(found[_best(found)], found[families[-1],])
            if deficit <= _CLEARLY_WORSE * error:
                break
        return found, known

    def _evaluate(
        self, parts: Sequence["_NamedPart"], families: Sequence[Family], max_size: int, known: Known
    ) -> tuple["_Found", Known]:
        """Fit families to all parts; the width of "rbf" is not searched for again if it is known."""
        settings = replace(self.settings, gamma=known.gamma, first_process=known.process)
        found: _Found = {}
        for (_, part), results in zip(parts, self._fit(parts, families, settings), strict=True):
            known = Known.of(results)
            latents = {
                family: results[family].model.latents_of_scaled(part.held_out.X) for family in families
            }
            for averaged in _averages(families, max_size):
                models = [results[family].model for family in averaged]
                model = Ensemble.of_families(models, part.training.rows, self.workers)
                of_models = [latent for family in averaged for latent in latents[family]]
                found.setdefault(averaged, []).append(validate(model, of_models, part.held_out))
        return found, known

    def _fit(
        self, parts: Sequence["_NamedPart"], families: Sequence[Family], settings: SearchSettings
    ) -> list[Results]:
        """Return the models of all families for each part; all of them are fitted side by side."""

        def of_part(name: str, part: Part) -> list[Callable[[Workers], Results]]:
            tasks = family_tasks(families, part.training, settings, "selection", self.callback)
            return [partial(_within, name, task) for task in tasks]

        tasks = [of_part(name, part) for name, part in parts]
        results = iter(self.workers.side_by_side([task for some in tasks for task in some]))
        return [dict(ChainMap(*(next(results) for _ in some))) for some in tasks]


_NamedPart: TypeAlias = tuple[str, Part]


def _within(name: str, task: Callable[[Workers], Results], workers: Workers) -> Results:
    """Do a task as a part of the fit with this name."""
    return task(workers.within(name))


def _simplest(why: str) -> Selection:
    """Return the selection if families cannot be compared."""
    return Selection(("rbf",), (), f"{why}; the simplest family is used.")


def _averages(families: Sequence[Family], max_size: int) -> list[tuple[Family, ...]]:
    """Return the families and the averages of up to `max_size` of them, the simplest first.

    They are ordered by their most adaptive family, then by the number of families.
    """
    order = list(FAMILIES)
    some = (chosen for size in range(1, max_size + 1) for chosen in combinations(families, size))
    return sorted(some, key=lambda chosen: (order.index(chosen[-1]), len(chosen)))


def _is_tried(family: Family, rows: TrainingRows, settings: SearchSettings) -> bool:
    """Return whether a family is tried; all but "rbf" take too long on large tables.

    "gp" has a function for each row, so it is not tried if their number is limited. Where it is tried, it
    takes the place of "ard", of which it is the limit of many functions. With one column, "ard" is the same
    as "rbf".
    """
    n, d = rows.X.shape
    dense = n <= _MAX_GP_ROWS and d <= _MAX_MIXED_COLUMNS and settings.max_vectors == np.inf
    limits = {
        "rbf": True,
        "ard": n <= _MAX_ARD_ROWS and d > 1 and not dense,
        "mixed": d <= _MAX_MIXED_COLUMNS,
        "gp": dense,
    }
    return bool(limits[family])


_Found: TypeAlias = dict[tuple[Family, ...], list[Validation]]  # one validation for each fold


def _best(found: _Found) -> tuple[Family, ...]:
    """Return the candidate with the best mean log score, compared pairwise on common rows."""
    best, *others = found
    for families in others:
        if compare(found[families], found[best])[0] > 0:
            best = families
    return best


def _of_all_folds(found: _Found) -> _Found:
    """Return the candidates that were not dropped after a fold."""
    most = max(map(len, found.values()))
    return {families: validations for families, validations in found.items() if len(validations) == most}


def _sparse_and_dense(found: _Found) -> tuple[_Found, _Found]:
    """Return the candidates without "gp", and those with it."""
    sparse = {families: validations for families, validations in found.items() if "gp" not in families}
    return sparse, {families: found[families] for families in found if families not in sparse}


def _eligible(found: _Found) -> _Found:
    """Return the candidates without "gp", or those with it if the others are worse by a standard error.

    A function for each row has its price: predictions take longer, and the model is hard to describe.
    """
    sparse, dense = _sparse_and_dense(found)
    if not sparse or not dense:
        return found
    return sparse if is_close(found[_best(dense)], found[_best(sparse)], _WORTH_A_DENSE_MODEL) else dense


def _contenders(found: _Found) -> list[tuple[Family, ...]]:
    """Return the candidates that may still be selected after further folds."""
    sparse, dense = _sparse_and_dense(found)
    if dense and not is_close(found[_best(sparse)], found[_best(dense)], _DENSE_GIVEN_UP):
        found = sparse
    best = _best(found)
    return [families for families in found if is_close(found[best], found[families], _GIVEN_UP)]


def _chosen(found: _Found, *, folded: bool) -> tuple[Family, ...]:
    """Return the simplest candidate, or on a sample the most adaptive, that is not clearly worse."""
    eligible = _eligible(_of_all_folds(found))
    leader = _best(eligible)
    # On a sample, prefer the more adaptive family: it gains more from the full data.
    preferred = list(eligible) if folded else reversed(list(eligible))
    return next(
        families for families in preferred if is_close(found[leader], found[families], _CLEARLY_WORSE)
    )


def _select(found: _Found, *, folded: bool) -> Selection:
    best, chosen = _best(_of_all_folds(found)), _chosen(found, folded=folded)
    trials = []
    for families, validations in found.items():
        deficit, error = compare(found[best], validations)
        log_p = np.concatenate([v.log_p for v in validations])
        log_score = float(np.average(log_p, weights=np.concatenate([v.weight for v in validations])))
        n_vectors = float(np.mean([v.n_functions for v in validations]))
        trials.append(FamilyTrial(families, log_score, deficit, error, n_vectors, len(validations)))
    n_folds = len(found[best])
    where = f"on held-out rows ({n_folds} fold{'s' * (n_folds > 1)})" if folded else "on held-out rows"
    if chosen == best:
        reason = f"best log score {where}."
    else:
        advantage = "simpler" if folded else "more adaptive"
        reason = f"{advantage} than {_name(best)}, whose log score {where} is not clearly better."
    temperature = choose_temperature(found[chosen]) if folded else Temperature()
    return Selection(chosen, tuple(trials), reason, temperature)
