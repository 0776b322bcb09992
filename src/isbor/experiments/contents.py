"""What a report holds: the tables that a set of results gives rise to.

Entries are means over the splits that have a result. Where a model has a result on fewer splits than were
asked for, their number stands in brackets; where it has none, there is a dash, and the table of what did not
end says why. Which is best is judged on the splits that all models with a result have: others may be easier
or harder.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from isbor.arrays import FloatArray
from isbor.experiments.description import Experiment
from isbor.experiments.paper import PAPER_MAE, PAPER_ROWS, PAPER_SECONDS, PAPER_TALLIES, PAPER_VECTORS
from isbor.experiments.records import Record
from isbor.experiments.results import Results
from isbor.experiments.significance import Friedman, corrected_t_test, friedman, smallest_p, tally_pairs
from isbor.experiments.tables import DASH, Entry, Table, mark_best, mean_and_deviation, number, seconds
from isbor.experiments.tasks import BenchmarkData, CrossValidation, Holdout, Task

__all__ = ["LEVEL", "TABLE_NAMES", "friedman_of", "study_tables"]

LEVEL = 0.1  # of significance, as in the paper
TABLE_NAMES = (
    *("summary", "mae", "log-loss", "rps", "seconds", "seconds-with-search", "vectors", "memory"),
    *("differences", "wilcoxon", "ranks", "paper", "unfinished"),
)
"""The tables that there may be."""
_DIGITS = 3
_FEWER = "In brackets: the number of splits, where it is smaller. Marks are by the splits that all have."


def study_tables(results: Results) -> dict[str, Table]:
    """Return the tables of a report, by names that serve for files."""
    tables = {"summary": _summary(results)} if len(results.experiment.tasks) == 1 else {}
    if len(results.experiment.tasks) > 1:
        tables["mae"] = _by_task(
            results,
            "Mean absolute error",
            _metric("mae"),
            lambda values: mean_and_deviation(values, _DIGITS),
            show_all=True,
        )
        tables["log-loss"] = _by_task(
            results,
            "Log loss of the probabilities",
            _metric("log_loss"),
            lambda values: _mean(values, _DIGITS),
        )
        tables["rps"] = _by_task(
            results,
            "Ranked probability score",
            _metric("rps"),
            lambda values: _mean(values, 4),
        )
        tables["seconds"] = _by_task(
            results,
            "Seconds of one fit (median), search not included",
            _seconds("fit"),
            _median_seconds,
            centre=np.median,
        )
        tables["seconds-with-search"] = _by_task(
            results,
            "Seconds of search and fit (median)",
            _seconds("search", "fit"),
            _median_seconds,
            centre=np.median,
        )
        tables["vectors"] = _by_task(
            results,
            "Relevance or support vectors",
            lambda record: None if record.vectors is None else float(record.vectors),
            lambda values: _mean(values, 1),
        )
        tables["memory"] = _by_task(
            results,
            "Peak memory in megabytes, libraries included",
            lambda record: record.peak_memory,
            lambda values: _mean(values, 0),
        )
    if len(results.experiment.models) > 1:
        if results.experiment.cross_validated:
            tables["differences"] = _differences(results)
        else:
            tables["wilcoxon"] = _tallies(results)
        found = friedman_of(results)
        if found is not None:
            tables["ranks"] = _mean_ranks(found, results.experiment)
    if all(
        isinstance(task.source, BenchmarkData) and task.source.name == task.name
        for task in results.experiment.tasks
    ):
        tables["paper"] = _beside_the_paper(results)
    if results.counts["timeout"] or results.counts["failed"]:
        tables["unfinished"] = _unfinished(results)
    return {name: table for name, table in tables.items() if table.rows}


def friedman_of(results: Results) -> Friedman | None:
    """Return the test of all models over all data sets, None where there is too little for one.

    The same data in several sizes are no independent tasks: the last of them counts, usually the largest.
    """
    errors = results.errors()
    last = {task.source: task.name for task in results.experiment.tasks}
    try:
        return friedman(
            {name: errors[name] for name in last.values()},
            [model.name for model in results.experiment.models],
            LEVEL,
        )
    except ValueError:
        return None


def _metric(name: str) -> Callable[[Record], float | None]:
    return lambda record: record.metrics.get(name)


def _seconds(*parts: str) -> Callable[[Record], float | None]:
    return lambda record: sum(record.seconds[part] for part in parts)


def _mean(values: FloatArray, digits: int) -> str:
    return number(float(values.mean()), digits)


def _median_seconds(values: FloatArray) -> str:
    return seconds(float(np.median(values)))


def _by_task(
    results: Results,
    title: str,
    of: Callable[[Record], float | None],
    show: Callable[[FloatArray], str],
    centre: Callable[[FloatArray], np.floating[Any]] = np.mean,
    *,
    show_all: bool = False,
) -> Table:
    """Return a table of models × tasks, the best and the second best of each task, by `centre`, marked.

    Models without any entry are left out, unless `show_all` says otherwise.
    """
    experiment = results.experiment
    columns, some_fewer = [], False
    for task in experiment.tasks:
        found = [results.by_split(task.name, model.name, of) for model in experiment.models]
        marked = _column(found, show, centre)
        for k, values in enumerate(found):
            if 0 < len(values) < experiment.splits:
                some_fewer = True
                marked[k] = Entry(f"{marked[k].text} [{len(values)}]", marked[k].mark)
        columns.append(marked)
    rows = [
        (Entry(model.title), *(column[k] for column in columns))
        for k, model in enumerate(experiment.models)
        if any(column[k].text != DASH for column in columns) or show_all
    ]
    notes = [_means_of(experiment)]
    if some_fewer:
        notes.append(_FEWER)
    if any(entry.text == DASH for row in rows for entry in row):
        notes.append(f"{DASH}: {_why_none(results)}.")
    return Table(
        title,
        ("", *(task.title for task in experiment.tasks)),
        tuple(rows) if any(entry.text != DASH for column in columns for entry in column) else (),
        tuple(notes),
    )


def _column(
    found: Sequence[Mapping[int, float]],
    show: Callable[[FloatArray], str],
    centre: Callable[[FloatArray], np.floating[Any]],
    *,
    lowest: bool = True,
) -> list[Entry]:
    """Return what each model has by split, the best and the second best on common splits marked."""
    entries = [Entry(show(_array(values.values())) if values else DASH) for values in found]
    competing = [k for k, values in enumerate(found) if values]
    common = set.intersection(*(set(found[k]) for k in competing)) if competing else set()
    if common:
        shared = [_array(found[k][split] for split in sorted(common)) for k in competing]
        marked = mark_best(
            [float(centre(values)) for values in shared], [show(values) for values in shared], lowest=lowest
        )
        for k, entry in zip(competing, marked, strict=True):
            entries[k] = Entry(entries[k].text, entry.mark)
    return entries


def _array(values: Iterable[float]) -> FloatArray:
    return np.array(list(values), dtype=np.float64)


def _means_of(experiment: Experiment) -> str:
    splits = f"{experiment.splits} split{'s' * (experiment.splits > 1)}"
    return f"Over {splits}. Best in bold, second best in italics."


def _why_none(results: Results) -> str:
    """Return what a dash may mean, with the limits that those had who did not end."""
    limits = {record.allowance for record in results.all_records if not record.ok}
    within = f" within {limits.pop()}, search included" if len(limits) == 1 else ""
    elsewhere = " within the limits that the table of what did not end tells" if len(limits) > 1 else ""
    not_yet = ", or not run yet" if results.counts["missing"] else ""
    return f"no result of this sort{within or elsewhere}{not_yet}"


def _summary(results: Results) -> Table:
    """Return a table of models × measures for the only task."""
    experiment = results.experiment
    (task,) = experiment.tasks
    measures: list[tuple[str, Callable[[Record], float | None], Callable[[FloatArray], str]]] = [
        ("MAE", _metric("mae"), lambda values: mean_and_deviation(values, _DIGITS)),
        ("accuracy", _metric("accuracy"), lambda values: _mean(values, _DIGITS)),
        ("RPS", _metric("rps"), lambda values: _mean(values, 4)),
        ("log loss", _metric("log_loss"), lambda values: _mean(values, _DIGITS)),
        ("vectors", lambda record: record.vectors, lambda values: _mean(values, 1)),
        ("seconds", _seconds("search", "fit"), _median_seconds),
    ]
    columns = []
    for name, of, show in measures:
        found = [results.by_split(task.name, model.name, of) for model in experiment.models]
        centre = np.median if name == "seconds" else np.mean
        columns.append(_column(found, show, centre, lowest=name != "accuracy"))
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
    return Table(task.title, ("", *(name for name, *_ in measures)), tuple(rows), tuple(notes))


def _tallies(results: Results) -> Table:
    """Return wins, draws and losses by Wilcoxon's test on the mean absolute error."""
    experiment = results.experiment
    models = [model.name for model in experiment.models]
    errors = results.errors()
    tallies = tally_pairs(errors, models, LEVEL)
    level = LEVEL / (len(models) * (len(models) - 1))
    notes = [
        f"Signed-rank tests of all pairs of models on each data set; a p-value of at most {LEVEL:g}/"
        f"{len(models) * (len(models) - 1)} = {level:.2g} counts. Who was run and has no result loses to who "
        "has one."
    ]
    if smallest_p(experiment.splits) > level:
        notes.append(
            f"On {experiment.splits} splits no p-value is below {smallest_p(experiment.splits):.2g}: only "
            "failures can decide."
        )
    fewest = min(
        (len(of_model) for of_task in errors.values() for of_model in of_task.values() if of_model), default=0
    )
    if 0 < fewest < experiment.splits and smallest_p(fewest) > level >= smallest_p(experiment.splits):
        notes.append(f"Some models have {fewest} splits, too few for a significant difference.")
    rows = tuple(
        (
            Entry(model.title),
            *map(
                Entry,
                (
                    str(tallies[model.name].wins),
                    str(tallies[model.name].draws),
                    str(tallies[model.name].losses),
                ),
            ),
        )
        for model in experiment.models
    )
    return Table(
        "Significant differences in mean absolute error", ("", "wins", "draws", "losses"), rows, tuple(notes)
    )


