import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier

from isbor import ISBOR, ISVOR, SVOR
from isbor.datasets import make_saddle
from isbor.datasets.catalogue import BENCHMARKS
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
    load_study,
)
from isbor.experiments.description.baselines import BoostedTrees
from isbor.experiments.description.models import catalogue_model, make_estimator
from isbor.experiments.description.toml_files import read_description

MODEL = Model("mine", "Mine", "isbor:SVOR", {"tol": 1e-4}, {"C": (1.0, 10.0)}, searched_by="isbor:SVOR")
TASK = Task("swd", "SWD", BenchmarkData("swd"), Holdout(750))
CELL = Job(MODEL, TASK, 3, 0, Search())
SADDLE = Task("saddle", "Saddle", Saddle(300), Holdout(100))

SYSTEMS = ["sbor", "svor", "isvor", "gpor", "kdlor"]
DECADES = {
    "isbor-cv": {"gamma": range(-2, 2)},
    "sbor": {"gamma": range(-3, 4)},
    "svor": {"gamma": range(-3, 4), "C": range(-1, 4)},
    "isvor": {"gamma": range(-3, 4), "C": range(-1, 4)},
    "kdlor": {"gamma": range(-3, 4), "u": range(-6, 0)},
}

MINIMAL = """
name = "mine"
models = ["isbor"]
[[tasks]]
data = "swd"
train = 750
"""


def experiment(**changes):
    facts = {"models": (MODEL, CATALOGUE["isbor"]), "tasks": (TASK, SADDLE), "splits": 4, **changes}
    return Experiment("e", "E", **facts)


def read(text, **kwargs):
    return read_description(text, "mine.toml", **kwargs)


# --- Keys --------------------------------------------------------------------------------------------------


def model_with(**changes):
    return replace(CELL, model=replace(MODEL, **changes))


def task_with(**changes):
    return replace(CELL, task=replace(TASK, **changes))


CHANGED = [
    model_with(estimator="isbor:ISVOR"),
    model_with(parameters={"tol": 1e-5}),
    model_with(parameters={"tol": 1e-4, "kernel": "linear"}),
    model_with(parameters={}),
    model_with(grid={"C": (1.0, 100.0)}),
    model_with(grid={"C": (1.0, 10.0, 100.0)}),
    model_with(grid={"C": (10.0, 1.0)}),  # the first of equal points is chosen
    model_with(grid={}),
    model_with(search_parameters={"probability": False}),
    model_with(searched_by=""),
    model_with(inputs="numbers"),
    replace(CELL, search=Search(folds=4)),
    replace(CELL, search=Search(scoring="accuracy")),
    replace(CELL, search=Search(rows_at_most=300)),
    replace(CELL, search=Search(give_up=4.0)),
    task_with(source=BenchmarkData("bs")),
    task_with(source=Saddle()),
    task_with(source=Saddle(rows=2000)),
    task_with(source=Saddle(random_state=1)),
    task_with(source=TableFile("a.csv", "grade", digest="1")),
    task_with(source=TableFile("a.csv", "grade", digest="2")),
    task_with(source=TableFile("a.csv", "other", digest="1")),
    task_with(source=TableFile("a.csv", "grade", "1", ("low", "high"))),
    task_with(source=TableFile("a.csv", "grade", "1", ("high", "low"))),
    task_with(scheme=Holdout(749)),
    task_with(scheme=Holdout(750, test_at_most=100)),
    task_with(scheme=CrossValidation(5)),
    task_with(scheme=CrossValidation(10)),
    replace(CELL, split=4),
    replace(CELL, seed=1),
    replace(CELL, split=2, seed=1),  # the same rows, but another split of another run
]


@pytest.mark.parametrize("changed", CHANGED)
def test_a_key_changes_with_all_that_a_result_depends_on(changed):
    assert changed.key != CELL.key


