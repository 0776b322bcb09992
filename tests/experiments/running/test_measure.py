"""What a job measures, against the same computed by hand."""

import itertools
import warnings
from collections import Counter
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from isbor import ISBOR, KDLOR, SVOR
from isbor.datasets import make_saddle
from isbor.experiments import CATALOGUE, Holdout, Job, Model, Record, Saddle, Search, TableFile, Task
from isbor.experiments.running.measure import measure

SADDLE = Task("saddle", "Saddle", Saddle(240), Holdout(160))


def job(model, task=SADDLE, split=0, search=None):
    return Job(model, task, split, 0, search or Search(folds=3))


def saddle_rows(split=0, task=SADDLE):
    """Return X and y of training, then of test rows, labels from 0."""
    X, y = make_saddle(task.source.rows, random_state=task.source.random_state)
    order = np.random.default_rng(split).permutation(len(y))
    train, test = order[: task.scheme.train], order[task.scheme.train :]
    return X[train], y[train] - 1, X[test], y[test] - 1


class Given(ClassifierMixin, BaseEstimator):
    """Predicts what its features say: a label, then probabilities."""

    def fit(self, X, y):
        self.classes_ = np.arange(3)
        return self

    def predict(self, X):
        return np.asarray(X)[:, 0].astype(int)

    def predict_proba(self, X):
        return np.asarray(X)[:, 1:]


class Watched(ClassifierMixin, BaseEstimator):
    """Predicts a constant and notes what it is given."""

    fits: ClassVar[list] = []
    tables: ClassVar[list] = []

    def __init__(self, label=0, classes=None, n_jobs=None):
        self.label = label
        self.classes = classes
        self.n_jobs = n_jobs

    def fit(self, X, y):
        warnings.warn("stopped early", ConvergenceWarning, stacklevel=2)  # no concern of a user
        self.classes_ = np.unique(y)
        Watched.fits.append((len(y), dict(self.get_params())))
        Watched.tables.append(X)
        return self

    def predict(self, X):
        Watched.tables.append(X)
        return np.full(len(X), self.label)


class Other(Watched):
    """Another one, to search by."""


def model_of(estimator, **facts):
    return Model("m", "M", f"{__name__}:{estimator.__name__}", **facts)


@pytest.fixture(autouse=True)
def one_thread_and_nothing_seen_yet():
    Watched.fits.clear()
    Watched.tables.clear()
    with threadpool_limits(1):
        yield


# --- Metrics -----------------------------------------------------------------------------------------------


def test_metrics_are_those_of_the_fitted_model():
    found = measure(job(CATALOGUE["isbor-evidence"], split=2))
    X, y, X_test, y_test = saddle_rows(split=2)
    model = ISBOR(basis="rbf", n_jobs=1).fit(X, y)
    predicted, proba = model.predict(X_test), model.predict_proba(X_test)
    distance = np.abs(predicted - y_test)
    cumulative = proba.cumsum(axis=1)[:, :-1] - (y_test[:, None] <= np.arange(4))
    expected = {
        "mae": distance.mean(),
        "accuracy": (distance == 0).mean(),
        "amae": np.mean([distance[y_test == k].mean() for k in range(5)]),
        "qwk": cohen_kappa_score(y_test, predicted, weights="quadratic"),
        "rps": (cumulative**2).sum(axis=1).mean() / 4,
        "log_loss": -np.log(proba[np.arange(len(y_test)), y_test]).mean(),
    }
    assert found.metrics.keys() == expected.keys()
    for name, value in expected.items():
        assert_allclose(found.metrics[name], value, rtol=1e-12)
    assert (found.task, found.model, found.split) == ("saddle", "isbor-evidence", 2)
    assert (found.status, found.n_train, found.n_test) == ("ok", 160, 80)
    assert found.vectors == len(model.relevance_vectors_)
    assert found.parameters == {"basis": "rbf", "gamma": model.gamma_}
    svor = measure(job(Model("svor", "SVOR", "isbor:SVOR", {"probability": False}), split=2))
    assert svor.vectors == len(SVOR(probability=False).fit(X, y).support_) > 0


def test_a_model_may_take_fewer_rows_to_train():
    record = measure(job(model_of(Watched, rows_at_most=60)))
    assert (record.n_train, record.n_test) == (60, 80)
    assert_array_equal(Watched.tables[0], saddle_rows()[0][:60])


def table_task(directory, rows, n_train, order, header="label,p0,p1,p2,y"):
    """Return a task of a table, and its test rows as arrays."""
    path = directory / "given.csv"
    path.write_text(header + "\n" + "\n".join(",".join(map(str, row)) for row in rows))
    task = Task("t", "T", TableFile.of(path, "y", order), Holdout(n_train))
    return task, np.random.default_rng(0).permutation(len(rows))[n_train:]