def _differences(results: Results) -> Table:
    """Return the differences of all pairs on each cross-validated task, with corrected t-tests."""
    experiment = results.experiment
    errors = results.errors()
    rows = []
    for task in experiment.tasks:
        for first, second in combinations(experiment.models, 2):
            ours, theirs = (errors[task.name].get(model.name, {}) for model in (first, second))
            common = sorted(ours.keys() & theirs.keys())
            if not common:
                continue
            difference = np.array([ours[split] - theirs[split] for split in common])
            p_value = corrected_t_test(difference, _test_share(results, task))
            rows.append(
                (
                    Entry(f"{first.title} less {second.title}"),
                    *([Entry(task.title)] if len(experiment.tasks) > 1 else []),
                    Entry(f"{difference.mean():+.{_DIGITS}f}"),
                    Entry(DASH if np.isnan(p_value) else f"{p_value:.2g}"),
                    Entry(_verdict(float(difference.mean()), p_value, first.title, second.title)),
                )
            )
    header = ("", *(["data"] if len(experiment.tasks) > 1 else []), "MAE", "p-value", "better")
    return Table(
        "Differences in mean absolute error",
        header,
        tuple(rows),
        (
            f"t-tests corrected for training rows that folds share (Nadeau & Bengio); at most {LEVEL / 2:g} "
            "counts, and many pairs make some small p-values likely by chance.",
        ),
        n_text=len(header) - 3,
    )


