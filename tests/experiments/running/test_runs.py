"""Experiments as they run: processes that fail, hang, grow or are killed, and records that stay."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

import isbor
from isbor.experiments import (
    CATALOGUE,
    Experiment,
    Holdout,
    Limits,
    Model,
    Record,
    Saddle,
    Search,
    Store,
    Task,
    run,
)
from isbor.experiments.running.machine import source_commit
from isbor.experiments.running.processes import JobProcess

SMALL = Task("saddle", "Saddle", Saddle(rows=160), Holdout(train=100))
LIMITS = Limits(seconds=60.0, memory=4.0)


def model(name, estimator, **parameters):
    return Model(name, name, f"tests.experiments.experiment_models:{estimator}", parameters)


def experiment(*models, splits=1, limits=LIMITS):
    return Experiment("test", "Test", models, (SMALL,), splits, search=Search(folds=2), limits=limits)


def run_all(what, directory, **options):
    """Return the records by model, of one split."""
    with Store(directory / "results.sqlite") as store:
        return {record.model: record for record in run(what, store, **options).values()}


def outcomes(records):
    """Return what does not depend on the machine and the time of day."""
    facts = ("status", "n_train", "n_test", "metrics", "vectors", "parameters", "calibration")
    return {key: [getattr(record, fact) for fact in facts] for key, record in records.items()}


def wait_for(condition, *arguments, seconds=60):
    """Return what a function returns as soon as that is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition(*arguments)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def wait_until_gone(*pids):
    def gone(pid):
        return not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie"

    wait_for(lambda: all(map(gone, pids)), seconds=10)


# --- A job that goes wrong --------------------------------------------------------------------------------


def test_errors_and_crashes_are_records_with_reasons(tmp_path):
    wordy = model("wordy", "Broken", n_times=50_000)  # more than a pipe holds
    records = run_all(experiment(model("broken", "Broken"), model("crashing", "Crashing"), wordy), tmp_path)
    assert {record.status for record in records.values()} == {"failed"}
    assert records["broken"].reason == "ZeroDivisionError: nothing can be divided by nothing"
    assert records["crashing"].reason == f"The process died with signal {int(signal.SIGABRT)}."
    assert len(records["wordy"].reason) > 1_000_000


def test_a_job_that_exceeds_a_limit_ends_with_all_that_it_started_and_the_others_go_on(tmp_path):
    pids = tmp_path / "pids"
    models = model("parent", "Parent", pid_file=str(pids)), model("majority", "Majority")
    records = run_all(experiment(*models, limits=Limits(seconds=5.0)), tmp_path, n_jobs=2)
    assert (records["parent"].status, records["parent"].reason) == ("timeout", "Not finished after 5 s.")
    assert 5.0 <= records["parent"].seconds["total"] < 10.0
    assert records["majority"].ok
    wait_until_gone(*map(int, pids.read_text().split()))
    greedy = experiment(model("greedy", "Greedy"), models[1], limits=Limits(seconds=60.0, memory=0.4))
    records = run_all(greedy, tmp_path, n_jobs=2)
    assert records["greedy"].status == "failed"
    assert records["greedy"].reason == "More than 0.4 GB of memory needed."
    assert 400 <= records["greedy"].peak_memory < 600  # rounded
    assert records["majority"].ok


def test_what_a_model_left_running_ends_with_its_job(tmp_path):
    pids = tmp_path / "pids"
    what = experiment(model("parent", "Parent", pid_file=str(pids), seconds=0.0))
    assert run_all(what, tmp_path)["parent"].ok
    wait_until_gone(*map(int, pids.read_text().split()))


def test_a_record_sent_in_the_last_moment_is_received():
    process = object.__new__(JobProcess)
    process.job = experiment(model("majority", "Majority")).jobs()[0]
    process._result, theirs = multiprocessing.Pipe()
    process._process = SimpleNamespace(
        pid=None,
        exitcode=0,
        is_alive=lambda: theirs.send(Record("saddle", "majority", 0, "ok")) or False,  # then it is gone
        kill=lambda: None,
        join=lambda: None,
    )
    process._peak, process._started, process._limits = 0.0, time.monotonic(), LIMITS
    assert process.poll().ok
    theirs.close()


