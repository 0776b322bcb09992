"""Intervals of labels: EM against the maximum of the likelihood; rows do not confirm their own guess."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import ndtr
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from isbor import ISBOR
from isbor.estimators.linear import OrderedProbit
from isbor.meta import IntervalLabelClassifier
from isbor.meta.self_consistency import class_frequencies, within

GRADES = ["poor", "fair", "good", "great", "superb"]  # not in alphabetical order
TOLERANT = {"tol": 1e-8, "max_iter": 1000}


def coarsened(seed=0, n=300, r=5):
    """Rows of a linear score, their labels, and pairs: a third known, a third of neighbours, a third open."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.digitize(X @ [1.0, 0.5] + 0.7 * rng.normal(size=n), np.linspace(-1.2, 1.2, r - 1))
    kind, cut, up = rng.integers(3, size=n), rng.integers(1, r, size=n), rng.integers(2, size=n)
    lower = np.where(kind == 1, np.maximum(y - up, 0), np.where((kind == 2) & (y < cut), 0, y))
    upper = np.where(kind == 1, np.minimum(y - up + 1, r - 1), y)
    lower = np.where((kind == 2) & (y >= cut), cut, lower)
    upper = np.where(kind == 2, np.where(y >= cut, r - 1, cut - 1), upper)
    return X, y, np.column_stack([lower, upper])


def in_intervals(proba, pairs):
    """Return P(interval) of each row."""
    inside = (np.arange(proba.shape[1]) >= pairs[:, :1]) & (np.arange(proba.shape[1]) <= pairs[:, 1:])
    return np.where(inside, proba, 0).sum(axis=1)


def probit(X, theta):
    """Return the class probabilities of two slopes and the thresholds."""
    below = ndtr(theta[2:] - (X @ theta[:2])[:, None])
    return np.diff(below, axis=1, prepend=0, append=1)


class PlainProbit(OrderedProbit):
    """The linear model without lapses in its probabilities, which its likelihood does not have either."""

    def predict_proba(self, X):
        return probit(X, np.concatenate([self.coef_, self.thresholds_]))


def parameters(model):
    return np.concatenate([model.estimator_.coef_, model.estimator_.thresholds_])


# --- EM ----------------------------------------------------------------------------------------------------


def test_the_fixed_point_of_an_ordered_probit_maximises_the_likelihood_of_intervals():
    X, _, pairs = coarsened()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    model = IntervalLabelClassifier(PlainProbit(n_jobs=1), cv=None, **TOLERANT).fit(X, pairs, weight)
    direct = minimize(
        lambda theta: -weight @ np.log(in_intervals(probit(X, theta), pairs)) / weight.sum(),
        np.array([0.0, 0.0, -1.0, -0.3, 0.3, 1.0]),
        options={"gtol": 1e-7},
    )
    assert_allclose(parameters(model), direct.x, atol=2e-5)
    proba = probit(X, direct.x)
    expected = proba / in_intervals(proba, pairs)[:, None]
    found = model.label_distributions_
    assert_allclose(found[found > 0], expected[found > 0], atol=1e-4)
    assert_allclose(in_intervals(found, pairs), 1)
    # Lapses of 1/302 in predicted probabilities move it by less than 1 %.
    lapsing = IntervalLabelClassifier(OrderedProbit(n_jobs=1), cv=None, tol=1e-4, max_iter=50)
    lapsing.fit(X, pairs, weight)
    assert_allclose(parameters(lapsing), direct.x, rtol=0.01)


def test_the_fixed_point_of_a_penalised_model_maximises_the_penalised_likelihood():
    X, _, pairs = coarsened(1, r=3)
    softmax = LogisticRegression(C=0.1, tol=1e-10, max_iter=1000)
    model = IntervalLabelClassifier(softmax, cv=None, **TOLERANT).fit(X, pairs)

    def loss(theta):
        slopes, constants = theta[:6].reshape(3, 2), theta[6:]
        odds = np.exp(X @ slopes.T + constants)
        proba = odds / odds.sum(axis=1, keepdims=True)
        return -0.1 * np.log(in_intervals(proba, pairs)).sum() + 0.5 * slopes.ravel() @ slopes.ravel()

    direct = minimize(loss, np.zeros(9), options={"gtol": 1e-6})
    assert_allclose(model.estimator_.coef_, direct.x[:6].reshape(3, 2), atol=1e-4)


def test_no_round_lowers_the_likelihood():
    X, _, pairs = coarsened(1)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for rounds in range(1, 6):
            meta = IntervalLabelClassifier(PlainProbit(n_jobs=1), cv=None, max_iter=rounds, tol=1e-12)
            found.append(np.log(in_intervals(meta.fit(X, pairs).predict_proba(X), pairs)).sum())
    assert np.all(np.diff(found) > 0)
    assert found[-1] - found[-2] < 0.05 * (found[1] - found[0])


intervals = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3)).map(sorted), min_size=1, max_size=30
).map(np.array)


