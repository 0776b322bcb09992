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
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isbor import ISBOR, metrics
from isbor.datasets import make_saddle
from isbor.estimators.linear import OrderedProbit
from isbor.metrics import get_scorer, mean_cost, scorer_names

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
LEVELS = ["low", "mid", "high"]
law = settings(max_examples=40)
on_labels = pytest.mark.parametrize("metric", ON_LABELS.values(), ids=ON_LABELS)
on_probabilities = pytest.mark.parametrize("metric", ON_PROBABILITIES.values(), ids=ON_PROBABILITIES)
on_both = pytest.mark.parametrize(("name", "metric"), (ON_LABELS | ON_PROBABILITIES).items())
increasing = st.lists(st.integers(-4000, 4000), min_size=R, max_size=R, unique=True).map(sorted).map(np.array)
rank = st.integers(0, R - 1)
rank_pairs = st.lists(st.tuples(rank, rank), min_size=1, max_size=25).map(lambda rows: np.array(rows).T)


@st.composite
def forecasts(draw):
    """True ranks, predicted ranks and predicted probabilities of up to 25 rows."""
    n = draw(st.integers(1, 25))
    ranks = st.lists(rank, min_size=n, max_size=n).map(np.array)
    proba = draw(arrays(float, (n, R), elements=st.floats(1e-6, 1)))
    return draw(ranks), draw(ranks), proba / proba.sum(axis=1, keepdims=True)


def weights_of(y, weight):
    return st.lists(weight, min_size=len(y), max_size=len(y))


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


@pytest.mark.parametrize(
    ("y_true", "y_pred", "labels", "value"),
    [
        ([1, 3], [3, 3], None, 0.5),
        ([1, 3], [3, 3], [1, 2, 3], 1.0),  # a level that labels name counts as a step
        ([True, False], [True, True], None, 0.5),
        ([1, 1], [2, 3], None, 1.5),
    ],
)
def test_errors_count_steps_between_the_levels_of_both_sides(y_true, y_pred, labels, value):
    assert metrics.mean_absolute_error(y_true, y_pred, labels=labels) == value


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


@on_both
@law
@given(forecast=forecasts(), new=increasing)
def test_increasing_relabelling_changes_no_metric(name, metric, forecast, new):
    true, pred, proba = forecast
    names = np.array(["d", "b", "c", "a"])
    if name in ON_LABELS:
        assert metric(new[true], new[pred]) == metric(true, pred)
        assert metric(names[true], names[pred], labels=names) == metric(true, pred, labels=range(R))
    else:
        assert metric(new[true], proba, labels=new) == metric(true, proba, labels=range(R))


@on_both
@law
@given(forecast=forecasts())
def test_reversing_the_order_changes_no_metric(name, metric, forecast):
    true, pred, proba = forecast
    forward, backward = (pred, pred) if name in ON_LABELS else (proba, proba[:, ::-1])
    rtol = 1e-12 if name in ON_LABELS else 1e-9
    expected = metric(true, forward, labels=range(R))
    assert_allclose(metric(true, backward, labels=range(R)[::-1]), expected, rtol=rtol, atol=1e-12)


@on_both
@law
@given(forecast=forecasts(), data=st.data())
def test_weight_counts_as_repetition(name, metric, forecast, data):
    true, pred, proba = forecast
    response, atol = (pred, 1e-12) if name in ON_LABELS else (proba, 0.0)
    weight = data.draw(weights_of(true, st.integers(0, 3)).filter(any))
    repeated = metric(np.repeat(true, weight), np.repeat(response, weight, axis=0), labels=range(R))
    assert_allclose(
        metric(true, response, labels=range(R), sample_weight=weight), repeated, rtol=1e-12, atol=atol
    )


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
    score = metrics.ranked_probability_score(true, np.eye(R)[pred], labels=range(R))
    assert_allclose(score, mae / (R - 1), atol=1e-15)


@law
@given(forecast=forecasts(), data=st.data())
def test_agrees_with_scikit_learn(forecast, data):
    true, pred, proba = forecast
    weight = data.draw(weights_of(true, st.floats(0.1, 5)))
    for ours, theirs in [
        (metrics.mean_absolute_error, sklearn.metrics.mean_absolute_error),
        (metrics.mean_squared_error, sklearn.metrics.mean_squared_error),
        (metrics.mean_zero_one_error, sklearn.metrics.zero_one_loss),
        (metrics.accuracy, sklearn.metrics.accuracy_score),
    ]:
        value = ours(true, pred, labels=range(R), sample_weight=weight)
        assert_allclose(value, theirs(true, pred, sample_weight=weight), rtol=1e-10, atol=1e-12)
    expected = sklearn.metrics.log_loss(true, proba, labels=range(R), sample_weight=weight)
    assert_allclose(metrics.log_loss(true, proba, labels=range(R), sample_weight=weight), expected, rtol=1e-9)


@law
@given(ranks=rank_pairs.filter(lambda ranks: ranks.shape[1] > 1))  # scipy warns of a single row
def test_kendall_agrees_with_scipy(ranks):
    true, pred = ranks
    expected = scipy.stats.kendalltau(true, pred).statistic
    assert_allclose(metrics.kendall_tau(true, pred), np.nan_to_num(expected), atol=1e-12)


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


