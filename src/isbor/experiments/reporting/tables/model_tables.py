"""Tables of models: results by task or by quantity, and unfinished runs.

Entries are means over finished splits. If these are fewer than planned, their number stands in brackets; if
there are none, the entry is a dash, and the table of unfinished runs says why. The best is marked by the
splits that all models with results have finished, as others may be easier or harder.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from isbor._core.types import FloatArray
from isbor.experiments.description.experiment import Experiment
from isbor.experiments.description.tasks import Task
from isbor.experiments.reporting.results import Results
from isbor.experiments.reporting.tables.quantities import (
    ACCURACY,
    LOG_LOSS,
    MAE,
    RPS,
    SECONDS,
    VECTORS,
    Quantity,
)
from isbor.experiments.reporting.tables.table import DASH, Entry, Table, mark_best

__all__ = ["by_quantity", "by_task", "show_values", "unfinished"]

_FEWER = "In brackets: the number of splits, if fewer. Marks are by common splits."


def by_task(results: Results, quantity: Quantity, *, show_all: bool = False) -> Table:
    """Return a table of models × tasks, best and second best of each task marked.

    Models without any entry are left out unless `show_all` is set.
    """
    experiment = results.experiment
    found = [
        [results.by_split(task.name, model.name, quantity.of) for model in experiment.models]
        for task in experiment.tasks
    ]
    planned = [_planned(experiment, task) for task in experiment.tasks]
    columns = [_column(values, quantity, n_splits) for values, n_splits in zip(found, planned, strict=True)]
    rows = [
        (Entry(model.title), *(column[k] for column in columns))
        for k, model in enumerate(experiment.models)
        if any(column[k].text != DASH for column in columns) or show_all
    ]
    notes = [_means_of(experiment)]
    if any(
        0 < len(values) < n_splits
        for of_task, n_splits in zip(found, planned, strict=True)
        for values in of_task
    ):
        notes.append(_FEWER)
    if any(entry.text == DASH for row in rows for entry in row):
        notes.append(f"{DASH}: {_why_none(results)}.")
    return Table(
        quantity.name,
        ("", *(task.title for task in experiment.tasks)),
        tuple(rows) if any(entry.text != DASH for column in columns for entry in column) else (),
        tuple(notes),
    )


def by_quantity(results: Results) -> Table:
    """Return a table of models × quantities for the only task."""
    experiment = results.experiment
    (task,) = experiment.tasks
    quantities = {
        "MAE": MAE,
        "accuracy": ACCURACY,
        "RPS": RPS,
        "log loss": LOG_LOSS,
        "vectors": VECTORS,
        "seconds": SECONDS,
    }
    columns = [
        _column(
            [results.by_split(task.name, model.name, quantity.of) for model in experiment.models], quantity
        )
        for quantity in quantities.values()
    ]
    rows = []
    for k, model in enumerate(experiment.models):
        n_done = len(results.finished(task.name, model.name))
        fewer = f" [{n_done}]" if n_done < experiment.splits else ""
        rows.append((Entry(f"{model.title}{fewer}"), *(column[k] for column in columns)))
    notes = [
        _means_of(experiment),
        "MAE, RPS and log loss are errors: lower is better. Seconds: search and fit, median.",
    ]
    if any(entry[0].text.endswith("]") for entry in rows):
        notes.append(_FEWER)
    return Table(task.title, ("", *quantities), tuple(rows), tuple(notes))


def unfinished(results: Results) -> Table:
    """Return the runs that timed out or failed, with the reasons."""
    experiment = results.experiment
    rows = []
    for model in experiment.models:
        where: dict[tuple[str, str], Counter[str]] = {}
        for task in experiment.tasks:
            for record in results.records[task.name, model.name]:
                if not record.ok:
                    where.setdefault((record.status, record.reason), Counter())[task.title] += 1
        rows += [
            tuple(map(Entry, (model.title, status, _listed(splits), reason)))
            for (status, reason), splits in where.items()
        ]
    return Table("Unfinished runs", ("model", "status", "data (splits)", "reason"), tuple(rows), n_text=4)


def show_values(values: Mapping[int, float], quantity: Quantity, planned: int = 0) -> str:
    """Return the entry for values by split, with their number if they are fewer than planned."""
    if not values:
        return DASH
    fewer = f" [{len(values)}]" if len(values) < planned else ""
    return quantity.show(_array(values.values())) + fewer


def _column(found: Sequence[Mapping[int, float]], quantity: Quantity, planned: int = 0) -> list[Entry]:
    """Return the entries of a column, best and second best on common splits marked."""
    entries = [Entry(show_values(values, quantity, planned)) for values in found]
    competing = [k for k, values in enumerate(found) if values]
    common = set.intersection(*(set(found[k]) for k in competing)) if competing else set()
    if common:
        shared = [_array(found[k][split] for split in sorted(common)) for k in competing]
        marked = mark_best(
            [float(quantity.centre(values)) for values in shared],
            [quantity.show(values) for values in shared],
            lowest=quantity.lowest_is_best,
        )
        for k, entry in zip(competing, marked, strict=True):
            entries[k] = Entry(entries[k].text, entry.mark)
    return entries


def _listed(splits: Mapping[str, int]) -> str:
    return ", ".join(f"{title} ({n_splits})" for title, n_splits in splits.items())


def _array(values: Iterable[float]) -> FloatArray:
    return np.array(list(values), dtype=np.float64)


def _planned(experiment: Experiment, task: Task) -> int:
    """Return the number of splits of a data set that at least one model is to run on."""
    limits = [experiment.model_on(task, model).splits_at_most for model in experiment.models]
    return max(experiment.splits if limit is None else min(limit, experiment.splits) for limit in limits)


def _means_of(experiment: Experiment) -> str:
    planned = [_planned(experiment, task) for task in experiment.tasks]
    fewest, most = min(planned), max(planned)
    splits = f"{most} split{'s' * (most > 1)}" if fewest == most else f"{fewest} to {most} splits"
    return f"Over {splits}. Best in bold, second best in italics."


def _why_none(results: Results) -> str:
    """Return what a dash may mean, with the limits of unfinished runs."""
    limits = {record.limits_in_words for record in results.all_records if not record.ok}
    within = f" within {limits.pop()}, search included" if len(limits) == 1 else ""
    elsewhere = " within the limits in the table of unfinished runs" if len(limits) > 1 else ""
    not_yet = ", or not run yet" if results.counts["missing"] else ""
    return f"no result{within or elsewhere}{not_yet}"
