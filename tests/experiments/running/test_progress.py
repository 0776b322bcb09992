"""What a run shows while it runs."""

import io
import itertools
import re
from dataclasses import replace

import pytest
from numpy.testing import assert_allclose
from rich.console import Console
from rich.text import Text

from isbor.experiments import Limits
from isbor.experiments.running.progress import LiveProgress, time_left
from tests.experiments.samples import LATE, ONE, A, B, experiment, record_of, records_of


def took(experiment, seconds):
    """Return records of jobs, by (task, model, split), that took so long."""
    jobs = {(job.task.name, job.model.name, job.split): job for job in experiment.jobs()}
    return {
        jobs[place].key: replace(record_of(jobs[place], 0.1), seconds={"total": value})
        for place, value in seconds.items()
    }


@pytest.mark.parametrize(
    ("seconds", "left"),
    [
        # Two tasks, two models, two splits.
        ({("t1", "a", 0): 4.0}, 7 * 4.0),
        ({("t1", "a", 0): 4.0, ("t1", "b", 0): 6.0}, 3 * 4.0 + 3 * 6.0),
        ({("t1", "a", 0): 4.0, ("t2", "a", 0): 8.0}, 4.0 + 8.0 + 4 * 6.0),  # for B the mean of all
        ({("t1", "a", 0): 4.0, ("t1", "a", 1): 8.0, ("t2", "b", 0): 3.0}, 2 * 6.0 + 3 * 3.0),
        ({("t1", "a", 0): 500.0}, 7 * 100.0),  # the time limit
        ({place: 1.0 for place in itertools.product(("t1", "t2"), "ab", (0, 1))}, 0.0),
    ],
)
def test_the_time_left_is_estimated_from_similar_jobs(seconds, left):
    study = experiment(models=(A, B), splits=2, limits=Limits(seconds=100.0))
    assert_allclose(time_left(study, took(study, seconds), 1), left)
    assert_allclose(time_left(study, took(study, seconds), 4), left / 4)
    assert time_left(study, {}, 1) is None


def console(**kwargs):
    return Console(file=io.StringIO(), width=100, color_system=None, **kwargs)


def shown(console):
    """Return the lines that were written, without control codes."""
    text = Text.from_ansi(re.sub(r"\x1b\[[0-9?]*[A-Zhl]", "", console.file.getvalue())).plain
    return [line.rstrip() for line in text.splitlines()]


def test_without_a_terminal_there_is_a_line_for_each_job():
    study = experiment(models=(replace(A, title="[bold]A[/bold] " + "x" * 120), B), tasks=(ONE,), splits=2)
    screen = console(force_terminal=False)
    jobs = study.jobs()
    with LiveProgress(study, {jobs[0].key: record_of(jobs[0], 0.1)}, 1, screen) as progress:
        progress.begun(jobs[1])
        progress.broken_off(jobs[1])
        progress.begun(jobs[1])
        progress.ended(jobs[1], record_of(jobs[1], LATE))
        progress.ended(jobs[2], record_of(jobs[2], 0.123456))
    assert screen.file.getvalue().splitlines() == [
        f"[2/4] Task 1, B, split 0: timeout: {LATE} (9.0 s)",
        f"[3/4] Task 1, [bold]A[/bold] {'x' * 120}, split 1: MAE 0.1235 (4.0 s)",
    ]


def test_in_a_terminal_there_is_a_table():
    study = experiment(models=(A, B), splits=3)
    jobs = {(job.task.name, job.model.name, job.split): job for job in study.jobs()}
    known = records_of(study, {("t1", "a"): [0.1, 0.1, 0.1], ("t1", "b"): [0.1, LATE, None]})
    other = records_of(replace(study, seed=1), {("t1", "a"): [0.1]})  # of another experiment
    screen = console(force_terminal=True)
    with LiveProgress(study, known | other, 1, screen) as progress:
        progress.begun(jobs["t2", "a", 0])
        progress.ended(jobs["t2", "b", 0], record_of(jobs["t2", "b", 0], 0.1))
        progress.begun(jobs["t2", "b", 1])
        progress.broken_off(jobs["t2", "b", 1])
    picture = shown(screen)
    last = max(k for k, line in enumerate(picture) if "Task 1" in line)
    assert picture[last - 1].split() == ["a", "b"]
    assert picture[last].split() == ["Task", "1", "3/3", "1/3", "–1"]
    assert picture[last + 1].split() == ["Task", "2", "▸", "0/3", "1/3"]
    assert " 6/12 " in picture[last + 3]
    assert re.search(r"about \d+ s left$", picture[last + 3])
    assert re.fullmatch(r"Task 2, A, split 0: \d s", picture[last + 4])
    assert not any("split 1" in line for line in picture)
