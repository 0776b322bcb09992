"""The runner: which jobs are computed when, and that each is recorded once.

Jobs that have a record are not run. The others are claimed one by one, computed each in a process of its
own, and recorded by the runner, which alone writes. A job whose process somebody killed goes to the end of
the queue; only if that happens again and again is it recorded as failed, for then the system itself may be
ending it for want of memory. What other runners work on is waited for, and taken over if they die.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from isbor.experiments.description.experiment import Experiment, Job
from isbor.experiments.running.processes import JobProcess, one_thread, process_context
from isbor.experiments.running.records import Record
from isbor.experiments.running.store import Store

__all__ = ["Observer", "run"]

_PAUSE = 0.05  # seconds between looks at the processes
_PATIENCE = 1.0  # seconds between looks at what other runners do
_MOST_KILLS = 5


class Observer(Protocol):
    """Who is told of the progress."""

    def begun(self, job: Job) -> None:
        """Work on a job has begun."""

    def ended(self, job: Job, record: Record) -> None:
        """Work on a job has ended in a record."""

    def broken_off(self, job: Job) -> None:
        """Somebody killed the process of a job; it will begin again."""

    def waiting(self) -> None:
        """Nothing has changed for a moment."""


def run(
    experiment: Experiment,
    store: Store,
    *,
    n_jobs: int = 1,
    retry: bool = False,
    observer: Observer | None = None,
) -> dict[str, Record]:
    """Compute the jobs of an experiment that have no record yet.

    Parameters
    ----------
    experiment : Experiment
        What to compute.
    store : Store
        Where records are and go.
    n_jobs : int
        Jobs that run at a time.
    retry : bool
        Compute those again that failed or were late.
    observer : Observer or None
        Who is told of the progress.

    Returns
    -------
    dict
        The records of all jobs, by key.

    Notes
    -----
    If it is interrupted, by Ctrl-C for instance, the processes end and what is recorded stays: the next call
    goes on. In a script, call it under ``if __name__ == "__main__":``, as processes import the script.
    """
    if n_jobs < 1:
        raise ValueError(f"n_jobs is {n_jobs}; at least 1 is needed.")
    jobs = {job.key: job for job in experiment.jobs()}
    records = store.records(jobs)
    if retry:
        again = [key for key, record in records.items() if not record.ok]
        store.forget(again)
        records = {key: record for key, record in records.items() if record.ok}
    queue = [key for key in jobs if key not in records]
    with one_thread():
        _work_off(queue, jobs, experiment, store, n_jobs, observer or _Nobody())
    return store.records(jobs)


def _work_off(
    queue: list[str],
    jobs: dict[str, Job],
    experiment: Experiment,
    store: Store,
    n_jobs: int,
    observer: Observer,
) -> None:
    context = process_context(experiment.models)
    kills: Counter[str] = Counter()
    running: dict[str, JobProcess] = {}
    look_again = time.monotonic()
    try:
        while queue or running:
            while queue and len(running) < n_jobs and time.monotonic() >= look_again:
                key = store.claim(queue)
                if key is None:  # the rest is with other runners
                    queue = _without_record(queue, jobs, store, observer)
                    look_again = time.monotonic() + _PATIENCE
                    continue
                queue.remove(key)
                running[key] = JobProcess(jobs[key], experiment.limits, context)
                observer.begun(jobs[key])
            for key, process in list(running.items()):
                record = process.poll()
                if record is None:
                    continue
                del running[key]
                kills[key] += process.killed
                if process.killed and kills[key] < _MOST_KILLS:
                    store.release(key)
                    queue.append(key)
                    observer.broken_off(jobs[key])
                    continue
                if process.killed:
                    record = replace(record, reason=f"It was killed {_MOST_KILLS} times. {record.reason}")
                store.add(key, record)
                observer.ended(jobs[key], record)
            observer.waiting()
            time.sleep(_PAUSE)
    finally:
        for process in running.values():
            process.end()
        store.release_all()  # a claim whose process was about to start, too


def _without_record(
    queue: Sequence[str], jobs: dict[str, Job], store: Store, observer: Observer
) -> list[str]:
    """Return what still has no record; tell of what others have done."""
    records = store.records(queue)
    for key, record in records.items():
        observer.ended(jobs[key], record)
    return [key for key in queue if key not in records]


class _Nobody:
    def begun(self, job: Job) -> None:
        pass

    def ended(self, job: Job, record: Record) -> None:
        pass

    def broken_off(self, job: Job) -> None:
        pass

    def waiting(self) -> None:
        pass
