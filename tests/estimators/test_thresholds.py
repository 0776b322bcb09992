"""Thresholds that vary with the row, as a user sees them."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from sklearn.base import clone

from isbor import GPOR, ISBOR
from tests.problems import log_score, varying_cuts


@pytest.fixture(scope="module")
def table():
    return varying_cuts(2000, 0, spread=0.8)[:2]


@pytest.fixture(scope="module", params=[1, 3], ids=["one member", "three members"])
def fitted(table, request):
    return ISBOR(basis="mixed", n_members=request.param).fit(*table)


def spread_of_log_gaps(model, X):
    """Standard deviation of the logarithm of each gap over the rows."""
    return np.std(np.log(np.diff(model.thresholds_at(X), axis=1)), axis=0)


def test_thresholds_at_rows(fitted, table):
    X = table[0]
    thresholds = fitted.thresholds_at(X)
    assert thresholds.shape == (2000, 3)
    assert np.all(np.diff(thresholds, axis=1) > 0)
    assert np.all(spread_of_log_gaps(fitted, X) > 0.3)
    # The middle one of three is the same for all rows.
    assert_allclose(thresholds[:, 1], fitted.thresholds_[1], atol=1e-9)
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.thresholds_at(X), thresholds)
    one_by_one = np.concatenate([fitted.thresholds_at(X[i : i + 1]) for i in range(5)])
    assert_allclose(one_by_one, thresholds[:5], atol=1e-9)


def test_they_are_the_common_ones_unless_they_vary(table):
    X, y = table[0][:100], table[1][:100]
    constant = {"thresholds": "constant"}, {"noise": "constant"}
    mixed = [ISBOR(basis="mixed", n_members=2, **parameters) for parameters in constant]
    for model in (GPOR(gamma=0.3), ISBOR(gamma=0.1), *mixed):
        model.fit(X, y)
        assert_allclose(model.thresholds_at(X), np.tile(model.thresholds_, (100, 1)), atol=1e-12)


def test_predictions_of_a_single_model_follow_its_thresholds(table):
    X = table[0]
    model = ISBOR(basis="mixed", n_members=1).fit(*table)
    score, std = model.latent(X), np.sqrt(model._model.latent(X).variance) / model._unit
    z = (model.thresholds_at(X) - score[:, None]) / np.hypot(model.noise_scale(X), std)[:, None]
    lapse = 1 / 2002
    expected = (1 - lapse) * np.diff(ndtr(z), axis=1, prepend=0.0, append=1.0) + lapse / 4
    assert_allclose(model.predict_proba(X), expected, atol=1e-9)
    assert_array_equal(model.predict(X), (z < 0).sum(axis=1))
    # With the common thresholds, some labels would be others.
    assert np.mean(model.predict(X) != np.searchsorted(model.thresholds_, score)) > 0.05


def test_decisions_probabilities_and_their_logarithms_agree(fitted, table):
    X = table[0]
    p = fitted.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1.0)
    assert_allclose(np.exp(fitted.predict_log_proba(X)), p, rtol=1e-9)
    distance = fitted.decision_function(X)
    chosen = fitted.predict(X)
    assert np.all((distance > 0).sum(axis=1) == 1)
    assert_array_equal(distance.argmax(axis=1), chosen)
    lapse = 1 / 2002
    without = (p - lapse / 4) / (1 - lapse)
    levels = np.arange(4)
    cost = without @ np.abs(levels[:, None] - levels)
    assert_allclose(cost[np.arange(len(X)), chosen], cost.min(axis=1), atol=1e-9)


def test_weights_are_repetitions_in_any_order(table):
    X, y = table
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    repeated = np.random.default_rng(2).permutation(np.repeat(np.arange(len(y)), weight))
    model = ISBOR(basis="mixed", n_members=2)
    weighted, again = clone(model).fit(X, y, sample_weight=weight), clone(model).fit(X[repeated], y[repeated])
    assert np.all(spread_of_log_gaps(weighted, X) > 0.1)
    for name in ("predict_proba", "thresholds_at", "noise_scale", "latent"):
        assert_array_equal(getattr(again, name)(X), getattr(weighted, name)(X))
    order = np.random.default_rng(3).permutation(len(y))
    plain, shuffled = clone(model).fit(X, y), clone(model).fit(X[order], y[order])
    for name in ("predict_proba", "thresholds_at"):
        assert_array_equal(getattr(shuffled, name)(X), getattr(plain, name)(X))


def test_reversed_labels_mirror_the_thresholds(table):
    X, y = table
    model, turned = (ISBOR(basis="mixed", classes=c).fit(X, y) for c in ([0, 1, 2, 3], [3, 2, 1, 0]))
    assert_allclose(turned.predict_proba(X)[:, ::-1], model.predict_proba(X), atol=0.25)
    assert np.mean(np.abs(turned.predict_proba(X)[:, ::-1] - model.predict_proba(X))) < 0.02
    mirrored = -turned.thresholds_at(X)[:, ::-1]
    assert_allclose(np.corrcoef(mirrored[:, 0], model.thresholds_at(X)[:, 0])[0, 1], 1.0, atol=0.1)
    assert_allclose(np.corrcoef(mirrored[:, 2], model.thresholds_at(X)[:, 2])[0, 1], 1.0, atol=0.1)


@pytest.mark.parametrize("n_members", [1, 2])
def test_classes_without_rows(table, n_members):
    """Below, between and above those that occur: they are improbable everywhere, and change little."""
    X, y = table
    model = ISBOR(basis="mixed", n_members=n_members).fit(X, y)
    wider = ISBOR(basis="mixed", n_members=n_members, classes=[-2, -1, 0, 1, 1.5, 2, 3, 4]).fit(X, y)
    empty, seen = [0, 1, 4, 7], [2, 3, 5, 6]
    thresholds = wider.thresholds_at(X)
    assert thresholds.shape == (2000, 7)
    assert np.all(np.diff(thresholds, axis=1) > 0)
    # Thresholds of observed classes are where they would be without the empty ones, or next to it.
    for of_all, alone in ((2, 0), (3, 1), (4, 1), (5, 2)):
        assert_allclose(thresholds[:, of_all], model.thresholds_at(X)[:, alone], atol=0.01)
    p = wider.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1.0)
    assert_allclose(np.exp(wider.predict_log_proba(X)), p, rtol=1e-9)
    assert np.all(p[:, empty] > 0)
    assert np.all(p[:, empty] < 0.02)
    assert_allclose(p[:, seen], model.predict_proba(X), atol=0.02)
    assert np.mean(wider.predict(X) == model.predict(X)) > 0.98
    assert np.all((wider.decision_function(X) > 0).sum(axis=1) == 1)


@pytest.mark.parametrize("n_levels", [2, 3])
def test_too_few_classes_for_gaps_that_differ(table, n_levels):
    """With up to three classes, noise that varies is all there is."""
    X, y = table[0], np.minimum(table[1], n_levels - 1)
    model, constant = (ISBOR(basis="mixed", n_members=1, thresholds=t) for t in ("varying", "constant"))
    assert_array_equal(model.fit(X, y).predict_proba(X), constant.fit(X, y).predict_proba(X))
    assert_allclose(model.thresholds_at(X), np.tile(model.thresholds_, (2000, 1)), atol=1e-12)


def test_few_rows_have_thresholds_that_vary(table):
    X, y, _ = varying_cuts(800, 5, spread=0.8)
    automatic, varying, constant = (
        ISBOR(basis="mixed", n_members=2, thresholds=how).fit(X, y) for how in ("auto", "varying", "constant")
    )
    assert_array_equal(automatic.predict_proba(X), varying.predict_proba(X))
    assert np.all(spread_of_log_gaps(varying, X) > 0.1)
    assert log_score(varying, *table) > log_score(constant, *table) + 0.01


def test_many_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 2))
    response = 2 * X[:, 0] + np.exp(0.5 * X[:, 1]) * rng.standard_t(3, size=2500)
    y = np.digitize(response, np.quantile(response, np.arange(1, 12) / 12))
    model = ISBOR(basis="mixed", n_members=2).fit(X, y)
    assert np.all(np.diff(model.thresholds_at(X), axis=1) > 0)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
