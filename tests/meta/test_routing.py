"""Metadata routing, as scikit-learn's user guide describes it, from searches down to the estimator inside."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isbor import GPOR, ISBOR, ISVOR, KDLOR, SBOR, SVOR
from isbor.estimators.linear import OrderedProbit
from isbor.meta import (
    IntervalLabelClassifier,
    PredictionSetClassifier,
    TunedDecisionClassifier,
    suspicious_labels,
)
from isbor.metrics import get_scorer, mean_absolute_error

META = [PredictionSetClassifier, TunedDecisionClassifier]
both = pytest.mark.parametrize("meta", META)


@pytest.fixture(autouse=True)
def routing():
    with config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="module")
def rows():
    """Rows of which the odd ones have weight zero and labels upside down, in groups of four."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=240), [-1.0, 0.0, 1.0])
    weight = np.where(np.arange(240) % 2, 0.0, rng.integers(1, 3, 240))
    return X, np.where(weight, y, 3 - y), weight, np.arange(240) // 4


@pytest.mark.parametrize(
    "model",
    [ISBOR(gamma=0.3), SBOR(gamma=0.3), SVOR(), ISVOR(), GPOR(gamma=0.3), KDLOR()],
    ids=lambda model: type(model).__name__,
)
def test_weights_reach_every_system_in_a_pipeline(model, rows):
    X, y, weight, _ = rows
    model.set_params(n_jobs=1)
    X, y, weight = X[:80], y[:80], weight[:80]
    steps = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), model)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        steps.fit(X, y, sample_weight=weight)
    model.set_fit_request(sample_weight=True)
    steps.fit(X, y, sample_weight=weight)
    scale = StandardScaler().fit(X, sample_weight=weight)
    alone = clone(model).fit(scale.transform(X), y, sample_weight=weight)
    assert_array_equal(steps.predict_proba(X), alone.predict_proba(scale.transform(X)))


def test_arguments_of_predictions_are_routed(rows):
    X, y, *_ = rows
    model = ISBOR(gamma=0.3, n_jobs=1).set_predict_request(loss=True).set_predict_proba_request(as_frame=True)
    steps = make_pipeline(StandardScaler(), model).fit(X, y)
    modes = steps.predict_proba(X).argmax(axis=1)
    assert_array_equal(steps.predict(X, loss="zero_one"), modes)
    assert steps.predict_proba(X, as_frame=True).columns.tolist() == [0, 1, 2, 3]


def test_cross_validation_passes_weights_and_groups(rows):
    X, y, weight, groups = rows
    model = OrderedProbit(n_jobs=1).set_fit_request(sample_weight=True)
    scorer = get_scorer("mae").set_score_request(sample_weight=True)
    params = {"sample_weight": weight, "groups": groups}
    found = cross_validate(
        model, X, y, cv=GroupKFold(3), params=params, scoring=scorer, return_estimator=True
    )
    for (train, test), fitted, score in zip(
        GroupKFold(3).split(X, y, groups), found["estimator"], found["test_score"], strict=True
    ):
        alone = OrderedProbit(n_jobs=1).fit(X[train], y[train], weight[train])
        assert_array_equal(fitted.thresholds_, alone.thresholds_)
        error = mean_absolute_error(
            y[test], alone.predict(X[test]), sample_weight=weight[test], labels=range(4)
        )
        assert score == pytest.approx(-error)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight.*OrdinalScorer.score"):
        cross_validate(model, X, y, params=params, scoring=get_scorer("mae"), cv=GroupKFold(3))


@both
def test_meta_estimators_pass_weights_on_if_the_estimator_requests_them(meta, rows):
    X, y, weight, _ = rows
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        meta(OrderedProbit(n_jobs=1), cv=3).fit(X, y, sample_weight=weight)
    inside = OrderedProbit(n_jobs=1).set_fit_request(sample_weight=True)
    truth = np.where(weight, y, 3 - y)
    for estimator in (inside, make_pipeline(StandardScaler().set_fit_request(sample_weight=False), inside)):
        with config_context(enable_metadata_routing=False):
            expected = meta(estimator, cv=3).fit(X, y, sample_weight=weight)
        model = meta(estimator, cv=3).fit(X, y, sample_weight=weight)
        assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
        assert mean_absolute_error(truth, model.predict(X)) < 0.5  # 1.1 without weights
    ignored = meta(OrderedProbit(n_jobs=1).set_fit_request(sample_weight=False), cv=3)
    assert_allclose(
        ignored.fit(X, y, sample_weight=weight).predict_proba(X),
        meta(inside, cv=3).fit(X, y).predict_proba(X),
    )


