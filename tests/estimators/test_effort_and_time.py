"""How much is tried: effort, and a limit on the time."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor import ISBOR, StopReason
from isbor._core.parallel import Workers
from isbor.datasets import make_saddle
from isbor.metrics import log_loss
from tests.problems import noisy_rows

CONFIGURATIONS = [
    {},
    {"basis": "rbf"},
    {"metric": "ard"},
    {"basis": "mixed"},
    {"gamma": 0.5, "solver": "sequential"},
]


@pytest.fixture(scope="module")
def table():
    return make_saddle(3000, noise=0.3, random_state=0)


@pytest.mark.parametrize("parameters", CONFIGURATIONS, ids=str)
@pytest.mark.parametrize("n_rows", [300, 3000])
def test_when_the_time_is_up_there_is_a_model(table, parameters, n_rows):
    X, y = table[0][:n_rows], table[1][:n_rows]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ISBOR(max_time=1e-6, **parameters).fit(X, y)
    assert model.stop_reason_ is StopReason.MAX_TIME
    assert "max_time" in str(model.stop_reason_)
    probabilities = model.predict_proba(X)
    assert_allclose(probabilities.sum(axis=1), 1.0)
    # Its first steps are better than the frequencies of the classes.
    frequencies = np.bincount(y)[1:] / len(y)
    assert log_loss(y, probabilities) < -frequencies @ np.log(frequencies)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_time_that_suffices_changes_nothing(n_jobs):
    X, y = noisy_rows(150, seed=3)
    limited, free = (ISBOR(max_time=limit, n_jobs=n_jobs).fit(X, y) for limit in (1e9, None))
    assert limited.stop_reason_ is free.stop_reason_ is not StopReason.MAX_TIME
    assert_array_equal(limited.predict_proba(X), free.predict_proba(X))


def test_parts_of_the_time():
    with Workers(1, max_time=1e6) as workers:
        hurried = workers.with_share(1e-12)
        assert not workers.is_late() and not workers.was_late
        assert hurried.is_late()
        assert workers.was_late  # it is known that something was not tried
        assert not workers.is_late()
    with Workers(1) as workers:
        assert not workers.with_share(1e-12).is_late()


def test_efforts(table):
    X, y = table[0][:600], table[1][:600]
    fast, default, thorough = (ISBOR(effort=effort).fit(X, y) for effort in ("fast", "default", "thorough"))
    assert fast.basis_ == "mixed" and str(fast.selection_) == "mixed: set by effort='fast'."
    assert len(fast._model.models) == 2
    assert {trial.families for trial in default.selection_.trials} == {
        trial.families for trial in thorough.selection_.trials
    }
    members = [
        len(ISBOR(basis="mixed", effort=effort).fit(X, y)._model.models) for effort in ("default", "thorough")
    ]
    assert members == [8, 8]  # on tables of this size, "thorough" means complete fits in the comparison


def test_members_that_are_given_are_not_changed_by_effort():
    X, y = noisy_rows(150, seed=3)
    for effort in ("fast", "thorough"):
        model = ISBOR(basis="mixed", n_members=3, effort=effort).fit(X, y)
        assert len(model._model.models) == 3


def test_a_fast_fit_of_very_many_columns_is_rbf():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 1001))
    y = np.digitize(X[:, :300].sum(axis=1), [-10, 10])
    assert ISBOR(effort="fast").fit(X, y).basis_ == "rbf"


def test_families_race_on_large_tables(table):
    smooth = ISBOR().fit(*table).selection_
    # One width is right here, so "rbf" is not behind on the small sample, and both are tried on a larger one.
    assert smooth.basis == "rbf"
    random = np.random.default_rng(1)
    X = random.normal(size=(3000, 8))
    y = np.digitize(X[:, 0] + 2 * np.sin(3 * X[:, 1]) + 0.3 * random.normal(size=3000), [-1, 1])
    narrow = ISBOR().fit(X, y).selection_
    assert narrow.basis == "mixed"
    deficits = {trial.basis: trial.deficit / max(trial.standard_error, 1e-12) for trial in narrow.trials}
    assert deficits["rbf"] > 4 and deficits["mixed"] == 0