def test_all_those_keys_differ_from_one_another():
    assert len({job.key for job in CHANGED}) == len(CHANGED)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (CELL, model_with(title="Another title")),
        (CELL, task_with(title="Another title")),
        (CELL, model_with(parameters={"tol": np.float64(1e-4)})),
        (model_with(parameters={"max_iter": 5}), model_with(parameters={"max_iter": np.int64(5)})),
        (model_with(parameters={"a": 1, "b": 2}), model_with(parameters={"b": 2, "a": 1})),
        (CELL, model_with(grid={"C": [1.0, 10.0]})),
        (CELL, model_with(grid={"C": np.array([1.0, 10.0])})),
        # Nothing is searched: how does not matter.
        (model_with(grid={}), replace(model_with(grid={}), search=Search(folds=9))),
        (model_with(grid={}), model_with(grid={}, searched_by="", search_parameters={"probability": False})),
        (
            task_with(source=TableFile("/here/a.csv", "grade", digest="1")),
            task_with(source=TableFile("/there/b.csv", "grade", digest="1")),
        ),
    ],
)
def test_a_key_does_not_change_with_what_does_not_matter(one, other):
    assert one.key == other.key


def test_a_key_says_what_it_is_of():
    assert re.fullmatch(r"swd/mine/3/[0-9a-f]{16}", CELL.key)


def test_jobs_stay_the_same_in_another_experiment():
    before = [job.key for job in experiment().jobs()]
    assert len(set(before)) == len(before) == 2 * 2 * 4
    others = [
        experiment(limits=Limits(seconds=1.0, memory=1.0)),
        experiment(about="Something else."),
        replace(experiment(), name="f", title="F"),
    ]
    assert all([job.key for job in other.jobs()] == before for other in others)
    assert [job.key for job in experiment(splits=2).jobs()] == before[:8]
    chosen = experiment().only(["isbor"], ["saddle"])
    assert [job.key for job in chosen.jobs()] == before[3::4]
    assert not set(before) & {job.key for job in experiment(seed=1).jobs()}


def test_jobs_come_split_by_split():
    jobs = experiment().jobs()
    assert [(job.split, job.task.name, job.model.name) for job in jobs[:5]] == [
        (0, "swd", "mine"),
        (0, "swd", "isbor"),
        (0, "saddle", "mine"),
        (0, "saddle", "isbor"),
        (1, "swd", "mine"),
    ]


@given(st.permutations(["isbor", "mine"]), st.sampled_from([["saddle"], ["saddle", "swd"], None]))
def test_a_choice_keeps_the_order_of_the_experiment(models, tasks):
    chosen = experiment().only(models, tasks)
    assert [model.name for model in chosen.models] == ["mine", "isbor"]
    assert [task.name for task in chosen.tasks] == [
        t for t in ("swd", "saddle") if tasks is None or t in tasks
    ]
    assert replace(chosen, models=experiment().models, tasks=experiment().tasks) == experiment()


