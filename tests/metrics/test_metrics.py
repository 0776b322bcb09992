"""Ordinal metrics: values by hand, laws, peers, and scorers on folds that lack a class."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isbor import metrics
from isbor.datasets import make_saddle
from isbor.metrics import get_scorer, scorer_names
from isbor.metrics.scorers import _spread

ON_LABELS = {
    "mae": metrics.mean_absolute_error,
    "zero_one": metrics.mean_zero_one_error,
    "accuracy": metrics.accuracy,
    "amae": metrics.average_mae,
    "mmae": metrics.maximum_mae,
    "mse": metrics.mean_squared_error,
    "qwk": metrics.quadratic_weighted_kappa,
    "kendall": metrics.kendall_tau,
}
ON_PROBABILITIES = {"rps": metrics.ranked_probability_score, "log_loss": metrics.log_loss}
ERRORS = {"mae", "zero_one", "amae", "mmae", "mse", "rps", "log_loss"}

R = 4
law = settings(max_examples=40, deadline=None)  # no deadline: machines may be busy
on_labels = pytest.mark.parametrize("metric", ON_LABELS.values(), ids=ON_LABELS)
on_probabilities = pytest.mark.parametrize("metric", ON_PROBABILITIES.values(), ids=ON_PROBABILITIES)
rank = st.integers(0, R - 1)
rank_pairs = st.lists(st.tuples(rank, rank), min_size=1, max_size=25).map(lambda rows: np.array(rows).T)
gaps = st.lists(st.integers(1, 1000), min_size=R, max_size=R)


@st.composite
def forecasts(draw):
    """Ranks and probabilities of up to 12 rows."""
    rows = st.lists(st.floats(1e-6, 1), min_size=R, max_size=R)
    proba = np.array(draw(st.lists(rows, min_size=1, max_size=12)))
    true = draw(st.lists(rank, min_size=len(proba), max_size=len(proba)))
    return np.array(true), proba / proba.sum(axis=1, keepdims=True)


# --- Values by hand ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mae", 4 / 6),
        ("zero_one", 3 / 6),
        ("accuracy", 3 / 6),
        ("amae", (1 / 3 + 1 / 2 + 2) / 3),
        ("mmae", 2),
        ("mse", 6 / 6),
        # by chance the mean squared distance is E t² + E p² − 2 E t E p = 1 + 1/3 − 2 · 2/3 · 1/3 = 8/9
        ("qwk", 1 - 1 / (8 / 9)),
        # 2 pairs agree in order, 3 disagree; the margins are 3, 2, 1 and 4, 2
        ("kendall", 2 * (2 - 3) / np.sqrt((36 - 9 - 4 - 1) * (36 - 16 - 4))),
    ],
)
def test_values_by_hand(name, value):
    y_true, y_pred = [1, 1, 1, 2, 2, 3], [1, 1, 2, 2, 1, 1]  # distances 0, 0, 1, 0, 1, 2
    assert_allclose(ON_LABELS[name](y_true, y_pred), value)


def test_probability_values_by_hand():
    y_true, proba, labels = [2, 1], [[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]], [1, 2, 3]
    rows = [(0.2**2 + 0.3**2) / 2, (0.4**2 + 0.1**2) / 2]
    assert_allclose(metrics.ranked_probability_score(y_true, proba, labels=labels), np.mean(rows))
    assert_allclose(metrics.log_loss(y_true, proba, labels=labels), -(np.log(0.5) + np.log(0.6)) / 2)


def test_a_level_that_labels_name_counts_as_a_step():
    assert metrics.mean_absolute_error([1, 3], [3, 3]) == 0.5
    assert metrics.mean_absolute_error([1, 3], [3, 3], labels=[1, 2, 3]) == 1.0


def test_constant_input_is_defined():
    assert metrics.quadratic_weighted_kappa([2, 2], [2, 2]) == 1
    assert metrics.quadratic_weighted_kappa([2, 2, 1], [2, 2, 3], sample_weight=[1, 1, 0]) == 1
    assert metrics.quadratic_weighted_kappa([1, 2], [2, 2]) == 0
    assert metrics.kendall_tau([2, 2], [1, 2]) == 0
    assert metrics.kendall_tau([1, 2, 3], [2, 2, 1], sample_weight=[1, 1, 0]) == 0
    assert metrics.ranked_probability_score([5, 5], [[1.0], [1.0]]) == 0


def test_an_impossible_label_costs_much_but_not_infinitely():
    assert_allclose(metrics.log_loss([1, 2], [[1, 0], [1, 0]]), -np.log(np.finfo(float).tiny) / 2)
    assert_allclose(metrics.log_loss([1], [[1e-300, 1]], labels=[1, 2]), 300 * np.log(10))


# --- Laws -------------------------------------------------------------------------------------------------


@on_labels
@law
@given(ranks=rank_pairs, gaps=gaps, start=st.integers(-1000, 1000))
def test_increasing_relabelling_changes_no_metric(metric, ranks, gaps, start):
    true, pred = ranks
    new = start + np.cumsum(gaps)
    assert metric(new[true], new[pred]) == metric(true, pred)
    names = np.array(["d", "b", "c", "a"])
    assert metric(names[true], names[pred], labels=names) == metric(true, pred, labels=range(R))


@on_probabilities
@law
@given(forecast=forecasts(), gaps=gaps)
def test_increasing_relabelling_changes_no_probability_metric(metric, forecast, gaps):
    true, proba = forecast
    new = np.cumsum(gaps)
    assert metric(new[true], proba, labels=new) == metric(true, proba, labels=range(R))


@on_labels
@law
@given(ranks=rank_pairs)
def test_reversing_the_order_changes_no_metric(metric, ranks):
    true, pred = ranks
    forward, backward = metric(true, pred, labels=range(R)), metric(true, pred, labels=range(R)[::-1])
    assert_allclose(backward, forward, rtol=1e-12, atol=1e-12)


@on_probabilities
@law
@given(forecast=forecasts())
def test_reversing_the_order_changes_no_probability_metric(metric, forecast):
    true, proba = forecast
    forward = metric(true, proba, labels=range(R))
    assert_allclose(metric(true, proba[:, ::-1], labels=range(R)[::-1]), forward, rtol=1e-9, atol=1e-12)


@on_labels
@law
@given(ranks=rank_pairs, data=st.data())
def test_weight_counts_as_repetition(metric, ranks, data):
    true, pred = ranks
    weight = data.draw(st.lists(st.integers(0, 3), min_size=len(true), max_size=len(true)).filter(any))
    repeated = metric(np.repeat(true, weight), np.repeat(pred, weight), labels=range(R))
    weighted = metric(true, pred, labels=range(R), sample_weight=weight)
    assert_allclose(weighted, repeated, rtol=1e-12, atol=1e-12)


@on_probabilities
@law
@given(forecast=forecasts(), data=st.data())
def test_weight_counts_as_repetition_for_probabilities(metric, forecast, data):
    true, proba = forecast
    weight = data.draw(st.lists(st.integers(0, 3), min_size=len(true), max_size=len(true)).filter(any))
    repeated = metric(np.repeat(true, weight), np.repeat(proba, weight, axis=0), labels=range(R))
    assert_allclose(metric(true, proba, labels=range(R), sample_weight=weight), repeated, rtol=1e-12)


@law
@given(true=st.lists(rank, min_size=1, max_size=20))
def test_perfect_predictions_score_best(true):
    for name, metric in ON_LABELS.items():
        degenerate = name == "kendall" and len(set(true)) == 1
        assert metric(true, true) == (0 if name in ERRORS or degenerate else 1)
    for metric in ON_PROBABILITIES.values():
        assert metric(true, np.eye(R)[true], labels=range(R)) == 0


@law
@given(ranks=rank_pairs)
def test_the_score_of_a_certain_forecast_is_its_scaled_absolute_error(ranks):
    true, pred = ranks
    mae = metrics.mean_absolute_error(true, pred, labels=range(R))
    assert_allclose(
        metrics.ranked_probability_score(true, np.eye(R)[pred], labels=range(R)), mae / (R - 1), atol=1e-15
    )


# --- Peers ------------------------------------------------------------------------------------------------


@law
@given(ranks=rank_pairs, data=st.data())
def test_agrees_with_scikit_learn_on_ranks(ranks, data):
    true, pred = ranks
    weight = data.draw(st.lists(st.floats(0.1, 5), min_size=len(true), max_size=len(true)))
    for ours, theirs in [
        (metrics.mean_absolute_error, sklearn.metrics.mean_absolute_error),
        (metrics.mean_squared_error, sklearn.metrics.mean_squared_error),
        (metrics.mean_zero_one_error, sklearn.metrics.zero_one_loss),
        (metrics.accuracy, sklearn.metrics.accuracy_score),
    ]:
        value = ours(true, pred, labels=range(R), sample_weight=weight)
        assert_allclose(value, theirs(true, pred, sample_weight=weight), rtol=1e-10, atol=1e-12)


@law
@given(ranks=rank_pairs.filter(lambda ranks: ranks.shape[1] > 1))  # scipy warns of a single row
def test_kendall_agrees_with_scipy(ranks):
    true, pred = ranks
    expected = scipy.stats.kendalltau(true, pred).statistic
    assert_allclose(metrics.kendall_tau(true, pred), np.nan_to_num(expected), atol=1e-12)


@law
@given(forecast=forecasts(), data=st.data())
def test_log_loss_agrees_with_scikit_learn(forecast, data):
    true, proba = forecast
    weight = data.draw(st.lists(st.floats(0.1, 5), min_size=len(true), max_size=len(true)))
    expected = sklearn.metrics.log_loss(true, proba, labels=range(R), sample_weight=weight)
    assert_allclose(metrics.log_loss(true, proba, labels=range(R), sample_weight=weight), expected, rtol=1e-9)


# --- Orders and errors ------------------------------------------------------------------------------------


LEVELS = ["low", "mid", "high"]


@pytest.mark.parametrize(
    "column",
    [
        lambda y: pd.Series(pd.Categorical(y, categories=LEVELS, ordered=True)),
        lambda y: pl.Series(y, dtype=pl.Enum(LEVELS)),
    ],
    ids=["pandas", "polars"],
)
def test_the_order_of_a_categorical_is_taken(column):
    y_true, y_pred = ["low", "low", "high"], ["high", "low", "high"]
    assert_allclose(metrics.mean_absolute_error(column(y_true), column(y_pred)), 2 / 3)
    assert_allclose(metrics.mean_absolute_error(column(y_true), np.array(y_pred)), 2 / 3)
    assert metrics.ranked_probability_score(column(y_true), np.eye(3)[[0, 0, 2]]) == 0


def test_booleans_and_labels_of_one_side_only():
    assert metrics.mean_absolute_error([True, False], [True, True]) == 0.5
    assert metrics.mean_absolute_error([1, 1], [2, 3]) == 1.5


@on_labels
def test_strings_need_labels(metric):
    with pytest.raises(ValueError, match=r"(?s)strings.*y is y_true, and classes= is labels="):
        metric(["low", "high"], ["low", "low"])


def test_label_errors_say_whose_labels_they_are():
    with pytest.raises(ValueError, match=r"(?s)'x'.*y is y_pred"):
        metrics.accuracy(["low"], ["x"], labels=LEVELS)
    with pytest.raises(ValueError, match=r"(?s)\[4\].*y is y_true"):
        metrics.accuracy([4], [1], labels=[1, 2, 3])
    with pytest.raises(ValueError, match=r"(?s)1\.5.*y is y_pred"):
        metrics.mean_absolute_error([1, 2], [1.5, 2.0])
    with pytest.raises(ValueError, match=r"y_true holds 2 label\(s\) and y_pred 3"):
        metrics.mean_absolute_error([1, 2], [1, 2, 2])


@on_probabilities
def test_probabilities_are_checked(metric):
    with pytest.raises(
        ValueError, match=r"shape \(2, 3\); .* 2 classes \[1, 3\], \(2, 2\) is needed.*labels="
    ):
        metric([1, 3], [[1, 0, 0], [0, 0, 1]])
    with pytest.raises(ValueError, match=r"sum to between 1 and 1\.5"):
        metric([1, 2], [[1, 0.5], [0, 1]])
    with pytest.raises(ValueError, match=r"entries from -0\.5"):
        metric([1, 2], [[1.5, -0.5], [0, 1]])
    with pytest.raises(ValueError, match=r"entries from nan"):
        metric([1, 2], [[np.nan, 1], [0, 1]])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0], r"shape \(1,\); \(2,\) is needed"),
        ([1.0, -1.0], r"minimum -1 and sum 0"),
        ([0.0, 0.0], r"minimum 0 and sum 0"),
        ([1.0, np.nan], r"minimum nan"),
        ([1.0, np.inf], r"sum inf"),
        (np.ma.array([1, 2], mask=[False, True]), r"minimum nan"),
    ],
)
def test_weights_are_checked(weight, message):
    with pytest.raises(ValueError, match=message):
        metrics.accuracy([1, 2], [1, 2], sample_weight=weight)


# --- Scorers ----------------------------------------------------------------------------------------------


class Stub(ClassifierMixin, BaseEstimator):
    """Predicts the highest class seen, with the probabilities of the training labels."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(np.asarray(y), return_counts=True)
        self.shares_ = counts / counts.sum()
        return self

    def predict(self, X):
        return np.repeat(self.classes_[-1:], len(X))

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))


