"""Tables of made-up records, against values computed by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from isbor.experiments import CATALOGUE, BenchmarkData, Experiment, Holdout, Results, Saddle, Task
from isbor.experiments.reporting.paired import paired_difference
from isbor.experiments.reporting.significance import friedman
from isbor.experiments.reporting.tables.difference_tables import friedman_of
from isbor.experiments.reporting.tables.quantities import LOG_LOSS
from isbor.experiments.reporting.tables.study import study_tables
from isbor.experiments.reporting.tables.table import Entry
from tests.experiments.samples import (
    ERRORS,
    FOLDS,
    LATE,
    ONE,
    THREE,
    TWO,
    A,
    B,
    C,
    experiment,
    records_of,
    results_of,
)

TEN = np.arange(10) / 100


def rows(table):
    return [tuple(entry.text for entry in row) for row in table.rows]


def columns(table):
    """Return the entries by the header of their column and the title of their model."""
    return {name: {row[0].text: row[k] for row in table.rows} for k, name in enumerate(table.header) if k > 0}


def same(value, splits=3):
    return {(task, model): [value] * splits for task in ("t1", "t2") for model in "abc"}


def test_results_do_not_depend_on_the_order_of_the_records():
    found = records_of(experiment(), ERRORS)
    strange = records_of(experiment(seed=1), {("t1", "a"): [9.0]})
    shuffled = dict(sorted({**found, **strange}.items(), key=lambda item: item[0][::-1]))
    results = Results.of(experiment(), shuffled)
    assert results == Results.of(experiment(), found)
    assert results.by_key == found
    assert [record.metrics["mae"] for record in results.records["t1", "a"]] == [0.41, 0.43, 0.45]
    assert [record.split for record in results.finished("t1", "c")] == [0]
    assert results.counts == {"ok": 11, "timeout": 4, "failed": 2, "missing": 1}
    late = pytest.approx(math.nan, nan_ok=True)
    assert results.errors()["t2"] == {
        "a": {0: 0.3, 1: 0.1, 2: 0.2},
        "b": {0: 0.1, 1: late},
        "c": dict.fromkeys(range(3), late),
    }
    assert results.errors("rps")["t2"]["a"] == {}  # a metric that no record has


# --- Several tasks -----------------------------------------------------------------------------------------


def test_errors_have_means_deviations_marks_and_what_is_missing():
    table = study_tables(results_of(experiment(), ERRORS))["mae"]
    assert columns(table) == {
        "Task 1": {
            "A": Entry("0.430 ± 0.020", "best"),
            "B": Entry("0.500 ± 0.000", "second"),
            "C": Entry("0.600 [1]"),
        },
        "Task 2": {
            "A": Entry("0.200 ± 0.100", "second"),
            "B": Entry("0.100 [1]", "best"),  # by the first split, the only one that both have
            "C": Entry("–"),
        },
    }
    assert table.notes == (
        "Over 3 splits. Best in bold, second best in italics.",
        "In brackets: the number of splits, if fewer. Marks are by common splits.",
        "–: no result within 9 s and 2.5 GB, search included, or not run yet.",
    )


def test_notes_and_rows_are_only_about_what_there_is():
    probabilities = {"rps": 0.25, "log_loss": 1.5}
    tables = study_tables(
        results_of(
            experiment(splits=2),
            same(0.1, 2),
            metrics=lambda job: {"mae": 0.1, **({} if job.model is C else probabilities)},
        )
    )
    assert rows(tables["rps"]) == [("A", "0.2500", "0.2500"), ("B", "0.2500", "0.2500")]
    assert rows(tables["log-loss"]) == [("A", "1.500", "1.500"), ("B", "1.500", "1.500")]
    for name in ("mae", "rps", "log-loss"):
        assert tables[name].notes == ("Over 2 splits. Best in bold, second best in italics.",)
    assert not {"vectors", "memory", "unfinished"} & tables.keys()
    one = study_tables(results_of(experiment(splits=1), same(0.1, 1)))["mae"]
    assert one.notes[0].startswith("Over 1 split. ")
    assert rows(one)[0] == ("A", "0.100", "0.100")


def test_times_are_medians_and_other_quantities_means():
    fit = {"a": [1.0, 1.0, 10.0], "b": [2.0, 2.0, 2.0], "c": [3.0, 0.1, 30.0]}
    search = {"a": [9.0, 9.0, 0.0], "b": [0.0, 0.0, 0.0], "c": [0.0, 0.2, 0.0]}
    tables = study_tables(
        results_of(
            experiment(),
            same(0.1),
            seconds=lambda job: {
                "search": search[job.model.name][job.split],
                "fit": fit[job.model.name][job.split],
                "total": 99.0,
            },
            vectors=lambda job: None if job.model is C else 10 * (job.model is B) + job.split**2,
            peak_memory=lambda job: 100.4 + job.split if job.task is ONE else None,
        )
    )
    assert columns(tables["seconds"])["Task 1"] == {
        "A": Entry("1.00", "best"),  # its mean would be the largest
        "B": Entry("2.00", "second"),
        "C": Entry("3.00"),
    }
    assert columns(tables["seconds-with-search"])["Task 2"] == {
        "A": Entry("10.0"),
        "B": Entry("2.00", "best"),
        "C": Entry("3.00", "second"),
    }
    assert rows(tables["vectors"]) == [("A", "1.7", "1.7"), ("B", "11.7", "11.7")]
    assert rows(tables["memory"]) == [("A", "101", "–"), ("B", "101", "–"), ("C", "101", "–")]


def test_unfinished_runs_are_listed_with_the_reason():
    table = study_tables(results_of(experiment(), ERRORS))["unfinished"]
    assert table.header == ("model", "status", "data (splits)", "reason")
    assert rows(table) == [
        ("B", "failed", "Task 2 (1)", "Broken."),
        ("C", "timeout", "Task 1 (2), Task 2 (2)", LATE),
        ("C", "failed", "Task 2 (1)", "Broken."),
    ]


# --- Tests of significance ---------------------------------------------------------------------------------


def test_wilcoxon_is_tallied_and_shown_for_the_first_model():
    errors = {
        ("t1", "a"): list(0.1 + TEN),
        ("t1", "b"): list(0.2 + TEN),
        ("t1", "c"): [*(0.1 + TEN[:9]), 0.3],
        ("t2", "a"): list(0.1 + TEN),
        ("t2", "b"): [*TEN[:9], LATE],  # better, but unfinished
        ("t2", "c"): [*(0.05 + TEN[:9]), None],
    }
    tables = study_tables(results_of(experiment(splits=10), errors))
    assert rows(tables["wilcoxon"]) == [("A", "2", "1", "1"), ("B", "0", "0", "4"), ("C", "3", "1", "0")]
    assert tables["wilcoxon"].notes == (
        "Signed-rank tests of all pairs of models on each data set; significant: p at most 0.1/6 = 0.017. "
        "As in the paper, a model with unfinished runs loses to one without; two with unfinished runs draw.",
    )
    table = tables["wilcoxon-by-data"]
    assert table.title == "Mean absolute error of A less that of the others"
    # Ten, or nine, differences of one sign: p = 2 / 2^10 and 2 / 2^9. A single one that is not zero: p = 1.
    assert table.rows == (
        (Entry("B"), Entry("-0.100 (0.002)", "best"), Entry("–")),
        (Entry("C"), Entry("-0.011 (1)"), Entry("+0.050 (0.004)", "best")),
    )


@pytest.mark.parametrize(
    ("splits", "fewest", "note"),
    [
        (3, 2, "With 3 splits no p-value is below 0.25: only unfinished runs can decide."),
        (7, 7, None),  # 2 / 2^7 = 0.0156 is at most 0.1 / 6
        (7, 5, "Some pairs share 5 splits, too few for a significant difference."),
    ],
)
def test_too_few_splits_for_a_difference_are_noted(splits, fewest, note):
    errors = {("t1", model): [0.1] * splits for model in "ab"} | {("t1", "c"): [0.1] * fewest}
    table = study_tables(results_of(experiment(splits=splits), errors))["wilcoxon"]
    assert table.notes[1:] == (() if note is None else (note,))


def test_mean_ranks_are_in_order_with_the_outcome_of_the_test():
    tasks = (ONE, TWO, THREE)
    errors = {
        (task.name, model): [error] for task in tasks for model, error in zip("abc", (2, 1, 3), strict=True)
    }
    errors["t3", "c"] = [1.5]
    table = study_tables(results_of(experiment(tasks=tasks, splits=1), errors))["ranks"]
    assert rows(table) == [("B", "1.00"), ("A", "2.33"), ("C", "2.67")]
    found = friedman(
        {task: {model: {0: errors[task, model][0]} for model in "abc"} for task in ("t1", "t2", "t3")}, "abc"
    )
    assert table.notes[0] == (
        f"Friedman's test over 3 data sets (Iman and Davenport's F = {found.statistic:.2f}, p = "
        f"{found.p_value:.2g}): the models differ at level 0.1. By Nemenyi's test two models differ if "
        f"their mean ranks are more than {found.critical_difference:.2f} apart."
    )


def test_fewer_splits_of_a_data_set_are_not_missing():
    """All models have two splits of task 2, and B one of task 1."""
    fewer = {("t2", model.name): replace(model, splits_at_most=2) for model in (A, B)}
    variants = {**fewer, ("t1", "b"): replace(B, splits_at_most=1)}
    study = experiment(models=(A, B), variants=variants)
    errors = {(task, model): [0.1, 0.1, 0.1] for task in ("t1", "t2") for model in "ab"}
    table = study_tables(results_of(study, errors))["mae"]
    shown = [[entry.text.partition(" ±")[0] for entry in row[1:]] for row in table.rows]
    assert shown == [["0.100", "0.100"], ["0.100 [1]", "0.100"]]
    assert table.notes[0].startswith("Over 2 to 3 splits.")


def test_ranks_by_a_quantity_leave_out_models_without_it():
    errors = {(task, model): [k / 10] for task in ("t1", "t2") for k, model in enumerate("abc", start=1)}

    def metrics(job):
        mae = errors[job.task.name, job.model.name][0]
        return {"mae": mae} if job.model.name == "b" else {"mae": mae, "log_loss": 1 - mae}

    results = results_of(experiment(), errors, metrics=metrics)
    assert friedman_of(results).mean_ranks == (1.0, 2.0, 3.0)
    found = friedman_of(results, LOG_LOSS)
    assert (found.models, found.mean_ranks) == (("a", "c"), (2.0, 1.0))


def test_ranks_need_two_data_sets_with_common_splits():
    assert friedman_of(results_of(experiment(tasks=(ONE,)), ERRORS)) is None
    apart = {("t1", "a"): [0.1, None], ("t1", "b"): [None, 0.1], ("t2", "a"): [0.1], ("t2", "b"): [0.1]}
    assert "ranks" not in study_tables(results_of(experiment(models=(A, B)), apart))
    alone = study_tables(results_of(experiment(models=(A,)), ERRORS))
    assert not {"wilcoxon", "differences", "ranks"} & alone.keys()
    # One data set in several sizes is one data set.
    other = Task("s", "S", Saddle(300), Holdout(100))
    sizes = tuple(replace(other, name=f"s-{n}", title=f"S {n}", scheme=Holdout(n)) for n in (50, 80, 100))
    errors = {(task.name, name): [k / 10] for task in (ONE, *sizes) for k, name in enumerate("abc")}
    found = friedman_of(results_of(experiment(tasks=(ONE, *sizes)), errors))
    assert found == friedman_of(results_of(experiment(tasks=(ONE, sizes[-1])), errors))
    assert found.n_tasks == 2
    assert friedman_of(results_of(experiment(tasks=sizes), errors)) is None


def test_a_model_with_the_solution_of_another_is_not_ranked_beside_it():
    names = ("isbor", "svor", "isvor", "isvor-adjacent")
    study = paper_study(*names)
    errors = {(task, name): [0.1 * k] * 3 for task in ("swd", "bs") for k, name in enumerate(names)}
    tables = study_tables(results_of(study, errors))
    ranked = ["ISBOR", "SVOR", "ISVOR (paper's constraints)"]
    for name in ("ranks", "wilcoxon"):
        assert [row[0] for row in rows(tables[name])] == ranked
        assert tables[name].notes[-1] == "ISVOR is left out: it has the same solution as SVOR."
    assert [row[0] for row in rows(tables["mae"])] == ["ISBOR", "SVOR", "ISVOR", ranked[-1]]
    other = replace(study, models=(*study.models[:2], replace(CATALOGUE["isvor"], parameters={"tol": 0.1})))
    assert other.distinct_models == other.models  # other parameters, perhaps another solution


def test_cross_validation_has_corrected_differences():
    first, second, third = [0.1, 0.2, 0.15, 0.12], [0.5, 0.45, 0.5, 0.4], [0.12, 0.18, 0.16, LATE]
    errors = {
        ("folds", "a"): first,
        ("folds", "b"): second,
        ("folds", "c"): third,
        ("t1", "a"): [0.1],
        ("t1", "b"): [0.3],
    }

    def p_value(one, other, test_over_train):
        found = [dict(enumerate(values[:3] if third in (one, other) else values)) for values in (one, other)]
        return f"{paired_difference(*found, test_over_train).p_value:.2g}"

    tables = study_tables(results_of(experiment(tasks=(FOLDS,), splits=5), errors))
    assert "wilcoxon" not in tables
    assert tables["differences"].header == ("", "MAE", "p-value", "better")
    assert rows(tables["differences"]) == [
        ("A less B", "-0.320", p_value(first, second, 1 / 4), "A"),
        ("A less C", "-0.003", p_value(first, third, 1 / 4), "–"),
        ("B less C", "+0.330", p_value(second, third, 1 / 4), "C"),
    ]
    # Several tasks are named, and have shares of their own; one split has no p-value.
    errors["t1", "c"] = [0.1, 0.2, 0.3]
    errors["t1", "b"] = [0.2, 0.25, 0.42]
    table = study_tables(results_of(experiment(tasks=(FOLDS, ONE), splits=5), errors))["differences"]
    assert table.header == ("", "data", "MAE", "p-value", "better")
    assert rows(table)[3:] == [
        ("A less B", "Task 1", "-0.100", "–", "–"),
        ("A less C", "Task 1", "+0.000", "–", "–"),
        ("B less C", "Task 1", "+0.090", p_value(errors["t1", "b"], errors["t1", "c"], 1 / 2), "–"),  # 50/100
    ]


# --- One task, and the paper's -----------------------------------------------------------------------------


def test_a_single_task_has_a_summary():
    errors = {("t1", "a"): [0.4, 0.5, 0.6], ("t1", "b"): [0.2, 0.3, LATE], ("t1", "c"): [LATE] * 3}
    fit = {"a": [1.0, 1.0, 30.0], "b": [5.0, 6.0, 0.0], "c": [0.0, 0.0, 0.0]}
    tables = study_tables(
        results_of(
            experiment(tasks=(ONE,)),
            errors,
            metrics=lambda job: {
                "mae": errors["t1", job.model.name][job.split],
                "accuracy": 0.5 if job.model is A else 0.75,
                "rps": 0.12345,
            },
            vectors=lambda job: 4 if job.model is A else None,
            seconds=lambda job: {"search": 0.25, "fit": fit[job.model.name][job.split]},
        )
    )
    table = tables["summary"]
    assert (table.title, table.header[1:]) == (
        "Task 1",
        ("MAE", "accuracy", "RPS", "log loss", "vectors", "seconds"),
    )
    assert rows(table) == [
        ("A", "0.500 ± 0.100", "0.500", "0.1235", "–", "4.0", "1.25"),
        ("B [2]", "0.250 ± 0.071", "0.750", "0.1235", "–", "–", "5.75"),
        ("C [0]", *["–"] * 6),
    ]
    assert [entry.mark for entry in table.rows[0]] == ["", "second", "second", "best", "", "best", "best"]
    assert [entry.mark for entry in table.rows[1]] == ["", "best", "best", "best", "", "", "second"]
    assert list(tables) == ["summary", "wilcoxon", "unfinished"]


def paper_study(*names):
    tasks = tuple(Task(name, name.upper(), BenchmarkData(name), Holdout(100)) for name in ("swd", "bs"))
    return Experiment("p", "P", tuple(CATALOGUE[name] for name in names), tasks, splits=3)


def test_our_results_stand_under_the_papers():
    errors = {
        ("swd", "isbor"): [0.40, 0.42, 0.44],
        ("bs", "isbor"): [0.0, 0.0, 0.03],
        ("swd", "isbor-cv"): [0.43],
        ("swd", "svor"): [LATE] * 3,
    }
    fit = [1.0, 5.0, 2.0]
    table = study_tables(
        results_of(
            paper_study("isbor", "isbor-cv", "svor", "trees"),
            errors,
            vectors=lambda job: 10 + job.split,
            seconds=lambda job: {"search": 99.0, "fit": fit[job.split]},
        )
    )["paper"]
    assert table.header == ("", "", "SWD", "BS")
    assert rows(table) == [
        ("MAE", "SVOR, paper", "0.41 ± 0.03", "0.00 ± 0.00"),
        ("MAE", "SVOR", "–", "–"),
        ("MAE", "ISBOR, paper", "0.43 ± 0.02", "0.02 ± 0.01"),
        ("MAE", "ISBOR (one width, CV)", "0.43 [1]", "–"),
        ("MAE", "ISBOR", "0.42 ± 0.02", "0.01 ± 0.02"),
        ("vectors", "SVOR, paper", "718.9", "60.2"),
        ("vectors", "SVOR", "–", "–"),
        ("vectors", "ISBOR, paper", "58.5", "17"),
        ("vectors", "ISBOR (one width, CV)", "10.0 [1]", "–"),
        ("vectors", "ISBOR", "11.0", "11.0"),
        ("seconds", "SVOR, paper", "0.83", "0.08"),
        ("seconds", "SVOR", "–", "–"),
        ("seconds", "ISBOR, paper", "1.35", "0.64"),
        ("seconds", "ISBOR (one width, CV)", "1.00 [1]", "–"),
        ("seconds", "ISBOR", "2.00", "2.00"),
    ]
    assert "in the paper: SWD 100 and 750, BS 100 and 468. The paper has 20 splits; here" in table.notes[1]
    assert "SVOR 24/7/4" in table.notes[2]
    assert "ISBOR 17/10/8." in table.notes[2]


def test_other_data_do_not_stand_beside_the_paper():
    sizes = tuple(Task(f"bs-{n}", f"BS {n}", BenchmarkData("bs"), Holdout(n)) for n in (50, 100))
    for study, errors in (
        (experiment(tasks=(replace(ONE, name="bs"),)), {("bs", "a"): [0.1]}),
        (replace(paper_study("svor"), tasks=sizes), {("bs-50", "svor"): [0.1]}),
        (paper_study("trees"), {("bs", "trees"): [0.1]}),
    ):
        assert "paper" not in study_tables(results_of(study, errors))