def test_groups_reach_the_splitter(rows):
    X, y, _, groups = rows
    model = PredictionSetClassifier(LogisticRegression(), method="cross", cv=GroupKFold(5))
    model.fit(X, y, groups=groups)
    folds = list(GroupKFold(5).split(X, y, groups))
    expected = clone(model).set_params(cv=folds).fit(X, y)
    for one, other in zip(model.estimators_, expected.estimators_, strict=True):
        assert_array_equal(one.coef_, other.coef_)
    tuned = TunedDecisionClassifier(LogisticRegression(), cv=GroupKFold(5)).fit(X, y, groups=groups)
    assert tuned.scores_ == TunedDecisionClassifier(LogisticRegression(), cv=folds).fit(X, y).scores_
    with pytest.raises(TypeError, match="groups"):
        PredictionSetClassifier(LogisticRegression(), method="cross", cv=5).fit(X, y, groups=groups)


def test_all_at_once_in_a_search(rows):
    """Weights pass a search, a pipeline and a meta-estimator on their way to the classifier."""
    X, y, weight, groups = rows
    inside = OrderedProbit(n_jobs=1).set_fit_request(sample_weight=True)
    meta = PredictionSetClassifier(inside, method="cross", cv=2).set_fit_request(sample_weight=True)
    steps = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), meta)
    search = GridSearchCV(
        steps,
        {"predictionsetclassifier__cv": [2, 3]},
        cv=GroupKFold(2),
        scoring=get_scorer("rps").set_score_request(sample_weight=True),
    ).fit(X, y, sample_weight=weight, groups=groups)
    truth = np.where(weight, y, 3 - y)
    assert mean_absolute_error(truth, search.predict(X)) < 0.5
    assert -search.best_score_ < 0.1


def test_a_fitted_estimator_needs_no_weights(rows):
    X, y, weight, _ = rows
    inside = OrderedProbit(n_jobs=1).fit(X, y, weight)
    model = PredictionSetClassifier(inside, method="prefit").fit(X, y, sample_weight=weight)
    assert model.n_calibration_.tolist() == [np.count_nonzero(weight)] * 4


def test_weights_of_suspicious_labels_are_routed_in_a_pipeline(rows):
    X, y, weight, _ = rows
    inside = OrderedProbit(n_jobs=1).set_fit_request(sample_weight=True)
    steps = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), inside)
    found = suspicious_labels(X, y, steps, cv=3, sample_weight=weight)
    alone = suspicious_labels(StandardScaler().fit_transform(X), y, inside, cv=3, sample_weight=weight)
    assert np.mean(weight[found.rows[:60]] == 0) > 0.9
    assert len(set(found.rows[:100]) & set(alone.rows[:100])) > 90


def test_without_routing_other_arguments_are_refused(rows):
    X, y, _, groups = rows
    with (
        config_context(enable_metadata_routing=False),
        pytest.raises(
            TypeError, match="fit got groups. Only sample_weight is passed on, unless metadata rout"
        ),
    ):
        PredictionSetClassifier(LogisticRegression(), method="cross", cv=GroupKFold(5)).fit(
            X, y, groups=groups
        )


def test_weights_and_groups_of_intervals(rows):
    """A weight counts for all copies of a row, and groups stay together."""
    X, y, weight, groups = rows
    pairs = np.stack([np.maximum(y - (groups % 2), 0), y], axis=1)
    inside = OrderedProbit(n_jobs=1).set_fit_request(sample_weight=True)
    model = IntervalLabelClassifier(inside, cv=GroupKFold(3)).fit(
        X, pairs, sample_weight=weight, groups=groups
    )
    with config_context(enable_metadata_routing=False):
        folds = list(GroupKFold(3).split(X, y, groups))
        expected = IntervalLabelClassifier(inside, cv=folds).fit(X, pairs, sample_weight=weight)
        with pytest.raises(TypeError, match="groups"):
            IntervalLabelClassifier(inside, cv=GroupKFold(3)).fit(X, pairs, groups=groups)
    assert_array_equal(model.label_distributions_, expected.label_distributions_)
    truth = np.where(weight, y, 3 - y)
    assert mean_absolute_error(truth, model.predict(X)) < 0.6
    proba = model.predict_proba(X, as_frame=True)
    assert_array_equal(proba.to_numpy(), expected.predict_proba(X))
