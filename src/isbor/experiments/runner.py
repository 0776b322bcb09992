"""The runner: which cells are computed when, and that each is recorded once.

Cells that have a record are not run. The others are claimed one by one, computed each in a process of its
own, and recorded by the runner, which alone writes. A cell whose process somebody killed goes to the end of
the queue; only if that happens again and again is it recorded as failed, for then the system itself may be
ending it for want of memory. What other runners work on is waited for, and taken over if they die.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from isbor.experiments.description import Cell, Experiment
from isbor.experiments.jobs import Job, one_thread, process_context
from isbor.experiments.records import Record
from isbor.experiments.store import Store

__all__ = ["Observer", "run"]

_PAUSE = 0.05  # seconds between looks at the processes
_PATIENCE = 1.0  # seconds between looks at what other runners do
_MOST_KILLS = 5


class Observer(Protocol):
    """Who is told of the progress."""

    def begun(self, cell: Cell) -> None:
        """Work on a cell has begun."""

    def ended(self, cell: Cell, record: Record) -> None:
        """Work on a cell has ended in a record."""

    def broken_off(self, cell: Cell) -> None:
        """Somebody killed the process of a cell; it will begin again."""

    def waiting(self) -> None:
        """Nothing has changed for a moment."""


def run(
    experiment: Experiment,
    store: Store,
    *,
    jobs: int = 1,
    retry: bool = False,
    observer: Observer | None = None,
) -> dict[str, Record]:
    """Compute the cells of an experiment that have no record yet.

    Parameters
    ----------
    experiment : Experiment
        What to compute.
    store : Store
        Where records are and go.
    jobs : int
        Cells at work at a time.
    retry : bool
        Compute those again that failed or were late.
    observer : Observer or None
        Who is told of the progress.

    Returns
    -------
    dict
        The records of all cells, by key.

    Notes
    -----
    If it is interrupted, by Ctrl-C for instance, the processes end and what is recorded stays: the next call
    goes on. In a script, call it under ``if __name__ == "__main__":``, as processes import the script.
    """
    if jobs < 1:
        raise ValueError(f"jobs is {jobs}; at least 1 is needed.")
    cells = {cell.key: cell for cell in experiment.cells()}
    records = store.records(cells)
    if retry:
        again = [key for key, record in records.items() if not record.ok]
        store.forget(again)
        records = {key: record for key, record in records.items() if record.ok}
    queue = [key for key in cells if key not in records]
    with one_thread():
        _work_off(queue, cells, experiment, store, jobs, observer or _Nobody())
    return store.records(cells)


def _work_off(
    queue: list[str],
    cells: dict[str, Cell],
    experiment: Experiment,
    store: Store,
    jobs: int,
    observer: Observer,
) -> None:
    context = process_context(experiment.models)
    kills: Counter[str] = Counter()
    running: dict[str, Job] = {}
    look_again = time.monotonic()
    try:
        while queue or running:
            while queue and len(running) < jobs and time.monotonic() >= look_again:
                key = store.claim(queue)
                if key is None:  # the rest is with other runners
                    queue = _without_record(queue, cells, store, observer)
                    look_again = time.monotonic() + _PATIENCE
                    continue
                queue.remove(key)
                running[key] = Job(cells[key], experiment.limits, context)
                observer.begun(cells[key])
            for key, job in list(running.items()):
                record = job.poll()
                if record is None:
                    continue
                del running[key]
                kills[key] += job.killed
                if job.killed and kills[key] < _MOST_KILLS:
                    store.release(key)
                    queue.append(key)
                    observer.broken_off(cells[key])
                    continue
                if job.killed:
                    record = replace(record, reason=f"It was killed {_MOST_KILLS} times. {record.reason}")
                store.add(key, record)
                observer.ended(cells[key], record)
            observer.waiting()
            time.sleep(_PAUSE)
    finally:
        for job in running.values():
            job.end()
        store.release_all()  # a claim whose process was about to start, too


def _without_record(
    queue: Sequence[str], cells: dict[str, Cell], store: Store, observer: Observer
) -> list[str]:
    """Return what still has no record; tell of what others have done."""
    records = store.records(queue)
    for key, record in records.items():
        observer.ended(cells[key], record)
    return [key for key in queue if key not in records]


class _Nobody:
    def begun(self, cell: Cell) -> None:
        pass

    def ended(self, cell: Cell, record: Record) -> None:
        pass

    def broken_off(self, cell: Cell) -> None:
        pass

    def waiting(self) -> None:
        pass