# --- What is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: experiment(models=()), "The experiment 'e' has no model; name at least one"),
        (lambda: experiment(tasks=()), "The experiment 'e' has no data set"),
        (lambda: experiment(models=(MODEL, MODEL)), "The model 'mine' is named twice"),
        (lambda: experiment(tasks=(TASK, SADDLE, TASK)), "The data set 'swd' is named twice"),
        (
            lambda: experiment(models=(MODEL, replace(MODEL, name="other"))),
            "Two models have the title 'Mine', by which a report tells them apart; give one another title",
        ),
        (lambda: experiment(tasks=(TASK, replace(TASK, name="other"))), "Two data sets have the title 'SWD'"),
        (lambda: experiment(splits=0), "splits is 0; at least 1 is needed"),
        (lambda: experiment(seed=-1), "The seed is -1; a whole number from 0 to"),
        (lambda: experiment(seed=2**32), "The seed is 4294967296; a whole number from 0 to 4,294,957,295"),
        (lambda: experiment().only(["svor"]), "There is no model 'svor' here; there are mine, isbor"),
        (lambda: experiment().only(None, ["bs"]), "There is no data set 'bs' here; there are swd, saddle"),
        (lambda: experiment().only([]), "has no model"),
        (lambda: Limits(seconds=0.0), "seconds is 0.0; a time limit above 0 is needed"),
        (lambda: Limits(seconds=math.nan), "seconds is nan"),
        (lambda: Limits(memory=-1.0), "memory is -1.0; a limit on memory, in gigabytes, above 0 is needed"),
        (lambda: Search(folds=1), re.escape("The search has 1 fold(s); at least 2 are needed")),
        (
            lambda: Search(give_up=0.0),
            "give_up is 0.0; a number of standard errors above 0 .* or inf",
        ),
        (lambda: Search(folds=5, rows_at_most=4), "5 folds and at most 4 .* at least as many rows as folds"),
        (lambda: BenchmarkData("iris"), "There is no data set 'iris'. The sets are saddle, bs, swd"),
        (lambda: catalogue_model("isvr"), "There is no model 'isvr'. Did you mean 'isvor'. The models are"),
        (lambda: catalogue_model("?"), r"There is no model '\?'\. The models are isbor, "),
        (
            lambda: Model("m", "M", "isbor:SVOR", {"kernel": lambda x, y: x @ y.T}),
            "The parameter 'kernel' of the model 'm' is <function .*; numbers, texts, true, false and lists",
        ),
        (
            lambda: Model("m", "M", "a:B", grid={"C": ()}),
            r"grid of 'C' of the model 'm' is \(\); a list of at",
        ),
        (
            lambda: Model("m", "M", "a:B", grid={"kernel": "rbf"}),
            "grid of 'kernel' of the model 'm' is 'rbf'",
        ),
    ],
)
def test_a_description_that_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"models": (replace(MODEL, estimator="isbor:Nothing"),)}, "'isbor:Nothing' cannot be imported"),
        ({"models": (replace(MODEL, searched_by="nowhere:SVOR"),)}, "'nowhere:SVOR' cannot be imported"),
        ({"models": (replace(MODEL, parameters={"c": 1.0}),)}, "'isbor:SVOR' has no parameter 'c'"),
        ({"models": (replace(MODEL, grid={"c": (1.0,)}),)}, "'isbor:SVOR' has no parameter 'c'"),
        ({"models": (replace(MODEL, search_parameters={"c": 1}),)}, "'isbor:SVOR' has no parameter 'c'"),
        ({"search": Search(scoring="maee")}, "There is no scorer 'maee'. Did you mean 'mae'"),
        (
            {"models": (CATALOGUE["kdlor"],), "search": Search(scoring="rps")},
            "The search is by 'rps', for which KDLOR has no probabilities while it is searched",
        ),
        ({"tasks": (replace(SADDLE, scheme=Holdout(300)),)}, "Saddle has 300 rows, and 300 are to train"),
        ({"tasks": (replace(SADDLE, scheme=Holdout(0)),)}, "Saddle has 300 rows, and 0 are to train"),
        ({"tasks": (replace(SADDLE, scheme=Holdout(9, 0)),)}, "At most 0 rows of Saddle are to test"),
    ],
)
def test_what_no_job_could_do_is_noticed_before_any_begins(changed, message):
    experiment(tasks=(SADDLE,)).check()
    with pytest.raises(ValueError, match=message):
        experiment(**{"tasks": (SADDLE,), **changed}).check()


def test_what_is_not_searched_needs_no_scorer():
    unsearched = replace(MODEL, grid={}, searched_by="nowhere:SVOR")
    experiment(models=(unsearched,), tasks=(SADDLE,), search=Search(scoring="mea")).check()


# --- The studies of the paper ------------------------------------------------------------------------------


def test_the_benchmarks_are_those_of_the_paper():
    study = load_study("benchmarks")
    assert study.splits == 20
    assert {task.name: task.scheme.train for task in study.tasks} == {
        "bs": 468,
        "swd": 750,
        "marketing": 6744,
        "bank": 8142,
        "computer": 8092,
        "calhouse": 20490,
        "census": 22584,
    }
    assert all(task.source == BenchmarkData(task.name) for task in study.tasks)
    assert all(task.scheme.test_at_most is None for task in study.tasks)
    tested = {name: BENCHMARKS[name].shape[0] - task.scheme.train for name, task in by_name(study).items()}
    assert tested == {
        "bs": 157,
        "swd": 250,
        "marketing": 2249,
        "bank": 50,
        "computer": 100,
        "calhouse": 150,
        "census": 200,
    }
    assert study.limits == Limits(seconds=24 * 3600.0, memory=8.0)


def test_the_saddle_has_ten_sizes_and_thirty_partitions():
    study = load_study("synthetic")
    assert study.splits == 30
    assert [task.scheme for task in study.tasks] == [Holdout(1000 * k) for k in range(1, 11)]
    assert {task.source for task in study.tasks} == {Saddle(rows=21_000)}
    assert [task.name for task in study.tasks][::9] == ["saddle-1000", "saddle-10000"]
    assert [task.title for task in study.tasks][::9] == ["Saddle, 1,000 rows", "Saddle, 10,000 rows"]


def by_name(study):
    return {task.name: task for task in study.tasks}


