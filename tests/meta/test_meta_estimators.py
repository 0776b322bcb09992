"""What the meta-estimators promise: scikit-learn's checks, orders, frames, pipelines, folds, weights."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from isbor import ISBOR
from isbor.estimators.linear import OrderedProbit
from isbor.meta import (
    IntervalLabelClassifier,
    PredictionSetClassifier,
    TunedDecisionClassifier,
    suspicious_labels,
)
from isbor.metrics import get_scorer, mean_absolute_error

GRADES = ["poor", "fair", "good", "excellent"]  # alphabetical order would reverse most of them
META = [PredictionSetClassifier, TunedDecisionClassifier, IntervalLabelClassifier]
each = pytest.mark.parametrize("meta", META)


@pytest.fixture(scope="module")
def grades():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.digitize(X[:, 1] + 0.5 * X[:, 2] + 0.6 * rng.normal(size=400), [-1.0, 0.0, 1.0])
    return X, y


def expected_failures(estimator):
    failures = {
        "check_classifiers_classes": "Strings without an order are refused on purpose.",
        "check_classifiers_train": "predict is no argmax of predict_proba.",
    }
    if getattr(estimator, "method", None) == "split":
        for kind in ("dense", "sparse"):
            failures[f"check_sample_weight_equivalence_on_{kind}_data"] = (
                "It draws rows, whatever they weigh."
            )
    return failures


@parametrize_with_checks(
    [
        PredictionSetClassifier(LogisticRegression()),
        PredictionSetClassifier(OrderedProbit(), method="cross", cv=2),
        TunedDecisionClassifier(LogisticRegression(), cv=2),
        IntervalLabelClassifier(OrderedProbit(n_jobs=1)),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn(estimator, check):
    check(estimator)


# --- Orders ------------------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("inside", [LogisticRegression(), OrderedProbit(n_jobs=1)], ids=["theirs", "ours"])
def test_the_order_comes_from_any_place(meta, inside, grades):
    X, codes = grades
    y = np.array(GRADES)[codes]
    expected = meta(inside, cv=2).fit(X, codes)
    categorical = pd.Series(pd.Categorical(y, GRADES, ordered=True))
    models = [meta(inside, cv=2, classes=GRADES).fit(X, y), meta(inside, cv=2).fit(X, categorical)]
    if isinstance(inside, OrderedProbit):
        models.append(meta(clone(inside).set_params(classes=GRADES), cv=2).fit(X, y))
        models.append(meta(make_pipeline(StandardScaler(), inside), cv=2, classes=GRADES).fit(X, y))
    for model in models:
        assert model.classes_.tolist() == GRADES
        assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-6)
        assert np.mean(model.predict(X) == np.array(GRADES)[expected.predict(X)]) > 0.99


@each
def test_strings_without_an_order_are_refused(meta, grades):
    X, codes = grades
    with pytest.raises(ValueError, match="whose order must be given"):
        meta(LogisticRegression()).fit(X, np.array(GRADES)[codes])


def test_a_class_that_a_fold_lacks_has_probability_zero(grades):
    X, y = grades[0][:60], np.append(np.tile([0, 1, 2], 20)[:-1], 9)
    model = PredictionSetClassifier(LogisticRegression(), method="cross", cv=KFold(4)).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2, 9]
    of_folds = [len(inside.classes_) for inside in model.estimators_]
    assert of_folds == [4, 4, 4, 3]
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)


# --- Tables and tools --------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("library", [pd, pl])
def test_data_frames_with_categories(meta, library, grades):
    X, y = grades
    columns = {"size": X[:, 1], "weight": X[:, 2], "colour": np.where(X[:, 0] > 0, "red", "blue")}
    frame = library.DataFrame(columns)
    model = meta(ISBOR(gamma=0.3, n_jobs=1), cv=2).fit(frame, y)
    assert model.feature_names_in_.tolist() == list(columns)
    assert mean_absolute_error(y, model.predict(frame)) < 0.4


@each
def test_grid_searches_pipelines_pickles_and_clones(meta, grades):
    X, y = grades
    search = GridSearchCV(
        meta(Pipeline([("scale", StandardScaler()), ("model", LogisticRegression())]), cv=2),
        {"estimator__model__C": [1e-6, 1.0]},
        scoring=get_scorer("mae"),
        cv=2,
    ).fit(X, y)
    assert search.best_params_ == {"estimator__model__C": 1.0}
    again = clone(search.best_estimator_).fit(X, y)
    assert_array_equal(pickle.loads(pickle.dumps(again)).predict(X), search.best_estimator_.predict(X))


@each
def test_weights_reach_the_model_inside(meta, grades):
    X, y = grades
    weight = np.where(np.arange(len(y)) % 2, 1.0, 0.0)
    swapped = np.where(weight, y, 3 - y)  # labels of weight zero are upside down
    for inside in (OrderedProbit(n_jobs=1), make_pipeline(StandardScaler(), OrderedProbit(n_jobs=1))):
        model = meta(inside, cv=3).fit(X, swapped, sample_weight=weight)
        assert mean_absolute_error(y, model.predict(X)) < 0.5  # 1.1 if they did not


def test_rows_of_weight_zero_do_not_calibrate(grades):
    X, y = grades
    weight = np.where(np.arange(len(y)) % 2, 2.0, 0.0)
    swapped = np.where(weight, y, 3 - y)
    held_out = np.random.RandomState(0).permutation(len(y))[:100]
    model = PredictionSetClassifier(OrderedProbit(n_jobs=1)).fit(X, swapped, sample_weight=weight)
    assert model.n_calibration_.tolist() == [np.count_nonzero(held_out % 2)] * 4
    covered = model.predict_set(X)[np.arange(len(y)), y].mean()
    assert 0.85 < covered < 0.97


def test_groups_stay_together(grades):
    X, y = grades
    groups = np.arange(len(y)) // 4
    folds = list(GroupKFold(5).split(X, y, groups))
    model = PredictionSetClassifier(LogisticRegression(), method="cross", cv=folds).fit(X, y)
    alone = LogisticRegression().fit(X[folds[0][0]], y[folds[0][0]])
    assert_allclose(model.estimators_[0].coef_, alone.coef_)


# --- Prediction sets ---------------------------------------------------------------------------------------


def test_prefit_is_split_with_your_own_rows(grades):
    X, y = grades
    inside = LogisticRegression().fit(X[:300], y[:300])
    model = PredictionSetClassifier(inside, method="prefit").fit(X[300:], y[300:])
    assert model.estimators_ == [inside]
    frozen = clone(PredictionSetClassifier(FrozenEstimator(inside), method="prefit")).fit(X[300:], y[300:])
    assert_array_equal(frozen.predict_set(X), model.predict_set(X))
    with pytest.raises(NotFittedError):
        clone(model).fit(X, y)
    of_strings = OrderedProbit(n_jobs=1, classes=GRADES).fit(X[:300], np.array(GRADES)[y[:300]])
    frozen = PredictionSetClassifier(FrozenEstimator(of_strings), method="prefit")
    assert frozen.fit(X[300:], np.array(GRADES)[y[300:]]).classes_.tolist() == GRADES
    # The calibration rows may lack a class that the classifier knows.
    some = y[300:] != 2
    lacking = PredictionSetClassifier(inside, method="prefit").fit(X[300:][some], y[300:][some])
    assert lacking.classes_.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("method", ["split", "cross"])
@pytest.mark.parametrize("conditional", [None, "class"])
def test_coverage_on_new_rows(method, conditional):
    """Mean coverage over 20 tables of 300 rows, three standard errors below the promise at most."""
    covered = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(900, 2))
        y = np.digitize(X[:, 0] + rng.standard_t(2, size=900), [-1.0, 0.5, 1.0, 3.0])  # not a normal response
        model = PredictionSetClassifier(
            LogisticRegression(C=0.01), method=method, conditional=conditional, cv=3
        )
        inside = model.fit(X[:300], y[:300]).predict_set(X[300:], 0.8)[np.arange(600), y[300:]]
        if conditional is None:
            covered.append([inside.mean()])
        else:
            covered.append([inside[y[300:] == k].mean() for k in range(5)])
    error = np.std(covered, axis=0) / np.sqrt(len(covered))
    assert np.all(np.mean(covered, axis=0) > 0.8 - 3 * error)
    if conditional is None:
        assert np.mean(covered) < 0.85  # and not by sets that are too large


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "cv"}, "method='cv': 'split', 'cross' or 'prefit' is needed"),
        ({"held_out": 1.0}, "held_out=1.0: a finite number above 0 and below 1 is needed"),
        ({"method": "cross", "cv": 1000}, "cv is 1000, more than the rows .n_samples=400."),
        ({"method": "cross", "cv": [([0], [1])]}, "every row must be held out once"),
    ],
)
def test_bad_parameters_are_refused(parameters, message, grades):
    with pytest.raises(ValueError, match=message):
        PredictionSetClassifier(LogisticRegression(), **parameters).fit(*grades)


def test_a_coverage_outside_the_unit_interval_is_refused(grades):
    with pytest.raises(ValueError, match=r"coverage is 90; a number between 0 and 1"):
        PredictionSetClassifier(LogisticRegression()).fit(*grades).predict_set(grades[0], coverage=90)


# --- Label errors ------------------------------------------------------------------------------------------


def test_suspicious_labels_of_strings_in_a_frame(grades):
    X, codes = grades
    wrong = codes.copy()
    wrong[5] = 3 - codes[5] if codes[5] in (0, 3) else 0 if X[5, 1] > 0 else 3
    y = np.array(GRADES)[wrong]
    found = suspicious_labels(pl.DataFrame(X), y, ISBOR(gamma=0.3, classes=GRADES), cv=3)
    frame = found.to_frame()
    assert list(frame.columns) == ["row", "label", "predicted", "score", "error_probability"]
    assert sorted(found.rows) == list(range(len(y)))
    assert_array_equal(frame["label"], y[found.rows])
    assert np.all(np.diff(found.scores) <= 0)
    assert set(found.predicted) <= set(GRADES)
