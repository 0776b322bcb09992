"""Tables, figures, page and progress of records that are made up: what stands where, and that it is right."""

import base64
import csv
import io
import itertools
import math
import re
import sys
import threading
import time
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose, assert_array_equal
from rich.console import Console
from rich.text import Text
from scipy import stats

from isbor.datasets import make_saddle, saddle_labels
from isbor.experiments import (
    CATALOGUE,
    BenchmarkData,
    CrossValidation,
    Experiment,
    Holdout,
    Limits,
    Model,
    Record,
    Saddle,
    Search,
    TableFile,
    Task,
)
from isbor.experiments.reporting.figures.study import FIGURE_NAMES, study_figures
from isbor.experiments.reporting.figures.style import model_style
from isbor.experiments.reporting.page import report_page
from isbor.experiments.reporting.report import write_report
from isbor.experiments.reporting.results import Results
from isbor.experiments.reporting.tables.difference_tables import friedman_of
from isbor.experiments.reporting.tables.paper import PAPER_MAE, PAPER_SECONDS, PAPER_VECTORS
from isbor.experiments.reporting.tables.study import TABLE_NAMES, study_tables
from isbor.experiments.reporting.tables.table import Entry, to_csv, to_latex, to_markdown
from isbor.experiments.running.progress import LiveProgress, time_left

A, B, C = (Model(name, name.upper(), "isbor:ISBOR") for name in "abc")
ONE, TWO, THREE = (
    Task(f"t{k}", f"Task {k}", TableFile(f"{k}.csv", "y", digest=str(k)), Holdout(100)) for k in (1, 2, 3)
)
FOLDS = Task("folds", "Folds", TableFile("f.csv", "y", digest="f"), CrossValidation(5))

LATE = "It was not done after 9 s."


def experiment(models=(A, B, C), tasks=(ONE, TWO), splits=3, **facts):
    return Experiment("e", "Experiment", models, tasks, splits, **facts)


def record_of(job, mae, **facts):
    """Return the record of a job; a text in the place of the error is why there is none."""
    if isinstance(mae, str):
        status = "timeout" if mae == LATE else "failed"
        limits = {"seconds": 9.0, "memory": 2.5} if "limits" not in facts else facts["limits"]
        return Record(
            job.task.name, job.model.name, job.split, status, mae, seconds={"total": 9.0}, limits=limits
        )
    standard = {
        "n_train": 100,
        "n_test": 50,
        "metrics": {"mae": mae, "accuracy": 1 - mae},
        "seconds": {"search": 2.0, "fit": 1.0, "predict": 0.5, "total": 4.0},
    }
    return Record(job.task.name, job.model.name, job.split, "ok", **{**standard, **facts})


def records_of(experiment, errors, **facts):
    """Return records by key from errors by task and model; of `facts`, functions of a job, likewise."""
    found = {}
    for job in experiment.jobs():
        of_model = errors.get((job.task.name, job.model.name), [])
        if job.split < len(of_model) and of_model[job.split] is not None:
            more = {name: of(job) for name, of in facts.items()}
            found[job.key] = record_of(job, of_model[job.split], **more)
    return found


def results_of(experiment, errors, **facts):
    return Results.of(experiment, records_of(experiment, errors, **facts))


def rows(table):
    return [tuple(entry.text for entry in row) for row in table.rows]


def columns(table):
    """Return the entries by the header of their column, those of the models by their titles."""
    return {name: {row[0].text: row[k] for row in table.rows} for k, name in enumerate(table.header) if k > 0}


ERRORS = {
    ("t1", "a"): [0.41, 0.43, 0.45],
    ("t1", "b"): [0.5, 0.5, 0.5],
    ("t1", "c"): [0.6, LATE, LATE],
    ("t2", "a"): [0.3, 0.1, 0.2],
    ("t2", "b"): [0.1, "Broken.", None],
    ("t2", "c"): [LATE, LATE, "Broken."],
}


# --- Results -----------------------------------------------------------------------------------------------


def test_results_are_in_their_places_whatever_the_order_they_came_in():
    found = records_of(experiment(), ERRORS)
    strange = records_of(experiment(seed=1), {("t1", "a"): [9.0]})
    shuffled = dict(sorted({**found, **strange}.items(), key=lambda item: item[0][::-1]))
    results = Results.of(experiment(), shuffled)
    assert results == Results.of(experiment(), found)
    assert [record.metrics["mae"] for record in results.records["t1", "a"]] == [0.41, 0.43, 0.45]
    assert [record.split for record in results.finished("t1", "c")] == [0]
    assert results.records["t2", "c"][2].reason == "Broken."
    assert results.counts == {"ok": 11, "timeout": 4, "failed": 2, "missing": 1}
    assert len(results.all_records) == 17


def test_values_are_those_of_finished_records_that_have_them():
    results = results_of(
        experiment(),
        ERRORS,
        vectors=lambda job: None if job.split == 1 else job.split + 5,
        metrics=lambda job: {"mae": 0.5, **({"rps": 0.1} if job.split else {})},
    )
    assert results.by_split("t1", "a", lambda record: record.vectors) == {0: 5.0, 2: 7.0}
    assert results.by_split("t2", "c", lambda record: record.vectors) == {}
    late = pytest.approx(math.nan, nan_ok=True)
    assert results.errors("rps")["t1"] == {
        "a": {1: 0.1, 2: 0.1},
        "b": {1: 0.1, 2: 0.1},
        "c": {1: late, 2: late},
    }
    assert results.errors()["t2"]["b"] == {0: 0.5, 1: late}


# --- Tables of several tasks -------------------------------------------------------------------------------