@pytest.mark.parametrize("name", ["synthetic", "benchmarks"])
@pytest.mark.parametrize("quick", [False, True])
def test_studies_have_all_systems_with_the_grids_of_the_paper(name, quick):
    study = load_study(name, quick=quick)
    names = [model.name for model in study.models]
    if name == "benchmarks":
        names.remove("isvor-adjacent")
        adjacent = study.only(["isvor-adjacent"]).models[0]
        assert adjacent.parameters == {"constraints": "adjacent", "probability": False}
        assert (adjacent.grid, adjacent.searched_by) == (CATALOGUE["isvor"].grid, "")
    assert names == ["isbor", "isbor-evidence", "isbor-cv", *SYSTEMS]
    for model in study.only(names).models:
        expected = DECADES.get(model.name, {})
        assert list(model.grid) == list(expected)
        for parameter, exponents in expected.items():
            assert_allclose(model.grid[parameter], 10.0 ** np.array(exponents), rtol=1e-12)
        assert model.estimator == f"isbor:{'ISBOR' if 'isbor' in model.name else model.name.upper()}"
    # Labels are compared; the machines' probabilities would be fits of their own.
    machines = {model.name for model in study.models if model.parameters.get("probability") is False}
    assert machines - {"isvor-adjacent"} == {"svor", "isvor", "kdlor"}
    assert study.search.folds == (3 if quick else 5)
    assert study.search.scoring == "mae"
    assert study.seed == 0


def test_quick_studies_are_whole_and_small():
    benchmarks, synthetic = load_study("benchmarks", quick=True), load_study("synthetic", quick=True)
    assert [task.name for task in benchmarks.tasks] == list(BENCHMARKS)
    assert {task.name: task.scheme.train for task in benchmarks.tasks} == {
        **dict.fromkeys(BENCHMARKS, 1000),
        "bs": 468,
        "swd": 750,
    }
    assert len(synthetic.tasks) >= 4
    for study in (benchmarks, synthetic):
        assert study.splits >= 3
        assert max(task.scheme.train for task in study.tasks) <= 3000
        assert study.limits.seconds <= 30
    for task in benchmarks.tasks:
        assert BENCHMARKS[task.name].shape[0] > task.scheme.train


