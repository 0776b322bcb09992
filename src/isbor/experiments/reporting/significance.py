r"""Tests that compare models over splits and over tasks by an error: less is better.

*Pairs of models on one task.* Wilcoxon's signed-rank test, two-sided: the ranks of the absolute differences,
zeros left out, are summed by sign; under the null hypothesis, each sign has probability 1/2. The p-value is
exact, also with ties. The level is divided by :math:`k(k-1)` for k models. As in the paper (Li &
de Rijke, 2018), a model with an unfinished run loses without a test to a model that finished all its runs. If
both have unfinished runs, it is a draw.

*All models over N tasks.* Ranks :math:`r_{ij}` of the mean errors on each task, tied ones shared, with means
:math:`R_j` and :math:`\bar r = (k+1)/2` (Friedman; Iman & Davenport, 1980; Demšar, 2006):

.. math::
    \chi^2 = \frac{N (k-1)\, N \sum_j (R_j - \bar r)^2}{\sum_{ij} (r_{ij} - \bar r)^2}, \qquad
    F = \frac{(N-1) \chi^2}{N(k-1) - \chi^2} .

F is reported, with :math:`k-1` and :math:`(k-1)(N-1)` degrees of freedom: with few tasks χ² is too
conservative. The sum over all ranks corrects both for ties. Two mean ranks differ if they are more than
:math:`q \sqrt{k(k+1)/(6N)}` apart (Nemenyi), q a quantile of the studentised range divided by √2.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np
from scipy import stats

from isbor._core.types import FloatArray

__all__ = [
    "Errors",
    "Friedman",
    "Outcome",
    "PairTest",
    "Tally",
    "friedman",
    "nemenyi_quantile",
    "pair_tests",
    "signed_rank_test",
    "smallest_p",
    "tally_pairs",
]

# By task, model and split. NaN is an unfinished run. Splits and models that were not run are left out.
Errors: TypeAlias = Mapping[str, Mapping[str, Mapping[int, float]]]
Outcome: TypeAlias = Literal["win", "draw", "loss"]

_FOR_THE_OTHER: Mapping[Outcome, Outcome] = {"win": "loss", "draw": "draw", "loss": "win"}
_DIGITS = 12  # relative to the largest error; smaller differences are rounding


@dataclass(frozen=True, slots=True)
class PairTest:
    """Two models on one task; NaN where no test was made."""

    task: str
    first: str
    second: str
    n_splits: int  # that both were run on and finished
    mean_difference: float  # error of the first less that of the second
    p_value: float
    outcome: Outcome  # for the first


@dataclass(frozen=True, slots=True)
class Tally:
    """Outcomes of a model against all others on all tasks."""

    wins: int
    draws: int
    losses: int


def tally_pairs(tests: Iterable[PairTest], models: Sequence[str]) -> dict[str, Tally]:
    """Return the wins, draws and losses of each model in these tests."""
    counts = {model: Counter[Outcome]() for model in models}
    for test in tests:
        counts[test.first][test.outcome] += 1
        counts[test.second][_FOR_THE_OTHER[test.outcome]] += 1
    return {model: Tally(count["win"], count["draw"], count["loss"]) for model, count in counts.items()}


def pair_tests(errors: Errors, models: Sequence[str], level: float = 0.1) -> tuple[PairTest, ...]:
    """Return the tests of all pairs of models on each task, each pair once.

    The winner of a significant test has the larger sum of ranks, which rarely is not the smaller mean error.
    A test is made on the splits that two models have in common, if both finished all their runs. If only one
    did, it wins; if neither did, it is a draw. A model that was not run on a task is not compared there.
    """
    _check(models)
    threshold = level / (len(models) * (len(models) - 1))
    tests: list[PairTest] = []
    for task, by_model in errors.items():
        for first, second in combinations([model for model in models if by_model.get(model)], 2):
            a, b = by_model[first], by_model[second]
            splits = [split for split in sorted(a.keys() & b.keys()) if not math.isnan(a[split] + b[split])]
            mean, p_value, outcome = math.nan, math.nan, _outcome(_complete(a) - _complete(b))
            if splits and _complete(a) and _complete(b):
                x, y = np.array([a[split] for split in splits]), np.array([b[split] for split in splits])
                mean = float(np.mean(x - y))
                p_value, advantage = signed_rank_test(_differences(y, x))
                outcome = _outcome(advantage if p_value <= threshold else 0)
            tests.append(PairTest(task, first, second, len(splits), mean, p_value, outcome))
    return tuple(tests)


def smallest_p(n_splits: int) -> float:
    """Return the smallest p-value that the signed-rank test can have with this many splits."""
    return min(1.0, 2.0 ** (1 - n_splits))


@dataclass(frozen=True, slots=True)
class Friedman:
    """Friedman's test: mean ranks of models over tasks, and whether they differ."""

    models: tuple[str, ...]
    mean_ranks: tuple[float, ...]  # 1 is best
    n_tasks: int
    statistic: float  # F; infinite if all tasks agree on the ranks
    p_value: float
    critical_difference: float  # of two mean ranks
    level: float

    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Return the largest groups of models, best first, whose mean ranks do not differ significantly.

        Groups may overlap; a model that differs from all others is in no group.
        """
        order = sorted(range(len(self.models)), key=lambda model: self.mean_ranks[model])
        found: list[tuple[str, ...]] = []
        last_end = 0
        for start, best in enumerate(order):
            limit = self.mean_ranks[best] + self.critical_difference
            end = sum(rank <= limit for rank in self.mean_ranks)
            if end > max(last_end, start + 1):
                found.append(tuple(self.models[model] for model in order[start:end]))
                last_end = end
        return tuple(found)


def friedman(errors: Errors, models: Sequence[str], level: float = 0.1) -> Friedman:
    """Test whether models differ over tasks.

    Means are over the splits that all models without unfinished runs have in common; models with unfinished
    runs share the last ranks. A task without such a split, or on which a model was not run, does not count.
    The p-value is at least the probability that random ranks agree perfectly: with few tasks, that of F would
    be too small.
    """
    _check(models)
    run_by_all = [by_model for by_model in errors.values() if all(by_model.get(model) for model in models)]
    ranked = [_ranks([by_model[model] for model in models]) for by_model in run_by_all]
    rows = [ranks for ranks in ranked if ranks is not None]
    n, k = len(rows), len(models)
    if n < 2:
        raise ValueError(
            f"{n} of {len(errors)} task(s) were run by all models and have a split that all complete models "
            "share; the Friedman test needs at least 2. Add tasks, or compare the models on one task with "
            "pair_tests."
        )
    ranks = np.array(rows)
    # N times the sums of squares, exact in floating point: zero where it should be.
    centred = ranks - (k + 1) / 2
    between = float(np.sum(centred.sum(axis=0) ** 2))
    within = n * float(np.sum(centred**2)) - between
    statistic = (n - 1) * between / within if within > 0.0 else (math.inf if between > 0.0 else 0.0)
    p_value = float(stats.f.sf(statistic, k - 1, (k - 1) * (n - 1)))
    return Friedman(
        models=tuple(models),
        mean_ranks=tuple(ranks.mean(axis=0).tolist()),
        n_tasks=n,
        statistic=statistic,
        p_value=max(p_value, _chance_of_agreement(ranks)),
        critical_difference=nemenyi_quantile(k, level) * math.sqrt(k * (k + 1) / (6 * n)),
        level=level,
    )


def nemenyi_quantile(n_models: int, level: float) -> float:
    """Return q of the critical difference, as in table 5(a) of Demšar (2006)."""
    return float(stats.studentized_range.ppf(1.0 - level, n_models, np.inf)) / math.sqrt(2.0)


def _check(models: Sequence[str]) -> None:
    if len(models) < 2 or len(set(models)) < len(models):
        raise ValueError(f"models are {list(models)}; at least 2, each named once, are needed to compare.")


def _complete(by_split: Mapping[int, float]) -> bool:
    """Return whether no run is unfinished."""
    return not any(map(math.isnan, by_split.values()))


def _ranks(by_model: Sequence[Mapping[int, float]]) -> FloatArray | None:
    """Return the ranks of the mean errors on common splits, None if there are none."""
    complete = [by_split for by_split in by_model if _complete(by_split)]
    splits = set.intersection(*(set(by_split) for by_split in complete)) if complete else set()
    if not splits:
        return None
    means = np.full(len(by_model), np.inf)
    for k, by_split in enumerate(by_model):
        if _complete(by_split):
            means[k] = math.fsum(by_split[split] for split in splits) / len(splits)
    unit = float(np.max(np.abs(means[np.isfinite(means)]))) or 1.0
    ranks: FloatArray = stats.rankdata(np.round(means / unit, _DIGITS))
    return ranks


def _differences(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a − b relative to the largest value, rounded so that equal errors tie."""
    unit = float(max(np.abs(a).max(), np.abs(b).max())) or 1.0
    differences: FloatArray = np.round((a - b) / unit, _DIGITS)
    return differences


