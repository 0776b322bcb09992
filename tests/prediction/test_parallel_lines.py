"""The test of parallel lines: gaps are held as said, and costs are those of a known truth."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from isbor import ISBOR
from isbor.model.latent import Latent
from isbor.prediction.parallel_lines import log_gaps, log_probabilities_with_held_gaps, parallel_lines

COMMON = np.array([-1.0, 0.0, 0.5, 2.0])


def average(rng, n):
    """Return an average of two models whose thresholds vary."""
    parts = []
    for _ in range(2):
        gaps = np.exp(rng.normal(0.0, 0.5, (n, 3)))
        thresholds = rng.normal(size=(n, 1)) + np.pad(np.cumsum(gaps, axis=1), ((0, 0), (1, 0)))
        parts.append(Latent(rng.normal(size=n), np.full(n, 0.2), np.ones(n), 1e-3, thresholds - COMMON))
    ones = np.ones(n)
    return Latent(0 * ones, ones, ones, 1e-3, None, tuple(parts), (0.4, 0.6))


def probabilities(thresholds, mean, variance):
    below = norm.cdf((thresholds - mean[:, None]) / np.sqrt(1.0 + variance)[:, None])
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


@pytest.mark.parametrize("held", [[0], [1], [2], [0, 1, 2]])
def test_held_gaps_are_geometric_means_and_the_middle_stays(held):
    latent = average(np.random.default_rng(0), 40)
    gaps = log_gaps(latent, COMMON)
    expected = 0.0
    for part, share, of_part in zip(latent.parts, latent.shares, np.moveaxis(gaps, 1, 0), strict=True):
        thresholds = COMMON + part.offsets
        middle = (thresholds[:, 1] + thresholds[:, 2]) / 2
        gap = np.diff(thresholds, axis=1)
        assert_allclose(np.exp(of_part), gap)
        for one in held:
            gap[:, one] = np.prod(gap[:, one]) ** (1 / 40)
        # Up and down from the middle of the two middle thresholds.
        t1, t2 = middle - gap[:, 1] / 2, middle + gap[:, 1] / 2
        changed = np.stack([t1 - gap[:, 0], t1, t2, t2 + gap[:, 2]], axis=1)
        expected = expected + share * probabilities(changed, part.mean, part.variance)
    log_p = log_probabilities_with_held_gaps(latent, COMMON, gaps.mean(axis=0))
    place = 4 if len(held) == 3 else 1 + held[0]
    assert_allclose(np.exp(log_p[:, place]), 0.999 * expected + 0.001 / 5, rtol=1e-9)


def test_the_cost_is_the_divergence_if_the_model_is_the_truth():
    rng = np.random.default_rng(1)
    n = 40_000
    latent = average(rng, n)
    gaps = log_gaps(latent, COMMON)
    log_p = log_probabilities_with_held_gaps(latent, COMMON, gaps.mean(axis=0))
    true = np.exp(log_p[:, 0])
    y = (rng.random((n, 1)) > np.cumsum(true, axis=1)[:, :-1]).sum(axis=1)
    report = parallel_lines(np.arange(5), y, gaps, log_p)
    divergence = np.mean(np.sum(true[:, None] * (log_p[:, :1] - log_p[:, 1:]), axis=2), axis=0)
    off = np.abs(np.append(report.cost, report.total_cost) - divergence)
    assert np.all(off < 4.0 * np.append(report.standard_error, report.total_standard_error))
    assert not report.hold
    assert str(report).startswith("Parallel lines do not hold: constant thresholds cost ")


def table(rng, n, varies):
    """The room of the middle class depends on the second column, or not."""
    X = rng.uniform(-1.0, 1.0, size=(n, 2))
    response = 3.0 * X[:, 0] + 0.5 * rng.normal(size=n)
    room = np.exp(1.5 * X[:, 1]) if varies else np.ones(n)
    cuts = np.stack([-0.5 * room - 0.7, -0.5 * room, 0.5 * room, 0.5 * room + 0.7], axis=1)
    return X, np.array(list("abcde"))[(response[:, None] > cuts).sum(axis=1)]


def test_a_fit_tells_tables_with_and_without_parallel_lines_apart():
    rng = np.random.default_rng(2)
    for varies in (False, True):
        X, y = table(rng, 3000, varies)
        model = ISBOR(basis="mixed", n_members=2, classes=list("abcde")).fit(X[:2000], y[:2000])
        report = model.parallel_lines(X[2000:], y[2000:])
        assert report.hold is not varies
        assert report.n_labels == 1000
        if varies:
            assert report.classes[np.argmax(report.cost)] == "c"
            assert report.wide[1] > 1.5 and report.narrow[1] < 0.7
            assert "most for class c" in str(report)


def test_models_without_varying_thresholds_say_so():
    X, y = table(np.random.default_rng(3), 200, False)
    model = ISBOR(basis="rbf", classes=list("abcde")).fit(X, y)
    report = model.parallel_lines(X, y)
    assert_allclose(report.cost, 0.0, atol=1e-12)
    assert str(report) == "Parallel lines: the thresholds of this model are the same for all rows."
    two = ISBOR(basis="rbf").fit(X, y > "b").parallel_lines(X, y > "b")
    assert str(two) == "Two classes have a single threshold: there are no lines to compare."
    with pytest.raises(ValueError, match="X has 200 rows and y has 3 labels"):
        model.parallel_lines(X, y[:3])
