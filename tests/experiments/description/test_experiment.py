"""Experiments: keys of jobs, which jobs there are, and what is refused before any work."""

import math
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from isbor.experiments import (
    CATALOGUE,
    BenchmarkData,
    CrossValidation,
    Experiment,
    Holdout,
    Job,
    Limits,
    Model,
    Saddle,
    Search,
    TableFile,
    Task,
)

MODEL = Model("mine", "Mine", "isbor:SVOR", {"tol": 1e-4}, {"C": (1.0, 10.0)}, searched_by="isbor:SVOR")
TASK = Task("swd", "SWD", BenchmarkData("swd"), Holdout(750))
JOB = Job(MODEL, TASK, 3, 0, Search())
SADDLE = Task("saddle", "Saddle", Saddle(300), Holdout(100))


def experiment(**changes):
    facts = {"models": (MODEL, CATALOGUE["isbor"]), "tasks": (TASK, SADDLE), "splits": 4, **changes}
    return Experiment("e", "E", **facts)


def checked(**changes):
    return lambda: experiment(**{"tasks": (SADDLE,), **changes}).check()


def with_model(**changes):
    return replace(JOB, model=replace(MODEL, **changes))


def with_task(**changes):
    return replace(JOB, task=replace(TASK, **changes))


CHANGED = [
    with_model(estimator="isbor:ISVOR"),
    with_model(parameters={"tol": 1e-5}),
    with_model(parameters={}),
    with_model(grid={"C": (1.0, 100.0)}),
    with_model(grid={"C": (10.0, 1.0)}),  # the first of equal points is chosen
    with_model(grid={}),
    with_model(search_parameters={"probability": False}),
    with_model(searched_by=""),
    with_model(inputs="numbers"),
    with_model(rows_at_most=60),
    *(replace(JOB, search=search) for search in (Search(4), Search(5, "accuracy"), Search(5, "mae", 300))),
    replace(JOB, search=Search(give_up=4.0)),
    with_task(source=BenchmarkData("bs")),
    *(with_task(source=source) for source in (Saddle(), Saddle(rows=2000), Saddle(random_state=1))),
    with_task(source=TableFile("a.csv", "grade", digest="1")),
    with_task(source=TableFile("a.csv", "grade", digest="2")),
    with_task(source=TableFile("a.csv", "other", digest="1")),
    with_task(source=TableFile("a.csv", "grade", "1", ("low", "high"))),
    with_task(source=TableFile("a.csv", "grade", "1", ("high", "low"))),
    with_task(source=TableFile("a.csv", "grade", "1", drop=("id",))),
    *(with_task(scheme=scheme) for scheme in (Holdout(749), Holdout(750, 100), CrossValidation(5))),
    replace(JOB, split=4),
    replace(JOB, seed=1),
    replace(JOB, split=2, seed=1),  # the same rows, but another split of another run
]


def test_a_key_changes_with_everything_that_a_result_depends_on():
    assert re.fullmatch(r"swd/mine/3/[0-9a-f]{16}", JOB.key)
    assert len({job.key for job in (JOB, *CHANGED)}) == 1 + len(CHANGED)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (JOB, with_model(title="Another title", tuning="so", same_as="svor")),
        (JOB, with_task(title="Another title")),
        (JOB, with_model(parameters={"tol": np.float64(1e-4)}, grid={"C": np.array([1.0, 10.0])})),
        (with_model(parameters={"a": 1, "b": 2}), with_model(parameters={"b": 2, "a": 1})),
        # Without a grid, it does not matter how grids are searched.
        (with_model(grid={}), replace(with_model(grid={}, searched_by=""), search=Search(folds=9))),
        (
            with_task(source=TableFile("/here/a.csv", "grade", digest="1")),
            with_task(source=TableFile("/there/b.csv", "grade", digest="1")),
        ),
    ],
)
def test_a_key_does_not_change_with_anything_else(one, other):
    assert one.key == other.key


def test_keys_are_the_same_in_every_version():
    """Committed records are found by their keys."""
    job = Job(CATALOGUE["isbor"], Task("bs", "BS", BenchmarkData("bs"), Holdout(468)), 0, 0, Search())
    assert job.key == "bs/isbor/0/ca098a401a8d0bc1"


def test_jobs_come_split_by_split_and_are_the_same_in_another_experiment():
    jobs = experiment().jobs()
    assert [(job.split, job.task.name, job.model.name) for job in jobs[:5]] == [
        (0, "swd", "mine"),
        (0, "swd", "isbor"),
        (0, "saddle", "mine"),
        (0, "saddle", "isbor"),
        (1, "swd", "mine"),
    ]
    keys = [job.key for job in jobs]
    for other in (experiment(limits=Limits(1.0)), experiment(about="?"), replace(experiment(), title="?")):
        assert [job.key for job in other.jobs()] == keys
    assert [job.key for job in experiment(splits=2).jobs()] == keys[:8]
    chosen = experiment().only(["isbor"], ["saddle"])
    assert [job.key for job in chosen.jobs()] == keys[3::4]
    assert not set(keys) & {job.key for job in experiment(seed=1).jobs()}


