"""The records of an experiment, by task, model and split."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from isbor._core.types import FloatArray
from isbor.experiments.description.experiment import Experiment
from isbor.experiments.reporting.significance import Errors
from isbor.experiments.running.records import Record

__all__ = ["Results"]


@dataclass(frozen=True, slots=True)
class Results:
    """The results of an experiment so far.

    See Also
    --------
    run : Returns records.
    write_report : Makes a report of results.

    Examples
    --------
    >>> from isbor.experiments import CATALOGUE, Experiment, Holdout, Record, Results, Saddle, Task
    >>> task = Task("saddle", "Saddle", Saddle(rows=300), Holdout(train=200))
    >>> experiment = Experiment("mine", "Mine", (CATALOGUE["linear"],), (task,), splits=2)
    >>> record = Record("saddle", "linear", 0, status="ok", metrics={"mae": 1.2})
    >>> results = Results.of(experiment, {experiment.jobs()[0].key: record})
    >>> len(results.records["saddle", "linear"])  # of two splits
    1
    """

    experiment: Experiment
    records: Mapping[tuple[str, str], tuple[Record, ...]]  # by task and model, in order of the splits

    @classmethod
    def of(cls, experiment: Experiment, records: Mapping[str, Record]) -> "Results":
        """Return the results of an experiment from records by the keys of their jobs."""
        places: dict[tuple[str, str], list[Record]] = {
            (task.name, model.name): [] for task in experiment.tasks for model in experiment.models
        }
        for job in experiment.jobs():
            if job.key in records:
                places[job.task.name, job.model.name].append(records[job.key])
        return cls(experiment, {place: tuple(found) for place, found in places.items()})

    def finished(self, task: str, model: str) -> tuple[Record, ...]:
        """Return the records of finished runs."""
        return tuple(record for record in self.records[task, model] if record.ok)

    def by_split(self, task: str, model: str, of: Callable[[Record], float | None]) -> dict[int, float]:
        """Return a value of each finished run, by split; runs without the value are left out."""
        found = {record.split: of(record) for record in self.finished(task, model)}
        return {split: value for split, value in found.items() if value is not None}

    def errors(self, name: str = "mae") -> Errors:
        """Return a metric by task, model and split, for tests: NaN for an unfinished run."""
        return self.values(lambda record: record.metrics.get(name))

    def values(self, of: Callable[[Record], float | None]) -> Errors:
        """Return a value by task, model and split, for tests: NaN for an unfinished run."""
        return {
            task.name: {
                model.name: self.by_split(task.name, model.name, of)
                | {r.split: math.nan for r in self.records[task.name, model.name] if not r.ok}
                for model in self.experiment.models
            }
            for task in self.experiment.tasks
        }

    def calibration(self, tasks: Sequence[str], model: str) -> FloatArray | None:
        """Return the calibration of a model over all its records: its sums by bin, None if it has none."""
        found = [record.calibration for task in tasks for record in self.finished(task, model)]
        known = [bins for bins in found if bins]
        return np.sum(known, axis=0) if known else None

    @property
    def counts(self) -> Counter[str]:
        """Numbers of jobs by status; "missing" are those without a record."""
        counts = Counter[str](record.status for found in self.records.values() for record in found)
        counts["missing"] = len(self.experiment.jobs()) - counts.total()
        return counts

    @property
    def by_key(self) -> dict[str, Record]:
        """All records by the keys of their jobs, in order of the jobs."""
        found = {(record.task, record.model, record.split): record for record in self.all_records}
        places = {job.key: (job.task.name, job.model.name, job.split) for job in self.experiment.jobs()}
        return {key: found[place] for key, place in places.items() if place in found}

    @property
    def all_records(self) -> tuple[Record, ...]:
        """All records, by task and model."""
        return tuple(record for found in self.records.values() for record in found)