def signed_rank_test(differences: FloatArray) -> tuple[float, int]:
    """Test differences, zeros left out, and return the exact two-sided p-value and whom the ranks favour.

    The second number is twice the rank sum of positive differences minus that of negative ones.
    """
    d = differences[differences != 0.0]
    # Twice the ranks are integers, also with ties. `chance` is the distribution of their positive sum.
    ranks = np.rint(2.0 * stats.rankdata(np.abs(d))).astype(int)
    chance = np.ones(1)
    for rank in ranks:
        longer = np.zeros(len(chance) + rank)
        longer[: len(chance)] += 0.5 * chance
        longer[rank:] += 0.5 * chance
        chance = longer
    above, below = int(ranks[d > 0.0].sum()), int(ranks[d < 0.0].sum())
    return min(1.0, 2.0 * float(chance[: min(above, below) + 1].sum())), above - below


def _outcome(advantage: int) -> Outcome:
    return "win" if advantage > 0 else "loss" if advantage < 0 else "draw"


def _chance_of_agreement(ranks: FloatArray) -> float:
    """Return a lower bound on the p-value of any ranks with these ties.

    Under the null hypothesis each task's ranks are a random permutation. Renaming the models keeps the
    statistic, and gives at least as many arrangements as the task with the fewest ties has permutations.
    """
    k = ranks.shape[1]
    log_orders = [
        math.lgamma(k + 1) - sum(math.lgamma(ties + 1) for ties in np.unique(row, return_counts=True)[1])
        for row in ranks
    ]
    return math.exp(max(log_orders) - sum(log_orders))