@pytest.mark.parametrize(
    ("y_true", "y_pred", "labels", "message"),
    [
        (["low"], ["x"], LEVELS, r"(?s)'x'.*y is y_pred"),
        ([4], [1], [1, 2, 3], r"(?s)\[4\].*y is y_true"),
        ([1, 2], [1.5, 2.0], None, r"(?s)1\.5.*y is y_pred"),
        ([1, 2], [1, 2, 2], None, r"y_true holds 2 label\(s\) and y_pred 3"),
        (["low", "high"], ["low", "low"], None, r"(?s)strings.*y is y_true, and classes= is labels="),
    ],
)
@on_labels
def test_label_errors_say_whose_labels_they_are(metric, y_true, y_pred, labels, message):
    with pytest.raises(ValueError, match=message):
        metric(y_true, y_pred, labels=labels)


@pytest.mark.parametrize(
    ("y_true", "proba", "message"),
    [
        ([1, 3], np.eye(2, 3), r"shape \(2, 3\); .* 2 class\(es\) \[1, 3\], \(2, 2\) is needed.*labels="),
        ([1, 2], [[1, 0.5], [0, 1]], r"row sums from 1 to 1\.5"),
        ([1, 2], [[1.5, -0.5], [0, 1]], r"minimum -0\.5"),
        ([1, 2], [[np.nan, 1], [0, 1]], "minimum nan"),
    ],
)
@on_probabilities
def test_probabilities_are_checked(metric, y_true, proba, message):
    with pytest.raises(ValueError, match=message):
        metric(y_true, proba)


def test_weights_are_checked():
    with pytest.raises(ValueError, match=r"sample_weight is -1\.0 in row 1; a finite, nonnegative number"):
        metrics.accuracy([1, 2], [1, 2], sample_weight=[1.0, -1.0])


class Stub(DummyClassifier):
    """Predicts the highest class seen, with the probabilities of the training labels."""

    def predict(self, X):
        return np.repeat(self.classes_[-1:], len(X))


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
    ("train", "test", "name", "value"),
    [
        # The order is 1, 2, 3, the prediction 3, the forecast ½, 0, ½.
        ([1, 1, 3, 3], [2, 3], "mae", -0.5),
        ([1, 1, 3, 3], [2, 3], "mmae", -1.0),
        ([1, 1, 3, 3], [2, 3], "accuracy", 0.5),
        ([1, 1, 3, 3], [2, 3], "rps", -((0.25 + 0.25) / 2 + (0.25 + 0.25) / 2) / 2),
        ([1, 1, 3, 3], [2, 3], "log_loss", (np.log(np.finfo(float).tiny) + np.log(0.5)) / 2),
        # The order is 1, 2, 3, 5, the forecast 0, ¾, 0, ¼.
        ([2, 2, 2, 5], [1, 3, 5], "rps", -((1 + 1 / 8) + (9 / 16 + 1 / 16) + 9 / 8) / 9),
        # The prediction is 3, the forecast ⅓, ⅓, ⅓.
        ([1, 2, 3], [1, 1], "mae", -2.0),
        ([1, 2, 3], [1, 1], "amae", -2.0),
        ([1, 2, 3], [1, 1], "rps", -(4 / 9 + 1 / 9) / 2),
    ],
)
def test_a_class_that_training_or_test_rows_lack_has_its_place(train, test, name, value):
    X, split = np.zeros((len(train + test), 1)), PredefinedSplit([-1] * len(train) + [0] * len(test))
    assert_allclose(cross_val_score(Stub(), X, train + test, cv=split, scoring=get_scorer(name)), value)


def test_scorers_serve_model_selection():
    X, y = make_saddle(60, random_state=1)
    order = np.argsort(y, kind="stable")  # unshuffled folds then lack classes
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    scoring = {name: get_scorer(name) for name in scorer_names()}
    for model in (DummyClassifier(strategy="prior"), pipeline):
        found = cross_validate(model, X[order], y[order], cv=KFold(5), scoring=scoring)
        for name in scoring:
            assert np.isfinite(found[f"test_{name}"]).all(), name
    for name, scorer in scoring.items():
        search = GridSearchCV(pipeline, {"logisticregression__C": [0.1, 10.0]}, scoring=scorer, cv=3)
        search.fit(X, y)
        assert np.isfinite(search.best_score_), name
        assert np.isfinite(scorer(search, X, y)) and search.score(X, y) == scorer(search, X, y), name


def test_string_orders_of_scorers():
    y = ["low", "mid", "high", "high"]
    X = np.zeros((4, 1))
    model = Stub().fit(X, y)  # its classes_ are alphabetical; it predicts "mid"
    assert get_scorer("mae", labels=LEVELS)(model, X, y) == -3 / 4
    categorical = pd.Series(pd.Categorical(y, categories=LEVELS, ordered=True))
    assert get_scorer("mae")(model, X, categorical) == -3 / 4
    # (low, mid, high) has the forecast (¼, ¼, ½)
    expected = np.log([1 / 4, 1 / 4, 1 / 2, 1 / 2]).mean()
    assert_allclose(get_scorer("log_loss")(model, X, categorical), expected)
    model.classes_ = np.array(LEVELS, dtype=object)  # an ordinal model knows the order itself
    assert get_scorer("mae")(model, X, y) == -(2 + 1) / 4