def test_calibration_counts_pairs_of_row_and_threshold(tmp_path):
    rng = np.random.default_rng(1)
    proba = np.vstack([rng.dirichlet(np.ones(3), 40), np.eye(3), [[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]]])
    y = rng.integers(0, 3, len(proba))
    y[:3] = 0, 1, 2
    rows = [(k, *map(float, p), k) for k, p in zip(y, proba, strict=True)]
    task, test = table_task(tmp_path, rows, 5, ("0", "1", "2"))
    found = measure(job(model_of(Given), task))
    bins = [[0.0, 0.0, 0.0] for _ in range(10)]
    for row in test:
        for k in (0, 1):
            below = min(sum(proba[row][: k + 1].tolist()), 1.0)
            here = bins[min(int(10 * below), 9)]
            here[0] += 1
            here[1] += below
            here[2] += y[row] <= k
    assert_allclose(found.calibration, bins, rtol=1e-12)
    assert sum(count for count, _, _ in found.calibration) == 2 * len(test)
    assert found.metrics["mae"] == 0.0
    assert found.metrics["qwk"] == 1.0


def test_a_model_without_probabilities_has_no_scores_of_them():
    found = measure(job(model_of(Watched)))
    assert list(found.metrics) == ["mae", "accuracy", "amae", "qwk"]
    assert (found.calibration, found.vectors) == ((), None)
    assert Watched.fits == [(160, {"label": 0, "classes": [0, 1, 2, 3, 4], "n_jobs": 1})]


# --- Classes without training rows -------------------------------------------------------------------------


def test_a_class_without_training_rows_has_no_probability_but_a_place(tmp_path):
    order = np.random.default_rng(0).permutation(12)
    y = np.empty(12, dtype=int)
    y[order[:8]] = [0, 2, 2, 2, 0, 2, 2, 2]  # training has no 1
    y[order[8:]] = [0, 1, 2, 2]
    task, _ = table_task(tmp_path, [(k, label) for k, label in enumerate(y)], 8, ("0", "1", "2"), "x,y")
    shares = Model("shares", "Shares", "sklearn.dummy:DummyClassifier", {"strategy": "prior"})
    found = measure(job(shares, task))
    # Shares are 1/4, 0, 3/4: P(y ≤ 0) = P(y ≤ 1) = 1/4.
    assert_allclose(found.metrics["mae"], (2 + 1 + 0 + 0) / 4)
    assert_allclose(
        found.metrics["rps"], ((0.75**2 + 0.75**2) + (0.25**2 + 0.75**2) + 2 * (0.25**2 + 0.25**2)) / 2 / 4
    )
    impossible = -np.log(np.finfo(float).tiny)
    assert_allclose(found.metrics["log_loss"], (np.log(4) + impossible + 2 * np.log(4 / 3)) / 4)
    assert_allclose(np.sum(found.calibration, axis=0), [8, 8 / 4, 1 + 2])


@pytest.mark.parametrize("name", ["isbor-evidence", "svor", "gpor", "kdlor"])
def test_our_models_are_told_of_classes_that_training_lacks(tmp_path, name):
    X, y = make_saddle(60, random_state=0)
    rows = [(*x, label) for x, label in zip(X, np.where(y > 3, 3, y), strict=True)]
    task, test = table_task(tmp_path, rows, 40, ("0", "1", "2", "3", "4"), "a,b,y")
    found = measure(job(replace(CATALOGUE[name], grid={}), task))
    assert np.sum(found.calibration, axis=0)[0] == 4 * len(test)  # five classes, four thresholds


# --- The search --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("split", "rows"), [(0, None), (1, 90)])
def test_the_search_finds_what_trying_everything_finds(split, rows):
    grid = {"gamma": (0.01, 0.3, 10.0), "u": (1e-4, 1e-1)}
    model = replace(CATALOGUE["kdlor"], grid=grid, parameters={"probability": False})
    found = measure(job(model, split=split, search=Search(4, "mae", rows)))
    X, y, X_test, y_test = saddle_rows(split)
    errors = {}
    for point in itertools.product(*grid.values()):
        candidate = KDLOR(**dict(zip(grid, point, strict=True)), probability=False)
        folds = StratifiedKFold(4).split(X[:rows], y[:rows])
        errors[point] = np.mean(
            [np.abs(candidate.fit(X[a], y[a]).predict(X[b]) - y[b]).mean() for a, b in folds]
        )
    chosen = found.parameters["gamma"], found.parameters["u"]
    assert_allclose(errors[chosen], min(errors.values()), rtol=1e-12)
    assert max(errors.values()) > 1.2 * min(errors.values())  # there was something to choose
    refitted = KDLOR(gamma=chosen[0], u=chosen[1], probability=False).fit(X, y)
    assert_allclose(found.metrics["mae"], np.abs(refitted.predict(X_test) - y_test).mean())


