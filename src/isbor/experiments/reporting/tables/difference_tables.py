"""Tables of significance tests."""

from collections.abc import Mapping
from dataclasses import astuple
from itertools import combinations

import numpy as np

from isbor.experiments.description.experiment import Experiment
from isbor.experiments.description.models import Model
from isbor.experiments.description.tasks import CrossValidation, Task
from isbor.experiments.reporting.paired import LEVEL, PairedDifference, paired_difference
from isbor.experiments.reporting.results import Results
from isbor.experiments.reporting.significance import (
    Friedman,
    PairTest,
    friedman,
    pair_tests,
    smallest_p,
    tally_pairs,
)
from isbor.experiments.reporting.tables.quantities import MAE, MAE_DIGITS, Quantity
from isbor.experiments.reporting.tables.table import DASH, Entry, Table, number

__all__ = [
    "against_first",
    "differences",
    "friedman_of",
    "mean_ranks",
    "paired",
    "tallies",
    "tests_of_first",
]

_LEVEL = 0.1  # of significance, as in the paper


def friedman_of(results: Results, quantity: Quantity = MAE) -> Friedman | None:
    """Return Friedman's test of all models over all data sets, None if there are too few.

    One data set in several sizes is one task: its last size counts, usually the largest. Models whose
    finished runs do not have the quantity, such as those without probabilities, are left out.
    """
    errors = results.values(quantity.of)
    last = {task.source: task.name for task in results.experiment.tasks}
    finished = [record for record in results.all_records if record.ok]
    having = {record.model for record in finished if quantity.of(record) is not None}
    without = {record.model for record in finished} - having
    models = [model.name for model in results.experiment.distinct_models if model.name not in without]
    try:
        return friedman({name: errors[name] for name in last.values()}, models, _LEVEL)
    except ValueError:
        return None


def tallies(results: Results) -> Table:
    """Return wins, draws and losses by Wilcoxon's test on the mean absolute error."""
    experiment = results.experiment
    models = [model.name for model in experiment.distinct_models]
    tests = pair_tests(results.errors(), models, _LEVEL)
    found = tally_pairs(tests, models)
    level = _LEVEL / (len(models) * (len(models) - 1))
    notes = [
        f"Signed-rank tests of all pairs of models on each data set; significant: p at most {_LEVEL:g}/"
        f"{len(models) * (len(models) - 1)} = {level:.2g}. As in the paper, a model with unfinished "
        "runs loses to one without; two with unfinished runs draw."
    ]
    if smallest_p(experiment.splits) > level:
        notes.append(
            f"With {experiment.splits} splits no p-value is below {smallest_p(experiment.splits):.2g}: only "
            "unfinished runs can decide."
        )
    fewest = min((test.n_splits for test in tests if not np.isnan(test.p_value)), default=0)
    if 0 < fewest < experiment.splits and smallest_p(fewest) > level >= smallest_p(experiment.splits):
        notes.append(f"Some pairs share {fewest} splits, too few for a significant difference.")
    rows = tuple(
        (Entry(model.title), *(Entry(str(count)) for count in astuple(found[model.name])))
        for model in experiment.distinct_models
    )
    return Table(
        "Significant differences in mean absolute error",
        ("", "wins", "draws", "losses"),
        rows,
        (*notes, *_left_out(experiment)),
    )


def tests_of_first(results: Results) -> Table:
    """Return the differences of the first model to each other on each data set, with Wilcoxon's test."""
    experiment = results.experiment
    first, *others = experiment.distinct_models
    tests = {
        (test.task, test.second): test
        for test in pair_tests(results.errors(), [model.name for model in experiment.distinct_models], _LEVEL)
        if test.first == first.name and not np.isnan(test.p_value)
    }
    rows = tuple(
        (
            Entry(model.title),
            *(_difference(tests.get((task.name, model.name))) for task in experiment.tasks),
        )
        for model in others
        if any((task.name, model.name) in tests for task in experiment.tasks)
    )
    return Table(
        f"Mean absolute error of {first.title} less that of the others",
        ("", *(task.title for task in experiment.tasks)),
        rows,
        (
            f"Below zero {first.title} is better. In brackets: p-values of signed-rank tests on common "
            f"splits; in bold: significant when all pairs of models are compared. {DASH}: unfinished or "
            "missing runs.",
            *_left_out(experiment),
        ),
    )


