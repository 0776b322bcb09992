"""Tuned decisions: cut-offs against all others, and what they gain and cost on held-out rows."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from isbor import metrics
from isbor.estimators.linear import OrderedProbit
from isbor.meta import TunedDecisionClassifier
from isbor.meta.conformal import median_levels
from isbor.meta.cutoffs import best_cutoffs, labels_by_cutoffs
from isbor.metrics import get_scorer

probabilities = arrays(float, (6, 4), elements=st.floats(0.01, 1)).map(lambda p: p / p.sum(1, keepdims=True))


def drawn(seed, n=2600, cuts=(1.5, 2.3, 3.0)):
    """Rows of a linear score most of which are of the lowest class."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.digitize(X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=n), cuts)


@settings(max_examples=50, deadline=None)
@given(proba=probabilities, cutoffs=st.lists(st.floats(0, 1), min_size=3, max_size=3).map(np.array))
def test_labels_are_the_highest_class_above_its_cutoff(proba, cutoffs):
    by_hand = [
        max([0] + [k for k in (1, 2, 3) if row[k:][::-1].cumsum()[-1] > cutoffs[k - 1]]) for row in proba
    ]
    assert_array_equal(labels_by_cutoffs(proba, cutoffs), by_hand)
    assert_array_equal(labels_by_cutoffs(proba, np.full(3, 0.5)), median_levels(proba))
    raised = np.column_stack([proba[:, 0] / 2, *proba.T[1:3], proba[:, 3] + proba[:, 0] / 2])
    assert np.all(labels_by_cutoffs(raised, cutoffs) >= labels_by_cutoffs(proba, cutoffs))


@pytest.mark.parametrize("name", ["amae", "qwk", "accuracy"])
def test_the_search_comes_close_to_the_best_of_all_cutoffs(name):
    X, y = drawn(0, 400, cuts=(0.5, 1.5))
    proba = OrderedProbit().fit(X, y).predict_proba(X)
    metric = {
        "amae": metrics.average_mae,
        "qwk": metrics.quadratic_weighted_kappa,
        "accuracy": metrics.accuracy,
    }[name]
    sign = -1 if name == "amae" else 1
    score = lambda codes: sign * metric(y, codes)
    grid = 1 / (1 + np.exp(-np.arange(-3, 3.1, 0.5)))
    best = max(score(labels_by_cutoffs(proba, np.array(c))) for c in product(grid, grid))
    found = score(labels_by_cutoffs(proba, best_cutoffs(proba, score)))
    assert found >= best - 0.01
    assert found >= score(median_levels(proba))


def gains(scoring, score, seeds):
    """Return by how much tuning raises a score on 2,000 held-out rows, and the rules that were chosen."""
    found, rules = [], []
    for seed in seeds:
        X, y = drawn(seed)
        model = TunedDecisionClassifier(OrderedProbit(n_jobs=1), scoring=scoring).fit(X[:600], y[:600])
        plain, tuned = model.estimator_.predict(X[600:]), model.predict(X[600:])
        found.append(score(y[600:], tuned) - score(y[600:], plain))
        rules.append(model.rule_)
    return np.array(found), rules


@pytest.mark.parametrize(
    ("scoring", "score", "least"),
    [
        ("amae", lambda y, p: -metrics.average_mae(y, p), 0.1),
        ("f1_macro", partial(f1_score, average="macro"), 0.02),
    ],
)
def test_rare_classes_gain_on_held_out_rows(scoring, score, least):
    found, rules = gains(scoring, score, range(2))
    assert found.mean() > least
    assert "cutoffs" in rules


@pytest.mark.parametrize("scoring", ["mae", "accuracy"])
def test_a_score_that_predict_serves_already_stays_where_it_is(scoring):
    metric = {"mae": metrics.mean_absolute_error, "accuracy": metrics.accuracy}[scoring]
    found, _ = gains(scoring, metric, range(3))
    assert np.abs(found).mean() < 0.01


def test_a_score_with_an_order_of_its_own_and_weights():
    X, codes = drawn(0, 300)
    y = np.array(["none", "some", "more", "most"])[codes]
    scorer = get_scorer("qwk", labels=["none", "some", "more", "most"])
    model = TunedDecisionClassifier(OrderedProbit(), scoring=scorer, classes=scorer.labels)
    model.fit(X, y, sample_weight=np.ones(300))
    same = TunedDecisionClassifier(OrderedProbit(), scoring="qwk").fit(X, codes)
    assert model.scores_ == pytest.approx(same.scores_)
    assert_array_equal(np.array(["none", "some", "more", "most"])[same.predict(X)], model.predict(X))
    # All weight on one class: calling it always is best.
    rare = TunedDecisionClassifier(LogisticRegression(), scoring="accuracy")
    rare.fit(X, codes, sample_weight=np.where(codes == 2, 1.0, 1e-6))
    assert set(rare.predict(X)) == {2}


@pytest.mark.parametrize(
    ("scoring", "error", "message"),
    [
        ("kappa", ValueError, "scoring is 'kappa'.*isbor.metrics, mae, .*qwk"),
        (np.eye(2), TypeError, r"scoring is of type ndarray.*predict\(X, loss=cost\)"),
    ],
)
def test_what_is_no_score_is_refused(scoring, error, message):
    with pytest.raises(error, match=message):
        TunedDecisionClassifier(OrderedProbit(), scoring=scoring).fit(*drawn(0, 50))


def test_scores_of_probabilities_are_refused():
    with pytest.raises(ValueError, match="scores probabilities; they do not depend on decisions"):
        TunedDecisionClassifier(OrderedProbit(), scoring="rps").fit(*drawn(0, 50))
