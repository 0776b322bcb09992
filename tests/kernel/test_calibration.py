import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from isbor.data.folds import fold_numbers
from isbor.data.rows import TrainingRows
from isbor.kernel.calibration import calibrate, cross_fitted_scores
from isbor.kernel.kernels import CutScore, Kernel


def test_the_probit_that_made_the_labels_is_found_again():
    rng = np.random.default_rng(0)
    score = 5.0 + 3.0 * rng.normal(size=20_000)
    thresholds = np.array([2.0, 3.0, 4.5])
    y = np.digitize(0.7 * score + rng.normal(size=20_000), thresholds)
    found = calibrate(score, y, np.ones(20_000))
    assert_allclose(found.slope, 0.7, rtol=0.02)
    assert_allclose(found.thresholds, thresholds, atol=0.08)


def test_it_is_the_maximum_of_the_likelihood_where_the_prior_is_weak():
    rng = np.random.default_rng(1)
    score, weight = rng.normal(size=400), rng.uniform(0.5, 2.0, 400)
    y = np.digitize(score + rng.normal(size=400), [-0.5, 0.5])
    found = calibrate(score, y, weight)

    def log_likelihood(slope, thresholds):
        edge = np.concatenate([[-np.inf], thresholds, [np.inf]])
        return weight @ np.log(norm.cdf(edge[y + 1] - slope * score) - norm.cdf(edge[y] - slope * score))

    best = log_likelihood(found.slope, found.thresholds)
    for step in (-0.1, 0.1):
        assert log_likelihood(found.slope + step, found.thresholds) < best
        assert log_likelihood(found.slope, found.thresholds + step) < best


@pytest.mark.parametrize("score", [np.zeros(60), -np.arange(60.0)], ids=["constant", "reversed"])
def test_a_score_that_says_nothing_leaves_the_class_frequencies(score):
    y = np.repeat([0, 1, 2], [10, 20, 30])
    found = calibrate(score, y, np.ones(60))
    assert found.slope == 0.0
    assert_allclose(norm.cdf(found.thresholds), [1 / 6, 1 / 2], atol=1e-5)


def test_separable_scores_have_a_finite_slope():
    found = calibrate(np.array([-3.0, -2.0, -1.5, 1.0, 2.0, 2.5]), np.repeat([0, 1], 3), np.ones(6))
    assert 1.0 < found.slope < 100.0
    assert -1.5 < found.thresholds[0] / found.slope < 1.0


def test_scores_come_from_machines_that_have_not_seen_the_row():
    """A machine that gives its own rows 100 and others what they deserve, shifted with its thresholds."""
    x = np.random.default_rng(0).normal(size=(23, 1))
    y = np.array([0] * 11 + [1] * 11 + [2])
    rows = TrainingRows(x, y, np.ones(23), np.arange(23))

    class Seen(Kernel):
        def __call__(self, X, anchors):
            return 100.0 * (X == anchors.X.T) + X / len(anchors)

    def fit(part):
        return CutScore(np.ones(len(part)), np.array([7.0 + len(part), 9.0 + len(part)]), 1)

    score = cross_fitted_scores(rows, CutScore(np.ones(23), np.array([1.0, 3.0]), 1), fit, Seen("linear"), 5)
    fold = fold_numbers(y, 5)
    assert fold[22] == -1
    assert_allclose(score[22], 100.0 + x[22, 0])  # the only row of its class: by the machine of all rows
    sizes = np.array([np.sum(fold != number) for number in fold])
    assert_allclose(score[:22], (x[:22, 0] - 8.0 - sizes[:22]) + 2.0)


def test_what_is_left_of_a_class_weighs_something():
    y, weight = np.repeat([0, 1], 6), np.ones(12)
    weight[1:6] = 1e-17  # of class 0, next to nothing is left without its first row
    rows = TrainingRows(np.arange(12.0)[:, None], y, weight, np.arange(12))
    left = []

    def fit(part):
        left.append(part.weight[part.y == 0].sum())
        return CutScore(np.zeros(len(part)), np.zeros(1), 1)

    cross_fitted_scores(rows, CutScore(np.zeros(12), np.zeros(1), 1), fit, Kernel("linear"), 5)
    assert len(left) == 5
    assert min(left) >= 1.0
