"""Experiments as they run: processes that fail, hang, grow or are killed, and records that stay."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import psutil
import pytest

import isbor
from isbor.experiments import CATALOGUE, Experiment, Holdout, Limits, Model, Saddle, Search, Store, Task, run
from isbor.experiments.running.machine import source_commit
from isbor.experiments.running.processes import JobProcess
from isbor.experiments.running.records import Record

SMALL = Task("saddle", "Saddle", Saddle(rows=160), Holdout(train=100))
LIMITS = Limits(seconds=60.0, memory=4.0)


def model(name, estimator, **parameters):
    return Model(name, name, f"tests.experiments.experiment_models:{estimator}", parameters)


def experiment(*models, splits=1, limits=LIMITS, tasks=(SMALL,)):
    return Experiment("test", "Test", models, tasks, splits, search=Search(folds=2), limits=limits)


def only_record(what, tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        (record,) = run(what, store).values()
    return record


def outcomes(records):
    return {key: record.outcome for key, record in records.items()}


def wait_until_gone(*pids):
    deadline = time.monotonic() + 10
    while any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids):
        assert time.monotonic() < deadline, f"still there: {pids}"
        time.sleep(0.05)


# --- A job that goes wrong -------------------------------------------------------------------------------


def test_an_error_of_a_model_is_a_record_with_its_sentence(tmp_path):
    record = only_record(experiment(model("broken", "Broken")), tmp_path)
    assert record.status == "failed"
    assert record.reason == "ZeroDivisionError: nothing can be divided by nothing"


def test_a_crash_is_a_record(tmp_path):
    record = only_record(experiment(model("crashing", "Crashing")), tmp_path)
    assert record.status == "failed"
    assert record.reason == f"Its process ended with signal {int(signal.SIGABRT)} and without a result."


def test_a_late_job_ends_with_all_that_it_started_and_the_others_go_on(tmp_path):
    pids = tmp_path / "pids"
    late = model("parent", "Parent", pid_file=str(pids))
    what = experiment(late, model("majority", "Majority"), splits=1, limits=Limits(seconds=5.0))
    with Store(tmp_path / "results.sqlite") as store:
        records = {record.model: record for record in run(what, store, n_jobs=2).values()}
    assert records["parent"].status == "timeout"
    assert records["parent"].reason == "It was not done after 5 s."
    assert 5.0 <= records["parent"].seconds["total"] < 10.0
    assert records["majority"].ok
    wait_until_gone(*map(int, pids.read_text().split()))


def test_a_job_that_takes_too_much_memory_ends_alone(tmp_path):
    what = experiment(
        model("greedy", "Greedy"), model("majority", "Majority"), limits=Limits(seconds=60.0, memory=0.4)
    )
    with Store(tmp_path / "results.sqlite") as store:
        records = {record.model: record for record in run(what, store, n_jobs=2).values()}
    assert records["greedy"].status == "failed"
    assert records["greedy"].reason == "It needed more than 0.4 GB of memory."
    assert 400 < records["greedy"].peak_memory < 600
    assert records["majority"].ok


class Ending:
    """A process that says its last word and ends while its runner looks at it."""

    pid, exitcode = None, 0

    def __init__(self, say):
        self.is_alive = lambda: say() or False

    def kill(self):
        pass

    join = kill


def test_what_a_process_says_in_its_last_moment_is_heard():
    process = object.__new__(JobProcess)
    process.job = experiment(model("majority", "Majority")).jobs()[0]
    process._result, theirs = multiprocessing.Pipe()
    process._process = Ending(lambda: theirs.send(Record("saddle", "majority", 0, "ok")))
    process._peak, process._started, process._limits = 0.0, time.monotonic(), LIMITS
    assert process.poll().ok
    theirs.close()


def test_a_record_larger_than_a_pipe_arrives(tmp_path):
    record = only_record(experiment(model("wordy", "Wordy", n_words=200_000)), tmp_path)
    assert record.status == "failed"
    assert len(record.reason) > 1_000_000


def test_what_a_model_left_running_ends_with_its_cell(tmp_path):
    pids = tmp_path / "pids"
    what = experiment(model("parent", "Parent", pid_file=str(pids), seconds=0.0))
    assert only_record(what, tmp_path).ok
    wait_until_gone(*map(int, pids.read_text().split()))


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


def test_what_was_late_is_run_again_only_if_asked(tmp_path):
    what = experiment(model("slow", "Majority", seconds=4.0), limits=Limits(seconds=1.0))
    patient = replace(what, limits=LIMITS)
    with Store(tmp_path / "results.sqlite") as store:
        assert [record.status for record in run(what, store).values()] == ["timeout"]
        assert [record.status for record in run(patient, store).values()] == ["timeout"]
        assert [record.status for record in run(patient, store, retry=True).values()] == ["ok"]


# --- Same seed, same records ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_study():
    models = [CATALOGUE[name] for name in ("isbor-evidence", "gpor", "kdlor", "trees")]
    models = [replace(one, grid={name: values[:2] for name, values in one.grid.items()}) for one in models]
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


def test_records_say_what_they_took_and_where(undisturbed):
    for record in undisturbed.values():
        assert record.seconds["total"] >= record.seconds["fit"] > 0.0
        assert record.seconds["search"] > 0.01 or record.model != "kdlor"
        assert 30.0 < record.peak_memory < 1000.0
        assert record.versions["python"] == ".".join(map(str, sys.version_info[:3]))
        assert record.versions["isbor"] == isbor.__version__
        assert record.machine["cores"] == str(os.cpu_count())
        assert (record.threads, record.commit) == (1, source_commit())
        age = datetime.now().astimezone() - datetime.fromisoformat(record.finished)
        assert 0 <= age.total_seconds() < 3600
    assert {record.parameters["u"] for record in undisturbed.values() if record.model == "kdlor"} <= {
        1e-6,
        1e-5,
    }


def test_a_second_run_computes_nothing(small_study, undisturbed, tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        for key, record in undisturbed.items():
            store.add(key, record)
        assert run(small_study, store) == undisturbed  # times included


# --- Killed -----------------------------------------------------------------------------------------------

RUNNER = """
import sys
from pathlib import Path
from tests.experiments.running.test_runs import killed_study
from isbor.experiments import Store, run

