"""The scoreboard: its sets and models, and its tables from made-up records."""

import math
import os
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from benchmarks.more_sets import MORE_SETS, load_more
from benchmarks.scoreboard import SCOREBOARD, tables, tasks
from benchmarks.scoreboard import __main__ as command
from benchmarks.tables import DOCS
from isbor.datasets.files import write_table
from isbor.experiments import Record, Results, Store
from tests.experiments.samples import ONE, TWO, experiment, results_of

# --- Sets and models ---------------------------------------------------------------------------------------


def test_every_set_is_in_one_group_and_has_its_splits_for_every_model():
    named = [task.name for group in tasks.GROUPS for task in group.tasks]
    assert [task.name for task in SCOREBOARD.tasks] == named
    assert len(named) == len(set(named)) >= 29
    n_models = len(SCOREBOARD.models)
    counts = {name: 0 for name in named}
    for job in SCOREBOARD.jobs():
        counts[job.task.name] += 1
    assert counts == {name: n_models * (5 if name in tasks.LARGE else 10) for name in named}
    assert SCOREBOARD.models[0].name == "isbor"


@pytest.mark.skipif("ISBOR_DATA" not in os.environ, reason="needs the sets in ISBOR_DATA")
@pytest.mark.parametrize("task", tasks.TASKS, ids=lambda task: task.name)
def test_large_sets_are_those_above_5000_rows(task):
    try:
        data = task.load()
    except (FileNotFoundError, ModuleNotFoundError) as error:
        pytest.skip(str(error))
    assert (len(data) > 5000) == (task.name in tasks.LARGE)


def test_the_document_has_the_tables_of_every_group_with_sets():
    text = (DOCS / "scoreboard.md").read_text("utf-8")
    for group in tasks.GROUPS:
        for name in tables.tables_for():
            assert (f"<!-- table: scoreboard-{group.name}-{name} -->" in text) == bool(group.tasks)


def test_five_more_sets_are_read_from_their_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("ISBOR_DATA", str(tmp_path))
    X = np.arange(20.0).reshape(10, 2)
    target = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3.5])
    for name, of_set in {"stock": target, "car": X[:, 0]}.items():
        write_table(tmp_path / "more" / MORE_SETS[name], ["a", "b"], X, of_set)
    features, labels = load_more("stock")
    assert_array_equal(features, X)
    assert_array_equal(labels, [2, 1, 3, 1, 4, 5, 2, 5, 4, 3])
    assert_array_equal(load_more("car")[1], np.arange(0, 20, 2))
    with pytest.raises(FileNotFoundError, match=r"diamonds\.csv\.gz.*ISBOR_DATA"):
        load_more("diamonds")


# --- Tables from made-up records ---------------------------------------------------------------------------

MAE = {
    ("t1", "a"): [0.1, 0.3, 0.2],  # less B: -0.1, 0.0, -0.2
    ("t1", "b"): [0.2, 0.3, 0.4],
    ("t1", "c"): [0.1, 0.3, 0.2],
    ("t2", "a"): [0.5, 0.5, 0.5],
    ("t2", "b"): [0.4, 0.5, 0.5],  # A less B: 0.1, 0, 0
    ("t2", "c"): [0.9, 0.9, 0.9],
}


def found(errors=MAE, **facts):
    """Return results of A, B and C on two tasks; C has no probabilities."""

    def metrics(job):
        mae = errors[job.task.name, job.model.name][job.split]
        shared = {"mae": mae, "amae": 2 * mae}
        return shared if job.model.name == "c" else {**shared, "rps": mae / 2, "log_loss": 1 - mae}

    return results_of(experiment(**facts), errors, metrics=metrics)


def cells(table):
    return {row[0].text: [entry.text for entry in row[1:]] for row in table.rows}


def test_the_summary_has_ranks_and_outcomes_by_log_loss():
    """Log loss is 1 - MAE here: B is best on task 1, A on task 2."""
    errors = {place: of_place for place, of_place in MAE.items() if place[1] != "c"}
    table = tables.scoreboard_tables(found(errors))["summary"]
    assert cells(table) == {"A": ["1.5", "1.5", "1.5", "–"], "B": ["1.5", "1.5", "1.5", "0/1/1"]}


def test_outcomes_by_one_corrected_standard_error():
    """On task 1, A less B: mean -0.1, variance 0.01, error √((1/3 + 50/100) 0.01) = 0.0913.

    On task 2 the mean is 0.033, the error 0.053.
    """
    assert cells(tables.outcomes(found())) == {
        "B": ["1/1/0", "1/1/0", "1/1/0", "0/1/1"],
        "C": ["1/1/0", "1/1/0", "–", "–"],
    }


