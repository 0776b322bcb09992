"""Members that are found in parallel: the same as one after the other, and if one fails all stop."""

import signal
import threading
import time
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from isbor import ISBOR
from isbor._core.parallel import Workers
from isbor.data.rows import canonical_rows
from isbor.search.adaptive.search import AdaptiveSettings, search_functions
from isbor.search.recorder import Recorder
from tests.problems import noisy_rows

N_ROWS = 2600  # so many are searched in parallel


@pytest.fixture(scope="module")
def table():
    return noisy_rows(N_ROWS, seed=0)


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = threading.active_count()
    yield
    assert threading.active_count() == before


def test_threads_do_not_change_the_model(table):
    X, y = table
    fits = {}
    for n_jobs in (1, 2):
        threads = set()
        model = ISBOR(
            basis="mixed",
            n_members=2,
            max_vectors=16,
            n_jobs=n_jobs,
            callback=lambda step, seen=threads: seen.add(threading.get_ident()),
        )
        fits[n_jobs] = model.fit(X, y)
        assert (threading.get_ident() in threads) == (n_jobs == 1)
        assert len(threads) == n_jobs
    assert_array_equal(fits[1].predict_proba(X), fits[2].predict_proba(X))
    assert fits[1].trace_ == fits[2].trace_


def fail():
    raise ZeroDivisionError("in a member")


def press_ctrl_c():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


@pytest.mark.parametrize(
    ("happens", "error"),
    [
        pytest.param(fail, ZeroDivisionError, id="a member fails"),
        # In a worker of pytest-xdist the signal is not seen before the wait ends, after a minute.
        pytest.param(press_ctrl_c, KeyboardInterrupt, id="Ctrl-C", marks=pytest.mark.slow),
    ],
)
def test_the_others_stop_where_they_are(table, happens, error):
    """The first member fails in its first step, the second is in its first, the third has not begun."""
    X, y = table
    rows, _ = canonical_rows(X, y, np.ones(N_ROWS))
    began = threading.Event()

    def wait_for_the_end(workers):
        for _ in range(6000):
            if workers.stopped:
                return
            time.sleep(0.01)
        raise AssertionError("not stopped")

    def member(k, workers):
        def callback(step):
            if k == 0:
                assert began.wait(60)
                happens()
            began.set()
            wait_for_the_end(workers)  # after Ctrl-C; an error has left by then

        recorders[k] = Recorder("fit", rows.source, callback)
        random = np.random.default_rng(k)
        return search_functions(rows, np.arange(2), AdaptiveSettings(), random, workers, recorders[k])

    recorders = {}
    with Workers(2) as workers, pytest.raises(error):
        workers.side_by_side([partial(member, k) for k in range(3)])
    # The functions of the start are recorded one by one, with no other work between them.
    assert all(step.kind == "start" for recorder in recorders.values() for step in recorder.steps)


def test_a_callback_that_raises_leaves_the_estimator_as_it_was(table):
    X, y = table
    seen = []

    def callback(step):
        seen.append(step)
        if len(seen) == 100:
            raise ZeroDivisionError("in the callback")

    model = ISBOR(basis="mixed", n_members=2, n_jobs=2, callback=callback)
    before = dict(vars(model))
    with pytest.raises(ZeroDivisionError, match="in the callback"):
        model.fit(X, y)
    assert vars(model) == before
