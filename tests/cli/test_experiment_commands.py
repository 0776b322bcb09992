"""``isbor reproduce`` and ``isbor compare`` as users run them: in a process of their own."""

import csv
import html
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from isbor.cli import main
from isbor.datasets import make_saddle
from isbor.experiments.commands import compare_request
from tests.cli.test_demo_command import assert_user_error, run

MINE = """
name = "mine"
models = ["quick", "trees"]
splits = 2

[[tasks]]
data = "saddle"
rows = 400
train = [100, 200]

[model.quick]
estimator = "my_models:Majority"  # a file beside this one
parameters = {{ seconds = {seconds} }}

[model.trees]
parameters = {{ max_iter = 5 }}
"""


@pytest.fixture
def study(tmp_path):
    """Return a directory with a small study of one's own."""
    (tmp_path / "mine.toml").write_text(MINE.format(seconds=0.0))
    shutil.copy(Path(__file__).parents[1] / "experiments" / "experiment_models.py", tmp_path / "my_models.py")
    return tmp_path


@pytest.fixture(scope="module")
def grades(tmp_path_factory):
    """Return a directory with a table of grades."""
    directory = tmp_path_factory.mktemp("grades")
    X, y = make_saddle(90, random_state=0)
    lines = ["east,north,colour,level,grade"]
    for k, ((east, north), label) in enumerate(zip(X, y, strict=True)):
        colour, grade = ("red", "blue", "")[k % 3], ("low", "mid", "high")[(label - 1) // 2]
        lines.append(f"{east:.3f},{north:.3f},{colour},{label},{grade}")
    (directory / "grades.csv").write_text("\n".join(lines))
    return directory


def read_csv(path):
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


@pytest.fixture
def call(capsys, monkeypatch):
    """Return what runs `isbor` in this process, which takes less time, and returns what a process would."""

    def call(*arguments, cwd):
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "path", list(sys.path))
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        out, err = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, stop.value.code, out, err)

    return call


def start(*arguments, cwd, **options):
    command = [sys.executable, "-m", "isbor.cli", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=cwd, **pipes, **options)


def page_text(path):
    return html.unescape(re.sub(r"<[^>]*>", " ", path.read_text("utf-8")))


# --- reproduce --------------------------------------------------------------------------------------------


def test_a_study_of_ones_own_gives_tables_figures_records_and_a_page(study):
    result = run("reproduce", "mine.toml", "--jobs", "2", cwd=study)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "2 models × 2 data sets × 2 splits = 8 jobs" in result.stdout
    assert "Mean absolute error" in result.stdout
    output = study / "isbor-mine"
    records = read_csv(output / "records.csv")
    assert len(records) == 8
    assert {record["status"] for record in records} == {"ok"}
    ours = [record for record in records if (record["task"], record["model"]) == ("saddle-100", "trees")]
    mae = [float(record["mae"]) for record in ours]
    shown = read_csv(output / "tables" / "mae.csv")[1]
    assert shown[""] == "Boosted trees"
    assert shown["saddle, 100 rows"] == f"{np.mean(mae):.3f} ± {np.std(mae, ddof=1):.3f}"
    for name in ("mae.md", "mae.tex", "seconds.csv", "wilcoxon.md"):
        assert (output / "tables" / name).stat().st_size > 50
    for name in ("mae.png", "mae.svg", "seconds.svg", "calibration.svg"):
        assert (output / "figures" / name).stat().st_size > 1000
    assert "isbor reproduce mine.toml" in page_text(output / "report.html")


def test_results_of_another_run_count_as_done(study):
    part = run("reproduce", "mine.toml", "--models", "quick", "--splits", "1", cwd=study)
    assert part.returncode == 0
    records = study / "isbor-mine" / "records.jsonl"
    rest = run("reproduce", "mine.toml", "--records", str(records), "--output", "whole", cwd=study)
    assert rest.returncode == 0
    assert "2 jobs are done already, in whole." in rest.stdout
    assert len(re.findall(r"^\[\d/8\]", rest.stdout, flags=re.MULTILINE)) == 6
    lines = (study / "whole" / "records.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 8
    assert set(records.read_text("utf-8").splitlines()) < set(lines)  # to the letter, times included


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "There is no file 'other.jsonl'. Give the file records.jsonl"),
        (b"SQLite format 3\x00\xff\xfe", "Line 1 of 'other.jsonl' is not a record of an experiment"),
        (b"", "None of the 0 records in 'other.jsonl' belongs to this experiment"),
    ],
)  # fmt: skip
def test_records_of_something_else_are_refused(content, message, study, call):
    if content is not None:
        (study / "other.jsonl").write_bytes(content)
    assert_user_error(call("reproduce", "mine.toml", "--records", "other.jsonl", cwd=study), message)
    assert not (study / "isbor-mine").exists()


def test_a_second_run_goes_on_where_the_first_was_stopped(study):
    (study / "mine.toml").write_text(MINE.format(seconds=0.7))
    output = "my results; 2"
    given = ["reproduce", "mine.toml", "--jobs", "1", "--models", "quick", "--splits", "2", "--retry"]
    first = start(*given, "--time-limit", "1000000.5", "--output", output, cwd=study)
    for line in first.stdout:
        if line.startswith("[2/4]"):
            break
    first.send_signal(signal.SIGINT)
    _, complaint = first.communicate(timeout=20)
    assert first.returncode == 130
    n_done, how = re.fullmatch(
        rf"isbor: Stopped\. (\d) of 4 jobs are done and saved in {output}\. To continue: (isbor .*)\n",
        complaint,
    ).groups()
    done = int(n_done)
    assert 2 <= done < 4
    # All that was typed but --retry, which would run again what failed since.
    assert shlex.split(how) == ["isbor", *[word for word in first.args[3:] if word != "--retry"]]
    second = run(*shlex.split(how)[1:], cwd=study)
    assert second.returncode == 0
    assert f"{done} jobs are done already" in second.stdout
    assert re.findall(r"^\[(\d)/4\]", second.stdout, flags=re.MULTILINE) == [
        str(k) for k in range(done + 1, 5)
    ]


