"""The average of models of different kinds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isbor.blocks import Workers
from isbor.fits import Fit
from isbor.inputs import canonical_rows
from isbor.kinds import KINDS, Plan, Table, fit_kind, fit_kinds
from isbor.predictive import class_probabilities
from isbor.relevance import feature_relevance

PLAN = Plan(
    gamma=None,
    size_prior=2.0,
    solver="gram",
    n_candidates=200,
    tolerance=0.01,
    patience=0,
    max_passes=1000,
    max_vectors=None,
    n_members=2,
    seed=0,
)
FEATURE = np.arange(4)


@pytest.fixture(scope="module")
def table():
    """Four columns: the second is constant, the third has two values, the first and last are warped."""
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.normal(size=150), np.full(150, 3.0), rng.integers(0, 2, 150), np.exp(rng.normal(size=150))]
    )
    f = np.sin(2 * X[:, 0]) + X[:, 2] + 0.5 * np.log(X[:, 3])
    y = np.digitize(f + 0.4 * rng.normal(size=150), [-0.5, 0.5, 1.2])
    rows, scaling = canonical_rows(X, y, np.ones(150))
    return Table(rows, scaling, FEATURE, np.zeros(4, dtype=np.bool_))


@pytest.fixture(scope="module")
def fits(table):
    with Workers(1) as workers:
        return [fit_kind(kind, table, PLAN, "fit", workers, None) for kind in KINDS]


def test_moments_of_the_average(table, fits):
    """Scores are counted from the mean of the thresholds; what models disagree about is variance."""
    X = table.scaling.inverse(table.rows.X) + 0.1
    latents = [fit.latent(150.0) for fit in fits]
    average = Fit.average(fits).latent(150.0)
    scores = [latent.score(X) for latent in latents]
    means = np.stack([s.mean - latent.thresholds.mean() for s, latent in zip(scores, latents, strict=True)])
    score = average.score(X)
    assert_allclose(average.thresholds, np.mean([latent.thresholds for latent in latents], axis=0))
    assert_allclose(score.mean - average.thresholds.mean(), means.mean(axis=0), atol=1e-10)
    assert_allclose(score.variance, np.mean([s.variance for s in scores], axis=0) + means.var(axis=0))
    assert_allclose(score.noise, np.mean([s.noise for s in scores], axis=0))
    assert average.n_functions == sum(fit.n_functions for fit in fits)


def test_slopes_of_the_average(table, fits):
    """Finite differences of the average along a column and its warp together, each in units of its spread."""
    average = Fit.average(fits).latent(150.0)
    prepared = average.prepare.widen(table.rows.X)
    step = 1e-5 * prepared.std(axis=0)
    slopes = []
    for j in range(4):
        along = np.where(average.prepare.source == j, step, 0.0)
        ahead, behind = (average.prepared_score(prepared + s).mean for s in (along, -along))
        slopes.append(np.mean((ahead - behind) ** 2))
    assert slopes[1] == 0.0
    relevance = feature_relevance(average, table.rows, FEATURE, 4)
    assert_allclose(relevance, slopes / np.sum(slopes), atol=1e-6)


def test_an_average_is_less_sure_than_the_mean_of_its_models(table, fits):
    """Its log score is no worse than theirs on average: probabilities of a mean score and a larger spread."""
    rows = table.rows
    X = table.scaling.inverse(rows.X)
    row = np.arange(len(rows))

    def log_score(fit):
        latent = fit.latent(150.0)
        return np.log(class_probabilities(latent.score(X), latent.thresholds)[row, rows.y]).mean()

    assert log_score(Fit.average(fits)) > np.mean([log_score(fit) for fit in fits])


def test_runs_are_numbered_through(table, fits):
    runs = [{step.run for step in fit.steps} for fit in fits]
    average = Fit.average(fits)
    assert len({step.run for step in average.steps}) == sum(map(len, runs))
    assert len(average.steps) == sum(len(fit.steps) for fit in fits)


def test_kinds_share_the_first_fit(table, fits):
    """ "ard" begins where "rbf" ended; its trace does not repeat what "rbf" did."""
    with Workers(1) as workers:
        fit = fit_kinds(("rbf", "ard"), table, PLAN, workers, None)
    assert fit.kinds == ("rbf", "ard")
    assert fit.n_passes == fits[1].n_passes
    assert [step.kind for step in fit.steps] == [step.kind for step in fits[1].steps]
    assert_allclose(fit.models[1].mode.weights, fits[1].models[0].mode.weights)
