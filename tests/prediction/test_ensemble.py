"""The average of models of different kinds."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isbor._core.parallel import Workers
from isbor.data.rows import canonical_rows
from isbor.prediction.probabilities import class_probabilities
from isbor.search.families import KINDS, Plan, Table, fit_kind, fit_kinds
from isbor.search.result import Fit

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


@pytest.fixture(scope="module")
def average(table, fits):
    with Workers(1) as workers:
        return Fit.average(fits, table.rows, workers)


def test_moments_of_the_average(table, fits, average):
    """In units of score plus noise, counted from the mean of the thresholds; disagreement is variance."""
    X = table.scaling.inverse(table.rows.X) + 0.1
    latents = [fit.latent(150.0) for fit in fits]
    trained = [latent.prepared_score(latent.prepare.widen(table.rows.X)).mean for latent in latents]
    units = [np.sqrt(1.0 + f.var()) for f in trained]
    cuts = [latent.thresholds / unit for latent, unit in zip(latents, units, strict=True)]
    scores = [latent.score(X) for latent in latents]
    means = np.stack([s.mean / unit - cut.mean() for s, unit, cut in zip(scores, units, cuts, strict=True)])
    variances = [s.variance / unit**2 for s, unit in zip(scores, units, strict=True)]
    noises = [s.noise / unit**2 for s, unit in zip(scores, units, strict=True)]
    latent = average.latent(150.0)
    score = latent.score(X)
    unit = 1.0 / np.sqrt(np.mean(np.power(units, -2.0)))  # of the average, where its mean noise is 1
    assert_allclose(latent.thresholds / unit, np.mean(cuts, axis=0))
    assert_allclose((score.mean - latent.thresholds.mean()) / unit, means.mean(axis=0), atol=1e-10)
    assert_allclose(score.variance / unit**2, np.mean(variances, axis=0) + means.var(axis=0))
    assert_allclose(score.noise / unit**2, np.mean(noises, axis=0))
    assert average.n_functions == sum(fit.n_functions for fit in fits)


def test_the_unit_of_a_score_does_not_matter(table, fits):
    """Twice the score with twice the thresholds and the noise is the same model."""
    X = table.scaling.inverse(table.rows.X)
    plain, doubled = (
        fit.latent(150.0) for fit in (fits[2], replace(fits[2], scales=(2.0,) * len(fits[2].models)))
    )
    assert_allclose(doubled.thresholds, 2.0 * plain.thresholds)
    assert_allclose(
        class_probabilities(doubled.score(X), doubled.thresholds),
        class_probabilities(plain.score(X), plain.thresholds),
        rtol=1e-9,
    )


def test_an_average_is_less_sure_than_the_mean_of_its_models(table, fits, average):
    """Its log score is no worse than theirs on average: probabilities of a mean score and a larger spread."""
    rows = table.rows
    X = table.scaling.inverse(rows.X)
    row = np.arange(len(rows))

    def log_score(fit):
        latent = fit.latent(150.0)
        return np.log(class_probabilities(latent.score(X), latent.thresholds)[row, rows.y]).mean()

    assert log_score(average) > np.mean([log_score(fit) for fit in fits])


def test_columns_that_a_kind_leaves_out():
    """Two columns of two values and a constant one: "mixed" sees fewer columns than the others."""
    rng = np.random.default_rng(1)
    X = np.column_stack([np.full(80, 2.0), rng.integers(0, 2, 80), rng.integers(0, 2, 80)])
    y = np.digitize(X[:, 1] - X[:, 2] + 0.5 * rng.normal(size=80), [-0.5, 0.5])
    rows, scaling = canonical_rows(X, y, np.ones(80))
    small = Table(rows, scaling, np.arange(3), np.zeros(3, dtype=np.bool_))
    with Workers(1) as workers:
        parts = [fit_kind(kind, small, PLAN, "fit", workers, None) for kind in ("rbf", "mixed")]
        latent = Fit.average(parts, rows, workers).latent(80.0)
    assert len(parts[1].preparation.source) < len(parts[0].preparation.source)
    # The first member is the "rbf" model, shifted and in another unit.
    mean = latent.members[0].score(latent.prepare(X)).mean
    alone = parts[0].latent(80.0).score(X).mean
    assert alone.std() > 0.1
    assert_allclose(np.corrcoef(mean, alone)[0, 1], 1.0)


def test_runs_are_numbered_through(fits, average):
    runs = [{step.run for step in fit.steps} for fit in fits]
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