@pytest.mark.parametrize(("wait", "number"), [(0.1, signal.SIGINT), (2.0, signal.SIGTERM)])
def test_an_early_interrupt_is_one_sentence_too(wait, number, study):
    (study / "mine.toml").write_text(MINE.format(seconds=30.0))
    runner = start("reproduce", "mine.toml", "--models", "quick", cwd=study, start_new_session=True)
    runner.stdout.readline()
    time.sleep(wait)
    if number == signal.SIGINT:
        os.killpg(runner.pid, number)  # as a terminal does
    else:
        runner.send_signal(number)
    _, message = runner.communicate(timeout=20)
    assert runner.returncode == 130
    assert message == (
        "isbor: Stopped. 0 of 4 jobs are done and saved in isbor-mine. "
        "To continue: isbor reproduce mine.toml --models quick\n"
    )


def test_a_late_job_is_a_dash_with_its_reason(study):
    (study / "mine.toml").write_text(MINE.format(seconds=30.0))
    result = run("reproduce", "mine.toml", "--splits", "1", "--time-limit", "3", cwd=study)
    assert result.returncode == 0
    assert "Not finished after 3 s." in result.stdout
    mae = (study / "isbor-mine" / "tables" / "mae.md").read_text("utf-8")
    assert re.search(r"^\| quick +\| +– \| +– \|$", mae, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mine.toml", "--models", "isbr"], "There is no model 'isbr' here; choose from quick, trees"),
        (["mine.toml", "--jobs", "0"], "Invalid value for '--jobs'"),
        (["mine.toml", "--time-limit", "-1"], "The time limit is -1.0 s; it must be positive"),
        (["mine.toml", "--output", "mine.toml"], "'mine.toml' is a file; choose a directory"),
    ],
)
def test_a_mistake_in_a_request_is_one_sentence_before_any_work(arguments, message, study, call):
    result = call("reproduce", *arguments, cwd=study)
    assert_user_error(result, message)
    assert not (study / "isbor-mine").exists()


# --- compare ----------------------------------------------------------------------------------------------


def test_models_are_compared_on_a_users_table(grades):
    result = run(
        "compare", "grades.csv", "--target", "grade", "--order", "low,mid,high",
        "--models", "isbor-evidence,trees", "--folds", "2", "--rounds", "2", cwd=grades,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "2 models × 1 data set × 4 splits = 8 jobs" in result.stdout
    assert re.search(r"^ ISBOR \(one\s+0\.\d{3}", result.stdout, flags=re.MULTILINE)
    assert "ISBOR (one width, evidence) less Boosted trees" in result.stdout
    records = read_csv(grades / "isbor-compare-grades" / "records.csv")
    assert [record["n_test"] for record in records] == ["45"] * 8
    assert "cross-validation" in page_text(grades / "isbor-compare-grades" / "report.html")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv", "--target", "grade"], "There is no file 'nowhere.csv'"),
        (["grades.csv", "--target", "grade"], "are text .high, low, mid. of unknown order"),
        (["grades.csv", "--target", "grade", "--order", "low"], "The order names low; at least 2 different"),
        (["grades.csv", "--target", "level", "--folds", "1"], "Invalid value for '--folds'"),
        (["grades.csv"], "Missing option '--target'"),
    ],
)
def test_a_mistake_in_a_comparison_is_one_sentence(arguments, message, grades, call):
    assert_user_error(call("compare", *arguments, cwd=grades), message)


def test_a_table_with_semicolons_and_an_identifier(tmp_path, call):
    X, y = make_saddle(60, random_state=0)
    lines = ["id;größe;weight;grade"]
    lines += [f"k{k};{X[k, 0]:.3f};{X[k, 1]:.3f};{y[k] > 3:d}".replace(".", ",") for k in range(60)]
    (tmp_path / "noten.csv").write_text("\n".join(lines), encoding="cp1252")
    request = ["compare", "noten.csv", "--target", "grade", "--models", "linear,svor,gpor", "--folds", "2"]
    limit = ["--time-limit", "0.001", "--jobs", "1"]  # what the models would find is not in question
    result = run(*request, *limit, cwd=tmp_path)
    remark = "noten.csv was read as text in Windows-1252 with semicolons between columns and decimal commas."
    assert remark in " ".join(result.stdout.split())
    tuned = (
        "Tuned by 5-fold cross-validation on training rows: SVOR. Tuned within the fit: GPOR. "
        "Not tuned: Linear (ordered probit)."
    )
    assert tuned in " ".join(result.stdout.split())
    assert tuned in page_text(tmp_path / "isbor-compare-noten" / "report.html")
    # A warning is one sentence, without a file and a line of code.
    assert re.fullmatch(r"isbor: Warning: X holds 60 different [^\n]*'k0'[^\n]*\n", result.stderr)
    assert call(*request, *limit, "--ignore", "id", cwd=tmp_path).stderr == ""


def test_a_linear_model_is_among_those_compared_by_default(tmp_path, monkeypatch):
    (tmp_path / "mine.csv").write_text("x,y\n" + "1,1\n2,2\n" * 10)
    monkeypatch.chdir(tmp_path)
    names = [model.name for model in compare_request(Path("mine.csv"), "y").experiment.models]
    assert names == ["isbor", "sbor", "svor", "gpor", "kdlor", "linear", "trees"]