def test_a_study_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no study 'benchmark'. Did you mean 'benchmarks'. The studies are"):
        load_study("benchmark")
    with pytest.raises(ValueError, match="a description of one's own is a .toml file"):
        load_study("mine.yaml")
    with pytest.raises(FileNotFoundError, match=r"There is no file '.*none\.toml'"):
        load_study(str(tmp_path / "none.toml"))
    latin = tmp_path / "latin.toml"
    latin.write_bytes('name = "Größe"'.encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin\.toml is not text in UTF-8"):
        load_study(str(latin))


# --- Reading -----------------------------------------------------------------------------------------------


def test_a_description_needs_little():
    assert read(MINIMAL) == Experiment(
        "mine", "mine", (CATALOGUE["isbor"],), (Task("swd", "swd", BenchmarkData("swd"), Holdout(750)),), 20
    )


def test_a_changed_model_beside_a_description_is_another(tmp_path):
    (tmp_path / "mine.toml").write_text(
        MINIMAL.replace("isbor", "own") + '[model.own]\nestimator = "my_models:Own"\n'
    )
    module = tmp_path / "my_models.py"

    def keys():
        return [job.key for job in load_study(str(tmp_path / "mine.toml")).jobs()]

    elsewhere = keys()
    module.write_text("class Own: pass")
    before = keys()
    module.write_text("class Own: changed = True")
    assert not set(before) & set(keys())
    assert not set(before) & set(elsewhere)
    module.write_text("class Own: pass")
    assert keys() == before


def test_features_that_no_model_can_learn_from_are_noticed_before_any_work(tmp_path):
    path = tmp_path / "grades.csv"
    path.write_text("x,grade\n1,1\ninf,2\n3,1\n4,2\n")
    task = Task("grades", "grades.csv", TableFile.of(path, "grade"), CrossValidation(2))
    with pytest.raises(ValueError, match=r"^grades\.csv cannot be learned from: .*inf"):
        experiment(tasks=(task,)).check()


def test_all_that_can_be_described(tmp_path):
    (tmp_path / "grades.v2.csv").write_text("a,grade\n1,low\n2,high\n")
    (tmp_path / "mine.toml").write_text(
        """
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
        order = ["low", "high"]
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
    )
    found = load_study(str(tmp_path / "mine.toml"))
    saddle = Saddle(500, 2)
    grades = TableFile.of(tmp_path / "grades.v2.csv", "grade", ["low", "high"])
    assert found == Experiment(
        name="mine",
        title="My comparison",
        models=(
            Model(
                "mine",
                "Logistic",
                "sklearn.linear_model:LogisticRegression",
                grid={"C": (1, 2)},
                search_parameters={"max_iter": 10},
                inputs="numbers",
            ),
            replace(CATALOGUE["isvor"], parameters={"tol": 1e-4}),
            CATALOGUE["isbor"],
            Model("kdlor", "kdlor", "isbor:SBOR"),  # another estimator: nothing is as in the catalogue
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
    assert grades.load().y.tolist() == [0, 1]


def test_labels_may_be_named_as_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n" + "1,2\n2,3\n" * 5)
    text = 'name="m"\nmodels=["isbor"]\n[[tasks]]\nfile="a.csv"\ntarget="y"\norder=[3.0, 2]\nfolds=2'
    (task,) = read(text, directory=tmp_path).tasks
    assert task.source.order == ("3", "2")
    assert task.load().y.tolist() == [1, 0] * 5


QUICK = """
name = "mine"
models = ["isbor"]
[search]
folds = 5
scoring = "rps"
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
        "saddle-300": Holdout(300, 200),  # once, and called what it is
        "swd": Holdout(300, 100),
        "bs": CrossValidation(5),
    }
    assert [task.scheme for task in full.tasks[3:]] == [Holdout(800), Holdout(750, 100), CrossValidation(5)]
    assert [task.name for task in read(QUICK + "train = [9]", quick=True).tasks] == ["saddle-9", "swd", "bs"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", r"mine\.toml is not valid TOML: Invalid value \(at .*\)\."),
        ('models = ["isbor"]\ntasks = []', "mine.toml: 'name' is missing; it is needed"),
        ('name = "m"\ntasks = []', "mine.toml: 'models' is missing"),
        ('name = "m"\nmodels = ["isbor"]', "mine.toml: 'tasks' is missing"),
        ("name = 3" + MINIMAL.replace('name = "mine"', ""), "mine.toml: 'name' is 3; a text is needed"),
        ("splits = 2.5" + MINIMAL, "'splits' is 2.5; a whole number is needed"),
        ("splits = true" + MINIMAL, "'splits' is True; a whole number is needed"),
        ("splits = 0" + MINIMAL, "splits is 0; at least 1"),
        ("split = 3" + MINIMAL, r"mine\.toml: 'split' is not known here\. Did you mean 'splits'\? Known are"),
        ("xyz = 3" + MINIMAL, r"'xyz' is not known here\. Known are quick, model, models, name, "),
        (MINIMAL.replace('["isbor"]', '"isbor"'), "'models' is 'isbor'; a list is needed"),
        (MINIMAL.replace('["isbor"]', "[1]"), "'models' holds 1; names in quotation marks are needed"),
        (MINIMAL.replace('["isbor"]', "[]"), "The experiment 'mine' has no model"),
        (MINIMAL.replace('["isbor"]', '["isbor", "isbor"]'), "The model 'isbor' is named twice"),
        (MINIMAL.replace('["isbor"]', '["isbro"]'), r"There is no model 'isbro'\. Did you mean 'isbor'"),
        (MINIMAL.replace('"swd"', '"sdw"'), "There is no data set 'sdw'. The sets are saddle, bs"),
        (
            MINIMAL + '[model.other]\nestimator = "a:B"',
            r"\[model\.other\] describes a model that 'models' does",
        ),
        (MINIMAL + "[model]\nisbor = 3", "'model.isbor' is 3; a table is needed"),
        (MINIMAL + "[model.isbor]\nfoo = 3", r"mine\.toml, \[model\.isbor\]: 'foo' is not known here"),
        (MINIMAL + "[model.isbor]\ngrid = 3", r"\[model\.isbor\]: 'grid' is 3; a table is needed"),
        (MINIMAL + "[model.isbor.grid]\ngamma = 1.0", "the grid of 'gamma' is 1.0; a list is needed"),
        (MINIMAL + "[model.isbor.grid]\ngamma = []", r"the grid of 'gamma' is \[\]; a list is needed"),
        (MINIMAL + '[model.isbor]\ninputs = "x"', "'inputs' is 'x'; 'table' or 'numbers' is needed"),
        (
            MINIMAL + "[model.isbor.parameters]\nd = 2020-01-01",
            "The parameter 'd' of the model 'isbor' is dat",
        ),
        (
            MINIMAL.replace('["isbor"]', '["new"]') + '[model.new]\ntitle = "New"',
            r"\[model\.new\]: 'estimator' is missing",
        ),
        (MINIMAL + "[search]\nfold = 3", r"\[search\]: 'fold' is not known here\. Did you mean 'folds'"),
        (MINIMAL + "[search]\nfolds = 1", "The search has 1 fold"),
        (MINIMAL + "[limits]\nseconds = 'x'", r"\[limits\]: 'seconds' is 'x'; a whole number or a number is"),
        (MINIMAL + "[limits]\nseconds = 0", "seconds is 0.0; a time limit above 0"),
        (MINIMAL + "[limits]\nthreads = 2", "'threads' is not known here"),
        (MINIMAL + '[[tasks]]\nname = "a"', r"\[\[tasks\]\] number 2: 'data' is missing"),
        (MINIMAL + '[[tasks]]\ndata = "bs"', r"\[\[tasks\]\] number 2: 'train' is missing"),
        (MINIMAL + '[[tasks]]\ndata = "bs"\nfolds = 1', "number 2: 'folds' is 1; at least 2 are needed"),
        (MINIMAL + '[[tasks]]\ndata = "bs"\nfolds = 2\ntrain = 9', "number 2: 'train' is not known here"),
        (MINIMAL + '[[tasks]]\ndata = "bs"\nrows = 9\ntrain = 9', "'rows' is not known here"),
        (
            MINIMAL + '[[tasks]]\ndata = "bs"\ntrain = []',
            r"'train' is \[\]; a list of whole numbers is needed",
        ),
        (MINIMAL + '[[tasks]]\ndata = "bs"\ntrain = [9, 1.5]', r"'train' is \[9, 1\.5\]; a list of whole"),
        (MINIMAL + '[[tasks]]\ndata = "bs"\ntrain = [true]', r"'train' is \[True\]; a list of whole numbers"),
        (MINIMAL + '[[tasks]]\ndata = "swd"\ntrain = 9', "The data set 'swd' is named twice"),
        (MINIMAL.replace("[[tasks]]", "[tasks]"), "mine.toml: 'tasks' is .*; a list is needed"),
        (
            'tasks = [3]\nname = "m"\nmodels = ["isbor"]',
            r"mine\.toml, \[\[tasks\]\] number 1 is 3; a table is needed",
        ),
    ],
)
def test_a_mistake_in_a_description_is_explained(text, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        read(text)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ("", r"mine\.toml has no \[quick\] section, so there is no quick version of it"),
        ("trains = [9]", r"\[quick\]: 'trains' is not known here\. Did you mean 'train'"),
        ('train = ["x"]', r"\[quick\]: 'train' is \['x'\]; a list of whole numbers is needed"),
        ("splits = 'x'", r"\[quick\]: 'splits' is 'x'; a whole number is needed"),
        ("search = { fold = 3 }", r"\[search\]: 'fold' is not known here"),
    ],
)
def test_a_mistake_in_the_quick_version_is_explained(changes, message):
    with pytest.raises(ValueError, match=message):
        read(QUICK + changes, quick=True)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ('file = "none.csv"\ntarget = "y"\nfolds = 2', r"There is no file '.*none\.csv'"),
        ('file = "a.csv"\nfolds = 2', r"number 1: 'target' is missing"),
        ('file = "a.csv"\ntarget = "y"', "number 1: 'train' is missing"),
        (
            'file = "a.csv"\ntarget = "y"\norder = ["b"]',
            "'order' names b; at least 2 labels, lowest first and",
        ),
        ('file = "a.csv"\ntarget = "y"\norder = ["b", "c", "b"]', "'order' names b, c, b; at least 2 labels"),
        ('file = "a.csv"\ntarget = "y"\ndata = "bs"\nfolds = 2', "'data' is not known here"),
    ],
)
def test_a_mistake_about_a_file_is_explained(tmp_path, entries, message):
    (tmp_path / "a.csv").write_text("x,y\n1,b\n")
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        read(f'name = "m"\nmodels = ["isbor"]\n[[tasks]]\n{entries}', directory=tmp_path)