def _test_share(results: Results, task: Task) -> float:
    """Return the share of the rows in use that a split tests on."""
    if isinstance(task.scheme, CrossValidation):
        return 1.0 / task.scheme.folds
    found = next(
        record for model in results.experiment.models for record in results.finished(task.name, model.name)
    )
    return found.n_test / (found.n_train + found.n_test)


def _verdict(difference: float, p_value: float, first: str, second: str) -> str:
    if not p_value <= LEVEL / 2:
        return DASH
    return first if difference < 0 else second


def _mean_ranks(found: Friedman, experiment: Experiment) -> Table:
    titles = {model.name: model.title for model in experiment.models}
    order = np.argsort(found.mean_ranks, kind="stable")
    rows = tuple((Entry(titles[found.models[k]]), Entry(f"{found.mean_ranks[k]:.2f}")) for k in order)
    outcome = "differ" if found.p_value <= found.level else "do not differ significantly"
    statistic = "∞" if np.isinf(found.statistic) else f"{found.statistic:.2f}"
    return Table(
        "Mean ranks by mean absolute error",
        ("", "mean rank"),
        rows,
        (
            f"Friedman's test over {found.n_tasks} data sets (Iman and Davenport's F = {statistic}, p = "
            f"{found.p_value:.2g}): the models {outcome} at the level {found.level:g}. By Nemenyi's test two "
            f"differ whose mean ranks are more than {found.critical_difference:.2f} apart.",
            "Ranks are by means over the splits that all models with a result on a data set have; models "
            "that have none share the last ranks. Data sets without such a split, or on which a model was "
            "not run, do not count.",
        ),
    )


