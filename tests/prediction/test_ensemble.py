"""The average of models of different basis families."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isbor._core.parallel import Workers
from isbor.data.training import read_training
from isbor.prediction.ensemble import Ensemble
from isbor.prediction.probabilities import class_probabilities
from isbor.search.families.catalogue import FAMILIES, fit_families
from isbor.search.result import SearchResult
from isbor.search.settings import SearchSettings

SETTINGS = SearchSettings(
    gamma=None,
    size_prior=2.0,
    solver="gram",
    n_candidates=200,
    tol=0.01,
    patience=0,
    max_iter=1000,
    max_vectors=np.inf,
    n_members=2,
    seed=0,
)


@pytest.fixture(scope="module")
def training():
    """Four columns: the second is constant, the third has two values, the first and last are warped."""
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.normal(size=150), np.full(150, 3.0), rng.integers(0, 2, 150), np.exp(rng.normal(size=150))]
    )
    f = np.sin(2 * X[:, 0]) + X[:, 2] + 0.5 * np.log(X[:, 3])
    y = np.digitize(f + 0.4 * rng.normal(size=150), [-0.5, 0.5, 1.2])
    return read_training(X, y, owner="ISBOR")


@pytest.fixture(scope="module")
def results(training):
    with Workers(1) as workers:
        return [fit(training, SETTINGS, "fit", workers, None) for fit in FAMILIES.values()]


@pytest.fixture(scope="module")
def average(training, results):
    with Workers(1) as workers:
        return SearchResult.average(results, training.rows, workers)


def test_moments_of_the_average(training, results, average):
    """In units of score plus noise, counted from the mean of the thresholds; disagreement is variance."""
    X = training.X + 0.1
    models = [result.model for result in results]
    units = [np.sqrt(1.0 + model.latent_of_scaled(training.rows.X).mean.var()) for model in models]
    thresholds = [model.thresholds / unit for model, unit in zip(models, units, strict=True)]
    parts = [model.latent(X) for model in models]
    means = np.stack([p.mean / unit - b.mean() for p, unit, b in zip(parts, units, thresholds, strict=True)])
    variances = [p.variance / unit**2 for p, unit in zip(parts, units, strict=True)]
    noises = [p.noise_variance / unit**2 for p, unit in zip(parts, units, strict=True)]
    model = average.model
    latent = model.latent(X)
    unit = 1.0 / np.sqrt(np.mean(np.power(units, -2.0)))  # of the average, where its mean noise is 1
    assert_allclose(model.thresholds / unit, np.mean(thresholds, axis=0))
    assert_allclose((latent.mean - model.thresholds.mean()) / unit, means.mean(axis=0), atol=1e-10)
    assert_allclose(latent.variance / unit**2, np.mean(variances, axis=0) + means.var(axis=0))
    assert_allclose(latent.noise_variance / unit**2, np.mean(noises, axis=0))
    assert model.n_functions == sum(part.n_functions for part in models)


def test_the_average_is_one_sum_of_functions(training, average):
    model = average.model
    functions = replace(model.functions, offset=np.zeros(model.n_functions))
    prepared = model.preparation.widen(training.rows.X)
    assert_allclose(
        functions(prepared) @ model.coef + model.intercept,
        model.latent_of_scaled(training.rows.X).mean,
        atol=1e-10,
    )


def test_moments_over_the_rows_are_weighted(training, results, average):
    """Of one model they are those of its fit, of an average those of its scores."""
    rows = replace(training.rows, weight=np.random.default_rng(2).uniform(0.5, 2.0, len(training.rows)))
    for model, its_rows in ((results[0].model, training.rows), (average.model, rows)):
        score = model.latent_of_scaled(its_rows.X).mean
        mean = np.average(score, weights=its_rows.weight)
        variance = np.average((score - mean) ** 2, weights=its_rows.weight)
        with Workers(1) as workers:
            assert_allclose(model.latent_moments(its_rows, workers), (mean, variance), atol=1e-10)


def test_weights_are_as_probable_in_the_average_as_in_their_models(results, average):
    """A share and a scale multiply a weight and its prior standard deviation alike."""
    modes = [part.mode for result in results for part in result.model.models]
    expected = np.concatenate([mode.alpha * mode.weights**2 for mode in modes])
    assert_allclose(average.model.alpha * average.model.coef**2, expected, rtol=1e-9)
    evidences = [np.mean([part.log_evidence for part in result.model.models]) for result in results]
    assert_allclose(average.model.log_evidence, np.mean(evidences))


def test_the_unit_of_a_score_does_not_matter(training, results):
    """Twice the score with twice the thresholds and the noise is the same model."""
    plain = results[2].model
    doubled = replace(plain, scales=tuple(2.0 * scale for scale in plain.scales))
    assert_allclose(doubled.thresholds, 2.0 * plain.thresholds)
    assert_allclose(
        class_probabilities(doubled.latent(training.X), doubled.thresholds),
        class_probabilities(plain.latent(training.X), plain.thresholds),
        rtol=1e-9,
    )


@pytest.mark.parametrize("n_thresholds", [1, 3])
def test_members_are_averaged_on_a_common_scale(results, n_thresholds):
    """A member with twice the score, thresholds and noise of another counts as much in the average."""
    member = results[2].model.models[0]
    here = member.mode.expansion
    here = replace(here, thresholds=here.thresholds[:n_thresholds])
    louder = replace(here, thresholds=2.0 * here.thresholds, latent_variance=4.0 * here.latent_variance + 3.0)
    models = [replace(member, mode=replace(member.mode, expansion=some)) for some in (here, louder)]
    ensemble = Ensemble.of(results[2].model.preparation, models, 100.0)
    assert_allclose(ensemble.scales[0], 2.0 * ensemble.scales[1])
    assert_allclose(np.mean(np.square(ensemble.scales)), 1.0)
    assert_allclose(ensemble.thresholds, ensemble.scales[0] * here.thresholds)


def test_an_average_is_less_sure_than_the_mean_of_its_models(training, results, average):
    """Its log score is no worse than theirs on average: probabilities of a mean score and a larger spread."""
    rows = training.rows

    def log_score(result):
        proba = class_probabilities(result.model.latent_of_scaled(rows.X), result.model.thresholds)
        return np.log(proba[np.arange(len(rows)), rows.y]).mean()

    assert log_score(average) > np.mean([log_score(result) for result in results])


def test_columns_that_a_family_leaves_out():
    """Two columns of two values and a constant one: "mixed" sees fewer columns than the others."""
    rng = np.random.default_rng(1)
    X = np.column_stack([np.full(80, 2.0), rng.integers(0, 2, 80), rng.integers(0, 2, 80)])
    y = np.digitize(X[:, 1] - X[:, 2] + 0.5 * rng.normal(size=80), [-0.5, 0.5])
    small = read_training(X, y, owner="ISBOR")
    with Workers(1) as workers:
        parts = [FAMILIES[name](small, SETTINGS, "fit", workers, None).model for name in ("rbf", "mixed")]
        model = Ensemble.of_families(parts, small.rows, workers)
    assert len(parts[1].preparation.source) < len(parts[0].preparation.source)
    # The first member is the "rbf" model, shifted and in another unit.
    mean = model.models[0].latent(model.preparation(X)).mean
    alone = parts[0].latent(X).mean
    assert alone.std() > 0.1
    assert_allclose(np.corrcoef(mean, alone)[0, 1], 1.0)


def test_runs_are_numbered_through(results, average):
    runs = [{step.run for step in result.steps} for result in results]
    assert len({step.run for step in average.steps}) == sum(map(len, runs))
    assert len(average.steps) == sum(len(result.steps) for result in results)


def test_families_share_the_first_fit(training, results):
    """ "ard" begins where "rbf" ended; its trace does not repeat what "rbf" did."""
    with Workers(1) as workers:
        found = fit_families(("rbf", "ard"), training, SETTINGS, "fit", workers, None)
    assert found["ard"].width_trials == found["rbf"].width_trials
    alone = results[1]  # it fits a rough model to start from
    assert found["ard"].n_passes < alone.n_passes
    assert_allclose(found["ard"].model.log_evidence, alone.model.log_evidence, atol=5.0)
