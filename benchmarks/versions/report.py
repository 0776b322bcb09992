"""What records of two versions say: seconds and errors side by side, and peers in a table of their own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean, geometric_mean, median

import numpy as np

from benchmarks.versions.problems import Grades, Problem
from benchmarks.versions.running import VERSIONS, Plan
from isbor.experiments import Record
from isbor.experiments.reporting.paired import paired_difference
from isbor.experiments.reporting.tables.table import Entry, Table, number, seconds

__all__ = ["peer_table", "version_table"]

_ERRORS = {"mae": "MAE", "rps": "RPS", "log_loss": "log loss"}
_Found = Mapping[tuple[int, int], Record]  # by split and repeat


@dataclass(frozen=True, slots=True)
class _Comparison:
    problem: Problem
    size: str
    seconds: tuple[float, float]  # before and now
    ratio: float
    numbers: dict[str, tuple[float, float]]  # functions and errors
    difference: float  # in log loss, now less before
    error: float  # its standard error; NaN for a single split


def version_table(plan: Plan, known: Mapping[str, Record]) -> Table:
    """Return the table of the two versions, with a mean for each group of problems."""
    compared = [found for problem in plan.problems if (found := _compared(plan, problem, known))]
    rows = []
    for group, members in groupby(compared, lambda found: found.problem.group):
        found = list(members)
        rows += [(one.problem.name, one.size, *_times([one], plan), *_cells([one])) for one in found]
        if len(found) > 1:
            rows.append((f"{group}: mean of {len(found)}", "", *_times(found, plan), *_cells(found)))
    times = (
        "Seconds of one fit, and the ratio of two fits made one after the other: medians; the mean of ratios "
        "is geometric. "
    )
    notes = (
        f"Before: {plan.base[:10]}. {times if plan.timed else ''}"
        "Functions and errors: means over splits. Difference in log loss, now less before, ± its standard "
        "error, corrected for the rows that splits share (Nadeau & Bengio, 2003). The error of a mean "
        "difference takes the problems as independent.",
    )
    timed = ("before, s", "now, s", "now / before") if plan.timed else ()
    header = ("problem", "rows × columns", *timed, "functions", *_ERRORS.values(), "difference in log loss")
    return Table("Before → now", header, _entries(rows), notes, n_text=2)


def peer_table(plan: Plan, known: Mapping[str, Record]) -> Table:
    """Return seconds and errors of the peers beside the present version."""
    rows = []
    for problem in plan.problems:
        for model in (VERSIONS[1], *plan.peers):
            found = list(_found(plan, problem, model, known).values())
            if found:
                took = seconds(median(record.seconds["fit"] for record in found))
                means = (fmean(record.metrics[name] for record in found) for name in _ERRORS)
                rows.append((problem.name, model, took, *(number(mean, 4) for mean in means)))
    notes = ("Median seconds of one fit; mean errors over splits. Peers have their defaults.",)
    return Table("Peers", ("problem", "model", "seconds", *_ERRORS.values()), _entries(rows), notes, n_text=2)


def _compared(plan: Plan, problem: Problem, known: Mapping[str, Record]) -> _Comparison | None:
    """Return what the fits that both versions have say, None if there is none."""
    before, now = (_found(plan, problem, model, known) for model in VERSIONS)
    common = [place for place in plan.places if place in before and place in now]
    if not common:
        return None

    def both(of: Callable[[Record], float], centre: Callable[[list[float]], float]) -> tuple[float, float]:
        one, other = (centre([of(found[place]) for place in common]) for found in (before, now))
        return one, other

    losses = [{place[0]: found[place].metrics["log_loss"] for place in common} for found in (now, before)]
    record = now[common[0]]
    shared = 0.0 if isinstance(problem.table, Grades) else record.n_test / record.n_train
    difference = paired_difference(*losses, shared)
    assert difference is not None
    return _Comparison(
        problem,
        f"{record.n_train:,} × {record.parameters['columns']:,}",
        both(lambda record: record.seconds["fit"], median),
        median(now[place].seconds["fit"] / before[place].seconds["fit"] for place in common),
        {
            "functions": both(lambda record: float(record.vectors or 0), fmean),
            **{name: both(lambda record, name=name: record.metrics[name], fmean) for name in _ERRORS},
        },
        difference.mean,
        difference.corrected_error,
    )


def _found(plan: Plan, problem: Problem, model: str, known: Mapping[str, Record]) -> _Found:
    records = {place: known.get(plan.key(problem, model, place)) for place in plan.places}
    return {place: record for place, record in records.items() if record is not None and record.ok}


def _times(found: Sequence[_Comparison], plan: Plan) -> list[str]:
    """Return the seconds of a single problem, and the mean ratio; nothing if there are none to compare."""
    if not plan.timed:
        return []
    taken = map(seconds, found[0].seconds) if len(found) == 1 else ("", "")
    return [*taken, number(geometric_mean(one.ratio for one in found), 3)]


def _cells(found: Sequence[_Comparison]) -> list[str]:
    """Return before → now of functions and errors, and the difference: means over problems."""
    cells = []
    for name in found[0].numbers:
        before, now = np.mean([one.numbers[name] for one in found], axis=0)
        digits = 1 if name == "functions" else 4
        cells.append(f"{number(before, digits)} → {number(now, digits)}")
    error = float(np.linalg.norm([one.error for one in found])) / len(found)
    return [*cells, f"{fmean(one.difference for one in found):+.4f} ± {number(error, 4)}"]


def _entries(rows: Sequence[Sequence[str]]) -> tuple[tuple[Entry, ...], ...]:
    return tuple(tuple(map(Entry, row)) for row in rows)