def test_every_metric_has_a_scorer_of_its_sign():
    assert scorer_names() == [*ON_LABELS, *ON_PROBABILITIES]
    X, y = make_saddle(120, random_state=0)
    model = LogisticRegression().fit(X, y)
    weight = np.random.default_rng(0).random(len(y))
    for name in scorer_names():
        metric = (ON_LABELS | ON_PROBABILITIES)[name]
        response = model.predict(X) if name in ON_LABELS else model.predict_proba(X)
        sign = -1 if name in ERRORS else 1
        expected = sign * metric(y, response, labels=model.classes_, sample_weight=weight)
        assert get_scorer(name)(model, X, y, sample_weight=weight) == expected
        assert isinstance(get_scorer(name)(model, X, y), float)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        # Trained on 1, 1, 3, 3; tested on 2, 3: the order is 1, 2, 3, the prediction 3, the forecast ½, 0, ½.
        ("mae", -0.5),
        ("mmae", -1.0),
        ("accuracy", 0.5),
        ("rps", -((0.25 + 0.25) / 2 + (0.25 + 0.25) / 2) / 2),
        ("log_loss", (np.log(np.finfo(float).tiny) + np.log(0.5)) / 2),
    ],
)
def test_a_class_that_training_lacked_takes_its_place(name, value):
    y = np.array([1, 1, 3, 3, 2, 3])
    split = PredefinedSplit([-1, -1, -1, -1, 0, 0])
    assert_allclose(cross_val_score(Stub(), np.zeros((6, 1)), y, cv=split, scoring=get_scorer(name)), value)