def test_scores_do_not_take_an_alphabetical_order_for_that_of_the_labels():
    X = np.random.default_rng(0).normal(size=(90, 1))
    codes = np.digitize(X[:, 0], [-0.5, 0.5])
    y = np.array(LEVELS)[codes]
    model = LogisticRegression().fit(X, y)
    message = (
        r"LogisticRegression are strings in alphabetical order, \['high', 'low', 'mid'\].*'qwk', labels="
    )
    with pytest.raises(ValueError, match=message):
        get_scorer("qwk")(model, X, y)
    for name in ("accuracy", "zero_one", "log_loss"):  # no matter of order
        assert get_scorer(name)(model, X, y) == get_scorer(name, labels=LEVELS)(model, X, y)
    two = LogisticRegression().fit(X[codes != 1], y[codes != 1])
    assert get_scorer("mae")(two, X[codes != 1], y[codes != 1]) > -0.1
    # The wrapper sorts the labels; the estimator inside was given their order.
    within = CalibratedClassifierCV(OrderedProbit(classes=LEVELS)).fit(X, y)
    for inside in (within, FrozenEstimator(within)):
        scorer = get_scorer("mae", labels=LEVELS)
        assert get_scorer("mae")(inside, X, y) == scorer(inside, X, y) > -0.3
    categorical = pd.Series(
        pd.Categorical(y, sorted(LEVELS), ordered=True)
    )  # an alphabetical order on purpose
    assert get_scorer("mae")(OrderedProbit().fit(X, categorical), X, y) < 0


def test_scorers_pickle_compare_and_show_themselves():
    scorer = get_scorer("rps", labels=LEVELS)
    assert pickle.loads(pickle.dumps(scorer)) == scorer != get_scorer("rps")
    assert repr(get_scorer("kendall")) == "<scorer 'kendall': kendall_tau(y, predict(X))>"
    assert "-ranked_probability_score(y, predict_proba(X), labels=['low'" in repr(scorer)


def test_scorer_errors():
    message = r"no scorer 'kendal'\. Did you mean 'kendall'\? The names are mae, .*log_loss"
    with pytest.raises(ValueError, match=message):
        get_scorer("kendal")
    with pytest.raises(ValueError, match=r"no scorer 'kappa'\. Did you mean 'qwk'\?"):
        get_scorer("kappa")  # a part of the name of the metric
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


COST = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [10.0, 2.0, 0.0]])  # cost[true, predicted]


def test_the_mean_cost_is_looked_up():
    y, predicted, weight = ["a", "c", "b", "c"], ["c", "a", "b", "b"], [1.0, 2.0, 1.0, 0.0]
    assert mean_cost(y, predicted, COST, labels=["a", "b", "c"]) == (3 + 10 + 0 + 2) / 4
    assert mean_cost(y, predicted, COST, labels=["a", "b", "c"], sample_weight=weight) == (3 + 2 * 10) / 4
    table = pd.DataFrame(COST, index=list("abc"), columns=list("abc")).loc[list("cab"), list("bca")]
    assert mean_cost(y, predicted, table, labels=["a", "b", "c"]) == (3 + 10 + 0 + 2) / 4
    with pytest.raises(ValueError, match=r"shape \(3, 3\); a matrix .* \(2, 2\)"):
        mean_cost([0, 1], [1, 0], COST)


def test_the_scorer_of_costs_decides_by_probabilities():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.array(["low", "mid", "high"])[np.digitize(X[:, 0] + rng.normal(size=300), [-0.5, 0.7])]
    order = ["low", "mid", "high"]
    model = LogisticRegression().fit(X, y)
    scorer = get_scorer("cost", cost=COST, labels=order)
    p = model.predict_proba(X)[:, [list(model.classes_).index(label) for label in order]]
    decided = np.argmin(p @ COST, axis=1)
    true = np.array([order.index(label) for label in y])
    assert scorer(model, X, y) == pytest.approx(-COST[true, decided].mean())
    ours = ISBOR(classes=order, gamma=0.3, n_jobs=1).fit(X, y)
    named = pd.DataFrame(COST, index=order, columns=order).loc[["mid", "low", "high"], sorted(order)]
    assert_array_equal(ours.predict(X, loss=named), ours.predict(X, loss=COST))
    expected = -mean_cost(y, ours.predict(X, loss=COST), COST, labels=order)
    assert get_scorer("cost", cost=named)(ours, X, y) == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"rows \['mid', 'low', 'high'\] .* the classes are \['low', 'mid'"):
        ours.predict(X, loss=named.set_axis([1, 2, 3], axis=1))
    with pytest.raises(ValueError, match="'cost' needs cost="):
        get_scorer("cost")
    with pytest.raises(ValueError, match="'mae' takes no cost="):
        get_scorer("mae", cost=COST)