if __name__ == "__main__":
    with Store(Path(sys.argv[1])) as store:
        run(killed_study(), store, n_jobs=2)
"""
ROOT = Path(__file__).parents[3]


def killed_study(splits=5):
    slowly = [model(f"majority-{k}", "Majority", seconds=0.1 + 0.1 * k) for k in range(4)]
    return experiment(*slowly, CATALOGUE["trees"], splits=splits)


def start_runner(path, script):
    places = os.pathsep.join([str(ROOT), *sys.path])
    return subprocess.Popen(
        [sys.executable, str(script), str(path)], cwd=ROOT, env={**os.environ, "PYTHONPATH": places}
    )


def workers_of(runner):
    """Return the processes of jobs: those that lead a session of their own."""
    found = []
    for process in runner.children(recursive=True):
        try:
            if os.getsid(process.pid) == process.pid:
                found.append(process)
        except ProcessLookupError:
            continue
    return found


@pytest.mark.parametrize("n_kills", [6, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random_again_and_again_nothing_is_lost_or_doubled(n_kills, tmp_path):
    script = tmp_path / "runner.py"
    script.write_text(RUNNER.replace("killed_study()", f"killed_study({n_kills})"))
    study = killed_study(n_kills)
    path = tmp_path / "results.sqlite"
    rng = random.Random(n_kills)
    victims = ["runner"] * (n_kills // 2) + ["worker"] * (n_kills - n_kills // 2)
    rng.shuffle(victims)
    runner = start_runner(path, script)
    orphans = []
    try:
        for victim in victims:
            while victim == "worker" or rng.random() < 0.8:  # else in the middle of its start
                assert runner.poll() is None, "the study is too small for so many kills"
                if workers := workers_of(psutil.Process(runner.pid)):
                    break
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 1.0))
            if victim == "worker":
                while not (workers := workers_of(psutil.Process(runner.pid))):
                    assert runner.poll() is None, "the study is too small for so many kills"
                rng.choice(workers).kill()
                continue
            orphans += [child.pid for child in psutil.Process(runner.pid).children(recursive=True)]
            runner.kill()
            runner.wait()
            runner = start_runner(path, script)
        assert runner.wait(timeout=120) == 0
    finally:
        runner.kill()
        runner.wait()
    wait_until_gone(*orphans)
    with Store(path) as store:
        records = store.records(job.key for job in study.jobs())
    assert set(records) == {job.key for job in study.jobs()}
    with Store(tmp_path / "undisturbed.sqlite") as store:
        assert outcomes(records) == outcomes(run(study, store, n_jobs=2))


def test_two_runners_share_the_work(tmp_path):
    diary = tmp_path / "diary"
    script = tmp_path / "runner.py"
    script.write_text(
        RUNNER.replace("killed_study()", f"shared_study({str(diary)!r})").replace("killed", "shared")
    )
    path = tmp_path / "results.sqlite"
    runners = [start_runner(path, script) for _ in range(2)]
    assert [runner.wait(timeout=120) for runner in runners] == [0, 0]
    study = shared_study(str(diary))
    with Store(path) as store:
        records = store.records(job.key for job in study.jobs())
    assert set(records) == {job.key for job in study.jobs()}
    assert all(record.ok for record in records.values())
    starters, rows = zip(*map(str.split, diary.read_text().splitlines()), strict=True)
    assert len(set(starters)) == 2
    assert len(rows) == len(set(rows)) == len(records)  # nothing was computed twice


def shared_study(diary):
    return experiment(model("diarist", "Diarist", diary=diary, seconds=0.3), splits=30)


def test_what_a_model_started_ends_with_a_killed_runner(tmp_path):
    pids = tmp_path / "pids"
    script = tmp_path / "runner.py"
    script.write_text(
        RUNNER.replace("killed_study()", f"parent_study({str(pids)!r})").replace("killed", "parent")
    )
    runner = start_runner(tmp_path / "results.sqlite", script)
    try:
        deadline = time.monotonic() + 60
        while not pids.exists() or not pids.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        runner.kill()
        runner.wait()
    wait_until_gone(*map(int, pids.read_text().split()))


def parent_study(pids):
    return experiment(model("parent", "Parent", pid_file=pids))


def test_a_job_that_is_always_killed_is_given_up(tmp_path):
    script = tmp_path / "runner.py"
    script.write_text(RUNNER.replace("killed_study", "hopeless_study"))
    path = tmp_path / "results.sqlite"
    runner = start_runner(path, script)
    try:
        deadline = time.monotonic() + 60
        while runner.poll() is None:
            assert time.monotonic() < deadline
            for worker in workers_of(psutil.Process(runner.pid)):
                worker.kill()
            time.sleep(0.1)
    finally:
        runner.kill()
        runner.wait()
    with Store(path) as store:
        (record,) = store.records(job.key for job in hopeless_study().jobs()).values()
    assert record.status == "failed"
    assert record.reason.startswith("It was killed 5 times.")


def hopeless_study():
    return experiment(model("slow", "Slow"))
