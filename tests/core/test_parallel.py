import threading
import time
from functools import partial

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from isbor._core.parallel import Workers, row_blocks


def blas_threads():
    return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}


@pytest.mark.parametrize("n_columns", [1, 40, 10**6])
def test_blocks_cover_all_rows_once(n_columns):
    rows = np.arange(30_001)
    assert np.concatenate([rows[b] for b in row_blocks(len(rows), n_columns)]).tolist() == rows.tolist()


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_results_come_in_order_and_few_at_a_time(n_jobs):
    begun = []

    def work(block):
        begun.append(block)
        return block.start

    blocks = row_blocks(50_000, 10**5)
    with Workers(n_jobs) as workers:
        for i, result in enumerate(workers.map(work, blocks)):
            assert result == blocks[i].start
            assert len(begun) <= i + 2 * n_jobs + 2  # memory is bounded by what runs ahead


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_an_error_in_a_block_reaches_the_caller(n_jobs):
    def fail(block):
        raise ZeroDivisionError("in a block")

    with pytest.raises(ZeroDivisionError, match="in a block"), Workers(n_jobs) as workers:
        list(workers.map(fail, row_blocks(10_000, 10**5)))


def test_blas_runs_on_one_thread_inside_and_as_before_outside():
    before = blas_threads()
    with Workers(1):
        with Workers(2):
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_the_last_task_gets_the_threads_of_those_that_ended():
    second_has_begun, first_is_over = threading.Event(), threading.Event()

    def idents(workers):
        return set(workers.map(lambda _: threading.get_ident(), [slice(0, 1), slice(1, 2)]))

    def first(workers):
        assert second_has_begun.wait(60)
        alone = idents(workers)
        assert alone == {threading.get_ident()}  # the other thread has a task of its own
        first_is_over.set()

    def second(workers):
        second_has_begun.set()
        assert first_is_over.wait(60)
        both = threading.Barrier(2, timeout=60)
        while True:  # the end of a task is seen a moment later
            if idents(workers) != {threading.get_ident()}:
                return list(workers.map(lambda _: both.wait(), [slice(0, 1), slice(1, 2)]))

    with Workers(2) as workers:
        _, order = workers.side_by_side([first, second])
    assert sorted(order) == [0, 1]  # the two blocks were there at the same time


def test_tasks_within_a_task_get_the_threads_of_those_that_ended():
    """The outer tasks are two, and one of them ends at once: the other one's tasks run in pairs."""
    both = threading.Barrier(2, timeout=60)
    first_is_over = threading.Event()

    def first(workers):
        first_is_over.set()
        return threading.get_ident()

    def second(workers):
        assert first_is_over.wait(60)
        time.sleep(0.05)  # the thread of a task is idle a moment after its end
        return workers.side_by_side([lambda _: both.wait() for _ in range(4)])

    with Workers(2) as workers:
        _, places = workers.side_by_side([first, second])
    assert sorted(places) == [0, 0, 1, 1]


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_results_of_nested_tasks_are_in_order_and_threads_are_not_exceeded(n_jobs):
    lock, running, most = threading.Lock(), 0, 0

    def work(a, b, workers):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.002)
        with lock:
            running -= 1
        return 10 * a + b

    def group(a, workers):
        return workers.side_by_side([partial(work, a, b) for b in range(a)])

    with Workers(n_jobs) as workers:
        results = workers.side_by_side([partial(group, a) for a in range(6)])
    assert results == [[10 * a + b for b in range(a)] for a in range(6)]
    assert most <= n_jobs


def test_an_error_in_a_nested_task_ends_all_and_reaches_the_caller():
    def fail(workers):
        raise ZeroDivisionError("in a nested task")

    def wait_for_the_end(workers):
        for _ in range(6000):
            workers.check()
            time.sleep(0.01)
        raise AssertionError("not stopped")

    def nested(workers):
        return workers.side_by_side([wait_for_the_end, fail])

    before = threading.active_count()
    with Workers(3) as workers, pytest.raises(ZeroDivisionError, match="in a nested task"):
        workers.side_by_side([wait_for_the_end, nested])
    assert threading.active_count() == before
