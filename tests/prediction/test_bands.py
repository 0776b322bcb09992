"""Bands: one distribution with the predictions, exact for two classes, wider where less is known."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr
from scipy.stats import multivariate_t, t

from isbor.gp.reference import Law
from isbor.model.latent import Latent
from isbor.prediction.bands import Reference, probability_bands, score_std
from isbor.prediction.probabilities import class_probabilities

ROWS = np.zeros((3, 1))
B = np.array([-1.0, 0.2, 1.5])
DEGREES = 8
UNIT = (DEGREES - 2) / DEGREES  # factor of a covariance that makes it the scale matrix of Student's t
T90 = t.ppf(0.9, DEGREES) * np.sqrt(UNIT)


@dataclass(frozen=True)
class Known:
    """A process whose law is known."""

    mean: np.ndarray
    covariance: np.ndarray
    log_evidence: float = 0.0

    def law(self, rows):
        return Law(self.mean, self.covariance)


def beside(mean, covariance, share=0.0):
    """Return a reference with the same law at all of three rows."""
    n = len(mean)
    known = Known(np.tile(mean, (3, 1)), np.tile(covariance, (3, 1, 1)))
    return Reference(known, share, np.arange(n), np.arange(n))


def score(mean, variance=0.1, noise=1.0, **more):
    return Latent(np.asarray(mean, float), np.full(3, variance), np.full(3, noise), **more)


def test_with_one_threshold_bands_are_quantiles():
    latent, b, v = score([-1.0, 0.0, 2.0]), np.array([0.3]), 0.4
    pi = (0.3 - latent.mean) / np.sqrt(1.1)
    low, high = probability_bands(latent, b, beside([0.0], [[v]]), ROWS, 0.8)
    half = T90 * np.sqrt(v)
    assert_allclose(low[:, 0], ndtr(np.sqrt(1 + v) * pi - half), atol=0.005)
    assert_allclose(high[:, 0], ndtr(np.sqrt(1 + v) * pi + half), atol=0.005)
    assert_allclose(low, 1.0 - high[:, ::-1], atol=1e-12)


@pytest.mark.parametrize(("variance", "atol"), [(0.01, 0.02), (0.3, 0.02), (3.0, 0.025)])
def test_predictions_are_the_means_of_the_distribution(variance, atol):
    """The mean of a band's ends over all coverages is the mean of the distribution.

    At large variances, Student's t distribution has a slightly different one.
    """
    latent = score([-1.0, 0.0, 2.0])
    reference = beside(np.zeros(3), variance * (np.eye(3) * 0.3 + 0.7))
    ends = [probability_bands(latent, B, reference, ROWS, c) for c in (np.arange(64) + 0.5) / 64]
    assert_allclose(np.mean(ends, axis=(0, 1)), class_probabilities(latent, B), atol=atol)


def test_wider_coverage_contains_narrower_and_all_contain_the_prediction():
    latent, reference = score([-1.0, 0.0, 2.0], lapse=0.01), beside(np.zeros(3), np.eye(3))
    predicted = class_probabilities(latent, B)
    before = predicted, predicted
    for coverage in (0.1, 0.5, 0.9, 0.99):
        low, high = probability_bands(latent, B, reference, ROWS, coverage)
        assert np.all((low <= before[0] + 1e-12) & (high >= before[1] - 1e-12))
        assert np.all((low >= 0) & (high <= 1))
        before = low, high


def test_the_distance_counts_as_far_as_the_process_may_be_right():
    latent, b, v = score([0.0, 0.0, 0.0]), np.array([0.0]), 0.2
    mean = np.array([2.0])
    std = [score_std(latent, b, beside(mean, [[v]], share), ROWS)[0] for share in (0.0, 0.5, 1.0)]
    # The prediction has the normal score 0, so the distance is 2 (the process's own mean).
    assert_allclose(np.square(std), [v, v + 0.5 * 4.0, v + 4.0], rtol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_bands_lie_where_the_process_is_as_far_as_it_may_be_right(share):
    """Mean and variance of a mixture: the model's N(sqrt(1 + v) π, v) and the process's N(μ, v)."""
    latent, b, v, mu = score([0.0, -1.0, 1.0]), np.array([0.3]), 0.2, 0.6
    m = np.sqrt(1.0 + v) * (0.3 - latent.mean) / np.sqrt(1.1)
    middle, variance = (1.0 - share) * m + share * mu, v + share * (1.0 - share) * (mu - m) ** 2
    low, high = probability_bands(latent, b, beside([mu], [[v]], share), ROWS, 0.8)
    predicted, half = class_probabilities(latent, b)[:, 0], T90 * np.sqrt(variance)
    assert_allclose(low[:, 0], np.minimum(ndtr(middle - half), predicted), atol=0.006)
    assert_allclose(high[:, 0], np.maximum(ndtr(middle + half), predicted), atol=0.006)


def test_models_of_an_average_that_disagree_widen_the_bands():
    parts = tuple(score([m] * 3, 0.1) for m in (-1.0, 1.0))
    both = replace(score([0.0] * 3), parts=parts, shares=(0.5, 0.5))
    agreed = replace(both, parts=(parts[0], parts[0]))
    reference = beside([0.0], [[0.2]])
    apart, same = (score_std(latent, np.zeros(1), reference, ROWS)[0] ** 2 for latent in (both, agreed))
    B = 1.2 / 1.1  # variance 1 of the means, in units of the response
    assert_allclose(apart - same, B * B / (B + 0.2), rtol=1e-12)


def test_the_scale_of_the_score_does_not_matter():
    latent = score([-1.0, 0.0, 2.0], 0.3, 0.49)
    scaled = score(5 * latent.mean, 25 * 0.3, 25 * 0.49)
    law = beside(np.zeros(3), np.eye(3), 0.5)
    bands = [probability_bands(some, b, law, ROWS, 0.9) for some, b in ((latent, B), (scaled, 5 * B))]
    assert_allclose(bands[0], bands[1], rtol=1e-9)
    assert_allclose(score_std(scaled, 5 * B, law, ROWS), 5 * score_std(latent, B, law, ROWS))


def test_thresholds_of_classes_without_rows_vary_with_those_next_to_them():
    """Of five classes, the first and the third have no rows: levels 1, 3, 4 do."""
    law = Known(np.tile([-1.1, 1.1], (3, 1)), np.tile(0.3 * np.eye(2), (3, 1, 1)))
    reference = Reference.beside(law, 0.0, np.array([1, 3, 4]), 5)
    assert reference.fitted.tolist() == [1, 3]
    assert reference.places.tolist() == [0, 0, 0, 1]
    thresholds = np.array([-3.0, -1.01, -0.99, 1.0])
    reference = replace(reference, share=1.0)
    low, high = probability_bands(score([0.0, 0.0, 0.0]), thresholds, reference, ROWS, 0.9)
    assert np.all(high[:, 0] < 0.1)
    assert np.all(high[:, 2] < 0.05)
    assert np.all(low <= high)


def test_extreme_scores_stay_finite():
    latent = score([-1e5, 0.0, 1e5])
    low, high = probability_bands(latent, B, beside(np.full(3, 50.0), 1e4 * np.ones((3, 3)), 1.0), ROWS, 0.9)
    assert np.isfinite(low).all() and np.isfinite(high).all()
    assert np.all(low <= high)


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_bands_have_their_coverage(coverage):
    """The share of draws from the distribution whose class probabilities lie in the bands.

    It may be larger where a band was extended to the prediction.
    """
    V = np.array([[0.5, 0.4, 0.3], [0.4, 0.6, 0.5], [0.3, 0.5, 0.8]])
    latent = score([0.3, -2.0, 1.0])
    low, high = probability_bands(latent, B, beside(np.zeros(3), V), ROWS, coverage)
    pi = (B - latent.mean[:, None]) / np.sqrt(1.1)
    draws = multivariate_t(np.zeros(3), UNIT * V, DEGREES, seed=0).rvs(20_000)
    for i in range(3):
        eta = np.sqrt(1 + np.diag(V)) * pi[i] + draws
        p = np.diff(np.maximum.accumulate(ndtr(eta), axis=1), axis=1, prepend=0.0, append=1.0)
        share = np.mean((p >= low[i]) & (p <= high[i]), axis=0)
        predicted = class_probabilities(latent, B)[i]
        extended = (low[i] == predicted) | (high[i] == predicted)
        assert_allclose(share[~extended], coverage, atol=0.03)
        assert np.all(share[extended] > coverage - 0.03)
        assert np.count_nonzero(extended) <= 2


def test_offsets_are_added_to_the_common_thresholds():
    offsets = np.random.default_rng(0).normal(size=(3, 3)) * 0.1
    latent, reference = score([-1.0, 0.0, 2.0]), beside(np.zeros(3), np.eye(3), 0.3)
    found = probability_bands(replace(latent, offsets=offsets), B, reference, ROWS, 0.8)
    for i in range(3):
        alone = probability_bands(latent, B + offsets[i], reference, ROWS, 0.8)
        assert_allclose([found[0][i], found[1][i]], [alone[0][i], alone[1][i]], rtol=1e-12)
