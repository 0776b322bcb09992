"""Label errors: the score against a simulation of its own assumptions, and planted errors found again."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isbor.estimators.linear import OrderedProbit
from isbor.meta import suspicious_labels
from isbor.meta.label_errors import error_scores


def test_scores_are_expectations_under_random_replacement():
    """Labels are drawn, and a share of them replaced by random ones: how wrong are those that show k?"""
    rng, p, rate, n = np.random.default_rng(0), np.array([0.55, 0.3, 0.1, 0.05]), 0.3, 400_000
    true = rng.choice(4, p=p, size=n)
    label = np.where(rng.random(n) < rate, rng.integers(0, 4, n), true)
    scores, wrong = error_scores(np.tile(p, (4, 1)), np.arange(4), rate)
    for k in range(4):
        shown = true[label == k]
        assert_allclose(scores[k], np.abs(shown - k).mean(), atol=0.02)
        assert_allclose(wrong[k], np.mean(shown != k), atol=0.01)


def test_distance_decides_between_labels_of_equal_probability():
    proba = np.tile([0.8, 0.1, 0.1], (2, 1))
    scores, wrong = error_scores(proba, np.array([1, 2]), 0.05)
    assert scores[1] > scores[0]
    assert wrong[1] == wrong[0]


@pytest.mark.parametrize("kind", ["any other", "opposite end"])
def test_planted_errors_are_found(kind, real_sets):
    """One label of 20 is wrong, in two draws of two real sets. The score is compared with −ln p."""
    found, plain, chance = [], [], []
    for X, y in real_sets:
        n_levels = y.max() + 1
        for seed in range(2):
            rng = np.random.default_rng(seed)
            planted = rng.permutation(len(y))[: len(y) // 20]
            wrong = y.copy()
            shifted = (y[planted] + rng.integers(1, n_levels, len(planted))) % n_levels
            wrong[planted] = shifted if kind == "any other" else n_levels - 1 - y[planted]
            planted = np.flatnonzero(wrong != y)
            k = len(planted)
            model = make_pipeline(StandardScaler(), LogisticRegression())
            result = suspicious_labels(X, wrong, model, cv=3, random_state=seed)
            by_log_loss = result.rows[np.argsort(-result.error_probability, kind="stable")]  # that is −ln p
            found.append(np.isin(result.rows[:k], planted).mean())
            plain.append(np.isin(by_log_loss[:k], planted).mean())
            chance.append(k / len(y))
    assert np.mean(found) > 4 * np.mean(chance)
    assert np.mean(found) > np.mean(plain) - 0.01


def test_an_error_rate_outside_the_unit_interval_is_refused():
    with pytest.raises(ValueError, match="error_rate is 0; a number between 0 and 1"):
        suspicious_labels([[0.0], [1.0]], [0, 1], error_rate=0)


def test_arguments_in_another_order_are_refused():
    with pytest.raises(TypeError, match=r"estimator is of type list; a classifier .*order of the arguments"):
        suspicious_labels(OrderedProbit(), [[0.0], [1.0]], [0, 1])