def test_the_first_of_equal_points_is_chosen_by_the_score_asked_for():
    _, y, *_ = saddle_rows()
    labels = np.array([4, 0, 1, 2, 3, 1])
    found = measure(job(model_of(Watched, grid={"label": labels})))
    means = [np.abs(y - label).mean() for label in range(5)]
    assert found.parameters["label"] == np.argmin(means)
    assert Record.from_json(found.to_json()) == found  # a number of NumPy's in a grid is an ordinary one
    found = measure(job(model_of(Watched, grid={"label": labels}), search=Search(3, "accuracy")))
    assert found.parameters["label"] == np.bincount(y).argmax() != np.argmin(means)
    # A parameter that changes nothing.
    found = measure(job(model_of(Watched, grid={"n_jobs": [5, 1, 3]})))
    assert found.parameters["n_jobs"] == 5


def test_points_far_behind_leave_the_race_and_close_ones_do_not():
    _, y, *_ = saddle_rows()
    rows = [test for _, test in StratifiedKFold(4).split(y, y)]
    labels = [4, 2, 0, 3]

    def fits_by_label(search):
        Watched.fits.clear()
        measure(job(model_of(Watched, grid={"label": labels}), search=search))
        return Counter(params["label"] for _, params in Watched.fits[:-1])

    fits = fits_by_label(Search(4))
    for label in labels:
        behind = np.abs(y - label) - np.abs(y - 2)
        done = [behind[np.concatenate(rows[: k + 1])] for k in range(4)]
        far = [d.mean() > 5 * d.std(ddof=1) / np.sqrt(len(d)) for d in done]
        assert fits[label] == (far.index(True) + 1 if any(far) else 4)
    assert fits[2] == 4
    assert min(fits.values()) < 4
    # Nobody leaves if that is asked for, or if rows have no errors of their own.
    for search in (Search(4, give_up=np.inf), Search(4, "accuracy")):
        assert fits_by_label(search) == dict.fromkeys(labels, 4)


def test_the_search_has_its_own_rows_estimator_and_parameters():
    model = model_of(
        Watched,
        parameters={"n_jobs": 2},
        grid={"label": [1, 3]},
        search_parameters={"n_jobs": 7},
        searched_by=f"{__name__}:Other",
    )
    measure(job(model, search=Search(2, rows_at_most=100)))
    *searched, (n_rows, last) = Watched.fits
    assert [(n, params["label"], params["n_jobs"]) for n, params in searched] == [(50, 1, 7), (50, 3, 7)] * 2
    assert (n_rows, last["n_jobs"]) == (160, 2)
    Watched.fits.clear()
    measure(job(model, search=Search(2, rows_at_most=10_000)))  # more than there are
    assert {n for n, _ in Watched.fits} == {80, 160}


def test_a_rare_class_does_not_stop_a_search(tmp_path):
    y = np.repeat([0, 1, 2], [20, 19, 1])
    task, _ = table_task(tmp_path, [(k, label) for k, label in enumerate(y)], 38, (), "x,y")
    for split in range(3):
        found = measure(job(replace(CATALOGUE["kdlor"], grid={"gamma": [0.1, 1.0]}), task, split))
        assert found.metrics["mae"] <= 1.0


# --- Inputs ------------------------------------------------------------------------------------------------

MIXED = "size,kind,y\n1,a,0\n,b,1\n3,a,0\n5,,1\n2,b,0\n,c,1\n7,a,0\n4,b,1\n6,c,0\n8,a,1\n"


def test_inputs_are_the_table_or_encoded_and_standardised_numbers(tmp_path):
    path = tmp_path / "mixed.csv"
    path.write_text(MIXED)
    task = Task("t", "T", TableFile.of(path, "y"), Holdout(7))
    measure(job(model_of(Watched), task))
    table, table_in_test = Watched.tables
    Watched.tables.clear()
    measure(job(model_of(Watched, inputs="numbers"), task))
    fields = [line.split(",")[:2] for line in MIXED.splitlines()[1:]]
    order = np.random.default_rng(0).permutation(10)
    train, test = [fields[k] for k in order[:7]], [fields[k] for k in order[7:]]
    for seen, rows in ((table, train), (table_in_test, test)):
        assert list(seen.columns) == ["size", "kind"]
        assert_array_equal(seen["size"], [float(size) if size else np.nan for size, _ in rows])
    mean = np.mean([float(size) for size, _ in train if size])
    kinds = sorted({kind for _, kind in train if kind})

    def encoded(rows):
        found = [[float(s or mean), not s, *(kind == k for k in kinds), not kind] for s, kind in rows]
        return np.array(found, dtype=float)

    centre, scale = encoded(train).mean(axis=0), encoded(train).std(axis=0)
    assert np.all(scale > 0)  # the training rows lack values of both sorts
    for seen, rows in zip(Watched.tables, (train, test), strict=True):
        assert_allclose(seen, (encoded(rows) - centre) / scale, atol=2.0**-28)  # means are rounded
