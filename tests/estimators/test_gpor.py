"""What GPOR promises beyond what all systems do (see test_systems)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from sklearn.exceptions import ConvergenceWarning

from isbor import GPOR
from isbor.datasets import make_saddle, saddle_labels
from isbor.metrics import log_loss, mean_absolute_error
from tests.estimators.hard_problems import named_problems, random_problem

KINDS = [{}, {"metric": "ard"}, {"inference": "ep"}]
IDS = ["laplace", "ard", "ep"]


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 2))
    return X, np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=80), [0.0, 1.0, 2.0])


# --- What it learns ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_it_learns_the_saddle(inference):
    X, y, score = make_saddle(2150, random_state=0, return_score=True)
    model = GPOR(inference=inference).fit(X[:150], y[:150])
    best = mean_absolute_error(y[150:], saddle_labels(score[150:]))
    assert mean_absolute_error(y[150:], model.predict(X[150:])) < best + 0.08
    assert log_loss(y[150:], model.predict_proba(X[150:]), labels=model.classes_) < 0.25
    assert model.sigma_ < 0.1


def test_pure_noise_costs_little_against_the_class_frequencies():
    rng = np.random.default_rng(0)
    y = rng.choice([0, 1, 2], p=[0.2, 0.5, 0.3], size=200)
    model = GPOR().fit(rng.normal(size=(200, 3)), y)
    new = rng.choice([0, 1, 2], p=[0.2, 0.5, 0.3], size=3000)
    frequencies = np.tile(np.bincount(y) / 200, (3000, 1))
    loss = log_loss(new, model.predict_proba(rng.normal(size=(3000, 3))), labels=[0, 1, 2])
    assert loss < log_loss(new, frequencies, labels=[0, 1, 2]) + 0.05


def test_attributes_describe_the_predictions(noisy):
    """In units in which the score has prior variance one."""
    X, y = noisy
    model = GPOR(inference="ep").fit(X, y)
    score, std = model.latent(X, return_std=True)
    assert_array_equal(model.predict(X), np.searchsorted(model.thresholds_, score))
    spread = np.hypot(model.sigma_, std)
    below = ndtr((model.thresholds_ - score[:, None]) / spread[:, None])
    p = np.diff(np.hstack([np.zeros((80, 1)), below, np.ones((80, 1))]), axis=1)
    lapse = 1 / (80 + 2)
    assert_allclose(model.predict_proba(X), (1 - lapse) * p + lapse / 4, atol=1e-12)
    far, far_std = model.latent(np.full((1, 2), 1e9), return_std=True)
    assert_allclose([far[0], far_std[0]], [0.0, 1.0], atol=1e-12)
    assert_allclose(model.noise_scale(X), model.sigma_)


def test_scales_tell_which_columns_matter(noisy):
    X, y = noisy
    X = np.hstack([X, np.random.default_rng(0).normal(size=(80, 1)), np.full((80, 1), 5.0)])
    model = GPOR(metric="ard").fit(X, y)
    assert model.gamma_[3] == 0.0
    assert model.gamma_[:2].min() > 10 * model.gamma_[2]
    assert model.log_evidence_ > GPOR().fit(X, y).log_evidence_


def test_a_given_width_is_kept(noisy):
    X, y = noisy
    free = GPOR().fit(X, y)
    model = GPOR(gamma=0.1).fit(X, y)
    assert model.gamma_ == 0.1
    assert model.log_evidence_ <= free.log_evidence_ + 1e-3
    with pytest.raises(
        ValueError, match="cannot be combined with gamma=0.1: gamma applies to metric='isotropic'"
    ):
        GPOR(gamma=0.1, metric="ard").fit(X, y)


# --- Weights, order and levels -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_order_of_rows_does_not_matter(noisy, kind):
    X, y = noisy
    order = np.random.default_rng(0).permutation(len(y))
    model, other = GPOR(**kind).fit(X, y), GPOR(**kind).fit(X[order], y[order])
    assert_array_equal(model.predict_proba(X), other.predict_proba(X))
    assert model.log_evidence_ == other.log_evidence_


@pytest.mark.parametrize(
    "kind", [{"gamma": 0.2}, {"metric": "ard"}, {"inference": "ep", "gamma": 0.2}], ids=IDS
)
def test_weight_means_repetition(noisy, kind):
    X, y = noisy[0][:30], noisy[1][:30]
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = GPOR(**kind).fit(X, y, sample_weight=times)
    repeated = GPOR(**kind).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    assert weighted.log_evidence_ == repeated.log_evidence_


def test_rows_that_almost_repeat_are_almost_weights(noisy):
    """Without merging: rows a hair apart against one row of the same total weight."""
    X, y = noisy
    apart = np.vstack([X - 1e-6, X + 1e-6])
    twice = GPOR(gamma=0.2).fit(apart, np.tile(y, 2))
    weighted = GPOR(gamma=0.2).fit(X, y, sample_weight=np.full(len(y), 2.0))
    assert_allclose(twice.log_evidence_, weighted.log_evidence_, atol=1e-2)
    assert_allclose(twice.predict_proba(X), weighted.predict_proba(X), atol=1e-2)


# --- Hard problems -----------------------------------------------------------------------------------------


def check(model, X):
    p = model.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1.0)
    assert np.all(p >= 0)
    assert not np.isnan(model.predict_log_proba(X)).any()
    numbers = (model.decision_function(X), model.thresholds_, model.sigma_, model.gamma_, model.log_evidence_)
    for value in (*model.latent(X, return_std=True), *numbers):
        assert np.all(np.isfinite(value))
    assert np.all(np.diff(model.thresholds_) > 0)
    assert set(model.predict(X)) <= set(model.classes_)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=IDS)
@pytest.mark.parametrize(("X", "y"), [pytest.param(X, y, id=name) for name, X, y in named_problems()])
def test_named_problem_of_every_kind(X, y, kind):
    check(GPOR(**kind).fit(X, y), X)


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
@pytest.mark.parametrize("seed", range(10))
def test_random_problem(seed, kind):
    X, y, weight = random_problem(seed)
    check(GPOR(**kind).fit(X, y, weight), X)


@pytest.mark.slow
@pytest.mark.parametrize("fifty", range(6))
def test_three_hundred_random_problems(fifty):
    for seed in range(50 * fifty, 50 * (fifty + 1)):
        X, y, weight = random_problem(seed)
        check(GPOR(**KINDS[seed % 3]).fit(X, y, weight), X)


# --- The search --------------------------------------------------------------------------------------------


def test_limit_on_iterations_warns(noisy):
    X, y = noisy
    with pytest.warns(ConvergenceWarning, match="limit of 2 iterations: raise max_iter"):
        GPOR(max_iter=2).fit(X, y)


def test_restarts_are_reproducible_and_never_worse(noisy):
    X, y = noisy
    plain = GPOR(random_state=1).fit(X, y)
    model, again = (GPOR(n_restarts=2, random_state=1).fit(X, y) for _ in range(2))
    assert model.log_evidence_ >= plain.log_evidence_
    assert_array_equal(model.predict_proba(X), again.predict_proba(X))