@settings(max_examples=50, deadline=None)
@given(pairs=intervals, seed=st.integers(0, 9))
def test_class_frequencies_maximise_their_posterior(pairs, seed):
    """On the simplex, the derivative of Σ v ln P(I) + Σ ln π is the same for all classes."""
    inside = (np.arange(4) >= pairs[:, :1]) & (np.arange(4) <= pairs[:, 1:])
    weight = np.random.default_rng(seed).uniform(0, 3, len(pairs))
    frequency = class_frequencies(inside, weight)
    assert_allclose(frequency.sum(), 1)
    derivative = (weight / (inside @ frequency)) @ inside + 1 / frequency
    assert_allclose(derivative, weight.sum() + 4, rtol=1e-4)


def test_probabilities_within_intervals():
    proba = np.array([[0.1, 0.3, 0.6], [0.0, 0.0, 1.0]])
    inside = np.array([[True, True, False], [True, True, False]])
    otherwise = np.array([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]])
    assert_allclose(within(proba, inside, otherwise), [[0.25, 0.75, 0], [0.2, 0.8, 0]])


# --- Held-out weights --------------------------------------------------------------------------------------


def test_rows_do_not_confirm_their_own_guess():
    """A tree that separates all rows returns the weights it was given; held-out ones move to the labels."""
    X, y, pairs = coarsened(2, 600)
    tree = DecisionTreeClassifier(random_state=0)
    inside = (np.arange(5) >= pairs[:, :1]) & (np.arange(5) <= pairs[:, 1:])
    first = within(class_frequencies(inside, ~inside.all(axis=1))[None], inside, inside / 5)
    own = IntervalLabelClassifier(tree, cv=None).fit(X, pairs)
    assert own.n_iter_ == 1
    assert_allclose(own.label_distributions_, first, atol=1e-12)
    limited = DecisionTreeClassifier(min_samples_leaf=60, random_state=0)
    held_out = IntervalLabelClassifier(limited, tol=0.05).fit(X, pairs)
    of_true = lambda share: share[pairs[:, 0] < pairs[:, 1]][
        np.arange(np.sum(pairs[:, 0] < pairs[:, 1])), y[pairs[:, 0] < pairs[:, 1]]
    ].mean()
    assert of_true(held_out.label_distributions_) > of_true(first) + 0.1


def test_held_out_weights_of_a_model_of_few_parameters_are_those_of_em():
    X, _, pairs = coarsened(3)
    one = IntervalLabelClassifier(OrderedProbit(n_jobs=1), cv=None, tol=1e-3).fit(X, pairs)
    other = IntervalLabelClassifier(OrderedProbit(n_jobs=1), tol=1e-3).fit(X, pairs)
    difference = np.abs(one.predict_proba(X) - other.predict_proba(X))
    assert difference.mean() < 0.005
    assert difference.max() < 0.02


def test_groups_stay_together():
    """With two copies of every row in a table, folds that split copies are told from folds that do not."""
    X, _, pairs = coarsened(4, 100)
    X, pairs, groups = np.tile(X, (2, 1)), np.tile(pairs, (2, 1)), np.tile(np.arange(100), 2)
    tree, once = DecisionTreeClassifier(random_state=0), {"max_iter": 1, "tol": 1.0}
    apart = IntervalLabelClassifier(tree, cv=list(GroupKFold(5).split(X, pairs, groups)), **once)
    split = IntervalLabelClassifier(tree, cv=KFold(2), **once)  # the halves are the two copies
    alone = IntervalLabelClassifier(tree, cv=None, **once)
    assert_allclose(
        split.fit(X, pairs).label_distributions_, alone.fit(X, pairs).label_distributions_, atol=1e-12
    )
    assert np.abs(apart.fit(X, pairs).label_distributions_ - alone.label_distributions_).max() > 0.4


# --- Tables ------------------------------------------------------------------------------------------------


def test_labels_that_are_known_give_the_classifier_itself():
    X, y, _ = coarsened()
    neighbours = KNeighborsClassifier()  # takes no weights
    for labels in (y, np.column_stack([y, y])):
        model = IntervalLabelClassifier(neighbours).fit(X, labels)
        assert_array_equal(model.predict_proba(X), neighbours.fit(X, y).predict_proba(X))
        assert model.score(X, labels) == neighbours.score(X, y)


def test_intervals_of_all_classes_say_nothing():
    X, _, pairs = coarsened(5)
    rng = np.random.default_rng(0)
    more = np.vstack([X, rng.normal(size=(50, 2))])
    ends = np.vstack([pairs.astype(float), np.full((50, 2), np.nan)])
    kwargs = {"classes": [0.0, 1.0, 2.0, 3.0, 4.0], "cv": None, **TOLERANT}
    without = IntervalLabelClassifier(OrderedProbit(n_jobs=1), **kwargs).fit(X, pairs.astype(float))
    model = IntervalLabelClassifier(OrderedProbit(n_jobs=1), **kwargs).fit(more, ends)
    assert_allclose(parameters(model), parameters(without), atol=1e-6)
    assert_allclose(model.label_distributions_[300:], model.predict_proba(more[300:]), atol=1e-6)
    with pytest.raises(ValueError, match=r"All 300 intervals in y have all of the classes \[0, 4\]"):
        IntervalLabelClassifier(OrderedProbit()).fit(X, np.tile([0, 4], (300, 1)))


