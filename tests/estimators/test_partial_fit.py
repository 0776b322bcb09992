"""Learning from a stream: batches of any size and order, late categories and classes, drift."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from isbor import ISBOR
from isbor.estimators import streaming
from isbor.metrics import log_loss
from tests.problems import noisy_rows, shop

CLASSES = [0, 1, 2, 3]


def learned(model, X, y, size, **arguments):
    """Learn all rows in batches of a size."""
    take = (lambda part: X.iloc[part]) if hasattr(X, "iloc") else (lambda part: X[part])
    for start in range(0, len(y), size):
        part = slice(start, start + size)
        model.partial_fit(take(part), y[part], **arguments)
    return model


def loss(model, X, y):
    return log_loss(y, model.predict_proba(X), labels=model.classes_)


def probabilities_are_fine(model, X):
    p = model.predict_proba(X)
    assert np.all(p > 0)
    assert_allclose(p.sum(axis=1), 1.0)
    assert_allclose(np.exp(model.predict_log_proba(X)), p, rtol=1e-6)
    assert set(model.predict(X)) <= set(model.classes_)


@pytest.fixture(scope="module")
def rows():
    return noisy_rows(1500, seed=0)


@pytest.fixture(scope="module")
def test_rows():
    return noisy_rows(2000, seed=1)


@pytest.fixture(scope="module")
def fitted_to_all(rows):
    return ISBOR(basis="mixed", n_members=4).fit(*rows)


@pytest.fixture(scope="module")
def model(rows):
    return learned(ISBOR(classes=CLASSES), *rows, 150)


# --- Nearly as good as a fit to all rows, whatever the batches ----------------------------------------------


def test_a_stream_is_nearly_as_good_as_a_fit(model, rows, test_rows, fitted_to_all):
    assert loss(model, *test_rows) < 1.03 * loss(fitted_to_all, *test_rows)
    probabilities_are_fine(model, test_rows[0])
    lower, upper = model.predict_proba_interval(test_rows[0][:20])
    assert np.all(lower <= upper)
    assert model.basis_ == "mixed"
    assert model.n_relevance_ == len(model.dual_coef_) == len(model.relevance_)
    known = model.relevance_ >= 0
    assert known.any() and model.relevance_.max() < len(rows[1])


@pytest.mark.parametrize("size", [37, 700])
def test_batches_of_another_size(model, rows, test_rows, size):
    other = learned(ISBOR(classes=CLASSES), *rows, size)
    assert loss(other, *test_rows) < 1.03 * loss(model, *test_rows)


@pytest.mark.parametrize("sorted_by", ["class", "class downwards", "feature"])
def test_sorted_streams(model, rows, test_rows, sorted_by):
    X, y = rows
    key = {"class": y, "class downwards": -y, "feature": X[:, 1]}[sorted_by]
    order = np.argsort(key, kind="stable")
    other = learned(ISBOR(classes=CLASSES), X[order], y[order], 200)
    assert loss(other, *test_rows) < 1.1 * loss(model, *test_rows)


def test_the_same_batches_give_the_same_model(rows):
    X, y = rows
    one, other = (learned(ISBOR(classes=CLASSES, n_jobs=k), X[:400], y[:400], 130) for k in (1, 2))
    assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    another = learned(ISBOR(classes=CLASSES, random_state=1), X[:400], y[:400], 130)
    assert np.any(one.predict_proba(X) != another.predict_proba(X))


def test_weights_are_repetitions(rows):
    X, y = rows[0][:200], rows[1][:200]
    times = np.random.default_rng(0).integers(0, 3, 200)
    one = ISBOR(classes=CLASSES).partial_fit(X, y, sample_weight=times)
    other = ISBOR(classes=CLASSES).partial_fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=0.05)
    balanced = ISBOR(classes=CLASSES, class_weight="balanced").partial_fit(X, y)
    assert not np.allclose(balanced.predict_proba(X), one.predict_proba(X), atol=0.01)


# --- What is kept ------------------------------------------------------------------------------------------


def test_the_sample_is_bounded(monkeypatch, rows, test_rows, model):
    monkeypatch.setattr(streaming, "_CAPACITY", 400)
    small = learned(ISBOR(classes=CLASSES), *rows, 250)
    kept = small._stream.kept.reservoir
    assert len(kept) <= 500
    assert_allclose(kept.total_weight, 1500)
    assert loss(small, *test_rows) < 1.1 * loss(model, *test_rows)
    probabilities_are_fine(small, test_rows[0])


def test_pickling_between_calls_changes_nothing(rows):
    X, y = rows
    straight = learned(ISBOR(classes=CLASSES), X[:600], y[:600], 200)
    model = ISBOR(classes=CLASSES)
    for start in range(0, 600, 200):
        model = pickle.loads(pickle.dumps(model))
        model.partial_fit(X[start : start + 200], y[start : start + 200])
    assert_array_equal(model.predict_proba(X), straight.predict_proba(X))
    assert len(pickle.dumps(model)) < 1e6
    assert not hasattr(clone(model), "_stream")


def test_it_goes_on_after_a_fit(rows, test_rows, fitted_to_all):
    X, y = rows
    model = ISBOR(basis="mixed").fit(X[:150], y[:150])
    before = loss(model, *test_rows)
    learned(model, X[150:], y[150:], 400)
    assert loss(model, *test_rows) < before
    assert loss(model, *test_rows) < 1.03 * loss(fitted_to_all, *test_rows)
    assert len(model._stream.kept.reservoir) == 1500
    again = copy.deepcopy(model).fit(X[:700], y[:700])
    assert len(again._stream.kept.reservoir) == 700


@pytest.mark.parametrize("basis", ["auto", "mixed"])
def test_it_goes_on_after_a_fit_to_a_frame(basis):
    X, y = shop(400)
    model = ISBOR(basis=basis, effort="fast").fit(X[:200], y[:200])
    before = loss(model, X[200:], y[200:])
    model.partial_fit(X[200:], y[200:])
    assert loss(model, X[200:], y[200:]) < before


# --- Few rows, few classes ---------------------------------------------------------------------------------


def test_row_by_row(rows):
    X, y = rows
    model = ISBOR(classes=CLASSES)
    for k in range(25):
        model.partial_fit(X[k : k + 1], y[k : k + 1])
        probabilities_are_fine(model, X[:30])
    assert model._stream.kept.reservoir.n_rows == 25


def test_one_class_so_far(rows):
    X, y = rows[0][:50], np.full(50, 2)
    model = ISBOR().partial_fit(X, y, classes=CLASSES)
    assert_array_equal(model.predict(X), 2)
    lapse = 1.0 / 52.0
    assert_allclose(model.predict_proba(X)[:, [0, 1, 3]], lapse / 4)
    assert_array_equal(model.feature_relevance_, [0.0, 0.0])
    with pytest.raises(ValueError, match="All rows so far are of one class; bands need two"):
        model.predict_proba_interval(X)
    model.partial_fit(*rows)
    assert set(model.predict(rows[0])) == set(CLASSES)
    model.predict_proba_interval(X)


def test_a_class_may_come_late(rows):
    X, y = rows
    model = ISBOR(classes=CLASSES)
    for have in ([1, 3], [0, 1, 3], CLASSES):
        part = np.isin(y[:500], have)
        model.partial_fit(X[:500][part], y[:500][part])
        assert np.all(np.diff(model.thresholds_) > 0)
        probabilities_are_fine(model, X)
    assert set(model.predict(X)) == set(CLASSES)


# --- Features that change ----------------------------------------------------------------------------------


def test_new_categories_and_missing_cells():
    X, y = shop(900)
    early = (X["colour"] != "blue") & X["age"].notna()
    first, later = np.flatnonzero(early)[:200], np.flatnonzero(~early)[:300]
    model = ISBOR(classes=[0, 1, 2]).partial_fit(X.iloc[first], y[first])
    assert "colour=blue" not in model.column_names_
    test = X.iloc[600:], y[600:]
    before = loss(model, *test)
    model.partial_fit(X.iloc[later], y[later])
    assert {"colour=blue", "age missing"} <= set(model.column_names_)
    assert loss(model, *test) < 0.9 * before
    assert len(model.feature_relevance_) == 6


def test_scaling_follows_the_stream(rows, test_rows, model):
    X, y = rows
    narrow = np.argsort(np.abs(X).max(axis=1), kind="stable")
    far = np.array([1e3, 1e-4]) * X + np.array([5.0, 70.0])
    other = learned(ISBOR(classes=CLASSES), far[narrow], y[narrow], 150)
    moved = np.array([1e3, 1e-4]) * test_rows[0] + np.array([5.0, 70.0])
    assert loss(other, moved, test_rows[1]) < 1.05 * loss(model, *test_rows)


def test_a_feature_may_be_constant_at_first(rows):
    X, y = rows[0][:400], rows[1][:400]
    flat = X.copy()
    flat[:200, 1] = 3.0
    model = learned(ISBOR(classes=CLASSES), flat, y, 100)
    assert model.feature_relevance_[1] > 0.01


# --- Drift -------------------------------------------------------------------------------------------------


def test_a_half_life_follows_thresholds_that_move(rows, test_rows):
    X, y = rows
    lower = np.maximum(y - 1, 0)  # the thresholds rise by one class
    test = test_rows[0], np.maximum(test_rows[1] - 1, 0)
    losses = {}
    for half_life in (None, 100.0):
        model = learned(ISBOR(classes=CLASSES, half_life=half_life), X[:600], y[:600], 300)
        learned(model, X[600:1200], lower[600:1200], 150)
        losses[half_life] = loss(model, *test)
        probabilities_are_fine(model, test[0])
    fresh = ISBOR(basis="mixed", effort="fast", classes=CLASSES).fit(X[600:1200], lower[600:1200])
    assert losses[100.0] < 0.9 * losses[None]
    assert losses[100.0] < 1.2 * loss(fresh, *test)


# --- What is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "call", "message"),
    [
        ({}, {"y": [0, 1, 9]}, r"y holds 1 label\(s\) not in classes: \[9\]"),
        ({}, {"classes": [0, 1, 2]}, r"classes is \[0, 1, 2\], but the estimator has \[0, 1, 2, 3\] already"),
        ({"thresholds": "varying", "noise": "constant"}, {}, "cannot be combined with noise='constant'"),
        ({}, {"X": np.full((3, 2), np.nan)}, "X contains NaN"),
        ({}, {"X": np.ones((3, 4))}, "X has 4 features, but ISBOR is expecting 2"),
        ({}, {"sample_weight": [1.0, -1.0, 1.0]}, "[Nn]egative"),
        ({"half_life": 0.0}, {}, "half_life=0.0: a finite number above 0 or None is needed"),
    ],
)
def test_a_failed_call_changes_nothing(model, rows, parameters, call, message):
    X, y = rows[0][:3], rows[1][:3]
    model = copy.deepcopy(model).set_params(**parameters)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.partial_fit(**({"X": X, "y": y} | call))
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


def test_other_models_are_not_learned_from_streams():
    for parameters in ({"basis": "rbf"}, {"metric": "ard"}, {"gamma": 0.1}, {"solver": "sequential"}):
        assert not hasattr(ISBOR(**parameters), "partial_fit")
    with pytest.raises(AttributeError) as error:
        ISBOR(basis="rbf").partial_fit([[0.0]], [1])
    assert "cannot be combined with basis='rbf'" in str(error.value.__cause__)


def test_classes_must_be_known_in_the_first_call(rows):
    X, y = rows
    with pytest.raises(ValueError, match=r"classes is needed in the first call .* ISBOR\(classes="):
        ISBOR().partial_fit(X[:50], y[:50])
    grades = pd.Series(pd.Categorical.from_codes(y[:50], ["d", "c", "b", "a"], ordered=True))
    model = ISBOR().partial_fit(X[:50], grades)
    assert model.classes_.tolist() == ["d", "c", "b", "a"]


def test_an_interrupt_leaves_the_model_as_it_was(model, rows):
    def stop(step):
        raise KeyboardInterrupt

    model = copy.deepcopy(model).set_params(callback=stop)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(*rows)
    assert all(vars(model)[name] is value for name, value in before.items())
