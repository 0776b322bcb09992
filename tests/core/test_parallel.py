import threading

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