def test_a_weight_of_two_is_a_row_twice_and_of_zero_none():
    X, _, pairs = coarsened(6)
    weight = np.random.default_rng(0).integers(3, size=len(X))
    repeated = np.repeat(np.arange(len(X)), weight)
    meta = IntervalLabelClassifier(OrderedProbit(n_jobs=1), cv=None, **TOLERANT)
    weighted = parameters(meta.fit(X, pairs, sample_weight=weight))
    assert_allclose(parameters(meta.fit(X[repeated], pairs[repeated])), weighted, atol=1e-6)


@pytest.mark.parametrize("inside", [LogisticRegression(), OrderedProbit(n_jobs=1)], ids=["theirs", "ours"])
def test_strings_in_any_table(inside):
    X, _, codes = coarsened(7, 150)
    expected = IntervalLabelClassifier(inside).fit(X, codes)
    pairs = np.array(GRADES, dtype=object)[codes]
    pairs[codes[:, 1] == 4, 1] = None
    columns = {"from": pairs[:, 0].tolist(), "to": pairs[:, 1].tolist()}
    ordered = {key: pd.Categorical(ends, GRADES, ordered=True) for key, ends in columns.items()}
    schema = dict.fromkeys(columns, pl.Enum(GRADES))
    frame = pd.DataFrame(X, columns=["size", "age"])
    models = [
        IntervalLabelClassifier(inside, classes=GRADES).fit(X, pairs),
        IntervalLabelClassifier(inside).fit(frame, pd.DataFrame(ordered)),
        IntervalLabelClassifier(inside).fit(pl.DataFrame(frame), pl.DataFrame(columns, schema=schema)),
    ]
    if isinstance(inside, OrderedProbit):
        own = make_pipeline(StandardScaler(), OrderedProbit(n_jobs=1, classes=GRADES))
        models.append(IntervalLabelClassifier(own).fit(X, pairs))
    for model, rows in zip(models, [X, frame, pl.DataFrame(frame), X], strict=False):
        assert model.classes_.tolist() == GRADES
        assert_allclose(model.predict_proba(rows), expected.predict_proba(X), atol=1e-5)
        assert_array_equal(model.predict(rows), np.array(GRADES)[expected.predict(X)])
    assert models[1].feature_names_in_.tolist() == ["size", "age"]


def test_the_score_is_the_share_of_labels_in_their_interval():
    X, y, pairs = coarsened(8)
    model = IntervalLabelClassifier(OrderedProbit(n_jobs=1)).fit(X, pairs)
    predicted, weight = model.predict(X), np.arange(len(X))
    hit = (pairs[:, 0] <= predicted) & (predicted <= pairs[:, 1])
    assert model.score(X, pairs) == pytest.approx(hit.mean())
    assert model.score(X, pairs, weight) == pytest.approx(np.average(hit, weights=weight))
    assert model.score(X, y) == pytest.approx((predicted == y).mean())
    open_ends = np.where(pairs == [0, 4], np.nan, pairs)
    scores = cross_val_score(
        IntervalLabelClassifier(OrderedProbit(n_jobs=1), classes=range(5)), X, open_ends, cv=KFold(3)
    )
    assert scores.min() > 0.6


def test_isbor_learns_from_intervals_what_known_labels_alone_would_bias():
    """All labels from 2 up are reported as "at least 2", four times out of five."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(300, 1))
    y = np.digitize(np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=300), [-0.5, 0.0, 0.5])
    merged = (y >= 2) & (rng.random(300) < 0.8)
    pairs = [(2, None) if m else (k, k) for k, m in zip(y, merged, strict=True)]
    fast = ISBOR(effort="fast", n_jobs=1)
    model = IntervalLabelClassifier(fast, cv=2).fit(X, pairs)
    alone = ISBOR(effort="fast", n_jobs=1).fit(X[~merged], y[~merged])
    full = ISBOR(effort="fast", n_jobs=1).fit(X, y).predict_proba(X)
    assert np.abs(model.predict_proba(X) - full).mean() < 0.05
    assert np.abs(alone.predict_proba(X) - full).mean() > 0.07


# --- Limits ------------------------------------------------------------------------------------------------


def test_a_fit_that_is_not_finished_warns():
    X, _, pairs = coarsened()
    with pytest.warns(ConvergenceWarning, match=r"on average in round 1: raise max_iter, or tol"):
        IntervalLabelClassifier(OrderedProbit(n_jobs=1), max_iter=1).fit(X, pairs)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_iter": 0}, "max_iter=0: an integer of at least 1 is needed"),
        ({"tol": 0.0}, "tol=0.0: a finite number above 0 is needed"),
        ({"cv": [([0], [1])]}, "every row must be held out once"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    X, _, pairs = coarsened(0, 50)
    with pytest.raises(ValueError, match=message):
        IntervalLabelClassifier(LogisticRegression(), **parameters).fit(X, pairs)