# --- Models ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CATALOGUE)
def test_models_of_the_catalogue_can_be_made(name):
    model = catalogue_model(name)
    estimator = make_estimator(model.estimator, model.parameters)
    assert {**estimator.get_params(), **model.parameters} == estimator.get_params()
    searched = make_estimator(model.searched_by or model.estimator, model.search_parameters).get_params()
    assert model.grid.keys() <= searched.keys()


def test_an_estimator_gets_its_parameters_and_one_thread():
    model = make_estimator("isbor:ISVOR", {"C": np.float64(3.0), "gamma": 0.5})
    assert type(model) is ISVOR
    assert type(model.C) is float
    assert (model.C, model.gamma, model.n_jobs) == (3.0, 0.5, 1)
    assert make_estimator("isbor:SVOR", {}).get_params() == SVOR(n_jobs=1).get_params()
    assert make_estimator("isbor:ISBOR", {"n_jobs": 3}).get_params() == ISBOR(n_jobs=3).get_params()
    trees = make_estimator("isbor.experiments.description.baselines:BoostedTrees", {"random_state": 0})
    assert trees.get_params() == HistGradientBoostingClassifier(random_state=0).get_params()


@pytest.mark.parametrize(
    ("path", "parameters", "message"),
    [
        ("isbor", {}, "The estimator is 'isbor'; a path like 'package.module:Class' is needed"),
        (":SVOR", {}, "The estimator is ':SVOR'; a path like"),
        ("isbor:", {}, "The estimator is 'isbor:'; a path like"),
        ("no_such_package:Model", {}, "'no_such_package:Model' cannot be imported .*install its package"),
        ("isbor:SVR", {}, "'isbor:SVR' cannot be imported .*Check its name"),
        ("isbor:a:b", {}, "'isbor:a:b' cannot be imported"),
        (".isbor:SVOR", {}, "'.isbor:SVOR' cannot be imported"),
        ("math:pi", {}, "'math:pi' has no fit; the class of an estimator is needed"),
        ("isbor:SVOR", {"cost": 1}, "'isbor:SVOR' has no parameter 'cost'; it knows C, constraints, kernel"),
    ],
)
def test_an_estimator_that_cannot_be_made_is_explained(path, parameters, message):
    with pytest.raises(ValueError, match=message):
        make_estimator(path, parameters)


