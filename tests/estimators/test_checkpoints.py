"""Checkpoints: a fit that is killed or interrupted goes on with its finished steps; bad folders."""

import os
import pickle
import subprocess
import sys
import time

import pytest
from numpy.testing import assert_array_equal

from isbor import ISBOR, StopReason, sources
from isbor.data import large_tables
from tests.problems import noisy_rows

ROWS = 600  # of the table; searches take a sample of a third of them


@pytest.fixture(scope="module")
def table():
    return noisy_rows(ROWS, seed=0)


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr(large_tables, "_SAMPLE_ROWS", ROWS // 3)


# Fits in processes that are forked from one that has imported everything, but has no threads yet.
KILLS = """
import os, signal, sys, time
import numpy as np
from isbor import ISBOR, sources
from isbor.data import large_tables
from tests.problems import noisy_rows

folder, n_rows, n_kills, seed = sys.argv[1], *map(int, sys.argv[2:])
large_tables._SAMPLE_ROWS = n_rows // 3
X, y = noisy_rows(n_rows, seed=0)

def fit(checkpoint):
    table = sources.open_table((X, y), block_rows=100)
    begun = time.monotonic()
    model = ISBOR(n_members=4, n_jobs=1, checkpoint=checkpoint).fit(table)
    print(time.monotonic() - begun, model.basis_, len(model.trace_))
    print(model.thresholds_.tobytes().hex(), model.predict_proba(X).tobytes().hex())
    sys.stdout.flush()

def forked(checkpoint):
    child = os.fork()
    if child == 0:
        fit(checkpoint)
        os._exit(0)
    return child

ISBOR(n_members=2, n_jobs=1).fit(X[:100], y[:100])  # loads compiled code
begun = time.monotonic()
os.waitpid(forked(None), 0)
lasted, random = time.monotonic() - begun, np.random.default_rng(seed)
names, status = set(), -1
for _ in range(n_kills):
    child = forked(folder)
    time.sleep(random.uniform(0.0, 1.5 * lasted / n_kills))
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if status == 0:  # it had ended already
        break
    there = {name for name in os.listdir(folder) if not name.startswith("unfinished-")}
    assert names <= there, names - there
    names = there
if status != 0:
    os.waitpid(forked(folder), 0)
print(len(names), os.path.exists(folder))
"""


def killed(tmp_path, n_kills, seed):
    arguments = [str(tmp_path / "kept"), str(ROWS), str(n_kills), str(seed)]
    command = [sys.executable, "-c", KILLS, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    undisturbed, bits, resumed, other_bits, last = run.stdout.splitlines()
    assert undisturbed.split()[1:] == resumed.split()[1:]
    assert bits == other_bits
    n_steps, is_left = last.split()
    assert is_left == "False"
    return int(n_steps)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_a_killed_fit_ends_with_the_same_bits(tmp_path):
    killed(tmp_path, 3, seed=0)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("seed", range(3))
def test_a_fit_killed_twenty_times_ends_with_the_same_bits(tmp_path, seed):
    assert killed(tmp_path, 20, seed) > 1


def interrupted_at(run):
    """Return a callback that interrupts a fit where this run begins."""

    def interrupt(step):
        if step.stage == "fit" and step.run == run:
            raise KeyboardInterrupt

    return interrupt


def assert_same_model(one, other):
    assert_array_equal(one.thresholds_, other.thresholds_)
    assert_array_equal(one.relevance_vectors_, other.relevance_vectors_)
    assert one.log_evidence_ == other.log_evidence_
    assert one.trace_ == other.trace_
    assert one.n_iter_ == other.n_iter_


@pytest.mark.parametrize("n_rows", [150, 1600])  # above 1,500 rows the search is another one
def test_finished_members_are_not_searched_for_again(n_rows, tmp_path):
    X, y = noisy_rows(n_rows, seed=1)
    model = ISBOR(basis="mixed", effort="fast", n_members=3, n_jobs=1)
    whole = model.fit(X, y)
    with pytest.raises(KeyboardInterrupt):
        ISBOR(**model.get_params()).set_params(checkpoint=tmp_path / "kept", callback=interrupted_at(3)).fit(
            X, y
        )
    runs = set()
    resumed = ISBOR(**model.get_params()).set_params(
        checkpoint=tmp_path / "kept", callback=lambda step: runs.add(step.run)
    )
    assert_same_model(resumed.fit(X, y), whole)
    assert runs == {3}


def test_finished_families_and_folds_are_not_fitted_again(tmp_path):
    X, y = noisy_rows(150, seed=2)
    whole = ISBOR(n_jobs=1).fit(X, y)
    with pytest.raises(KeyboardInterrupt):
        ISBOR(n_jobs=1, checkpoint=tmp_path / "kept", callback=interrupted_at(1)).fit(X, y)
    stages = set()
    resumed = ISBOR(n_jobs=1, checkpoint=tmp_path / "kept", callback=lambda step: stages.add(step.stage)).fit(
        X, y
    )
    assert "selection" not in stages and "fit" in stages
    assert str(resumed.selection_) == str(whole.selection_)
    assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))
    assert resumed.trace_ == whole.trace_


def test_what_the_time_cut_short_is_not_kept(tmp_path):
    X, y = noisy_rows(150, seed=3)
    model = ISBOR(basis="mixed", effort="fast", n_jobs=1)

    def interrupt(step):
        time.sleep(0.01)
        if step.pass_number > 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ISBOR(**model.get_params()).set_params(
            checkpoint=tmp_path / "kept", max_time=1e-6, callback=interrupt
        ).fit(X, y)
    resumed = ISBOR(**model.get_params()).set_params(checkpoint=tmp_path / "kept")
    assert_same_model(resumed.fit(X, y), model.fit(X, y))