def differences(results: Results) -> Table:
    """Return the differences of all pairs of models on each task, with corrected t-tests."""
    experiment = results.experiment
    rows = []
    for task in experiment.tasks:
        for first, second in combinations(experiment.models, 2):
            found = paired(results, task, first, second, MAE)
            if found is None:
                continue
            better = {"win": first.title, "draw": DASH, "loss": second.title}
            rows.append(
                (
                    Entry(f"{first.title} less {second.title}"),
                    *([Entry(task.title)] if len(experiment.tasks) > 1 else []),
                    Entry(f"{found.mean:+.{MAE_DIGITS}f}"),
                    Entry(DASH if np.isnan(found.p_value) else f"{found.p_value:.2g}"),
                    Entry(better[found.outcome]),
                )
            )
    header = ("", *(["data"] if len(experiment.tasks) > 1 else []), "MAE", "p-value", "better")
    return Table(
        "Differences in mean absolute error",
        header,
        tuple(rows),
        (
            f"t-tests corrected for training rows that folds share (Nadeau & Bengio); at most {LEVEL:g} "
            "counts, and many pairs make some small p-values likely by chance.",
        ),
        n_text=len(header) - 3,
    )


def against_first(results: Results, quantities: Mapping[str, Quantity]) -> Table:
    """Return the first model less each other on each data set, with corrected errors, and how often it wins.

    `quantities` are the errors to compare, by the heads of their columns.
    """
    first, *others = results.experiment.models
    rows: list[tuple[Entry, ...]] = []
    outcomes: dict[tuple[str, str], list[str]] = {}
    for task in results.experiment.tasks:
        for other in others:
            found = {
                head: paired(results, task, first, other, quantity) for head, quantity in quantities.items()
            }
            known = {head: difference for head, difference in found.items() if difference is not None}
            if known:
                n_splits = max(difference.n_splits for difference in known.values())
                entries = (Entry(_with_errors(difference)) for difference in found.values())
                rows.append((Entry(task.title), Entry(other.title), Entry(str(n_splits)), *entries))
            for head, difference in known.items():
                outcomes.setdefault((other.title, head), []).append(difference.outcome)
    for other in others:
        counts = [
            "/".join(str(counted.count(outcome)) for outcome in ("win", "draw", "loss")) if counted else DASH
            for counted in (outcomes.get((other.title, head), []) for head in quantities)
        ]
        if set(counts) != {DASH}:
            rows.append((Entry("wins/draws/losses"), Entry(other.title), Entry(""), *map(Entry, counts)))
    return Table(
        f"{first.title} less the others",
        ("data", "against", "splits", *quantities),
        tuple(rows),
        (
            "Mean over common splits ± its standard error; in brackets the standard error corrected for the "
            f"rows that splits share (Nadeau & Bengio, 2003). A win or loss has p ≤ {LEVEL:g} in the t-test "
            "with the corrected error; no correction is made for the number of tests.",
        ),
        n_text=2,
    )


def paired(
    results: Results, task: Task, first: Model, second: Model, quantity: Quantity
) -> PairedDifference | None:
    """Return the first model less the second on the splits of a task that both have, None without any."""
    ours, theirs = (results.by_split(task.name, model.name, quantity.of) for model in (first, second))
    return paired_difference(ours, theirs, _test_over_train(results, task)) if ours and theirs else None


def mean_ranks(found: Friedman, experiment: Experiment) -> Table:
    """Return the mean ranks of Friedman's test, best first."""
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
            f"{found.p_value:.2g}): the models {outcome} at level {found.level:g}. By Nemenyi's test two "
            f"models differ if their mean ranks are more than {found.critical_difference:.2f} apart.",
            "Ranks are by means over the splits that all models without unfinished runs share; models with "
            "unfinished runs share the last ranks. Data sets on which a model was not run do not count.",
            *_left_out(experiment),
        ),
    )


def _left_out(experiment: Experiment) -> list[str]:
    titles = {model.name: model.title for model in experiment.models}
    return [
        f"{model.title} is left out: it has the same solution as {titles[model.same_as]}."
        for model in experiment.models
        if model not in experiment.distinct_models
    ]


def _with_errors(difference: PairedDifference | None) -> str:
    if difference is None:
        return DASH
    error, corrected = (number(value, 4) for value in (difference.error, difference.corrected_error))
    return f"{difference.mean:+.4f} ± {error} ({corrected}) {difference.outcome}"


def _difference(test: PairTest | None) -> Entry:
    if test is None:
        return Entry(DASH)
    text = f"{test.mean_difference:+.{MAE_DIGITS}f} ({test.p_value:.1g})"
    return Entry(text, "" if test.outcome == "draw" else "best")


def _test_over_train(results: Results, task: Task) -> float:
    """Return the test rows of a split divided by its training rows, of which a model may not take all."""
    if isinstance(task.scheme, CrossValidation):
        return 1.0 / (task.scheme.folds - 1)
    found = [
        record for model in results.experiment.models for record in results.finished(task.name, model.name)
    ]
    return found[0].n_test / max(record.n_train for record in found)