def test_boosted_trees_predict_the_median():
    X, y = make_saddle(300, random_state=0)
    labels = np.array([10, 20, 30, 40, 50])
    trees = BoostedTrees(max_iter=5, random_state=0).fit(X, labels[y - 1])
    predicted, proba = trees.predict(X), trees.predict_proba(X)
    by_hand = [next(k for k in range(5) if row[: k + 1].sum() >= 0.5) for row in proba]
    assert_array_equal(predicted, labels[by_hand])
    # The median is where the expected absolute error is least, the mode need not be.
    expected = np.abs(np.arange(5)[:, None] - np.arange(5)) @ proba.T
    assert_allclose(expected[by_hand, np.arange(300)], expected.min(axis=0))
    assert np.any(np.argmax(proba, axis=1) != by_hand)


def test_a_name_that_is_no_directory_is_refused():
    with pytest.raises(
        ValueError, match=r"name is 'a/b'; letters, digits, .* a directory is called after it"
    ):
        read_description(DESCRIPTION_WITH_NAME.format(name="a/b"), "mine.toml")


DESCRIPTION_WITH_NAME = """
name = "{name}"
models = ["isbor"]
[[tasks]]
data = "bs"
train = 100
"""


def test_the_example_in_the_guide_can_be_read(tmp_path):
    guide = (Path(__file__).parents[3] / "docs" / "experiments.md").read_text("utf-8")
    (tmp_path / "grades.csv").write_text("x,grade\n1,low\n")
    example = guide.split("```toml\n")[1].split("```")[0]
    experiment = read_description(example, "mine.toml", directory=tmp_path)
    assert [model.name for model in experiment.models] == ["isbor", "svor", "logistic"]
    assert experiment.models[1].grid == {"C": (1.0, 10.0), "gamma": (0.1, 1.0)}
    assert experiment.models[1].search_parameters == {"probability": False}
    assert experiment.tasks[1].source.order == ("low", "mid", "high")
