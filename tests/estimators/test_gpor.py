"""What GPOR promises beyond what all estimators do (see test_contract)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor import GPOR
from isbor.datasets import make_saddle, saddle_labels
from isbor.metrics import log_loss, mean_absolute_error
from tests.problems import noisy_rows


@pytest.fixture(scope="module")
def rows():
    return noisy_rows(80, seed=3)


# --- What it learns ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_it_learns_the_saddle(inference):
    X, y, score = make_saddle(2150, random_state=0, return_score=True)
    model = GPOR(inference=inference).fit(X[:150], y[:150])
    best = mean_absolute_error(y[150:], saddle_labels(score[150:]))
    assert mean_absolute_error(y[150:], model.predict(X[150:])) < best + 0.08
    assert log_loss(y[150:], model.predict_proba(X[150:]), labels=model.classes_) < 0.25
    assert model.sigma_ < 0.1


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_far_from_all_rows_the_score_is_its_prior(rows, inference):
    """In units in which the score has prior variance one."""
    X, y = rows
    model = GPOR(inference=inference).fit(X, y)
    far = model._model.latent(np.full((1, 2), 1e9))
    assert_allclose([far.mean[0], far.variance[0] / model._unit**2], [0.0, 1.0], atol=1e-12)
    # The process beside it has about the same prior, and its thresholds are uncertain.
    (_, near), (_, std) = (model.latent(some, return_std=True) for some in (X, np.full((1, 2), 1e9)))
    assert 0.5 < std[0] < 3.0
    assert std[0] > 2.0 * np.median(near)
    assert_allclose(model.noise_scale(X), model.sigma_)


def test_scales_tell_which_columns_matter(rows):
    X, y = rows
    X = np.hstack([X, np.random.default_rng(0).normal(size=(80, 1)), np.full((80, 1), 5.0)])
    model = GPOR(metric="ard").fit(X, y)
    assert model.gamma_[3] == 0.0
    assert model.gamma_[:2].min() > 10 * model.gamma_[2]
    assert model.log_evidence_ > GPOR().fit(X, y).log_evidence_


def test_a_given_width_is_kept(rows):
    X, y = rows
    free = GPOR().fit(X, y)
    model = GPOR(gamma=0.1).fit(X, y)
    assert model.gamma_ == 0.1
    assert model.log_evidence_ <= free.log_evidence_ + 1e-3


def test_rows_that_almost_repeat_are_almost_weights(rows):
    """Without merging: rows a hair apart against one row of the same total weight."""
    X, y = rows
    apart = np.vstack([X - 1e-6, X + 1e-6])
    twice = GPOR(gamma=0.2).fit(apart, np.tile(y, 2))
    weighted = GPOR(gamma=0.2).fit(X, y, sample_weight=np.full(len(y), 2.0))
    assert_allclose(twice.log_evidence_, weighted.log_evidence_, atol=1e-2)
    assert_allclose(twice.predict_proba(X), weighted.predict_proba(X), atol=1e-2)


def test_restarts_are_reproducible_and_never_worse(rows):
    X, y = rows
    plain = GPOR(random_state=1).fit(X, y)
    model, again = (GPOR(n_restarts=2, random_state=1).fit(X, y) for _ in range(2))
    assert model.log_evidence_ >= plain.log_evidence_
    assert_array_equal(model.predict_proba(X), again.predict_proba(X))