@pytest.mark.parametrize(("name", "value"), [("mae", -2.0), ("amae", -2.0), ("rps", -(4 / 9 + 1 / 9) / 2)])
def test_a_class_that_the_test_rows_lack_keeps_its_place(name, value):
    model = Stub().fit(None, [1, 2, 3])
    assert_allclose(get_scorer(name)(model, np.zeros((2, 1)), [1, 1]), value)


@pytest.mark.parametrize("name", scorer_names())
def test_scorers_serve_model_selection(name):
    X, y = make_saddle(60, random_state=1)
    order = np.argsort(y, kind="stable")  # unshuffled folds then lack classes
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    for model in (DummyClassifier(strategy="prior"), pipeline):
        scores = cross_val_score(model, X[order], y[order], cv=KFold(5), scoring=get_scorer(name))
        assert np.isfinite(scores).all()
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.1, 10.0]}, scoring=get_scorer(name), cv=3)
    search.fit(X, y)
    assert np.isfinite(search.best_score_)
    assert np.isfinite(get_scorer(name)(search, X, y)) and search.score(X, y) == get_scorer(name)(
        search, X, y
    )


def test_several_scorers_at_once():
    X, y = make_saddle(60, random_state=1)
    found = cross_validate(
        DummyClassifier(), X, y, cv=3, scoring={name: get_scorer(name) for name in scorer_names()}
    )
    assert {f"test_{name}" for name in scorer_names()} <= set(found)