def test_errors_have_means_deviations_marks_and_what_is_missing():
    table = study_tables(results_of(experiment(), ERRORS))["mae"]
    assert table.header == ("", "Task 1", "Task 2")
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
        "In brackets: the number of splits, where it is smaller. Marks are by the splits that all have.",
        "–: no result of this sort within 9 s and 2.5 GB, search included, or not run yet.",
    )


def test_notes_are_only_about_what_the_table_shows():
    everything = {(task, model): [0.1, 0.2] for task in ("t1", "t2") for model in "abc"}
    results = results_of(
        experiment(splits=2),
        everything,
        # C has no probabilities: no row of dashes, and nothing to explain.
        metrics=lambda job: {"mae": 0.1, **({} if job.model is C else {"rps": 0.25, "log_loss": 1.5})},
    )
    tables = study_tables(results)
    assert rows(tables["rps"]) == [("A", "0.2500", "0.2500"), ("B", "0.2500", "0.2500")]
    assert rows(tables["log-loss"]) == [("A", "1.500", "1.500"), ("B", "1.500", "1.500")]
    for name in ("mae", "rps", "log-loss"):
        assert tables[name].notes == ("Over 2 splits. Best in bold, second best in italics.",)
    assert "vectors" not in tables  # nobody has any
    assert "memory" not in tables
    assert "unfinished" not in tables
    late = {**everything, ("t2", "a"): [LATE, LATE]}
    long = {"seconds": 5400.0, "memory": 8.0}
    late_tables = study_tables(results_of(experiment(splits=2), late, limits=lambda job: long))
    assert late_tables["mae"].notes[-1] == "–: no result of this sort within 1.5 h and 8 GB, search included."
    mixed = results_of(experiment(splits=2), late, limits=lambda job: {**long, "seconds": 10.0 + job.split})
    assert study_tables(mixed)["mae"].notes[-1] == (
        "–: no result of this sort within the limits that the table of what did not end tells."
    )
    one = study_tables(results_of(experiment(splits=1), everything))["mae"]
    assert one.notes[0].startswith("Over 1 split. ")
    assert rows(one)[0] == ("A", "0.100", "0.100")


def test_times_are_medians_and_marked_as_such():
    fit = {"a": [1.0, 1.0, 10.0], "b": [2.0, 2.0, 2.0], "c": [3.0, 0.1, 30.0]}
    search = {"a": [9.0, 9.0, 0.0], "b": [0.0, 0.0, 0.0], "c": [0.0, 0.2, 0.0]}
    errors = {(task, model): [0.1] * 3 for task in ("t1", "t2") for model in "abc"}
    tables = study_tables(
        results_of(
            experiment(),
            errors,
            seconds=lambda job: {
                "search": search[job.model.name][job.split],
                "fit": fit[job.model.name][job.split],
                "total": 99.0,
            },
        )
    )
    assert columns(tables["seconds"])["Task 1"] == {
        "A": Entry("1.00", "best"),  # the mean would be the longest
        "B": Entry("2.00", "second"),
        "C": Entry("3.00"),
    }
    assert columns(tables["seconds-with-search"])["Task 2"] == {
        "A": Entry("10.0"),
        "B": Entry("2.00", "best"),
        "C": Entry("3.00", "second"),
    }


def test_vectors_and_memory_are_means():
    errors = {(task, model): [0.1] * 3 for task in ("t1", "t2") for model in "abc"}
    tables = study_tables(
        results_of(
            experiment(),
            errors,
            vectors=lambda job: None if job.model is C else 10 * (job.model is B) + job.split**2,
            peak_memory=lambda job: 100.4 + job.split if job.task is ONE else None,
        )
    )
    assert rows(tables["vectors"]) == [("A", "1.7", "1.7"), ("B", "11.7", "11.7")]
    assert rows(tables["memory"]) == [("A", "101", "–"), ("B", "101", "–"), ("C", "101", "–")]


def test_what_did_not_end_is_listed_with_the_reason():
    table = study_tables(results_of(experiment(), ERRORS))["unfinished"]
    assert table.header == ("model", "status", "data (splits)", "reason")
    assert rows(table) == [
        ("B", "failed", "Task 2 (1)", "Broken."),
        ("C", "timeout", "Task 1 (2), Task 2 (2)", LATE),
        ("C", "failed", "Task 2 (1)", "Broken."),
    ]


def test_there_are_no_tables_but_those_that_have_a_name():
    everything = {(task, model): [0.1, LATE] for task in ("bs", "swd") for model in ("isbor", "svor")}
    study = paper_study(2)
    found = [
        study_tables(results_of(experiment(), ERRORS)),
        study_tables(results_of(experiment(tasks=(ONE,)), ERRORS)),
        study_tables(
            results_of(experiment(tasks=(FOLDS, ONE)), {("folds", "a"): [0.1], ("folds", "b"): [0.2]})
        ),
        study_tables(
            results_of(
                study,
                everything,
                vectors=lambda job: 1,
                peak_memory=lambda job: 1.0,
                metrics=lambda job: {"mae": 0.1, "rps": 0.1, "log_loss": 0.1},
            )
        ),
    ]
    names = {name for tables in found for name in tables}
    assert names == set(TABLE_NAMES)
    assert study_tables(results_of(experiment(models=(A,)), {})) == {}


# --- Tests of significance ---------------------------------------------------------------------------------


