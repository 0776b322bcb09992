"""The tables of the scoreboard: the first model of an experiment beside each other one, and ranks of all.

Models that have not run on all sets yet are left out, and a note names them. Those that failed are not.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from isbor.experiments import Model, Results, Task
from isbor.experiments.reporting.paired import PairedDifference
from isbor.experiments.reporting.significance import Friedman, Outcome
from isbor.experiments.reporting.tables.difference_tables import friedman_of, paired
from isbor.experiments.reporting.tables.model_tables import by_task
from isbor.experiments.reporting.tables.quantities import (
    AVERAGE_MAE,
    FIT_SECONDS,
    LOG_LOSS,
    MAE,
    RPS,
    SIZE,
    Quantity,
)
from isbor.experiments.reporting.tables.table import DASH, Entry, Mark, Table, number

__all__ = ["ERRORS", "MEASURES", "of_models_that_ran", "of_sets", "scoreboard_tables", "tables_for"]

ERRORS: Mapping[str, Quantity] = {"MAE": MAE, "average MAE": AVERAGE_MAE, "RPS": RPS, "log loss": LOG_LOSS}
"""What models are compared by, by the heads of columns; less is better."""
MEASURES: Mapping[str, Quantity] = {**ERRORS, "seconds": FIT_SECONDS, "size": SIZE}
"""All that is shown."""
_RANKED = {**ERRORS, "seconds": FIT_SECONDS}
_ONE_ERROR = 1.0
_MARKS: Mapping[Outcome, Mark] = {"win": "best", "draw": "", "loss": "second"}
_NAMES = {"MAE": "mae", "average MAE": "average-mae", "RPS": "rps", "log loss": "log-loss"}
_DIGITS = {"MAE": 3, "average MAE": 3, "RPS": 4, "log loss": 3}


def scoreboard_tables(results: Results) -> dict[str, Table]:
    """Return the tables by name, of the models that ran on all sets."""
    made = {name: make(results) for name, make in tables_for().items()}
    return {name: table for name, table in made.items() if table is not None}


def tables_for() -> dict[str, Callable[[Results], Table | None]]:
    """Return how each table is made from results, by its name."""
    return {
        "summary": _of_those_that_ran(summary),
        "ranks": _of_those_that_ran(ranks),
        "outcomes": _of_those_that_ran(outcomes),
        **{
            _NAMES.get(head, head): _of_those_that_ran(_by_set(head, quantity))
            for head, quantity in MEASURES.items()
        },
        **{f"{_NAMES[head]}-differences": _of_those_that_ran(_differences(head)) for head in ERRORS},
    }


def of_sets(results: Results, tasks: Sequence[Task]) -> Results | None:
    """Return the results on some of the sets, None if there are no sets."""
    names = [task.name for task in tasks]
    if not names:
        return None
    kept = {place: records for place, records in results.records.items() if place[0] in names}
    return Results(results.experiment.only(tasks=names), kept)


def of_models_that_ran(results: Results) -> Results | None:
    """Return the results of the models that ran on all sets; None without the first and another one."""
    experiment = results.experiment
    ran = [
        model.name
        for model in experiment.models
        if all(results.records[task.name, model.name] for task in experiment.tasks)
    ]
    if len(ran) < 2 or ran[0] != experiment.models[0].name:
        return None
    kept = {place: records for place, records in results.records.items() if place[1] in ran}
    return Results(experiment.only(models=ran), kept)


def ranks(results: Results) -> Table | None:
    """Return the mean ranks of the models by each measure, best MAE first."""
    found = {head: friedman_of(results, quantity) for head, quantity in _RANKED.items()}
    known = {head: test for head, test in found.items() if test is not None}
    if "MAE" not in known:
        return None
    by_model = {head: dict(zip(test.models, test.mean_ranks, strict=True)) for head, test in known.items()}
    order = sorted(results.experiment.models, key=lambda model: by_model["MAE"][model.name])
    best = {head: min(of_model.values()) for head, of_model in by_model.items()}
    rows = tuple(
        (Entry(model.title), *(_rank(by_model[head].get(model.name), best[head]) for head in known))
        for model in order
    )
    notes = (
        "1 is best. Means over the sets on which all models with this measure were run, by means over the "
        "splits that they share; models with unfinished runs share the last ranks.",
        *(_tested(head, test) for head, test in known.items()),
    )
    return Table("Mean ranks", ("", *known), rows, notes)


def summary(results: Results) -> Table | None:
    """Return mean ranks by three errors, and how often the first model wins by log loss, in one table."""
    heads = ("MAE", "RPS", "log loss")
    tests = [friedman_of(results, ERRORS[head]) for head in heads]
    known = [test for test in tests if test is not None]
    if len(known) < len(heads):
        return None
    ranks_of = [dict(zip(test.models, test.mean_ranks, strict=True)) for test in known]
    first = results.experiment.models[0]
    rows = []
    for model in sorted(results.experiment.models, key=lambda model: ranks_of[-1].get(model.name, np.inf)):
        found = [] if model is first else _on_all_sets(results, first, model, LOG_LOSS)
        of_ranks = (_rank(of.get(model.name), min(of.values())) for of in ranks_of)
        rows.append((Entry(model.title), *of_ranks, Entry(_counted(found))))
    note = (
        f"Mean ranks on {known[0].n_tasks} sets, 1 is best. Wins/draws/losses of {first.title} by log loss; "
        "a draw is within one corrected standard error."
    )
    header = ("", *(f"rank by {head}" for head in heads), "wins/draws/losses")
    return Table("Mean ranks and outcomes", header, tuple(rows), (note,))


def outcomes(results: Results) -> Table | None:
    """Return how often the first model wins, draws and loses against each other, by each error."""
    first, *others = results.experiment.models
    rows = []
    for other in others:
        entries = [_counted(_on_all_sets(results, first, other, quantity)) for quantity in ERRORS.values()]
        rows.append((Entry(other.title), *map(Entry, entries)))
    note = (
        f"Wins/draws/losses of {first.title}, one for each set. A draw is within one standard error, "
        "corrected for the rows that splits share (Nadeau & Bengio, 2003). Even between equal models about a "
        "third of the sets is decided, by chance."
    )
    return Table(f"{first.title} against each other model", ("", *ERRORS), tuple(rows), (note,))


def _by_set(head: str, quantity: Quantity) -> Callable[[Results], Table | None]:
    """Return a function that makes a table of sets × models; ± would make it too wide."""
    digits = _DIGITS.get(head)
    shown = quantity
    if digits is not None:
        shown = replace(quantity, show=lambda values: number(float(values.mean()), digits))

    def make(results: Results) -> Table | None:
        table = by_task(results, shown, show_all=True)
        if not table.rows:
            return None
        return _transposed(_unmarked(table) if head == "size" else table)

    return make


def _differences(head: str) -> Callable[[Results], Table]:
    """Return a function that makes a table of the first model less each other, sets × models."""
    digits = _DIGITS[head]

    def shown(difference: PairedDifference | None) -> Entry:
        if difference is None:
            return Entry(DASH)
        text = f"{difference.mean:+.{digits}f} ± {number(difference.corrected_error, digits)}"
        return Entry(text, _MARKS[difference.beyond(_ONE_ERROR)])

    def make(results: Results) -> Table:
        first, *others = results.experiment.models
        rows = tuple(
            (
                Entry(task.title),
                *(shown(paired(results, task, first, other, ERRORS[head])) for other in others),
            )
            for task in results.experiment.tasks
        )
        note = (
            f"Mean difference over common splits ± its corrected standard error; below zero {first.title} is "
            "better; in bold, or in italics if it is worse, by more than one standard error."
        )
        titles = (other.title for other in others)
        return Table(f"{head} of {first.title} less that of the others", ("", *titles), rows, (note,))

    return make


def _of_those_that_ran(make: Callable[[Results], Table | None]) -> Callable[[Results], Table | None]:
    """Return the function for the models that ran on all sets; it notes what is still to be run."""

    def make_of_some(results: Results) -> Table | None:
        part = of_models_that_ran(results)
        table = None if part is None else make(part)
        if part is None or table is None:
            return None
        notes, missing = list(table.notes), part.counts["missing"]
        if missing:
            notes.append(f"{missing:,} of {len(part.experiment.jobs()):,} records are still to be made.")
        ran = {model.name for model in part.experiment.models}
        others = [model.title for model in results.experiment.models if model.name not in ran]
        if others:
            notes.append(f"Still to be run: {', '.join(others)}.")
        return replace(table, notes=tuple(notes))

    return make_of_some


def _on_all_sets(results: Results, first: Model, other: Model, quantity: Quantity) -> list[PairedDifference]:
    found = (paired(results, task, first, other, quantity) for task in results.experiment.tasks)
    return [difference for difference in found if difference is not None]


def _counted(found: Sequence[PairedDifference]) -> str:
    """Return the numbers of wins, draws and losses."""
    count = Counter(difference.beyond(_ONE_ERROR) for difference in found)
    return "/".join(str(count[outcome]) for outcome in ("win", "draw", "loss")) if count else DASH


def _rank(rank: float | None, best: float) -> Entry:
    return Entry(DASH) if rank is None else Entry(number(rank, 1), "best" if rank == best else "")


def _tested(head: str, test: Friedman) -> str:
    """Return what Friedman's and Nemenyi's tests say."""
    p_value = "p < 0.001" if test.p_value < 0.001 else f"p = {test.p_value:.2g}"
    return (
        f"By {head}: {test.n_tasks} sets, Friedman's {p_value}; two of the {len(test.models)} models differ "
        f"at level {test.level:g} if their ranks are over {test.critical_difference:.1f} apart (Nemenyi)."
    )


def _unmarked(table: Table) -> Table:
    """Return the table without marks: functions, support vectors and trees are not of a kind."""
    rows = tuple(tuple(Entry(entry.text) for entry in row) for row in table.rows)
    return replace(table, rows=rows, notes=("Means over the splits.", *table.notes[1:]))


def _transposed(table: Table) -> Table:
    """Return rows as columns and columns as rows."""
    corner, *heads = table.header
    names = (corner, *(row[0].text for row in table.rows))
    columns = zip(*(row[1:] for row in table.rows), strict=True)
    rows = tuple((Entry(head), *column) for head, column in zip(heads, columns, strict=True))
    return replace(table, header=names, rows=rows)
