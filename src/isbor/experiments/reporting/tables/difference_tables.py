"""Tables of tests: which differences between models are more than chance."""

from dataclasses import astuple
from itertools import combinations

import numpy as np

from isbor.experiments.description.experiment import Experiment
from isbor.experiments.description.tasks import CrossValidation, Task
from isbor.experiments.reporting.results import Results
from isbor.experiments.reporting.significance import (
    Friedman,
    PairTest,
    corrected_t_test,
    friedman,
    pair_tests,
    smallest_p,
    tally_pairs,
)
from isbor.experiments.reporting.tables.quantities import MAE, MAE_DIGITS
from isbor.experiments.reporting.tables.table import DASH, Entry, Table

__all__ = ["differences", "friedman_of", "mean_ranks", "tallies", "tests_of_first"]

_LEVEL = 0.1  # of significance, as in the paper


def friedman_of(results: Results) -> Friedman | None:
    """Return the test of all models over all data sets, None where there is too little for one.

    The same data in several sizes are no independent tasks: the last of them counts, usually the largest.
    """
    errors = results.errors()
    last = {task.source: task.name for task in results.experiment.tasks}
    try:
        return friedman(
            {name: errors[name] for name in last.values()},
            [model.name for model in results.experiment.distinct_models],
            _LEVEL,
        )
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
        f"Signed-rank tests of all pairs of models on each data set; a p-value of at most {_LEVEL:g}/"
        f"{len(models) * (len(models) - 1)} = {level:.2g} counts. As in the paper, a model with unfinished "
        "runs loses to one without; two with unfinished runs draw."
    ]
    if smallest_p(experiment.splits) > level:
        notes.append(
            f"On {experiment.splits} splits no p-value is below {smallest_p(experiment.splits):.2g}: only "
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
    """Return how the first model differs from each other on each data set, with Wilcoxon's test."""
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
            f"splits; in bold what counts when all pairs of models are compared. {DASH}: unfinished or "
            "missing runs.",
            *_left_out(experiment),
        ),
    )


def differences(results: Results) -> Table:
    """Return the differences of all pairs on each cross-validated task, with corrected t-tests."""
    experiment = results.experiment
    rows = []
    for task in experiment.tasks:
        for first, second in combinations(experiment.models, 2):
            ours, theirs = (results.by_split(task.name, model.name, MAE.of) for model in (first, second))
            common = sorted(ours.keys() & theirs.keys())
            if not common:
                continue
            difference = np.array([ours[split] - theirs[split] for split in common])
            p_value = corrected_t_test(difference, _test_share(results, task))
            rows.append(
                (
                    Entry(f"{first.title} less {second.title}"),
                    *([Entry(task.title)] if len(experiment.tasks) > 1 else []),
                    Entry(f"{difference.mean():+.{MAE_DIGITS}f}"),
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
            f"t-tests corrected for training rows that folds share (Nadeau & Bengio); at most {_LEVEL / 2:g} "
            "counts, and many pairs make some small p-values likely by chance.",
        ),
        n_text=len(header) - 3,
    )


def mean_ranks(found: Friedman, experiment: Experiment) -> Table:
    """Return the mean ranks that the test is of, best first."""
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


def _difference(test: PairTest | None) -> Entry:
    if test is None:
        return Entry(DASH)
    text = f"{test.mean_difference:+.{MAE_DIGITS}f} ({test.p_value:.1g})"
    return Entry(text, "" if test.outcome == "draw" else "best")


def _test_share(results: Results, task: Task) -> float:
    """Return the share of the rows in use that a split tests on."""
    if isinstance(task.scheme, CrossValidation):
        return 1.0 / task.scheme.folds
    found = next(
        record for model in results.experiment.models for record in results.finished(task.name, model.name)
    )
    return found.n_test / (found.n_train + found.n_test)


def _verdict(difference: float, p_value: float, first: str, second: str) -> str:
    if not p_value <= _LEVEL / 2:
        return DASH
    return first if difference < 0 else second