def test_tallies_count_who_wins():
    ten = np.arange(10) / 100
    errors = {
        ("t1", "a"): list(0.1 + ten),
        ("t1", "b"): list(0.2 + ten),
        ("t1", "c"): list(0.1 + ten),
        ("t2", "a"): list(0.1 + ten),
        ("t2", "b"): [*ten[:9], LATE],
        ("t2", "c"): [*(0.3 + ten[:9]), None],
    }
    table = study_tables(results_of(experiment(splits=10), errors))["wilcoxon"]
    assert table.header == ("", "wins", "draws", "losses")
    assert rows(table) == [("A", "3", "1", "0"), ("B", "0", "0", "4"), ("C", "2", "1", "1")]
    assert table.notes == (
        "Signed-rank tests of all pairs of models on each data set; a p-value of at most 0.1/6 = 0.017 "
        "counts. As in the paper, a model with unfinished runs loses to one without; two with unfinished "
        "runs draw.",
    )


def test_the_first_model_is_tested_against_each_other_on_each_data_set():
    ten = np.arange(10) / 100
    errors = {
        ("t1", "a"): list(0.1 + ten),
        ("t1", "b"): list(0.2 + ten),
        ("t1", "c"): [*(0.1 + ten[:9]), 0.3],
        ("t2", "a"): list(0.1 + ten),
        ("t2", "b"): [LATE] * 10,
        ("t2", "c"): [*(0.05 + ten[:9]), None],
    }
    table = study_tables(results_of(experiment(splits=10), errors))["wilcoxon-by-data"]
    assert table.title == "Mean absolute error of A less that of the others"
    # Ten, or nine, differences of one sign: p = 2 / 2^10 and 2 / 2^9. A single one that is not zero: p = 1.
    assert table.rows == (
        (Entry("B"), Entry("-0.100 (0.002)", "best"), Entry("–")),
        (Entry("C"), Entry("-0.011 (1)"), Entry("+0.050 (0.004)", "best")),
    )


@pytest.mark.parametrize(
    ("splits", "fewest", "note"),
    [
        (3, 3, "On 3 splits no p-value is below 0.25: only unfinished runs can decide."),
        (3, 2, "On 3 splits no p-value is below 0.25: only unfinished runs can decide."),
        (6, 6, "On 6 splits no p-value is below 0.031: only unfinished runs can decide."),
        (7, 7, None),  # 2 / 2^7 = 0.0156 is at most 0.1 / 6
        (7, 5, "Some pairs share 5 splits, too few for a significant difference."),
        (8, 7, None),
    ],
)
def test_too_few_splits_for_a_difference_are_said_to_be(splits, fewest, note):
    errors = {("t1", model): [0.1] * splits for model in "abc"}
    errors["t1", "c"] = [0.1] * fewest
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
    ranks = np.array([[2, 1, 3], [2, 1, 3], [3, 1, 2]])
    chi = 12 * 3 / (3 * 4) * np.sum((ranks.mean(axis=0) - 2) ** 2)
    f = 2 * chi / (3 * 2 - chi)
    critical = stats.studentized_range.ppf(0.9, 3, np.inf) / math.sqrt(2) * math.sqrt(12 / 18)
    assert (
        f"Iman and Davenport's F = {f:.2f}, p = {stats.f.sf(f, 2, 4):.2g}): the models differ"
        in table.notes[0]
    )
    assert "test over 3 data sets" in table.notes[0]
    assert f"more than {critical:.2f} apart" in table.notes[0]


def test_ranks_need_two_tasks_and_splits_in_common():
    assert friedman_of(results_of(experiment(tasks=(ONE,)), ERRORS)) is None
    apart = {("t1", "a"): [0.1, None], ("t1", "b"): [None, 0.1], ("t2", "a"): [0.1], ("t2", "b"): [0.1]}
    assert "ranks" not in study_tables(results_of(experiment(models=(A, B)), apart))
    alone = study_tables(results_of(experiment(models=(A,)), ERRORS))
    assert not {"wilcoxon", "differences", "ranks"} & alone.keys()


def test_one_set_in_several_sizes_is_one_set():
    other = Task("s", "S", Saddle(300), Holdout(100))
    sizes = tuple(replace(other, name=f"s-{n}", title=f"S {n}", scheme=Holdout(n)) for n in (50, 80, 100))
    order = {("t1", "a"): [0.1], ("t1", "b"): [0.2], ("t1", "c"): [0.3]}
    errors = {(task.name, model): value for task in sizes for (_, model), value in order.items()}
    found = friedman_of(results_of(experiment(tasks=(ONE, *sizes)), order | errors))
    assert found == friedman_of(results_of(experiment(tasks=(ONE, sizes[-1])), order | errors))
    assert found.n_tasks == 2
    assert friedman_of(results_of(experiment(tasks=sizes), errors)) is None


def test_a_model_with_the_solution_of_another_is_not_ranked_beside_it():
    names = ("isbor", "svor", "isvor", "isvor-adjacent")
    tasks = tuple(Task(name, name.upper(), BenchmarkData(name), Holdout(100)) for name in ("swd", "bs"))
    study = Experiment("p", "P", tuple(CATALOGUE[name] for name in names), tasks, 2)
    errors = {(task.name, name): [0.1 * k, 0.1 * k] for task in tasks for k, name in enumerate(names)}
    tables = study_tables(results_of(study, errors))
    ranked = ["ISBOR", "SVOR", "ISVOR (paper's constraints)"]
    for name in ("ranks", "wilcoxon"):
        assert [row[0] for row in rows(tables[name])] == ranked
        assert tables[name].notes[-1] == "ISVOR is left out: it has the same solution as SVOR."
    assert [row[0] for row in rows(tables["mae"])] == ["ISBOR", "SVOR", "ISVOR", ranked[-1]]
    other = replace(study, models=(*study.models[:2], replace(CATALOGUE["isvor"], parameters={"tol": 0.1})))
    assert other.distinct_models == other.models  # other parameters, perhaps another solution