def test_differences_have_the_error_of_the_formula():
    table = tables.scoreboard_tables(found())["mae-differences"]
    one, two = (math.sqrt((1 / 3 + 50 / 100) * np.var(d, ddof=1)) for d in ([-0.1, 0, -0.2], [0.1, 0, 0]))
    assert cells(table) == {
        "Task 1": [f"-0.100 ± {one:.3f}", "+0.000 ± 0.000"],
        "Task 2": [f"+0.033 ± {two:.3f}", "-0.400 ± 0.000"],
    }
    assert [[entry.mark for entry in row[1:]] for row in table.rows] == [["best", ""], ["", "best"]]
    worse = {**MAE, ("t1", "b"): [0.0, 0.0, 0.1]}
    assert tables.scoreboard_tables(found(worse))["mae-differences"].rows[0][1].mark == "second"


def test_ranks_are_of_the_models_that_have_the_measure():
    table = tables.ranks(found())
    assert table.header == ("", "MAE", "average MAE", "RPS", "log loss", "seconds")
    # By MAE: task 1 A and C share 1.5, B 3; task 2 B 1, A 2, C 3. All took a second.
    assert cells(table) == {
        "A": ["1.8", "1.8", "1.5", "1.5", "2.0"],
        "B": ["2.0", "2.0", "1.5", "1.5", "2.0"],
        "C": ["2.2", "2.2", "–", "–", "2.0"],
    }
    assert "two of the 2 models" in next(note for note in table.notes if note.startswith("By log loss"))


def test_sets_are_rows_and_sizes_are_vectors_or_trees():
    sizes = {"a": {"vectors": 7}, "b": {"parameters": {"functions": 300.0}}, "c": {}}
    results = found()
    records = {
        place: tuple(replace(record, **sizes[record.model]) for record in of_place)
        for place, of_place in results.records.items()
    }
    made = tables.scoreboard_tables(Results(results.experiment, records))
    assert made["size"].header == ("", "A", "B", "C")
    assert cells(made["size"]) == {"Task 1": ["7", "300", "–"], "Task 2": ["7", "300", "–"]}
    assert all(entry.mark == "" for row in made["size"].rows for entry in row)
    assert cells(made["mae"])["Task 2"] == ["0.500", "0.467", "0.900"]
    assert cells(made["average-mae"])["Task 2"] == ["1.000", "0.933", "1.800"]


def test_models_that_have_not_run_on_all_sets_are_left_out_and_named():
    begun = {**MAE, ("t1", "b"): [0.2, None, 0.4]}
    del begun["t2", "c"]
    made = tables.scoreboard_tables(found(begun))
    assert sorted(cells(made["ranks"])) == ["A", "B"]
    assert made["outcomes"].notes[-2:] == (
        "1 of 12 records are still to be made.",
        "Still to be run: C.",
    )
    alone = {place: of_place for place, of_place in MAE.items() if place[1] != "a"}
    assert tables.scoreboard_tables(found(alone)) == {}  # nothing to compare with


def test_results_on_some_sets():
    results = found()
    part = tables.of_sets(results, (TWO,))
    assert [task.name for task in part.experiment.tasks] == ["t2"]
    assert part.finished("t2", "a") == results.finished("t2", "a")
    assert len(part.all_records) == 9
    assert tables.of_sets(results, ()) is None
    assert tables.of_sets(results, (ONE, TWO)) == results


def test_the_command_prints_a_run_so_far_and_draws_it(tmp_path, capsys):
    study = replace(SCOREBOARD.only(tasks=["iris", "wine"]), splits=2)
    chosen = ["--of", str(tmp_path), "--datasets", "iris,wine", "--splits", "2"]
    with pytest.raises(SystemExit, match="isbor reproduce"):
        command.main(chosen)
    with Store(tmp_path / "results.sqlite") as store:
        for k, job in enumerate(study.jobs()):
            mae = 0.2 + 0.001 * (k % 7)
            metrics = {"mae": mae, "amae": mae, "rps": mae / 2, "log_loss": mae}
            store.add(
                job.key,
                Record(
                    *(job.task.name, job.model.name, job.split, "ok"),
                    n_train=70,
                    n_test=30,
                    metrics=metrics,
                    seconds={"search": 0.0, "fit": 1.0},
                ),
            )
    command.main(chosen)
    printed = capsys.readouterr().out
    heads = ("# Developed on", "## Mean ranks", "# Never looked at")
    assert sorted(heads, key=printed.index) == list(heads)
    assert printed.endswith("There are no such sets.\n\n")
    drawn = sorted(path.name for path in (tmp_path / "figures" / "developed").iterdir())
    assert drawn == [f"ranks-{name}.png" for name in ("average-mae", "log-loss", "mae", "rps")]
