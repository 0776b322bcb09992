"""The runner: runs the jobs of an experiment and records each once.

Jobs with a record are not run. The others are claimed one by one, run each in its own process, and recorded
by the runner. A job whose process was killed from outside goes to the end of the queue. After several kills
it is recorded as failed, as the system may be killing it for lack of memory. Jobs of other runners are waited
for, and taken over if those runners die.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from isbor.experiments.description.experiment import Experiment, Job
from isbor.experiments.running.processes import JobProcess, one_thread, process_context
from isbor.experiments.running.records import Record
from isbor.experiments.running.store import Store

__all__ = ["Observer", "run"]

_PAUSE = 0.05  # seconds between polls of the processes
_PATIENCE = 1.0  # seconds between polls of other runners' jobs
_MOST_KILLS = 5


class Observer:
    """Is told of the progress; this one does nothing with it."""

    def begun(self, job: Job) -> None:
        """Note that a job has started."""

    def ended(self, job: Job, record: Record) -> None:
        """Note that a job has a record."""

    def broken_off(self, job: Job) -> None:
        """Note that the process of a job was killed; the job will start again."""


def run(
    experiment: Experiment,
    store: Store,
    *,
    n_jobs: int = 1,
    retry: bool = False,
    observer: Observer | None = None,
) -> dict[str, Record]:
    """Run the jobs of an experiment that have no record yet.

    Parameters
    ----------
    experiment : Experiment
        The jobs to run.
    store : Store
        Holds the records, old and new.
    n_jobs : int
        Number of parallel jobs.
    retry : bool
        Rerun jobs that failed or timed out.
    observer : Observer or None
        Is told of the progress.

    Returns
    -------
    dict
        The records of all jobs, by key.

    Notes
    -----
    After an interrupt, by Ctrl-C for instance, the processes end and the records stay: the next call
    continues. In a script, call it under ``if __name__ == "__main__":``, because processes import the script.

    Examples
    --------
    >>> from isbor.experiments import Store, load_study, run
    >>> with Store(Path("synthetic.sqlite")) as store:  # doctest: +SKIP
    ...     records = run(load_study("synthetic", quick=True), store, n_jobs=2)
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
        _work_off(queue, jobs, experiment, store, n_jobs, observer or Observer())
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
                if key is None:  # other runners have the rest
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
                    record = replace(record, reason=f"Killed {_MOST_KILLS} times. {record.reason}")
                store.add(key, record)
                observer.ended(jobs[key], record)
            time.sleep(_PAUSE)
    finally:
        for process in running.values():
            process.end()
        store.release_all()  # also that of a process about to start


def _without_record(
    queue: Sequence[str], jobs: dict[str, Job], store: Store, observer: Observer
) -> list[str]:
    """Return the jobs that still have no record; report those that other runners have finished."""
    records = store.records(queue)
    for key, record in records.items():
        observer.ended(jobs[key], record)
    return [key for key in queue if key not in records]
