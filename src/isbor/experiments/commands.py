"""``isbor reproduce`` and ``isbor compare``: a request is checked first, then carried out."""

import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import joblib
from rich.console import Console

from isbor.experiments.description.experiment import Experiment, Limits
from isbor.experiments.description.models import catalogue_model
from isbor.experiments.description.tasks import CrossValidation, TableFile, Task
from isbor.experiments.description.toml_files import STUDIES, load_study
from isbor.experiments.reporting.provenance import provenance
from isbor.experiments.reporting.report import write_report
from isbor.experiments.reporting.results import Results
from isbor.experiments.reporting.tables.study import study_tables
from isbor.experiments.reporting.tables.table import to_rich
from isbor.experiments.running.progress import LiveProgress
from isbor.experiments.running.record_files import read_record_lines
from isbor.experiments.running.records import Record
from isbor.experiments.running.runner import run
from isbor.experiments.running.store import Store, UnusableStoreError
from isbor.plots import require_matplotlib

__all__ = [
    "Request",
    "UnusableStoreError",
    "carry_out",
    "compare_request",
    "how_to_continue",
    "reproduce_request",
]

_STORE = "results.sqlite"
_PRINTED = ("summary", "mae", "seconds", "vectors", "wilcoxon", "differences", "ranks", "unfinished")
_COMPARED = ("isbor", "sbor", "svor", "gpor", "kdlor", "linear", "trees")
_COMPARE_LIMITS = Limits(seconds=600.0, memory=8.0)


@dataclass(frozen=True, slots=True)
class Request:
    """An experiment, the directory of its results, and the command that asked for it."""

    experiment: Experiment
    directory: Path
    command: str  # that continues it
    known: Mapping[str, Record] = field(default_factory=dict)  # records of another run, by key


def reproduce_request(
    study: str,
    *,
    quick: bool = False,
    models: Sequence[str] | None = None,
    datasets: Sequence[str] | None = None,
    splits: int | None = None,
    limits: Mapping[str, float | None] | None = None,
    records: Path | None = None,
    output: Path | None = None,
    command: str = "",
) -> Request:
    """Return a study of the paper, or an experiment from a file or module, checked and ready to run.

    Modules beside a TOML file can be imported, like those beside a script.
    """
    if study not in STUDIES:
        sys.path.insert(0, str(Path(study).absolute().parent))
    experiment = load_study(study, quick=quick).only(models, datasets)
    if splits is not None:
        experiment = replace(experiment, splits=splits)
    experiment = replace(experiment, limits=_limited(experiment.limits, limits or {}))
    directory = output or Path(f"isbor-{experiment.name}{'-quick' if quick else ''}")
    known = {} if records is None else _known_records(records, experiment)
    return _checked(Request(experiment, directory, command, known))


def compare_request(
    path: Path,
    target: str,
    *,
    order: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    folds: int = 5,
    rounds: int = 1,
    seed: int = 0,
    limits: Mapping[str, float | None] | None = None,
    output: Path | None = None,
    command: str = "",
) -> Request:
    """Return a comparison on a user's table, checked and ready to run."""
    chosen = tuple(map(catalogue_model, models if models is not None else _COMPARED))
    without = f" but {', '.join(drop)}" if drop else ""
    name = re.sub(r"[^\w.-]+", "-", path.name.partition(".")[0]) or "table"
    task = Task(name, path.name, TableFile.of(path, target, order or (), drop or ()), CrossValidation(folds))
    experiment = Experiment(
        name=f"compare-{name}",
        title=f"Ordinal models on {path.name}",
        models=chosen,
        tasks=(task,),
        splits=folds * rounds,
        seed=seed,
        limits=_limited(_COMPARE_LIMITS, limits or {}),
        about=f"The column “{target}” predicted from the others{without}, by {rounds} × {folds}-fold "
        "stratified cross-validation.",
    )
    directory = output or Path(f"isbor-compare-{name}")
    return _checked(Request(experiment, directory, command))