def test_string_orders_of_scorers():
    y = ["low", "mid", "high", "high"]
    X = np.zeros((4, 1))
    model = Stub().fit(X, y)  # its classes_ are alphabetical; it predicts "mid"
    assert get_scorer("mae", labels=LEVELS)(model, X, y) == -3 / 4
    categorical = pd.Series(pd.Categorical(y, categories=LEVELS, ordered=True))
    assert get_scorer("mae")(model, X, categorical) == -3 / 4
    # (low, mid, high) has the forecast (¼, ¼, ½)
    assert_allclose(
        get_scorer("log_loss")(model, X, categorical), np.log([1 / 4, 1 / 4, 1 / 2, 1 / 2]).mean()
    )
    model.classes_ = np.array(LEVELS, dtype=object)  # an ordinal model knows the order itself
    assert get_scorer("mae")(model, X, y) == -(2 + 1) / 4


def test_scorers_pickle_compare_and_show_themselves():
    scorer = get_scorer("rps", labels=LEVELS)
    assert pickle.loads(pickle.dumps(scorer)) == scorer != get_scorer("rps")
    assert repr(get_scorer("kendall")) == "<scorer 'kendall': kendall_tau(y, predict(X))>"
    assert "-ranked_probability_score(y, predict_proba(X), labels=['low'" in repr(scorer)


def test_scorer_errors():
    with pytest.raises(
        ValueError, match=r"no scorer 'kendal'\. Did you mean 'kendall'\? The names are mae, .*log_loss"
    ):
        get_scorer("kendal")
    with pytest.raises(ValueError, match=r"no scorer 'zzz'\. The names are mae"):
        get_scorer("zzz")
    regressor = LinearRegression().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(TypeError, match="LinearRegression has no classes_; a fitted classifier is needed"):
        get_scorer("mae")(regressor, [[0.0]], [0])
    model = Stub().fit(None, ["low", "mid"])
    with pytest.raises(ValueError, match="'high'"):
        get_scorer("mae")(model, np.zeros((1, 1)), ["high"])
    with pytest.raises(ValueError, match=r"(?s)'mid'.*y is the estimator's classes_"):
        get_scorer("rps", labels=["low", "high"])(model, np.zeros((1, 1)), ["high"])


def test_columns_are_spread_by_class():
    spread = _spread(np.array([[0.3, 0.7]]), np.array([2, 5]), np.array([1, 2, 3, 5]))
    assert_array_equal(spread, [[0, 0.3, 0, 0.7]])
