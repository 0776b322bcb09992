"""The test of parallel lines: gaps are fixed as said, and costs are those of a known truth."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from isbor import ISBOR
from isbor.model.latent import Latent
from isbor.prediction.parallel_lines import parallel_lines
from isbor.prediction.probabilities import log_class_probabilities

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


@pytest.mark.parametrize("fixed", [[0], [1], [2], [0, 1, 2]])
def test_fixed_gaps_are_geometric_means_and_the_middle_stays(fixed):
    """With all labels of one class, the cost is the mean loss of its log probability."""
    n = 40
    latent = average(np.random.default_rng(0), n)
    as_fitted, changed = 0.0, 0.0
    for part, share in zip(latent.parts, latent.shares, strict=True):
        thresholds = COMMON + part.offsets
        as_fitted = as_fitted + share * probabilities(thresholds, part.mean, part.variance)
        middle, gap = (thresholds[:, 1] + thresholds[:, 2]) / 2, np.diff(thresholds, axis=1)
        for one in fixed:
            gap[:, one] = np.prod(gap[:, one]) ** (1 / n)
        # Up and down from the middle of the two middle thresholds.
        t1, t2 = middle - gap[:, 1] / 2, middle + gap[:, 1] / 2
        moved = np.stack([t1 - gap[:, 0], t1, t2, t2 + gap[:, 2]], axis=1)
        changed = changed + share * probabilities(moved, part.mean, part.variance)
    loss = np.log((0.999 * as_fitted + 0.001 / 5) / (0.999 * changed + 0.001 / 5))
    for k in range(5):
        y = np.full(n, k)
        blocks = [(latent, y)]
        report = parallel_lines(blocks, COMMON, np.arange(4), np.arange(5))
        found = (
            (report.total_cost, report.total_standard_error)
            if len(fixed) == 3
            else (report.cost[fixed[0]], report.standard_error[fixed[0]])
        )
        assert_allclose(
            found, [loss[:, k].mean(), loss[:, k].std(ddof=1) / np.sqrt(n)], rtol=1e-9, atol=1e-12
        )


def test_the_cost_is_the_divergence_if_the_model_is_the_truth():
    """Labels are drawn from a single model; the divergence is integrated over labels."""
    rng = np.random.default_rng(1)
    n = 40_000
    latent = average(rng, n).parts[0]
    true = np.exp(log_class_probabilities(latent, COMMON))
    y = (rng.random((n, 1)) > np.cumsum(true, axis=1)[:, :-1]).sum(axis=1)
    report = parallel_lines([(latent, y)], COMMON, np.arange(4), np.arange(5))
    assert not report.are_parallel
    assert str(report).startswith("No parallel lines: constant thresholds cost ")
    # With fixed gaps and a fixed middle, thresholds differ by a shift of the row only.
    thresholds = COMMON + latent.offsets
    middle, gap = (thresholds[:, 1] + thresholds[:, 2]) / 2, np.exp(np.log(np.diff(thresholds)).mean(axis=0))
    fixed = middle[:, None] + np.array([-gap[1] / 2 - gap[0], -gap[1] / 2, gap[1] / 2, gap[1] / 2 + gap[2]])
    other = 0.999 * probabilities(fixed, latent.mean, latent.variance) + 0.001 / 5
    divergence = np.mean(np.sum(true * np.log(true / other), axis=1))
    assert abs(report.total_cost - divergence) < 4.0 * report.total_standard_error


def test_blocks_shares_and_few_rows_that_vary():
    latent = average(np.random.default_rng(2), 100)
    y = np.random.default_rng(3).integers(5, size=100)
    whole = parallel_lines([(latent, y)], COMMON, np.arange(4), np.arange(5))
    factors = [np.log(np.diff(COMMON + part.offsets, axis=1)) for part in latent.parts]
    factors = np.exp(0.4 * (factors[0] - factors[0].mean(0)) + 0.6 * (factors[1] - factors[1].mean(0)))
    assert_allclose([whole.narrow, whole.wide], np.quantile(factors, [0.1, 0.9], axis=0))
    # A single row of a hundred has another gap.
    offsets = np.zeros((100, 4))
    offsets[7, 3] = 2.0
    one = Latent(np.zeros(100), np.zeros(100), np.ones(100), 0.0, offsets)
    report = parallel_lines([(one, y)], COMMON, np.arange(4), np.arange(5))
    assert report.vary
    assert report.cost[2] != 0.0
    assert "same for all rows" not in str(report)


def test_classes_without_rows_do_not_move_the_middle():
    """Two empty classes on top: thresholds 1 and 2 are fitted, the last three vary together."""
    rng = np.random.default_rng(4)
    n, common = 50, np.array([-1.0, 0.0, 1.0, 2.0])
    move = rng.uniform(-0.3, 0.3, (n, 1))
    # Of the two fitted thresholds, the middle between them stays.
    latent = Latent(rng.normal(size=n), np.zeros(n), np.ones(n), 0.0, np.hstack([-move, move, move, move]))
    y = rng.integers(3, size=n)
    report = parallel_lines([(latent, y)], common, np.array([0, 1, 1, 1]), np.arange(5))
    gap = np.exp(np.log(1.0 + 2.0 * move).mean())
    # Its middle is (-1 + (0 + 1 + 2)/3)/2 = 0 at all rows.
    first = -0.5 * (gap + 1.0)
    fixed = np.array([first, first + gap, first + gap + 1.0, first + gap + 2.0])
    rows = np.arange(n)
    p = probabilities(np.tile(fixed, (n, 1)), latent.mean, latent.variance)[rows, y]
    q = probabilities(common + latent.offsets, latent.mean, latent.variance)[rows, y]
    assert_allclose(report.total_cost, np.log(q / p).mean(), rtol=1e-9)


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
        assert report.are_parallel is not varies
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
    with pytest.raises(ValueError, match="two rows or more are needed"):
        model.parallel_lines(X[:1], y[:1])