def corrected_p(differences, share):
    """Nadeau and Bengio's test by its formula."""
    d = np.asarray(differences)
    error = math.sqrt((1 / len(d) + share / (1 - share)) * d.var(ddof=1))
    return 2 * stats.t.cdf(-abs(d.mean()) / error, len(d) - 1)


def test_cross_validation_has_corrected_differences():
    first, second = [0.1, 0.2, 0.15, 0.12, 0.11], [0.5, 0.45, 0.5, 0.4, 0.52]
    third = [0.12, 0.18, 0.16, LATE, 0.1]
    errors = {("folds", "a"): first, ("folds", "b"): second, ("folds", "c"): third}
    tables = study_tables(results_of(experiment(tasks=(FOLDS,), splits=5), errors))
    assert "wilcoxon" not in tables
    table = tables["differences"]
    assert table.header == ("", "MAE", "p-value", "better")
    kept = [0, 1, 2, 4]
    a_less_b = np.subtract(first, second)
    a_less_c = np.subtract([first[k] for k in kept], [third[k] for k in kept])
    b_less_c = np.subtract([second[k] for k in kept], [third[k] for k in kept])
    assert rows(table) == [
        (f"{pair}", f"{d.mean():+.3f}", f"{corrected_p(d, 0.2):.2g}", better)
        for pair, d, better in (
            ("A less B", a_less_b, "A"),
            ("A less C", a_less_c, "–"),
            ("B less C", b_less_c, "C"),
        )
    ]
    assert corrected_p(a_less_b, 0.2) < 0.05 < corrected_p(a_less_c, 0.2)


def test_one_split_has_a_difference_but_no_test():
    errors = {("folds", "a"): [0.1], ("folds", "b"): [0.3], ("folds", "c"): [LATE]}
    table = study_tables(results_of(experiment(tasks=(FOLDS,), splits=5), errors))["differences"]
    assert rows(table) == [("A less B", "-0.200", "–", "–")]


def test_differences_on_several_tasks_name_them_and_know_their_shares():
    errors = {
        ("folds", "a"): [0.1, 0.2, 0.3],
        ("folds", "b"): [0.2, 0.25, 0.42],
        ("t1", "a"): [0.1, 0.2, 0.3],
        ("t1", "b"): [0.2, 0.25, 0.42],
    }
    mixed = experiment(models=(A, B), tasks=(FOLDS, ONE))
    table = study_tables(results_of(mixed, errors))["differences"]
    d = [-0.1, -0.05, -0.12]
    assert table.header == ("", "data", "MAE", "p-value", "better")
    assert rows(table) == [
        ("A less B", "Folds", "-0.090", f"{corrected_p(d, 1 / 5):.2g}", "–"),
        ("A less B", "Task 1", "-0.090", f"{corrected_p(d, 1 / 3):.2g}", "–"),  # 50 of 150 rows test
    ]


# --- One task, and the paper's -----------------------------------------------------------------------------


def test_a_single_task_has_a_summary_of_all_measures():
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
    assert table.title == "Task 1"
    assert table.header == ("", "MAE", "accuracy", "RPS", "log loss", "vectors", "seconds")
    dashes = [Entry("–")] * 6
    assert [list(row) for row in table.rows] == [
        [
            Entry("A"),
            Entry("0.500 ± 0.100", "second"),
            Entry("0.500", "second"),
            Entry("0.1235", "best"),
            Entry("–"),
            Entry("4.0", "best"),
            Entry("1.25", "best"),
        ],
        [
            Entry("B [2]"),
            Entry("0.250 ± 0.071", "best"),
            Entry("0.750", "best"),
            Entry("0.1235", "best"),
            Entry("–"),
            Entry("–"),
            Entry("5.75", "second"),
        ],
        [Entry("C [0]"), *dashes],
    ]
    assert table.notes[-1].startswith("In brackets: the number of splits, where it is smaller.")
    assert list(tables) == ["summary", "wilcoxon", "unfinished"]


def paper_study(splits=3):
    models = tuple(CATALOGUE[name] for name in ("isbor", "isbor-cv", "svor", "trees"))
    tasks = tuple(Task(name, name.upper(), BenchmarkData(name), Holdout(100)) for name in ("swd", "bs"))
    return Experiment("p", "P", models, tasks, splits)


