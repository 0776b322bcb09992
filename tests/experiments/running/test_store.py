"""The store: each job is claimed by one, recorded once, and free again when its runner is gone."""

import contextlib
import multiprocessing
import os
import signal
import sqlite3
import sys

import pytest

from isbor.experiments.running import store as store_module
from isbor.experiments.running.records import Record
from isbor.experiments.running.store import Store

KEYS = ["a", "b", "c"]


def record(model="isbor", **facts):
    return Record("task", model, 0, "ok", metrics={"mae": 0.25}, calibration=((1.0, 0.5, 1.0),), **facts)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store"


def test_the_first_record_of_a_job_stays_and_reads_back_as_it_was(path):
    first = record(parameters={"gamma": 0.1, "basis": "rbf + mixed"}, reason="ä – “")
    with Store(path) as store:
        store.add("a", first)
        store.add("a", record("second"))
        assert store.claim(KEYS) == "b"  # not what has a record
    with Store(path) as store:
        assert store.records(KEYS) == {"a": first}


def test_claims_go_in_order_and_never_to_two(path):
    with Store(path) as one, Store(path) as other:
        claims = [one.claim(KEYS), other.claim(KEYS), one.claim(KEYS), other.claim(KEYS)]
        assert claims == ["a", "b", "c", None]


def test_released_and_forgotten_jobs_are_free_again(path):
    with Store(path) as store, Store(path) as other:
        store.add("a", record())
        store.claim(["b"])
        assert other.claim(["a", "b"]) is None
        store.release("b")
        store.forget(["a"])
        assert other.records(KEYS) == {}
        assert {other.claim(["a", "b"]), other.claim(["a", "b"])} == {"a", "b"}
        store.release_all()  # only its own claims
        assert store.claim(["a", "b"]) is None


def _claim_and_die(path, ready):
    store = Store(path)
    store.claim(["a"])
    ready.set()
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_claims_of_a_killed_runner_are_free_at_once(path):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    dead = context.Process(target=_claim_and_die, args=(path, ready))
    dead.start()
    dead.join()
    assert dead.exitcode == -signal.SIGKILL
    assert ready.is_set()
    with Store(path) as store:
        assert store.claim(["a"]) == "a"
    with Store(path) as store:  # sweeps what the dead one left
        store.claim(["b"])
    assert [file.name for file in path.parent.iterdir()] == ["store"]


def test_interrupted_anywhere_a_store_is_as_good_as_before(tmp_path):
    calls_left = 0

    def interrupt(frame, event, argument):
        """Raise what Ctrl-C raises, where Python looks for signals: after a call of C, or in a new frame."""
        nonlocal calls_left
        ours = frame.f_code.co_filename in (store_module.__file__, contextlib.__file__)
        if ours and event in ("call", "c_return"):
            calls_left -= 1
            if calls_left == 0:
                raise KeyboardInterrupt

    def work(store):
        key = store.claim(["a"])
        store.add(key, record())
        store.forget([key])

    n_interrupts, ended = 0, False
    while not ended:
        n_interrupts += 1
        calls_left = n_interrupts
        path = tmp_path / str(n_interrupts)
        with Store(path) as store, Store(path) as other:
            sys.setprofile(interrupt)
            try:
                work(store)
                ended = True
            except KeyboardInterrupt:
                sys.setprofile(None)
                store.release_all()
                assert (other.claim(["a"]) == "a") != ("a" in other.records(["a"]))
                store.add("b", record())
            finally:
                sys.setprofile(None)
    assert n_interrupts > 20


def test_another_file_is_refused_and_left_alone(path):
    path.write_text("my thesis, the only copy of it, long enough to be no empty database")
    with pytest.raises(ValueError, match="is not a store of results .* Choose another directory"):
        Store(path)
    assert path.read_text().startswith("my thesis")
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 7")
    with pytest.raises(ValueError, match="its format is 7; this version of isbor writes 2"):
        Store(path)


def test_a_store_that_is_locked_is_not_said_to_be_something_else(path, monkeypatch):
    monkeypatch.setattr(store_module, "_BUSY_SECONDS", 0.05)
    with Store(path):
        pass
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA locking_mode = EXCLUSIVE")
    database.execute("BEGIN EXCLUSIVE")
    with pytest.raises(ValueError, match=r"cannot be written to \(database is locked\)\. Try again"):
        Store(path)
    database.close()
    with Store(path) as store:
        assert store.claim(["a"]) == "a"
