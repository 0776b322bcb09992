"""Fits of two versions in turn, each version in a process of its own, every fit recorded at once.

A stopped run goes on where it was. Fits of another pair of versions do not count: seconds are compared only
if they were measured side by side. If only errors are compared, fits of the earlier version and of the peers
are made once for all present versions.
"""

import datetime
import hashlib
import json
import os
import pickle
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import isbor
from benchmarks.problems import draw_grades
from benchmarks.versions.problems import Problem, Rows
from isbor._core.types import FloatArray, IntArray
from isbor.data.encoding import learn_table
from isbor.experiments import Record
from isbor.experiments.running.machine import machine_facts, source_commit
from isbor.experiments.running.record_files import read_record_lines, record_lines
from isbor.metrics import log_loss, mean_absolute_error, ranked_probability_score

__all__ = ["VERSIONS", "Plan", "Worker", "errors", "run", "source_digest"]

VERSIONS = ("before", "now")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared."""

    base: str  # commit of the earlier version
    now: str  # digest of the present source
    problems: Sequence[Problem]
    peers: Sequence[str]
    splits: int
    repeats: int
    threads: int
    timed: bool = True  # compare seconds, not errors alone

    @property
    def models(self) -> tuple[str, ...]:
        """The two versions and the peers, in the order in which they fit."""
        return (*VERSIONS, *self.peers)

    @property
    def places(self) -> list[tuple[int, int]]:
        """Splits and repeats, in order."""
        return [(split, repeat) for split in range(self.splits) for repeat in range(self.repeats)]

    def key(self, problem: Problem, model: str, place: tuple[int, int]) -> str:
        """Return what identifies a fit: if seconds are compared, both versions are part of it."""
        now = self.now if self.timed or model == "now" else "errors"
        return json.dumps([self.base, now, self.threads, problem.name, model, *place])

    def known(self, file: Path) -> dict[str, Record]:
        """Return the records of the plan's fits that are in a file, by key."""
        known = read_record_lines(file) if file.is_file() else {}
        keys = (
            self.key(problem, model, place)
            for problem in self.problems
            for place in self.places
            for model in self.models
        )
        return {key: known[key] for key in keys if key in known}

    def missing(self, problem: Problem, place: tuple[int, int], known: Mapping[str, Record]) -> list[str]:
        """Return the models without a result; if they are timed, the two versions both or not at all."""
        keys = {model: self.key(problem, model, place) for model in self.models}
        missing = {model for model, key in keys.items() if key not in known or not known[key].ok}
        if self.timed and not missing.isdisjoint(VERSIONS):
            missing.update(VERSIONS)
        return [model for model in self.models if model in missing]


def run(plan: Plan, pythons: Mapping[str, Path], file: Path) -> None:
    """Make the fits of a plan that have no record in the file; `pythons` are the versions' interpreters."""
    known = plan.known(file)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=len(plan.problems) * len(plan.places))
        for problem in plan.problems:
            bar.update(task, description=problem.name)
            with ExitStack() as processes:
                workers: dict[str, Worker] = {}
                for place in plan.places:
                    missing = plan.missing(problem, place, known)
                    rows = problem.rows(place[0]) if missing else None
                    for model in missing:
                        if model not in workers:
                            python = pythons.get(model, pythons["now"])
                            workers[model] = processes.enter_context(Worker(plan, problem, model, python))
                        record = workers[model].record(rows, place[0])
                        with file.open("a") as lines:
                            lines.write(record_lines({plan.key(problem, model, place): record}))
                        result = f"{record.seconds['fit']:.3g} s" if record.ok else record.reason
                        bar.console.print(
                            f"{problem.name}, split {place[0]}, {model}: {result}", markup=False
                        )
                    bar.advance(task)


class Worker:
    """A process that fits one model to one problem, after a small fit that does not count."""

    def __init__(self, plan: Plan, problem: Problem, model: str, python: Path) -> None:
        if source_digest() != plan.now:
            raise RuntimeError(
                "isbor's source has changed since the start. Run again to compare what it is now."
            )
        self._plan, self._problem, self._model = plan, problem, model
        alone = "-I" if model == "before" else "-P"  # with -I, no variable can lead it to another isbor
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        self._process = subprocess.Popen(
            [python, alone, Path(__file__).with_name("worker.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **dict.fromkeys(names, str(plan.threads))},
            start_new_session=True,  # Ctrl-C is for the command alone
        )
        X, y = draw_grades(60, 4, 0)
        self._ask(X=X, y=y, X_test=X, parameters=problem.parameters)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()

    def record(self, rows: Rows, split: int) -> Record:
        """Fit once and return the record."""
        X, X_test, parameters = rows.X, rows.X_test, {}
        if self._model in VERSIONS:
            parameters = {**self._problem.parameters, "classes": list(range(rows.n_classes))}
        else:
            encoding, X = learn_table(self._model, X, missing="indicator")
            X_test = encoding(self._model, X_test)
        reply = self._ask(X=X, y=rows.y, X_test=X_test, parameters=parameters)
        failed = reply.get("failed", "")
        return Record(
            *(self._problem.name, self._model, split, "failed" if failed else "ok", failed),
            n_train=len(rows.y),
            n_test=len(rows.y_test),
            metrics={} if failed else errors(rows, reply["classes"], reply["proba"]),
            vectors=reply.get("vectors"),
            parameters={**self._problem.parameters, "columns": rows.X.shape[1]},
            seconds=reply.get("seconds", {}),
            versions=reply.get("versions", {}),
            commit=self._plan.base if self._model == "before" else source_commit(),
            machine=machine_facts(),
            threads=self._plan.threads,
            finished=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        )

    def _ask(self, **request: Any) -> dict[str, Any]:
        """Return the reply of the process."""
        request |= {"model": self._model, "threads": self._plan.threads}
        assert self._process.stdin and self._process.stdout
        try:
            pickle.dump(request, self._process.stdin)
            self._process.stdin.flush()
            reply: dict[str, Any] = pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError):
            raise RuntimeError(
                f"The process of {self._model!r} ended with status {self._process.wait()} on "
                f"{self._problem.name}. If it printed no error, it lacked memory: leave this problem out. "
                "Earlier fits are recorded."
            ) from None
        return reply


def errors(rows: Rows, classes: IntArray, proba: FloatArray) -> dict[str, float]:
    """Return the errors of probabilities on test rows; the predicted label is their median."""
    labels = np.arange(rows.n_classes)
    full = np.zeros((len(proba), rows.n_classes))
    full[:, np.asarray(classes, dtype=np.intp)] = proba
    median = (full.cumsum(axis=1)[:, :-1] < 0.5).sum(axis=1)
    return {
        "mae": float(mean_absolute_error(rows.y_test, median, labels=labels)),
        "rps": float(ranked_probability_score(rows.y_test, full, labels=labels)),
        "log_loss": float(log_loss(rows.y_test, full, labels=labels)),
    }


def source_digest() -> str:
    """Return a digest of the present source of isbor, committed or not."""
    source = Path(isbor.__file__).parent
    files = {str(path.relative_to(source)): path.read_text("utf-8") for path in source.rglob("*.py")}
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:16]
