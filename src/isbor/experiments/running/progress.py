"""Progress of a run: a live table in a terminal, else a line for each job."""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from isbor.experiments.description.experiment import Experiment, Job
from isbor.experiments.running.records import Record
from isbor.experiments.running.runner import Observer

__all__ = ["LiveProgress", "time_left"]

_MOST_ROWS = 25  # of the live table


def time_left(experiment: Experiment, records: Mapping[str, Record], n_jobs: int) -> float | None:
    """Return the expected seconds until all jobs are done; None if no job is done yet.

    A job is expected to take as long as the mean of its model on its task; if there is none, of its model; if
    there is none, of all jobs.
    """
    took: dict[tuple[str, str], list[float]] = defaultdict(list)
    of_model: dict[str, list[float]] = defaultdict(list)
    for record in records.values():
        seconds = record.seconds.get("total", 0.0)
        took[record.task, record.model].append(seconds)
        of_model[record.model].append(seconds)
    if not took:
        return None
    overall = [seconds for found in of_model.values() for seconds in found]
    left = 0.0
    for job in experiment.jobs():
        if job.key not in records:
            known = took.get((job.task.name, job.model.name)) or of_model.get(job.model.name) or overall
            left += min(sum(known) / len(known), experiment.limits.seconds)
    return left / n_jobs


class LiveProgress(Observer):
    """Shows tasks × models and how far they are, or a line for each job if the console is no terminal."""

    def __init__(
        self, experiment: Experiment, records: Mapping[str, Record], n_jobs: int, console: Console
    ) -> None:
        self._experiment = experiment
        self._n_jobs = n_jobs
        self._console = console
        self._working: dict[str, float] = {}  # start times
        self._jobs = {job.key: job for job in experiment.jobs()}
        self._splits = Counter((job.task.name, job.model.name) for job in self._jobs.values())
        self._records: dict[str, Record] = {}
        self._ok: Counter[tuple[str, str]] = Counter()  # by task and model
        self._lost: Counter[tuple[str, str]] = Counter()
        for key, record in records.items():
            if key in self._jobs:
                self._count(key, record)
        self._bar = Progress(
            TextColumn("jobs"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
        )
        self._task = self._bar.add_task("", total=len(self._jobs), completed=len(self._records), left="")
        self._live = Live(console=console, refresh_per_second=4, transient=True, get_renderable=self._draw)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def begun(self, job: Job) -> None:
        """Show that a job has started."""
        self._working[job.key] = time.monotonic()

    def ended(self, job: Job, record: Record) -> None:
        """Show the result of a job."""
        self._working.pop(job.key, None)
        self._count(job.key, record)
        left = time_left(self._experiment, self._records, self._n_jobs)
        self._bar.update(self._task, completed=len(self._records), left=_in_words(left))
        if not self._console.is_terminal:
            result = f"MAE {record.metrics['mae']:.4f}" if record.ok else f"{record.status}: {record.reason}"
            self._console.print(
                f"[{len(self._records)}/{len(self._jobs)}] {job.task.title}, {job.model.title}, split "
                f"{job.split}: {result} ({record.seconds.get('total', 0.0):.1f} s)",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )

    def broken_off(self, job: Job) -> None:
        """Show that a job waits to start again."""
        self._working.pop(job.key, None)

    def _count(self, key: str, record: Record) -> None:
        self._records[key] = record
        (self._ok if record.ok else self._lost)[record.task, record.model] += 1

    def _draw(self) -> RenderableType:
        """Return the present table."""
        experiment = self._experiment
        table = Table(box=None, pad_edge=False)
        table.add_column("")
        for model in experiment.models:
            table.add_column(Text(model.name), justify="right")
        working = dict(self._working)  # a copy: another thread draws while jobs start and end
        at_work = {(self._jobs[key].task.name, self._jobs[key].model.name) for key in working}
        for task in experiment.tasks[:_MOST_ROWS]:
            places = [(task.name, model.name) for model in experiment.models]
            table.add_row(Text(task.title), *(self._place(place, place in at_work) for place in places))
        if len(experiment.tasks) > _MOST_ROWS:
            table.add_row(f"and {len(experiment.tasks) - _MOST_ROWS} more")
        now = [
            f"{self._jobs[key].task.title}, {self._jobs[key].model.title}, split {self._jobs[key].split}: "
            f"{time.monotonic() - began:.0f} s"
            for key, began in working.items()
        ]
        return Group(table, Text(), self._bar, Text("\n".join(now), style="dim"))

    def _place(self, place: tuple[str, str], at_work: bool) -> Text:
        """Return the splits done by a model on a task, unfinished runs in red."""
        n_ok, n_lost, n_splits = self._ok[place], self._lost[place], self._splits[place]
        text = Text()
        if at_work:
            text.append("▸ ", style="yellow")
        text.append(f"{n_ok}/{n_splits}", style="green" if n_ok == n_splits else "")
        if n_lost:
            text.append(f" –{n_lost}", style="red")
        return text


def _in_words(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 90:
        return f"about {seconds:.0f} s left"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} min left"
    return f"about {seconds / 3600:.1f} h left"