class SlowTable:
    """A table of arrays in blocks; notes which are read, and waits before each block of a later pass."""

    def __init__(self, X, y, at_once):
        self.parts = [(X[i : i + 100], y[i : i + 100]) for i in range(0, len(y), 100)]
        self.at_once, self.passes = at_once, []

    def __call__(self):
        self.passes.append(0)
        for part in self.parts:
            if len(self.passes) > self.at_once:
                time.sleep(0.3)
            self.passes[-1] += 1
            yield part


def test_the_time_bounds_passes_over_all_rows(table, few_are_many):
    slow = SlowTable(*table, at_once=0)
    model = ISBOR(basis="mixed", effort="fast", max_time=1e-6).fit(sources.open_table(slow))
    assert slow.passes == [len(slow.parts)] * 2  # the survey and the sample
    assert model.stop_reason_ is StopReason.ONLY_SAMPLE
    assert "max_time" in str(model.stop_reason_) and "sample" in str(model.stop_reason_)
    assert model._model.models[0].n_rows < ROWS
    assert model.score(*table) > 0.3


def test_a_pass_that_takes_too_long_is_given_up(table, few_are_many, tmp_path):
    kept = tmp_path / "kept"
    model = ISBOR(basis="mixed", effort="fast", n_jobs=1, checkpoint=kept)

    def first_pass(step):
        if step.stage == "all rows":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fast = sources.open_table(SlowTable(*table, at_once=9))
        ISBOR(**model.get_params()).set_params(callback=first_pass).fit(fast)
    found = pickle.loads((kept / "search").read_bytes().partition(b"\n")[2])[1].model.models
    (first,) = kept.glob("pass-*")
    first.unlink()
    slow = SlowTable(*table, at_once=1)  # search and sample are known: the survey, then the first pass
    fitted = model.set_params(max_time=1.0).fit(sources.open_table(slow))
    assert len(slow.passes) <= 2 and slow.passes[0] == len(slow.parts)
    assert sum(slow.passes[1:]) < len(slow.parts)
    assert fitted.stop_reason_ is StopReason.ONLY_SAMPLE
    for here, there in zip(fitted._model.models, found, strict=True):
        assert_array_equal(here.mode.thresholds, there.mode.thresholds)


@pytest.fixture
def interrupted(table, tmp_path):
    """A folder with the first of two members."""
    kept = tmp_path / "kept"
    model = ISBOR(basis="mixed", n_members=2, effort="fast", n_jobs=1, checkpoint=kept)
    with pytest.raises(KeyboardInterrupt):
        ISBOR(**model.get_params()).set_params(callback=interrupted_at(2)).fit(*table)
    return model, kept


def test_the_folder_of_another_fit(interrupted, table):
    model, kept = interrupted
    X, y = table
    with pytest.raises(ValueError, match="belongs to another fit; what differs: parameters. Pass another"):
        ISBOR(**model.get_params()).set_params(size_prior=3.0).fit(X, y)
    with pytest.raises(ValueError, match="what differs: data"):
        ISBOR(**model.get_params()).fit(X[:500], y[:500])
    file = kept / "fit"
    lines = file.read_text().split("\n")
    file.write_text("\n".join(["version of isbor: an older one", *lines[1:]]))
    with pytest.raises(ValueError, match="what differs: version of isbor"):
        ISBOR(**model.get_params()).fit(X, y)
    file.write_bytes(file.read_bytes()[:5])
    with pytest.raises(ValueError, match=r"The file '.*fit' is damaged. Remove the folder"):
        model.fit(X, y)


def test_a_damaged_step_is_computed_again(interrupted, table):
    model, kept = interrupted
    (step,) = [name for name in os.listdir(kept) if name.endswith("member-1")]
    (kept / step).write_bytes((kept / step).read_bytes()[:-10])
    with pytest.warns(UserWarning, match=r"member-1' is damaged; the step '.*member 1' is computed again"):
        model.fit(*table)
    assert_array_equal(model.thresholds_, ISBOR(**model.get_params()).fit(*table).thresholds_)
    assert not kept.exists()


def test_folders_that_cannot_be_used(table, tmp_path):
    X, y = table[0][:60], table[1][:60]

    def fit(folder):
        return ISBOR(basis="rbf", checkpoint=folder).fit(X, y)

    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "unfinished-1").touch()  # the fit was killed at once
    fit(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="is a file; a folder is needed"):
        fit(tmp_path / "file")
    with pytest.raises(OSError, match=r"folder '.*below' cannot be used: .* pass another folder"):
        fit(tmp_path / "file" / "below")
    with pytest.raises(ValueError, match="holds other files. Pass an empty or a new folder"):
        fit(tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_not_writable(table, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o500)
    with pytest.raises(OSError, match=r"cannot be used: .*Permission denied"):
        ISBOR(basis="rbf", checkpoint=kept).fit(*table)


def test_threads_read_the_same_steps(interrupted, table):
    model, _ = interrupted
    whole = ISBOR(**model.get_params()).set_params(checkpoint=None).fit(*table)
    resumed = model.set_params(n_jobs=2).fit(*table)
    assert_same_model(resumed, whole)
    assert_array_equal(resumed.predict_proba(table[0]), whole.predict_proba(table[0]))
