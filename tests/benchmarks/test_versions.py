"""Two versions side by side: the report of made-up records, the errors, and the real command."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from math import log
from pathlib import Path

import pytest

from benchmarks.problems import draw_grades
from benchmarks.studies import SEVENTY
from benchmarks.versions.problems import PROBLEMS, Rows
from benchmarks.versions.report import peer_table, version_table
from benchmarks.versions.running import Plan, Worker, errors
from isbor import ISBOR
from isbor.experiments import Record
from isbor.metrics import log_loss

ROOT = Path(__file__).parents[2]
BY_NAME = {problem.name: problem for problem in PROBLEMS}


def plan_of(*names, peers=(), repeats=1):
    return Plan(
        "0123456789abcdef", "fedcba9876543210", [BY_NAME[name] for name in names], peers, 2, repeats, 2
    )


def made_up(plan, name, model, seconds, losses):
    """Return records of two splits, 100 rows to train and 50 to test."""
    return {
        plan.key(BY_NAME[name], model, place): Record(
            *(name, model, place[0], "ok"),
            n_train=100,
            n_test=50,
            metrics={"mae": 2.0 * loss, "rps": 0.5 * loss, "log_loss": loss},
            vectors=3 + place[0],
            parameters={"columns": 1000},
            seconds={"fit": taken},
        )
        for place, taken, loss in zip(plan.places, seconds, losses, strict=True)
    }


def cells(table):
    return {row[0].text: [entry.text for entry in row[1:]] for row in table.rows}


def test_the_report_of_made_up_records():
    plan = plan_of("bs", "swd", "bank", "grades-100x10")
    known = {
        **made_up(plan, "bs", "before", (2.0, 4.0), (1.0, 1.2)),
        **made_up(plan, "bs", "now", (1.0, 3.0), (0.9, 1.0)),
        **made_up(plan, "swd", "before", (5.0, 10.0), (0.9, 1.0)),
        **made_up(plan, "swd", "now", (2.0, 4.0), (1.0, 1.2)),
        **made_up(plan, "bank", "before", (1.0, 1.0), (1.0, 1.0)),  # stopped before the present version
        **made_up(plan, "grades-100x10", "before", (1.0, 1.0), (1.0, 1.2)),
        **made_up(plan, "grades-100x10", "now", (1.0, 1.0), (0.9, 1.0)),
    }
    found = cells(version_table(plan, known))
    assert list(found) == ["bs", "swd", "seven: mean of 2", "grades-100x10"]
    errors_of_bs = ["2.2000 → 1.9000", "0.5500 → 0.4750", "1.1000 → 0.9500"]
    # Ratios 1/2 and 3/4. Differences −0.1 and −0.2, of variance 0.005, times 1/2 + 50/100.
    assert found["bs"] == [
        *("100 × 1,000", "3.00", "2.00", "0.625", "3.5 → 3.5", *errors_of_bs, "-0.1500 ± 0.0707")
    ]
    assert found["swd"][3] == "0.400"
    assert found["swd"][-1] == "+0.1500 ± 0.0707"
    # √(0.625 · 0.4) = 0.5; √(2 · 0.005)/2 = 0.05
    assert found["seven: mean of 2"][3] == "0.500"
    assert found["seven: mean of 2"][-2:] == ["1.0250 → 1.0250", "+0.0000 ± 0.0500"]
    assert found["grades-100x10"][-1] == "-0.1500 ± 0.0500"  # no shared rows: √(0.005/2)


def test_repeats_give_more_ratios_but_no_more_splits():
    plan = plan_of("bs", repeats=2)
    known = {
        **made_up(plan, "bs", "before", (1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 1.2, 1.2)),
        **made_up(plan, "bs", "now", (1.0, 2.0, 3.0, 9.0), (0.9, 0.9, 1.0, 1.0)),
    }
    found = cells(version_table(plan, known))["bs"]
    assert found[3] == "2.500"
    assert found[-1] == "-0.1500 ± 0.0707"


def test_peers_and_failures():
    plan = plan_of("bs", peers=("LightGBM",))
    known = {
        **made_up(plan, "bs", "now", (1.0, 3.0), (0.9, 1.0)),
        **made_up(plan, "bs", "LightGBM", (7.0, 5.0), (2.0, 2.0)),
    }
    failed = plan.key(BY_NAME["bs"], "LightGBM", (0, 0))
    known[failed] = replace(known[failed], status="failed", reason="too little memory")
    rows = [[entry.text for entry in row] for row in peer_table(plan, known).rows]
    assert rows == [
        ["bs", "now", "2.00", "1.9000", "0.4750", "0.9500"],
        ["bs", "LightGBM", "5.00", "4.0000", "1.0000", "2.0000"],
    ]
    assert not version_table(plan, known).rows


def test_what_is_still_to_fit():
    plan = plan_of("bs", peers=("LightGBM", "CatBoost"))
    before, now, peer = (
        made_up(plan, "bs", model, (1.0, 1.0), (1.0, 1.0)) for model in ("before", "now", "LightGBM")
    )
    problem, place = plan.problems[0], (0, 0)
    assert plan.missing(problem, place, {}) == ["before", "now", "LightGBM", "CatBoost"]
    assert plan.missing(problem, place, {**before, **peer}) == ["before", "now", "CatBoost"]  # side by side
    assert plan.missing(problem, place, {**before, **now, **peer}) == ["CatBoost"]
    other = replace(plan, now="another source")
    assert other.missing(problem, place, {**before, **now, **peer}) == list(other.models)


def test_if_only_errors_are_compared_fits_of_the_base_serve_all_present_versions():
    plan = replace(plan_of("bs"), timed=False)
    before = made_up(plan, "bs", "before", (2.0, 4.0), (1.0, 1.2))
    problem, place = plan.problems[0], (0, 0)
    assert plan.missing(problem, place, before) == ["now"]
    later = replace(plan, now="another source")
    assert later.missing(problem, place, before) == ["now"]
    now = made_up(later, "bs", "now", (1.0, 3.0), (0.9, 1.0))
    assert later.missing(problem, place, {**before, **now}) == []
    assert plan.missing(problem, place, {**before, **now}) == ["now"]
    table = version_table(later, {**before, **now})
    assert not {"before, s", "now, s", "now / before"} & set(table.header)
    assert cells(table)["bs"] == [
        *("100 × 1,000", "3.5 → 3.5", "2.2000 → 1.9000", "0.5500 → 0.4750", "1.1000 → 0.9500"),
        "-0.1500 ± 0.0707",
    ]
    assert plan_of("bs").missing(problem, place, {**before, **now}) == ["before", "now"]  # no seconds


def test_a_source_that_changes_during_a_run_is_noticed():
    plan = plan_of("bs")
    with pytest.raises(RuntimeError, match="source has changed since the start. Run again"):
        Worker(plan, plan.problems[0], "now", Path(sys.executable))


def test_errors_of_probabilities_without_a_class():
    rows = Rows(None, None, None, [0, 2], n_classes=3)
    found = errors(rows, [0, 2], [[0.5, 0.5], [0.25, 0.75]])
    expected = {"mae": 0.0, "rps": (0.25 + 0.0625) / 2, "log_loss": -(log(0.5) + log(0.75)) / 2}
    assert found == pytest.approx(expected)


def test_splits_are_those_of_the_study():
    task = next(task for task in SEVENTY.tasks if task.name == "bs")
    data = task.load()
    train, test = task.scheme.split(data.y, 3, SEVENTY.seed)
    rows = BY_NAME["bs"].rows(3)
    assert rows.y.tolist() == data.y[train].tolist()
    assert rows.y_test.tolist() == data.y[test].tolist()
    assert rows.n_classes == 3
    assert len(BY_NAME) == len(PROBLEMS) == 8 + 7 + 17 + 3 + 4


def command(*words):
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.versions", *words], cwd=ROOT, capture_output=True, text=True
    )


def test_an_unknown_commit_is_named():
    found = command("--base", "nonsense")
    assert found.returncode == 2
    assert "There is no commit 'nonsense' here. A branch, tag or commit" in found.stderr


@pytest.mark.slow
def test_the_command_installs_fits_in_turn_and_goes_on(tmp_path):
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    if head.returncode:
        pytest.skip("not a checkout")
    commit = head.stdout.strip()
    words = ["--base", "HEAD", "--problems", "grades-100x10", "--splits", "1", "--folder", str(tmp_path)]
    first = command(*words)
    assert first.returncode == 0, first.stderr
    assert "| grades-100x10 | 100 × 10 " in first.stdout

    python = tmp_path / commit[:10] / "bin" / "python"
    where = [python, "-I", "-c", "import isbor, numpy; print(isbor.__file__, numpy.__version__)"]
    found = subprocess.run(
        where, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}
    )
    home, version = found.stdout.split()
    assert Path(home).is_relative_to(tmp_path)

    file = tmp_path / "records.jsonl"
    records = [json.loads(line)["record"] for line in file.read_text().splitlines()]
    assert [record["model"] for record in records] == ["before", "now"]
    assert records[0]["commit"] == commit
    X, y = draw_grades(100, 10, 0)
    X_test, y_test = draw_grades(5000, 10, 1)
    expected = log_loss(y_test, ISBOR(classes=range(5)).fit(X, y).predict_proba(X_test))
    assert records[1]["metrics"]["log_loss"] == pytest.approx(expected, rel=1e-6)
    for record in records:
        assert record["seconds"].keys() == {"fit", "cpu"}
        assert record["versions"]["numpy"] == version
        assert (record["threads"], record["n_train"], record["n_test"]) == (2, 100, 5000)

    assert command(*words).stdout == first.stdout  # all is there: nothing is fitted
    lines = file.read_text().splitlines(keepends=True)
    assert len(lines) == 2
    file.write_text(lines[0])  # stopped before the present version: both are fitted, side by side
    assert command(*words).returncode == 0
    models = [json.loads(line)["record"]["model"] for line in file.read_text().splitlines()]
    assert models == ["before", "before", "now"]