def _beside_the_paper(results: Results) -> Table:
    """Return our errors, vectors and seconds under the paper's."""
    experiment = results.experiment
    by_name = {model.name: model for model in experiment.models}
    ours: Mapping[str, Sequence[str]] = {"isbor-cv": ("isbor-cv", "isbor-evidence", "isbor")}
    rows: list[tuple[Entry, ...]] = []
    parts: list[
        tuple[
            str,
            Mapping[str, Mapping[str, object]],
            Callable[[Record], float | None],
            Callable[[FloatArray], str],
        ]
    ] = [
        ("MAE", PAPER_MAE, _metric("mae"), lambda values: mean_and_deviation(values, 2)),
        ("vectors", PAPER_VECTORS, lambda record: record.vectors, lambda values: _mean(values, 1)),
        ("seconds", PAPER_SECONDS, _seconds("fit"), _median_seconds),
    ]
    for what, published, of, show in parts:
        for name, values in published.items():
            present = [by_name[one] for one in ours.get(name, (name,)) if one in by_name]
            if not present:
                continue
            system = "ISBOR" if name == "isbor-cv" else by_name[name].title
            rows.append(
                (
                    Entry(what),
                    Entry(f"{system}, paper"),
                    *(_printed(values.get(task.name)) for task in experiment.tasks),
                )
            )
            for model in present:
                found = [results.by_split(task.name, model.name, of) for task in experiment.tasks]
                shown = [show(_array(one.values())) if one else DASH for one in found]
                fewer = [f" [{len(one)}]" if 0 < len(one) < experiment.splits else "" for one in found]
                rows.append(
                    (
                        Entry(what),
                        Entry(model.title),
                        *(Entry(text + count) for text, count in zip(shown, fewer, strict=True)),
                    )
                )
    return Table(
        "Beside the paper",
        ("", "", *(task.title for task in experiment.tasks)),
        tuple(rows),
        (
            "The paper's seconds are of another machine, 16 cores at 2 GHz, and of programs in MATLAB and C; "
            "ours are of one fit without the search, on one thread.",
            "Training rows here, and in the paper: "
            + ", ".join(
                f"{task.title} {_rows(task)} and {PAPER_ROWS[task.name]:,}" for task in experiment.tasks
            )
            + f". The paper has 20 splits, we have {experiment.splits}, or as many as stand in brackets.",
            "The paper's wins, draws and losses: "
            + ", ".join(
                f"{name.removesuffix('-cv').upper()} {tally.wins}/{tally.draws}/{tally.losses}"
                for name, tally in PAPER_TALLIES.items()
            )
            + ".",
        ),
        n_text=2,
    )


def _rows(task: Task) -> str:
    return f"{task.scheme.train:,}" if isinstance(task.scheme, Holdout) else f"{task.scheme.folds} folds"


def _printed(value: object) -> Entry:
    if isinstance(value, tuple):
        return Entry(f"{value[0]:.2f} ± {value[1]:.2f}")
    return Entry(DASH if value is None else f"{value:g}")


def _unfinished(results: Results) -> Table:
    """Return what was late or failed, and why."""
    experiment = results.experiment
    rows = []
    for task in experiment.tasks:
        for model in experiment.models:
            counts = Counter(
                (record.status, record.reason)
                for record in results.records[task.name, model.name]
                if not record.ok
            )
            rows += [
                (Entry(task.title), Entry(model.title), Entry(status), Entry(reason), Entry(str(count)))
                for (status, reason), count in sorted(counts.items())
            ]
    return Table("What did not end", ("data", "model", "status", "reason", "splits"), tuple(rows), n_text=4)
