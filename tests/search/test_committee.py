"""Members that are found in parallel: the same as one after the other, and if one fails all stop."""

import signal
import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from isbor import ISBOR
from isbor._core.parallel import Workers
from isbor.data.rows import canonical_rows
from isbor.search.adaptive.committee import search_committee
from isbor.search.adaptive.proposals import Proposals
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
    stopped = []  # the flag that all recorders share, once there is one

    def first(step):
        assert began.wait(60)
        happens()
        assert stopped[0].wait(60)  # after Ctrl-C; an error has left by then

    def others(step):
        stopped.append(recorders[1].stopped)
        began.set()
        assert stopped[0].wait(60)

    def member(k, workers, recorder):
        proposals = Proposals(np.random.default_rng(k), np.arange(2), np.ones(2))
        return search_functions(rows, proposals, AdaptiveSettings(), workers, recorder)

    recorders = [Recorder("fit", rows.source, callback) for callback in (first, others, others)]
    with Workers(2) as workers, pytest.raises(error):
        search_committee(member, recorders, workers, parallel=True)
    assert [len(recorder.steps) for recorder in recorders[:2]] == [1, 1]
    # A thread may have taken the third up before it was cancelled, for no more than one step.
    assert len(recorders[2].steps) <= 1


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