def test_a_variant_stands_in_for_a_model_on_one_task():
    cheaper = replace(MODEL, grid={"C": (1.0,)}, splits_at_most=2)
    plain, changed = experiment(), experiment(variants={("saddle", "mine"): cheaper})
    counts = Counter((job.task.name, job.model.name) for job in changed.jobs())
    assert sorted(counts.values()) == [2, 4, 4, 4]
    others = {job.key for job in changed.jobs() if job.model is not cheaper}
    assert {job.key for job in plain.jobs()} & {job.key for job in changed.jobs()} == others
    assert len(others) == 12


def test_what_was_tuned_is_said_of_each_model():
    named = [CATALOGUE[name] for name in ("isbor", "svor", "kdlor", "gpor", "linear", "trees")]
    assert experiment(models=tuple(named), search=Search(3, rows_at_most=1000)).how_tuned() == (
        "Tuned by 3-fold cross-validation on 1,000 training rows: SVOR, KDLOR. Tuned within the fit: ISBOR, "
        "GPOR. Not tuned: Linear (ordered probit), Boosted trees."
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: experiment(models=()), "The experiment 'e' has no model; name at least one"),
        (lambda: experiment(models=(MODEL, MODEL)), "The model 'mine' is listed twice"),
        (lambda: experiment(models=(MODEL, replace(MODEL, name="other"))), "have the title 'Mine'"),
        (lambda: replace(experiment(), name="a/b"), "name is 'a/b', .* use letters, digits, dots"),
        (lambda: experiment(splits=0), "splits is 0; at least 1 is needed"),
        (lambda: experiment(seed=-1), "The seed is -1; an integer from 0 to 4,294,957,295"),
        (lambda: experiment().only(["svor"]), "There is no model 'svor' here; choose from mine, isbor"),
        (lambda: Limits(seconds=math.nan), "The time limit is nan s; it must be positive"),
        (lambda: Search(folds=1), re.escape("The search has 1 fold(s); at least 2 are needed")),
        (lambda: Search(give_up=0.0), "give_up is 0.0; a positive number of standard errors .* or inf"),
        (lambda: BenchmarkData("iris"), "There is no data set 'iris'. Choose from saddle, bs, swd"),
        # Noticed before any work.
        (checked(models=(replace(MODEL, estimator="isbor:Nothing"),)), "'isbor:Nothing' cannot be imported"),
        (checked(models=(replace(MODEL, searched_by="no:SVOR"),)), "'no:SVOR' cannot be imported"),
        (checked(models=(replace(MODEL, parameters={"c": 1.0}),)), "'isbor:SVOR' has no parameter 'c'"),
        (checked(models=(replace(MODEL, grid={"c": (1.0,)}),)), "'isbor:SVOR' has no parameter 'c'"),
        (checked(models=(replace(MODEL, search_parameters={"c": 1}),)), "'isbor:SVOR' has no parameter 'c'"),
        (
            checked(variants={("saddle", "mine"): replace(MODEL, parameters={"depth": 3})}),
            "'isbor:SVOR' has no parameter 'depth'",
        ),
        (checked(search=Search(scoring="maee")), "There is no scorer 'maee'. Did you mean 'mae'"),
        (
            checked(models=(CATALOGUE["kdlor"],), search=Search(scoring="rps")),
            "scoring='rps' needs probabilities, which KDLOR does not have during the search",
        ),
        (checked(tasks=(replace(SADDLE, scheme=Holdout(300)),)), "300 rows, of which 300 should train"),
    ],
)  # fmt: skip
def test_a_description_that_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_model_without_a_grid_needs_no_scorer():
    unsearched = replace(MODEL, grid={}, searched_by="nowhere:SVOR")
    experiment(models=(unsearched,), tasks=(SADDLE,), search=Search(scoring="mea")).check()


def test_features_that_no_model_can_use_are_noticed_before_any_work(tmp_path):
    path = tmp_path / "grades.csv"
    path.write_text("x,grade\n1,1\ninf,2\n3,1\n4,2\n")
    task = Task("grades", "grades.csv", TableFile.of(path, "grade"), CrossValidation(2))
    with pytest.raises(ValueError, match=r"^grades\.csv cannot be used: .*inf"):
        experiment(tasks=(task,)).check()
