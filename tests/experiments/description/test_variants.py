"""What differs between models or tasks of one experiment: grids, rows, splits, where data come from."""

import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from isbor import ISBOR
from isbor.experiments import (
    CATALOGUE,
    Experiment,
    Holdout,
    ImportedData,
    Job,
    Saddle,
    Search,
    Share,
    Task,
    load_study,
)
from isbor.experiments.description.toml_files import read_description
from isbor.experiments.running.measure import measure

SADDLE = Task("saddle", "Saddle", Saddle(300), Holdout(100))
LARGE = Task("large", "Large", Saddle(900), Share(0.7))
SVOR, TREES = CATALOGUE["svor"], CATALOGUE["trees"]
MODULE = """
import numpy as np
from isbor.experiments import CATALOGUE, Experiment, Holdout, ImportedData, Task

def load(name):
    n = int(name)
    return np.arange(2.0 * n).reshape(n, 2), np.arange(n) % 3 + 5

STUDY = Experiment(
    "ours", "Ours", (CATALOGUE["trees"],), (Task("t", "T", ImportedData("ours:load", "30"), Holdout(20)),), 2
)
"""


def test_a_variant_stands_in_for_a_model_on_one_task():
    cheaper = replace(SVOR, grid={"C": (1.0,)}, splits_at_most=2)
    plain = Experiment("e", "E", (SVOR, TREES), (SADDLE, LARGE), splits=5)
    changed = replace(plain, variants={("large", "svor"): cheaper})
    counts = Counter((job.task.name, job.model.name) for job in changed.jobs())
    assert counts == {
        ("saddle", "svor"): 5,
        ("saddle", "trees"): 5,
        ("large", "svor"): 2,
        ("large", "trees"): 5,
    }
    assert {len(job.model.grid) for job in changed.jobs() if job.model.name == "svor"} == {1, 2}
    same = {job.key for job in plain.jobs()} & {job.key for job in changed.jobs()}
    assert len(same) == 15  # all but the variant's


def test_a_model_may_take_fewer_rows_to_train():
    model = replace(CATALOGUE["isbor"], parameters={"gamma": 0.3}, rows_at_most=60)
    job = Job(model, SADDLE, 0, 0, Search())
    record, data = measure(job), SADDLE.load()
    train, test = SADDLE.scheme.split(data.y, 0, 0)
    fitted = ISBOR(gamma=0.3).fit(data.X[train[:60]], data.y[train[:60]])
    assert (record.n_train, record.n_test) == (60, 200)
    assert record.metrics["mae"] == np.mean(np.abs(fitted.predict(data.X[test]) - data.y[test]))
    assert job.key != replace(job, model=replace(model, rows_at_most=None)).key


@pytest.mark.parametrize(
    ("scheme", "same"),
    [
        (Share(0.7), Holdout(210)),
        (Share(0.7, train_at_most=100), Holdout(100)),
        (Share(0.5, train_at_most=200, test_at_most=30), Holdout(150, 30)),
    ],
)
def test_a_share_is_a_number_of_rows(scheme, same):
    y = np.zeros(300, dtype=np.intp)
    for found, expected in zip(scheme.split(y, 3, 1), same.split(y, 3, 1), strict=True):
        assert_array_equal(found, expected)


@pytest.mark.parametrize("share", [0.0, 1.0, 1.5, 0.0005])
def test_a_share_that_leaves_nothing_is_refused(share):
    with pytest.raises(ValueError, match="should train|share of training rows"):
        replace(LARGE, scheme=Share(share)).load()


def test_a_description_may_name_a_share():
    text = 'name = "mine"\nmodels = ["isbor"]\n[[tasks]]\ndata = "swd"\ntrain = 0.7\n'
    text += "[quick]\ntrain_at_most = 100\ntest_at_most = 50\n"
    assert read_description(text, "mine.toml").tasks[0].scheme == Share(0.7)
    assert read_description(text, "mine.toml", quick=True).tasks[0].scheme == Share(0.7, 100, 50)


@pytest.fixture
def ours(tmp_path, monkeypatch):
    (tmp_path / "ours.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("ours", None)


@pytest.mark.usefixtures("ours")
def test_data_and_studies_may_come_from_a_module():
    study = load_study("ours:STUDY")
    (task,) = study.tasks
    data = task.load()
    assert_array_equal(data.X, np.arange(60.0).reshape(30, 2))
    assert_array_equal(data.y, np.arange(30) % 3)
    assert_array_equal(data.classes, [5, 6, 7])
    other = replace(task, source=ImportedData("ours:load", "31"))
    assert replace(study.jobs()[0], task=other).key != study.jobs()[0].key
    study.check()


@pytest.mark.usefixtures("ours")
@pytest.mark.parametrize(
    ("name", "quick", "message"),
    [
        ("ours:STUDIES", False, "cannot be imported .* no attribute"),
        ("theirs:STUDY", False, "cannot be imported .*No module named 'theirs'"),
        ("ours:load", False, "is a function; an Experiment is needed"),
        ("ours:STUDY", True, "no quick version"),
    ],
)
def test_a_study_that_no_module_has_is_refused(name, quick, message):
    with pytest.raises(ValueError, match=message):
        load_study(name, quick=quick)
