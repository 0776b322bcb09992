"""The studies of the paper, and experiments described in TOML files."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor.datasets.catalogue import BENCHMARKS
from isbor.experiments import (
    CATALOGUE,
    BenchmarkData,
    CrossValidation,
    Experiment,
    Holdout,
    ImportedData,
    Limits,
    Model,
    Saddle,
    Search,
    Share,
    TableFile,
    Task,
    load_study,
)
from isbor.experiments.description.toml_files import read_description

SVM_GRID = {"gamma": range(-3, 4), "C": range(-1, 4)}
GRIDS = {  # exponents of ten, from the paper
    **dict.fromkeys(("isbor", "isbor-evidence", "gpor"), {}),
    "isbor-cv": {"gamma": range(-2, 2)},
    "sbor": {"gamma": range(-3, 4)},
    **dict.fromkeys(("svor", "isvor", "isvor-adjacent"), SVM_GRID),
    "kdlor": {"gamma": range(-3, 4), "u": range(-6, 0)},
}
TRAIN = dict(zip(BENCHMARKS, (468, 750, 6744, 8142, 8092, 20490, 22584), strict=True))

MINIMAL = """
name = "mine"
models = ["isbor"]
[[tasks]]
data = "swd"
train = 750
"""


def read(text, **kwargs):
    return read_description(text, "mine.toml", **kwargs)


def test_the_studies_have_the_data_of_the_paper():
    study = load_study("benchmarks")
    assert (study.splits, study.limits) == (20, Limits(seconds=24 * 3600.0, memory=8.0))
    assert {task.name: (task.source, task.scheme) for task in study.tasks} == {
        name: (BenchmarkData(name), Holdout(train)) for name, train in TRAIN.items()
    }
    study = load_study("synthetic")
    assert study.splits == 30
    assert list(study.tasks) == [
        Task(f"saddle-{n}", f"Saddle, {n:,} rows", Saddle(rows=21_000), Holdout(n))
        for n in range(1000, 10_001, 1000)
    ]


@pytest.mark.parametrize("name", ["synthetic", "benchmarks"])
@pytest.mark.parametrize("quick", [False, True])
def test_studies_have_all_systems_with_the_grids_of_the_paper(name, quick):
    study = load_study(name, quick=quick)
    missing = {"isvor-adjacent"} if name == "synthetic" else set()
    assert {model.name for model in study.models} == GRIDS.keys() - missing
    for model in study.models:
        assert model.estimator == f"isbor:{model.name.partition('-')[0].upper()}"
        assert list(model.grid) == list(GRIDS[model.name])
        for parameter, exponents in GRIDS[model.name].items():
            assert_allclose(model.grid[parameter], 10.0 ** np.array(exponents), rtol=1e-12)
        # Only labels are compared, and these models would need further fits for probabilities.
        assert ("probability" in model.parameters) == (model.name.startswith(("svor", "isvor", "kdlor")))
        adjacent = {"constraints": "adjacent"}.items() <= model.parameters.items()
        assert adjacent == (model.name == "isvor-adjacent")
    assert (study.search.folds, study.search.scoring, study.seed) == (3 if quick else 5, "mae", 0)
    if quick:
        assert {task.source for task in study.tasks} == {task.source for task in load_study(name).tasks}
        assert max(task.scheme.train for task in study.tasks) <= 3000
        assert study.limits.seconds <= 30


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("benchmark", "no study 'benchmark'. Did you mean 'benchmarks'. The studies are"),
        ("mine.yaml", "your own experiment is a .toml file"),
        ("none.toml", r"There is no file 'none\.toml'"),
        ("latin.toml", r"latin\.toml is not UTF-8 text"),
    ],
)
def test_a_study_that_does_not_exist_is_refused(name, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("latin.toml").write_bytes('name = "Größe"'.encode("latin-1"))
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        load_study(name)


def test_a_description_needs_little():
    assert read(MINIMAL) == Experiment(
        "mine", "mine", (CATALOGUE["isbor"],), (Task("swd", "swd", BenchmarkData("swd"), Holdout(750)),), 20
    )


def test_a_changed_module_beside_a_description_is_another_model(tmp_path):
    (tmp_path / "mine.toml").write_text(
        MINIMAL.replace("isbor", "own") + '[model.own]\nestimator = "my_models:Own"\n'
    )
    keys = []
    for content in ("", "class Own: pass", "class Own: changed = True", "class Own: pass"):
        (tmp_path / "my_models.py").write_text(content)
        keys.append(load_study(str(tmp_path / "mine.toml")).jobs()[0].key)
    assert keys[1] == keys[3]
    assert len(set(keys)) == 3


EVERYTHING = """
name = "mine"
title = "My comparison"
about = \"\"\"
What it is about.
\"\"\"
models = ["mine", "isvor", "isbor", "kdlor"]
splits = 7
seed = 3
search = { folds = 4, scoring = "amae", rows_at_most = 100, give_up = 4 }
limits = { seconds = 0.5, memory = 2 }
[[tasks]]
data = "saddle"
rows = 500
random_state = 2
name = "s"
train = [100, 1000]
test_at_most = 50
[[tasks]]
file = "grades.v2.csv"
target = "grade"
order = [1, 0]
drop = ["id"]
folds = 3
[model.mine]
estimator = "sklearn.linear_model:LogisticRegression"
title = "Logistic"
inputs = "numbers"
grid = { C = [1, 2] }
search_parameters = { max_iter = 10 }
[model.isvor]
parameters = { tol = 1e-4 }
[model.kdlor]
estimator = "isbor:SBOR"
"""


def test_everything_can_be_described(tmp_path):
    (tmp_path / "grades.v2.csv").write_text("a,id,grade\n1,x,0\n2,y,1\n")
    (tmp_path / "mine.toml").write_text(EVERYTHING)
    found = load_study(str(tmp_path / "mine.toml"))
    saddle = Saddle(500, 2)
    grades = TableFile.of(tmp_path / "grades.v2.csv", "grade", ["1", "0"], ["id"])
    logistic = Model(
        "mine",
        "Logistic",
        "sklearn.linear_model:LogisticRegression",
        grid={"C": (1, 2)},
        search_parameters={"max_iter": 10},
        inputs="numbers",
    )
    assert found == Experiment(
        name="mine",
        title="My comparison",
        models=(
            logistic,
            replace(CATALOGUE["isvor"], parameters={"tol": 1e-4}),
            CATALOGUE["isbor"],
            Model("kdlor", "kdlor", "isbor:SBOR"),  # another estimator: nothing of the catalogue
        ),
        tasks=(
            Task("s-100", "s, 100 rows", saddle, Holdout(100, 50)),
            Task("s-1000", "s, 1,000 rows", saddle, Holdout(1000, 50)),
            Task("grades", "grades", grades, CrossValidation(3)),
        ),
        splits=7,
        seed=3,
        search=Search(4, "amae", 100, 4.0),
        limits=Limits(0.5, 2.0),
        about="What it is about.",
    )
    assert found.cross_validated
    assert not found.only(tasks=["s-100"]).cross_validated
    data = grades.load()
    assert (data.y.tolist(), list(data.X.columns)) == ([1, 0], ["a"])


QUICK = """
name = "mine"
models = ["isbor"]
search = { folds = 5, scoring = "rps" }
[[tasks]]
data = "saddle"
train = [50, 100, 400, 800]
[[tasks]]
data = "swd"
train = 750
test_at_most = 100
[[tasks]]
data = "bs"
folds = 5
[[tasks]]
data = "bank"
train = 0.7
[quick]
"""


def test_the_quick_version_takes_less_of_everything():
    changes = (
        "splits = 2\ntrain_at_most = 300\ntest_at_most = 200\nsearch = {folds = 3}\nlimits = {seconds = 9}"
    )
    quick, full = read(QUICK + changes, quick=True), read(QUICK + changes)
    assert (quick.splits, full.splits) == (2, 20)
    assert (quick.search, full.search) == (Search(3, "rps"), Search(5, "rps"))
    assert (quick.limits, full.limits) == (Limits(seconds=9.0), Limits())
    assert {task.name: task.scheme for task in quick.tasks} == {
        "saddle-50": Holdout(50, 200),
        "saddle-100": Holdout(100, 200),
        "saddle-300": Holdout(300, 200),  # once
        "swd": Holdout(300, 100),
        "bs": CrossValidation(5),
        "bank": Share(0.7, 300, 200),
    }
    whole = [Holdout(800), Holdout(750, 100), CrossValidation(5), Share(0.7)]
    assert [task.scheme for task in full.tasks[3:]] == whole
    assert read(QUICK + "train = [9]", quick=True).tasks[0].name == "saddle-9"


def models(text):
    return MINIMAL.replace('["isbor"]', text)


def of_file(entries):
    return f'name = "m"\nmodels = ["isbor"]\n[[tasks]]\nfile = {entries}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", r"mine\.toml is not valid TOML: Invalid value \(at .*\)\."),
        ('models = ["isbor"]\ntasks = []', "mine.toml: 'name' is missing"),
        ("name = 3" + MINIMAL.replace('name = "mine"', ""), "mine.toml: 'name' is 3; a string is needed"),
        ("splits = 2.5" + MINIMAL, "'splits' is 2.5; an integer is needed"),
        ("split = 3" + MINIMAL, r"mine\.toml: unknown entry 'split'\. Did you mean 'splits'\? Entries are"),
        (models('["isbro"]'), r"There is no model 'isbro'\. Did you mean 'isbor'"),
        (MINIMAL + '[model.other]\nestimator = "a:B"', r"\[model\.other\] is not listed in 'models'"),
        (MINIMAL + '[model.isbor]\ninputs = "x"', "'isbor' are 'x'; 'table' or 'numbers' is needed"),
        (models('["new"]') + '[model.new]\ntitle = "New"', r"\[model\.new\]: 'estimator' is missing"),
        (MINIMAL + '[[tasks]]\ndata = "bs"', r"\[\[tasks\]\] number 2: 'train' is missing"),
        (MINIMAL + '[[tasks]]\ndata = "bs"\nfolds = 2\ntrain = 9', "number 2: unknown entry 'train'"),
        ('tasks = [3]\nname = "m"\nmodels = ["isbor"]', r"\[\[tasks\]\] number 1 is 3; a table is needed"),
        (of_file('"none.csv"\ntarget = "y"\nfolds = 2'), r"There is no file '.*none\.csv'"),
        (of_file('"a.csv"\nfolds = 2'), "number 1: 'target' is missing"),
        (of_file('"a.csv"\ntarget = "y"\norder = ["b"]\nfolds = 2'), "order names b; at least 2"),
        (QUICK, r"mine\.toml has no \[quick\] section; run it without --quick"),
        (QUICK + "trains = [9]", r"\[quick\]: unknown entry 'trains'\. Did you mean 'train'"),
        (QUICK + 'train = ["x"]', r"\[quick\]: 'train' is \['x'\]; a number of rows, a list of"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_description_is_explained(text, message, tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,b\n")
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        read(text, directory=tmp_path, quick="[quick]" in text)


def test_the_example_in_the_guide_can_be_read(tmp_path):
    guide = (Path(__file__).parents[3] / "docs" / "experiments.md").read_text("utf-8")
    (tmp_path / "grades.csv").write_text("x,grade\n1,low\n")
    found = read(guide.split("```toml\n")[1].split("```")[0], directory=tmp_path)
    assert [model.name for model in found.models] == ["isbor", "svor", "logistic"]
    assert found.models[1].grid == {"C": (1.0, 10.0), "gamma": (0.1, 1.0)}
    assert found.models[1].search_parameters == {"probability": False}
    assert found.tasks[1].source.order == ("low", "mid", "high")


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


def test_data_and_studies_may_come_from_a_module(tmp_path, monkeypatch):
    (tmp_path / "ours.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    study = load_study("ours:STUDY")
    (task,) = study.tasks
    data = task.load()
    assert_array_equal(data.X, np.arange(60.0).reshape(30, 2))
    assert_array_equal(data.classes[data.y], np.arange(30) % 3 + 5)
    other = replace(task, source=ImportedData("ours:load", "31"))
    assert replace(study.jobs()[0], task=other).key != study.jobs()[0].key
    for name, quick, message in (
        ("ours:STUDIES", False, "cannot be imported .* no attribute"),
        ("theirs:STUDY", False, "cannot be imported .*No module named 'theirs'"),
        ("ours:load", False, "is a function; an Experiment is needed"),
        ("ours:STUDY", True, "no quick version"),
    ):
        with pytest.raises(ValueError, match=message):
            load_study(name, quick=quick)
    sys.modules.pop("ours")