def carry_out(request: Request, *, n_jobs: int | None, retry: bool, console: Console) -> Results:
    """Run the jobs that have no record, print the tables, and write the report."""
    experiment = request.experiment
    n_jobs = joblib.cpu_count() if n_jobs is None else n_jobs
    _say(console, f"{experiment.title}. {_outline(experiment)}")
    for task in experiment.tasks:
        if isinstance(task.source, TableFile) and (remark := task.source.remark()):
            _say(console, remark)
    _say(console, experiment.how_tuned())
    with Store(request.directory / _STORE) as store, _sigterm_as_ctrl_c():
        for key, record in request.known.items():
            store.add(key, record)
        known = store.records(job.key for job in experiment.jobs())
        kept = {key: record for key, record in known.items() if record.ok or not retry}
        if kept:
            _say(console, f"{len(kept)} jobs are done already, in {request.directory}.")
        with LiveProgress(experiment, kept, n_jobs, console) as progress:
            records = run(experiment, store, n_jobs=n_jobs, retry=retry, observer=progress)
    results = Results.of(experiment, records)
    tables = study_tables(results)
    for name in _PRINTED:
        if name in tables:
            console.print(to_rich(tables[name]))
            console.print()
    page = write_report(results, request.directory, command=request.command)
    for heading, text in provenance(results.all_records):
        _say(console, f"{heading.capitalize()}: {text}.", soft_wrap=True)
    _say(console, f"Report, with more tables and the figures: {page.absolute()}", soft_wrap=True)
    return results


def how_to_continue(request: Request) -> str:
    """Return the message after an interrupt."""
    experiment = request.experiment
    jobs = experiment.jobs()
    path = request.directory / _STORE
    n_done = 0
    if path.exists():
        with Store(path) as store:
            n_done = len(store.records(job.key for job in jobs))
    return (
        f"Stopped. {n_done} of {len(jobs)} jobs are done and saved in {request.directory}. "
        f"To continue: {request.command}"
    )


def _known_records(path: Path, experiment: Experiment) -> Mapping[str, Record]:
    """Return the records of this experiment in a file of another run."""
    found = read_record_lines(path)
    known = {job.key: found[job.key] for job in experiment.jobs() if job.key in found}
    if not known:
        raise ValueError(
            f"None of the {len(found)} records in {str(path)!r} belongs to this experiment: models, "
            "grids, data or splits differ."
        )
    return known


def _limited(limits: Limits, given: Mapping[str, float | None]) -> Limits:
    return replace(limits, **{name: value for name, value in given.items() if value is not None})


def _checked(request: Request) -> Request:
    require_matplotlib()
    directory = request.directory
    if directory.exists() and not directory.is_dir():
        raise NotADirectoryError(
            f"{str(directory)!r} is a file; choose a directory for the results with --output."
        )
    parent = next(place for place in (directory, *directory.absolute().parents) if place.is_dir())
    if not os.access(parent, os.W_OK):
        raise PermissionError(f"{str(directory)!r} is not writable; choose another directory with --output.")
    request.experiment.check()
    return request


def _outline(experiment: Experiment) -> str:
    n_models, n_tasks, n_jobs = len(experiment.models), len(experiment.tasks), len(experiment.jobs())
    fewer = " (fewer for some)" if n_jobs < n_models * n_tasks * experiment.splits else ""
    return (
        f"{n_models} model{'s' * (n_models > 1)} × {n_tasks} data set{'s' * (n_tasks > 1)} × "
        f"{experiment.splits} splits{fewer} = {n_jobs} jobs, each with at most "
        f"{experiment.limits.seconds:g} s and {experiment.limits.memory:g} GB."
    )


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C: end the jobs and release their claims."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _say(console: Console, text: str, *, soft_wrap: bool = False) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=soft_wrap)