def test_a_start_that_is_interrupted_leaves_no_claim(tmp_path, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    what = experiment(model("majority", "Majority"))
    (key,) = (job.key for job in what.jobs())
    with Store(tmp_path / "results.sqlite") as store, Store(tmp_path / "results.sqlite") as other:
        with monkeypatch.context() as patched:
            patched.setattr("isbor.experiments.running.runner.JobProcess", interrupted)
            with pytest.raises(KeyboardInterrupt):
                run(what, store)
        assert other.claim([key]) == key


def test_a_timeout_is_rerun_only_if_asked(tmp_path):
    what = experiment(model("slow", "Majority", seconds=4.0), limits=Limits(seconds=1.0))
    patient = replace(what, limits=LIMITS)
    assert run_all(what, tmp_path)["slow"].status == "timeout"
    assert run_all(patient, tmp_path)["slow"].status == "timeout"
    assert run_all(patient, tmp_path, retry=True)["slow"].ok


# --- Same seed, same records ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_study():
    models = [CATALOGUE[name] for name in ("isbor-evidence", "gpor", "kdlor", "trees")]
    models = [replace(one, grid={name: values[:2] for name, values in one.grid.items()}) for one in models]
    models[-1] = replace(models[-1], packages=("rich",))
    return experiment(*models, splits=2)


@pytest.fixture(scope="module")
def undisturbed(small_study, tmp_path_factory):
    with Store(tmp_path_factory.mktemp("undisturbed") / "results.sqlite") as store:
        return run(small_study, store, n_jobs=1)


def test_records_do_not_depend_on_jobs_or_order(small_study, undisturbed, tmp_path):
    backwards = replace(small_study, models=small_study.models[::-1])
    with Store(tmp_path / "results.sqlite") as store:
        again = run(backwards, store, n_jobs=3)
    assert outcomes(again) == outcomes(undisturbed)
    assert all(record.ok for record in again.values())


def test_records_say_what_they_took_and_what_made_them(undisturbed):
    for record in undisturbed.values():
        assert record.seconds["total"] >= record.seconds["fit"] > 0.0
        assert record.seconds["search"] > 0.01 or record.model != "kdlor"
        assert 30.0 < record.peak_memory < 1000.0
        assert record.versions["python"] == ".".join(map(str, sys.version_info[:3]))
        assert record.versions["isbor"] == isbor.__version__
        assert ("rich" in record.versions) == (record.model == "trees")
        assert ("functions" in record.parameters) == (record.model == "trees")
        assert record.machine["cores"] == str(os.cpu_count())
        assert (record.threads, record.commit) == (1, source_commit())
        age = datetime.now().astimezone() - datetime.fromisoformat(record.finished)
        assert 0 <= age.total_seconds() < 3600
        assert record.parameters.get("u", 1e-6) in (1e-6, 1e-5)


# --- Killed -----------------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[3]
RUNNER = """
import sys
from pathlib import Path
from isbor.experiments import Store, run
from tests.experiments.running import test_runs

if __name__ == "__main__":
    path, study, *arguments = sys.argv[1:]
    with Store(Path(path)) as store:
        run(getattr(test_runs, study)(*arguments), store, n_jobs=2)
"""


def killed_study(splits):
    slowly = [model(f"majority-{k}", "Majority", seconds=0.1 + 0.1 * k) for k in range(4)]
    return experiment(*slowly, CATALOGUE["trees"], splits=int(splits))


def shared_study(diary):
    return experiment(model("diarist", "Diarist", diary=diary, seconds=0.3), splits=30)


def parent_study(pids):
    return experiment(model("parent", "Parent", pid_file=pids))


def hopeless_study():
    return experiment(model("slow", "Majority", seconds=3600.0))


def start_runner(directory, study, *arguments):
    """Return a process that runs a study of this module."""
    script = directory / "runner.py"
    script.write_text(RUNNER)
    return subprocess.Popen(
        [sys.executable, str(script), str(directory / "results.sqlite"), study, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
    )


@contextmanager
def ended(runner):
    try:
        yield runner
    finally:
        runner.kill()
        runner.wait()


def records_in(directory, study):
    with Store(directory / "results.sqlite") as store:
        found = store.records(job.key for job in study.jobs())
    assert set(found) == {job.key for job in study.jobs()}
    return found


def workers_of(runner):
    """Return the processes of jobs: those that lead a session of their own."""
    found = []
    for process in psutil.Process(runner.pid).children(recursive=True):
        try:
            if os.getsid(process.pid) == process.pid:
                found.append(process)
        except ProcessLookupError:
            continue
    return found


@pytest.mark.parametrize("n_kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random_again_and_again_nothing_is_lost_or_doubled(n_kills, tmp_path):
    rng = random.Random(n_kills)
    victims = ["runner"] * (n_kills // 2) + ["worker"] * (n_kills - n_kills // 2)
    rng.shuffle(victims)
    runner = start_runner(tmp_path, "killed_study", n_kills)
    orphans = []
    try:
        for victim in victims:
            if victim == "worker" or rng.random() < 0.8:  # else in the middle of its start
                wait_for(workers_of, runner)
            time.sleep(rng.uniform(0.0, 1.0))
            if victim == "worker":
                rng.choice(wait_for(workers_of, runner)).kill()
                continue
            orphans += [child.pid for child in psutil.Process(runner.pid).children(recursive=True)]
            runner.kill()
            runner.wait()
            runner = start_runner(tmp_path, "killed_study", n_kills)
        assert runner.wait(timeout=120) == 0
    finally:
        runner.kill()
        runner.wait()
    wait_until_gone(*orphans)
    study = killed_study(n_kills)
    with Store(tmp_path / "undisturbed.sqlite") as store:
        assert outcomes(records_in(tmp_path, study)) == outcomes(run(study, store, n_jobs=2))


def test_two_runners_share_the_work(tmp_path):
    diary = tmp_path / "diary"
    runners = [start_runner(tmp_path, "shared_study", diary) for _ in range(2)]
    assert [runner.wait(timeout=120) for runner in runners] == [0, 0]
    records = records_in(tmp_path, shared_study(str(diary)))
    assert all(record.ok for record in records.values())
    starters, rows = zip(*map(str.split, diary.read_text().splitlines()), strict=True)
    assert len(set(starters)) == 2
    assert len(rows) == len(set(rows)) == len(records)  # nothing was computed twice


def test_what_a_model_started_ends_with_a_killed_runner(tmp_path):
    pids = tmp_path / "pids"
    with ended(start_runner(tmp_path, "parent_study", pids)):
        wait_for(lambda: pids.exists() and pids.read_text())
    wait_until_gone(*map(int, pids.read_text().split()))


def test_a_job_that_is_always_killed_fails_in_the_end(tmp_path):
    with ended(start_runner(tmp_path, "hopeless_study")) as runner:

        def killed_once_more():
            for worker in workers_of(runner):
                worker.kill()
            return runner.poll() is not None

        wait_for(killed_once_more)
    (record,) = records_in(tmp_path, hopeless_study()).values()
    assert record.status == "failed"
    assert record.reason.startswith("Killed 5 times.")