def test_ours_stand_under_the_papers():
    errors = {
        ("swd", "isbor"): [0.40, 0.42, 0.44],
        ("bs", "isbor"): [0.0, 0.0, 0.03],
        ("swd", "isbor-cv"): [0.43],
        ("swd", "svor"): [LATE] * 3,
    }
    fit = [1.0, 5.0, 2.0]
    table = study_tables(
        results_of(
            paper_study(),
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
    assert table.notes[1].startswith(
        "Training rows here, and in the paper: SWD 100 and 750, BS 100 and 468. The paper has 20 splits, we"
    )
    assert "SVOR 24/7/4" in table.notes[2]
    assert "ISBOR 17/10/8." in table.notes[2]


def test_other_data_do_not_stand_beside_the_paper():
    own = replace(ONE, name="bs")
    assert "paper" not in study_tables(results_of(experiment(tasks=(own,)), {("bs", "a"): [0.1]}))
    sizes = tuple(Task(f"bs-{n}", f"BS {n}", BenchmarkData("bs"), Holdout(n)) for n in (50, 100))
    assert "paper" not in study_tables(
        results_of(replace(paper_study(), tasks=sizes), {("bs-50", "svor"): [0.1]})
    )
    only_ours = study_tables(results_of(paper_study().only(["trees"]), {("bs", "trees"): [0.1]}))
    assert "paper" not in only_ours


def test_the_papers_numbers_are_complete():
    sets = ("bs", "swd", "marketing", "bank", "computer", "calhouse", "census")
    assert set(PAPER_MAE) == set(PAPER_SECONDS) == {"kdlor", "gpor", "svor", "sbor", "isvor", "isbor-cv"}
    for published in (PAPER_MAE, PAPER_SECONDS, PAPER_VECTORS):
        assert tuple(published["isbor-cv"]) == sets
        # What did not end in a day has neither an error nor a time.
        for name, values in published.items():
            assert values.keys() == PAPER_MAE[name].keys()


# --- Figures -----------------------------------------------------------------------------------------------


def lines(ax):
    """Return abscissae and ordinates of the lines of an axes, by colour of the model."""
    return {to_hex(line.get_color()): (line.get_xdata(), line.get_ydata()) for line in ax.get_lines()}


def colour(position):
    return model_style("", position).colour.lower()


def test_sizes_of_one_data_set_are_drawn_as_curves():
    saddle = Saddle(400, random_state=1)
    sizes = (50, 100, 200)
    tasks = tuple(Task(f"s{n}", f"S {n}", saddle, Holdout(n, 60)) for n in sizes)
    study = experiment(models=(A, B), tasks=tasks, splits=2, seed=5)
    errors = {("s50", "a"): [0.5, 0.7], ("s100", "a"): [0.3, 0.3], ("s200", "b"): [0.25]}
    figures = study_figures(results_of(study, errors))
    assert list(figures)[:2] == ["mae", "seconds"]
    (error,), (duration,) = (figures[name][0].axes for name in ("mae", "seconds"))
    found = lines(error)
    assert_array_equal(found[colour(0)][0], sizes)
    assert_allclose(found[colour(0)][1], [0.6, 0.3, np.nan])
    assert_allclose(found[colour(1)][1], [np.nan, np.nan, 0.25])
    assert_allclose(lines(duration)[colour(0)][1], [3.0, 3.0, np.nan])  # of search and fit
    assert error.get_yscale() == "log"
    # The error that the score without noise makes on the same test rows.
    _, y, score = make_saddle(400, random_state=1, return_score=True)
    wrong = np.abs(y - saddle_labels(score))
    expected = [
        np.mean(
            [wrong[np.random.default_rng(5 + split).permutation(400)[n : n + 60]].mean() for split in (0, 1)]
        )
        for n in sizes
    ]
    (reference,) = (line for line in error.get_lines() if line.get_linestyle() == "--")
    assert_allclose(reference.get_ydata(), expected)


def test_errors_of_zero_need_no_logarithm():
    tasks = tuple(Task(f"n{n}", f"N {n}", BenchmarkData("bs"), Holdout(n)) for n in (50, 100))
    errors = {(task.name, model): [0.0, 0.0] for task in tasks for model in "ab"}
    study = experiment(models=(A, B), tasks=tasks, splits=2)
    (ax,) = study_figures(results_of(study, errors))["mae"][0].axes
    assert ax.get_yscale() == "linear"
    assert study_figures(results_of(study, {})) == {}


def test_other_tasks_are_drawn_split_by_split():
    figures = study_figures(results_of(experiment(), ERRORS))
    assert list(figures) == ["mae", "critical-differences"]
    first, second = figures["mae"][0].axes
    assert [first.get_title(), second.get_title()] == ["Task 1", "Task 2"]
    dots = [line.get_xdata() for line in first.get_lines() if to_hex(line.get_color()) == colour(0)]
    assert_allclose(np.sort(np.concatenate(dots)), [0.41, 0.43, 0.45])
    dots = [line.get_xdata() for line in second.get_lines() if to_hex(line.get_color()) == colour(1)]
    assert_allclose(np.concatenate(dots), [0.1])
    assert "no result" in [text.get_text() for text in second.texts]


def test_calibration_pools_the_bins_of_all_records():
    empty = (0.0, 0.0, 0.0)
    bins = {
        0: (empty, (4.0, 1.0, 2.0), *[empty] * 7, (2.0, 1.9, 1.0)),
        1: (empty, (6.0, 1.5, 1.0), *[empty] * 8),
    }
    errors = {("t1", "b"): [0.1, 0.1], ("t2", "b"): [0.1, 0.1], ("t1", "a"): [0.1]}
    results = results_of(
        experiment(splits=2),
        errors,
        calibration=lambda job: bins[job.split] if job.model is B else (),
    )
    figure, about = study_figures(results)["calibration"]
    found = lines(figure.axes[0])
    assert colour(0) not in found  # A has no probabilities
    assert_allclose(found[colour(1)][0], [5.0 / 20, 3.8 / 4])
    assert_allclose(found[colour(1)][1], [6.0 / 20, 2.0 / 4])
    assert_allclose(lines(figure.axes[1])[colour(1)][1], [20, 4])
    assert "P(y ≤ k)" in about


def test_only_the_papers_studies_have_the_likelihood():
    assert "likelihood" in study_figures(Results.of(replace(experiment(), name="synthetic"), {}))
    assert study_figures(Results.of(experiment(), {})) == {}
    assert set(study_figures(results_of(experiment(), ERRORS))) <= set(FIGURE_NAMES)


# --- The report --------------------------------------------------------------------------------------------

NASTY = "<script>alert('x & \"y\"')</script>"


def nasty_results():
    """Texts of a user that mean something in HTML, in every place where there are some."""
    model = Model("nasty", f"{NASTY} model", "a:<b>", {"p": "<i>"}, {"g": ("</td>", 1.5)})
    task = replace(ONE, title=f"{NASTY} task")
    study = Experiment("n", f"{NASTY} title", (model, A), (task, TWO), 3, about=f"{NASTY} about")
    errors = {
        ("t1", "nasty"): [0.1, 0.2, f"{NASTY} reason"],
        ("t1", "a"): [0.2, 0.1, 0.3],
        ("t2", "a"): [0.5],
        ("t2", "nasty"): [0.4],
    }
    machines = ({"cpu": "<one>"}, {"cpu": "two"}, {"cpu": "two"})
    return results_of(
        study,
        errors,
        vectors=lambda job: 3,
        parameters=lambda job: {"gamma": 0.1, "kind": "x;y"},
        calibration=lambda job: ((5.0, 1.0, 2.0),) * 10,
        machine=lambda job: machines[job.split],
        versions=lambda job: {"numpy": "2", "isbor": "0.1"},
        finished=lambda job: f"2024-05-0{job.split + 1}T10:00:00+00:00",
        peak_memory=lambda job: 123.4,
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    directory = tmp_path_factory.mktemp("report")
    page = write_report(nasty_results(), directory, command=f"isbor reproduce '{NASTY}'")
    assert page == directory / "report.html"
    return directory


VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(HTMLParser):
    """Collects the tags with their attributes, and the texts by the tag they are in."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.texts.append((self.open[-1], data.strip()))

    def of(self, tag):
        return [text for where, text in self.texts if where == tag]


def test_the_page_is_well_formed_and_fetches_nothing(report):
    text = (report / "report.html").read_text("utf-8")
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>\n")
    kinds = {tag for tag, _ in page.tags}
    assert not kinds & {"script", "link", "iframe", "object", "embed", "base", "form", "i", "b"}
    targets = [
        attributes[name] for _, attributes in page.tags for name in ("href", "src") if name in attributes
    ]
    ids = {f"#{attributes['id']}" for _, attributes in page.tags if "id" in attributes}
    assert all(target in ids or target.startswith("data:image/svg+xml;base64,") for target in targets)
    assert sum(target.startswith("#") for target in targets) == 5
    (style,) = page.of("style")
    assert not re.search(r"url\(|@import|https?:", style)
    assert not [
        attributes for _, attributes in page.tags if any(name.startswith("on") for name in attributes)
    ]


def test_pictures_are_whole_and_inside(report):
    page = Page((report / "report.html").read_text("utf-8"))
    pictures = [attributes for tag, attributes in page.tags if tag == "img"]
    names = ["mae", "critical-differences", "calibration"]
    assert len(pictures) == len(names)
    for name, attributes in zip(names, pictures, strict=True):
        svg = base64.b64decode(attributes["src"].partition(",")[2]).decode()
        assert svg in (report / "figures" / f"{name}.svg").read_text("utf-8")  # which has a head besides
        root = ET.fromstring(svg)
        references = [
            value
            for element in root.iter()
            for key, value in element.attrib.items()
            if key.endswith("href") or "url(" in value
        ]
        assert references
        assert all(re.match(r"#|url\(#", value) or "url(#" in value for value in references)
        assert attributes["alt"] in page.of("figcaption")
        assert (report / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_texts_of_users_are_shown_as_they_are(report):
    page = Page((report / "report.html").read_text("utf-8"))
    assert page.of("title") == page.of("h1") == [f"{NASTY} title"]
    assert f"{NASTY} about" in page.of("p")
    assert f"isbor reproduce '{NASTY}'" in page.of("pre")
    assert f"{NASTY} model" in page.of("th")
    assert f"{NASTY} task" in page.of("th")
    assert f"{NASTY} reason" in page.of("td")
    assert "a:<b>" in page.of("code")
    assert "p = <i>" in page.of("td")
    assert "g = {</td>, 1.5}" in page.of("td")


def test_the_page_says_what_was_run_when_and_where(report):
    page = Page((report / "report.html").read_text("utf-8"))
    assert page.of("p")[0] == (
        "7 of 12 jobs have a result, 1 failed, 4 were not run. Computed from 2024-05-01 to 2024-05-03."
    )
    # The record of the failure, made up as it is, knows of no machine.
    assert page.of("dt") == ["code"] * 2 + ["versions"] * 2 + ["machine"] * 3
    assert {"cpu two (3 records)", "cpu <one> (4 records)", "numpy 2 (7 records)"} <= set(page.of("dd"))
    assert any(
        "on one thread, with at most 9 s and 2.5 GB, search included." in text for text in page.of("p")
    )
    captions = page.of("caption")
    assert captions == [table.title for table in study_tables(nasty_results()).values()]


def test_a_page_of_one_day_and_one_machine_says_so():
    study = experiment(models=(A,), tasks=(ONE,), splits=1)
    results = results_of(
        study,
        {("t1", "a"): [0.1]},
        machine=lambda job: {"cpu": "one"},
        versions=lambda job: {"python": "3", "isbor": "0.1", "numpy": "2"},
        commit=lambda job: "1a2b",
        threads=lambda job: 1,
        finished=lambda job: "2024-05-01T10:00:00",
    )
    page = Page(report_page(results, {}, {}, "isbor"))
    assert page.of("p")[0] == "1 of 1 jobs have a result. Computed on 2024-05-01."
    assert page.of("dd") == ["isbor 0.1, commit 1a2b", "python 3, numpy 2", "cpu one, 1 thread"]
    late = Page(report_page(results_of(study, {("t1", "a"): [LATE]}), {}, {}, ""))
    assert late.of("p")[0] == "0 of 1 jobs have a result, 1 were late."


def test_the_page_says_how_grids_were_searched():
    study = replace(
        paper_study(1), search=Search(3, rows_at_most=300), models=(CATALOGUE["isvor"], CATALOGUE["trees"])
    )
    results = results_of(study, {("bs", "isvor"): [0.1]})
    page = Page(report_page(results, {}, {}, ""))
    assert any(
        "by 3-fold cross-validation of “mae” on at most 300 training rows; a point that is more than 5 "
        "standard errors behind" in text
        for text in page.of("p")
    )
    assert any(text.endswith("(searched by isbor:SVOR with probability = False)") for text in page.of("td"))
    everything = replace(study, search=Search(give_up=math.inf))
    page = Page(report_page(results_of(everything, {}), {}, {}, ""))
    assert any("“mae” on all training rows. The seed" in text for text in page.of("p"))


def test_limits_that_differ_are_told_apart_on_the_page():
    study = experiment(models=(A, B), tasks=(ONE,), splits=1)
    limits = {"a": {"seconds": 7200.0, "memory": 8.0}, "b": {"seconds": 9.0, "memory": 1.0}}
    results = results_of(
        study, {("t1", "a"): [0.1], ("t1", "b"): [0.1]}, limits=lambda job: limits[job.model.name]
    )
    page = Page(report_page(results, {}, {}, ""))
    assert any("at most 2 h and 8 GB (1 jobs) or 9 s and 1 GB (1 jobs)" in text for text in page.of("p"))


def test_tables_are_written_in_three_languages(report):
    tables = study_tables(nasty_results())
    files = {path.name: path.read_text("utf-8") for path in (report / "tables").iterdir()}
    assert files == {
        f"{name}{ending}": render(table)
        for name, table in tables.items()
        for ending, render in ((".md", to_markdown), (".csv", to_csv), (".tex", to_latex))
    }
    assert {"mae", "unfinished"} <= tables.keys()


def test_all_records_can_be_read_back(report):
    with (report / "records.csv").open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    results = nasty_results()
    assert len(found) == len(results.all_records) == 8
    for line, record in zip(found, results.all_records, strict=True):
        assert (line["task"], line["model"], int(line["split"])) == (record.task, record.model, record.split)
        assert (line["status"], line["reason"]) == (record.status, record.reason)
        if record.ok:
            assert {name: float(line[name]) for name in ("mae", "accuracy")} == record.metrics
            assert (int(line["n_train"]), int(line["n_test"]), int(line["vectors"])) == (100, 50, 3)
            times = {name: float(line[f"{name}_seconds"]) for name in ("search", "fit", "predict", "total")}
            assert times == record.seconds
            assert (float(line["peak_megabytes"]), line["finished"]) == (123.4, record.finished)
            assert line["parameters"] == "gamma=0.1; kind=x;y"
        else:
            empty = ("n_train", "mae", "vectors", "fit_seconds", "peak_megabytes")
            assert {line[name] for name in empty} == {""}
            assert float(line["total_seconds"]) == 9.0


def content(directory):
    return {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_equal_results_give_equal_files_and_nothing_else_is_left(report, tmp_path):
    (tmp_path / "tables").mkdir()
    for name in ("tables/wilcoxon.md", "report.html", "tables/mine.md"):
        (tmp_path / name).write_text("something else")
    write_report(nasty_results(), tmp_path, command=f"isbor reproduce '{NASTY}'")
    found = content(tmp_path)
    assert found.pop((tmp_path / "tables" / "mine.md").relative_to(tmp_path)) == b"something else"
    assert found == content(report)


def test_what_has_no_place_in_a_later_report_goes(tmp_path):
    study = experiment(models=(A, B), splits=2)
    late = {(task, model): [0.1, 0.1 if model == "a" else LATE] for task in ("t1", "t2") for model in "ab"}
    done = {(task, model): [0.1, 0.2] for task in ("t1", "t2") for model in "ab"}
    write_report(results_of(study, late), tmp_path, command="")
    assert (tmp_path / "tables" / "unfinished.md").exists()
    assert (tmp_path / "figures" / "critical-differences.svg").exists()
    write_report(results_of(study.only(["a"]), done), tmp_path, command="")
    assert {path.stem for path in (tmp_path / "tables").iterdir()} == {
        "mae",
        "seconds",
        "seconds-with-search",
    }
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"mae.png", "mae.svg"}


def test_a_file_that_cannot_be_replaced_stays_as_it_was(tmp_path):
    (tmp_path / "report.html").mkdir()
    (tmp_path / "report.html" / "inside").write_text("kept")
    results = results_of(experiment(models=(A,), tasks=(ONE,), splits=1), {("t1", "a"): [0.1]})
    with pytest.raises(OSError, match=r"report\.html"):
        write_report(results, tmp_path, command="")
    assert (tmp_path / "report.html" / "inside").read_text() == "kept"
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"report.html", "records.csv", "records.jsonl", "tables", "figures"}


# --- Progress ----------------------------------------------------------------------------------------------


def took(experiment, seconds):
    """Return records of jobs, by (task, model, split), that took so long."""
    jobs = {(job.task.name, job.model.name, job.split): job for job in experiment.jobs()}
    return {
        jobs[place].key: replace(record_of(jobs[place], 0.1), seconds={"total": value})
        for place, value in seconds.items()
    }


@pytest.mark.parametrize(
    ("seconds", "left"),
    [
        # Two tasks, two models, two splits: what is not there is missing.
        ({("t1", "a", 0): 4.0}, 7 * 4.0),
        ({("t1", "a", 0): 4.0, ("t1", "b", 0): 6.0}, 3 * 4.0 + 3 * 6.0),
        ({("t1", "a", 0): 4.0, ("t2", "a", 0): 8.0}, 4.0 + 8.0 + 4 * 6.0),  # of B only the overall mean
        ({("t1", "a", 0): 4.0, ("t1", "a", 1): 8.0, ("t2", "b", 0): 3.0}, 2 * 6.0 + 3 * 3.0),
        ({("t1", "a", 0): 500.0}, 7 * 100.0),  # no job may take longer
        ({place: 1.0 for place in itertools.product(("t1", "t2"), "ab", (0, 1))}, 0.0),
    ],
)
def test_the_time_left_is_judged_by_the_most_alike(seconds, left):
    study = experiment(models=(A, B), splits=2, limits=Limits(seconds=100.0))
    assert_allclose(time_left(study, took(study, seconds), 1), left)
    assert_allclose(time_left(study, took(study, seconds), 4), left / 4)


def test_nothing_is_known_before_the_first_job_ends():
    assert time_left(experiment(), {}, 1) is None


def console(**kwargs):
    return Console(file=io.StringIO(), width=100, color_system=None, **kwargs)


def shown(console):
    """Return what was written, without control codes, in lines."""
    text = Text.from_ansi(re.sub(r"\x1b\[[0-9?]*[A-Zhl]", "", console.file.getvalue())).plain
    return [line.rstrip() for line in text.splitlines()]


def test_where_nobody_watches_a_line_is_written_for_each_cell():
    study = experiment(models=(replace(A, title="[bold]A[/bold] " + "x" * 120), B), tasks=(ONE,), splits=2)
    screen = console(force_terminal=False)
    jobs = study.jobs()
    known = {jobs[0].key: record_of(jobs[0], 0.1)}
    with LiveProgress(study, known, 1, screen) as progress:
        progress.begun(jobs[1])
        progress.broken_off(jobs[1])
        progress.waiting()
        progress.begun(jobs[1])
        progress.ended(jobs[1], record_of(jobs[1], LATE))
        progress.begun(jobs[2])
        progress.ended(jobs[2], record_of(jobs[2], 0.123456))
    assert screen.file.getvalue().splitlines() == [
        f"[2/4] Task 1, B, split 0: timeout: {LATE} (9.0 s)",
        f"[3/4] Task 1, [bold]A[/bold] {'x' * 120}, split 1: MAE 0.1235 (4.0 s)",
    ]


def test_in_a_terminal_a_table_of_what_is_done_is_drawn():
    study = experiment(models=(A, B), splits=3)
    jobs = {(job.task.name, job.model.name, job.split): job for job in study.jobs()}
    known = records_of(study, {("t1", "a"): [0.1, 0.1, 0.1], ("t1", "b"): [0.1, LATE, None]})
    screen = console(force_terminal=True)
    with LiveProgress(study, known, 1, screen) as progress:
        progress.begun(jobs["t2", "a", 0])
        progress.begun(jobs["t2", "b", 0])
        progress.ended(jobs["t2", "b", 0], record_of(jobs["t2", "b", 0], 0.1))
        progress.begun(jobs["t2", "b", 1])
        progress.broken_off(jobs["t2", "b", 1])
    picture = shown(screen)
    last = len(picture) - 1 - picture[::-1].index(next(line for line in picture[::-1] if "Task 1" in line))
    assert picture[last - 1].split() == ["a", "b"]
    assert picture[last].split() == ["Task", "1", "3/3", "1/3", "–1"]
    assert picture[last + 1].split() == ["Task", "2", "▸", "0/3", "1/3"]
    assert " 6/12 " in picture[last + 3]
    assert re.search(r"about \d+ s left$", picture[last + 3])
    assert re.fullmatch(r"Task 2, A, split 0: \d s", picture[last + 4])
    assert not any("split 1" in line for line in picture)


def test_records_of_other_jobs_are_not_counted():
    study = experiment(models=(A,), tasks=(ONE,), splits=2)
    other = records_of(replace(study, seed=1), {("t1", "a"): [0.1, 0.1]})
    screen = console(force_terminal=True)
    with LiveProgress(study, other, 1, screen):
        pass
    assert any(" 0/2 " in line for line in shown(screen))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1.0, "about 3 s left"),
        (29.0, "about 87 s left"),
        (40.0, "about 2 min left"),
        (2400.0, "about 2.0 h left"),
    ],
)
def test_the_time_left_is_told_in_words(seconds, words):
    study = experiment(models=(A,), tasks=(ONE,), splits=4)
    first = study.jobs()[0]
    screen = console(force_terminal=True)
    with LiveProgress(study, {}, 1, screen) as progress:
        progress.ended(first, replace(record_of(first, 0.1), seconds={"total": seconds}))
    assert any(line.endswith(words) for line in shown(screen))


def test_many_tasks_do_not_fill_more_than_a_screen():
    tasks = tuple(replace(ONE, name=f"t{k}", title=f"Task {k}") for k in range(28))
    screen = console(force_terminal=True, height=60)
    with LiveProgress(experiment(models=(A,), tasks=tasks), {}, 1, screen):
        pass
    picture = shown(screen)
    assert any(line.startswith("Task 24 ") for line in picture)
    assert not any(line.startswith("Task 25 ") for line in picture)
    assert "and 3 more" in picture


def test_jobs_may_begin_and_end_while_the_picture_is_drawn():
    study = experiment(models=(A,), tasks=(ONE,), splits=200)
    jobs = study.jobs()
    progress = LiveProgress(study, {}, 1, console(force_terminal=True))
    done, errors = threading.Event(), []

    def draw():
        while not done.is_set():
            try:
                progress._draw()
            except RuntimeError as error:
                errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=draw)
    try:
        thread.start()
        for job in jobs[:40]:
            progress.begun(job)
            progress.ended(job, record_of(job, 0.1))
            time.sleep(0.0005)
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert errors == []
