"""The rivals of the scoreboard, each as an experiment runs it; a package that is missing is skipped."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from benchmarks.scoreboard.models import MODELS, TUNED
from isbor.datasets import make_saddle
from isbor.experiments import Holdout, Job, Saddle, Search, Task
from isbor.experiments.description.baselines import median_class
from isbor.experiments.description.models import make_estimator
from isbor.experiments.running.measure import measure

TASK = Task("saddle", "Saddle", Saddle(150), Holdout(100))
RIVALS = [model for model in MODELS if model.estimator.startswith("benchmarks.rivals")]
DEFAULTS = {
    "catboost-tuned": {"iterations": 1000, "depth": 6, "learning_rate": None},
    "lightgbm-tuned": {"n_estimators": 100, "num_leaves": 31, "learning_rate": 0.1},
    "xgboost-tuned": {"n_estimators": 100, "max_depth": 6, "learning_rate": 0.3},
}
SIZES = {"catboost": 1000, "lightgbm": 300, "xgboost": 300, "ogboost": 100, "ordboost": 200, "ebm": 2}


def of(model, **parameters):
    """Return an unfitted estimator, or skip the test if its package is not installed."""
    pytest.importorskip(model.estimator.partition(":")[0])
    return make_estimator(model.estimator, {**model.parameters, **parameters})


def expected_errors(proba):
    """Return the expected absolute error of each decision, by brute force."""
    levels = range(proba.shape[1])
    return np.array([[sum(p * abs(k - j) for j, p in enumerate(row)) for k in levels] for row in proba])


@given(arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(2, 7)), elements=st.floats(0.01, 1.0)))
def test_the_median_has_the_smallest_expected_error(weights):
    proba = weights / weights.sum(axis=1, keepdims=True)
    errors = expected_errors(proba)
    chosen = errors[np.arange(len(proba)), median_class(proba)]
    assert_allclose(chosen, errors.min(axis=1), atol=1e-12)


def test_the_median_of_single_precision_and_of_a_tie():
    assert_array_equal(median_class(np.array([[0.5, 0.0, 0.5], [0.25, 0.25, 0.5]])), [0, 1])
    assert_array_equal(median_class(np.array([[0.2, 0.2, 0.6], [0.6, 0.3, 0.1]], dtype=np.float32)), [2, 0])


@pytest.mark.parametrize("model", [model for model in RIVALS if not model.grid], ids=lambda model: model.name)
def test_a_rival_predicts_the_median_of_labels_with_gaps(model):
    X, y = make_saddle(120, random_state=0)
    labels = np.array([0, 4, 7])[np.searchsorted([2, 4], y)]
    estimator = clone(of(model)).fit(X, labels)
    proba = estimator.predict_proba(X)
    assert_array_equal(estimator.classes_, [0, 4, 7])
    assert proba.shape == (120, 3)
    assert_allclose(proba.sum(axis=1), 1.0, atol=1e-6)
    errors = expected_errors(proba)
    chosen = np.searchsorted([0, 4, 7], estimator.predict(X))
    assert_allclose(errors[np.arange(120), chosen], errors.min(axis=1), atol=1e-6)
    assert np.mean(estimator.predict(X) == labels) > 0.5  # it has learnt the rows that it was shown
    assert estimator.n_functions_ == SIZES.get(model.name, 500)


@pytest.mark.parametrize("model", TUNED, ids=lambda model: model.name)
def test_grids_are_of_parameters_that_the_package_takes(model):
    for point in ParameterGrid(dict(model.grid)):
        estimator = clone(of(model)).set_params(**point)
        package = estimator._unfitted().get_params()
        given = {name: value for name, value in point.items() if value is not None}
        assert {name: package[name] for name in given} == given


@pytest.mark.parametrize("model", TUNED, ids=lambda model: model.name)
def test_the_defaults_are_a_point_of_the_grid(model):
    default = DEFAULTS[model.name]
    assert default in list(ParameterGrid(dict(model.grid)))
    X, y = make_saddle(100, random_state=0)
    assert_array_equal(of(model, **default).fit(X, y).predict_proba(X), of(model).fit(X, y).predict_proba(X))


def test_a_record_has_the_size_and_the_parameters_found():
    model = next(model for model in TUNED if model.name == "lightgbm-tuned")
    of(model)
    record = measure(Job(model, TASK, 0, 0, Search(folds=2)))
    chosen = record.parameters
    assert chosen["functions"] == 5 * chosen["n_estimators"]
    assert chosen["num_leaves"] in model.grid["num_leaves"]
    assert {"mae", "amae", "rps", "log_loss"} <= record.metrics.keys()
