"""The average of models of different basis families."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr

from isbor._core.parallel import Workers
from isbor.data.training import read_training
from isbor.model.cuts import gap_patterns
from isbor.prediction.ensemble import Ensemble
from isbor.prediction.probabilities import class_probabilities
from isbor.search.families.catalogue import FAMILIES, fit_families
from isbor.search.result import SearchResult
from isbor.search.settings import SearchSettings
from tests.oracles import dense

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
    return read_training(X, y, owner="ISBOR", workers=Workers(1))


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


def test_probabilities_of_an_average_are_those_of_its_models(training, results, average):
    X = training.X + 0.1
    model = average.model
    each = [class_probabilities(r.model.latent(X), r.model.thresholds) for r in results]
    latent = model.latent(X)
    assert_allclose(class_probabilities(latent, model.thresholds), np.mean(each, axis=0), atol=1e-10)
    members = [part for result in results for part in result.model.models]
    assert len(latent.parts) == len(members)
    assert_allclose(np.sum(latent.shares), 1.0)
    # Without "mixed", the thresholds that are reported are the same for all rows.
    with Workers(1) as workers:
        constant = SearchResult.average(results[:2], training.rows, workers).model.latent(X)
    assert len(constant.parts) == 2
    assert constant.offsets is None


def test_an_average_has_a_better_log_score_than_its_models_on_average(training, results, average):
    """The logarithm of a mean is above the mean of logarithms."""
    rows = training.rows

    def log_score(result):
        proba = class_probabilities(result.model.latent_of_scaled(rows.X), result.model.thresholds)
        return np.log(proba[np.arange(len(rows)), rows.y]).mean()

    assert log_score(average) > np.mean([log_score(result) for result in results])


# --- Thresholds that vary ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def varying(results):
    """Three copies of a model with shapes of their own; the last one has constant thresholds."""
    member = results[2].model.models[0]
    rng = np.random.default_rng(0)
    models = [
        replace(member, shape_weights=0.5 * rng.normal(size=(n_sums, len(member)))) for n_sums in (2, 2, 1)
    ]
    thresholds = member.mode.thresholds
    moved = replace(member.mode.expansion, thresholds=1.7 * thresholds + 0.3)
    models[1] = replace(models[1], mode=replace(member.mode, expansion=moved))
    return Ensemble.of(results[2].model.preparation, models, 100.0)


def direct(ensemble, X, k):
    """Score, variance, noise scale and thresholds of member k, in its own units."""
    model = ensemble.models[k]
    phi = model.functions(ensemble.preparation(X))
    log_scale, *t = 3.0 * np.tanh(model.shape_weights @ phi.T / 3.0)
    b = model.mode.thresholds
    factors = np.exp(gap_patterns(len(b), len(t)).T @ np.reshape(t, (len(t), len(X))))
    variance = ((phi @ model.whitening.T) ** 2).sum(axis=1)
    return phi @ model.mode.weights, variance, np.exp(log_scale), dense.row_thresholds(b, factors)


def test_a_member_has_the_thresholds_of_its_shape(training, varying):
    for k in range(3):
        alone = Ensemble.of(varying.preparation, [varying.models[k]], 100.0)
        latent = alone.latent(training.X)
        f, variance, noise, thresholds = direct(varying, training.X, k)
        assert_allclose(latent.mean, f, atol=1e-10)
        assert_allclose(latent.noise_variance, noise**2, rtol=1e-10)
        found = np.broadcast_to(latent.thresholds(alone.thresholds), thresholds.shape)
        assert_allclose(found, thresholds, atol=1e-10)
        assert (np.ptp(thresholds, axis=0).max() > 0.1) == (k < 2)
        z = (thresholds - f[:, None]) / np.sqrt(noise**2 + variance)[:, None]
        p = np.diff(ndtr(z), axis=1, prepend=0.0, append=1.0)
        lapse = 1 / 102
        expected = (1 - lapse) * p + lapse / 4
        assert_allclose(class_probabilities(latent, alone.thresholds), expected, atol=1e-12)


def test_an_average_of_varying_thresholds(training, varying):
    X = training.X
    latent = varying.latent(X)
    each, thresholds = [], []
    for k, (scale, shift) in enumerate(zip(varying.scales, varying._shifts(), strict=True)):
        alone = Ensemble.of(varying.preparation, [varying.models[k]], 100.0)
        each.append(class_probabilities(alone.latent(X), alone.thresholds))
        thresholds.append(scale * direct(varying, X, k)[3] + shift)
    assert_allclose(class_probabilities(latent, varying.thresholds), np.mean(each, axis=0), atol=1e-12)
    assert_allclose(latent.thresholds(varying.thresholds), np.mean(thresholds, axis=0), atol=1e-10)
    one = varying.latent(X[:1])  # as many rows as constant thresholds have
    assert_allclose(one.thresholds(varying.thresholds), np.mean(thresholds, axis=0)[:1], atol=1e-10)


def test_thresholds_of_empty_levels_have_the_offsets_of_their_places(training, varying):
    places = np.array([0, 0, 1, 1, 2, 2])
    wider = replace(varying, threshold_places=places)
    for some in (
        wider,
        replace(Ensemble.of(wider.preparation, wider.models[:1], 100.0), threshold_places=places),
    ):
        plain = replace(some, threshold_places=None).latent(training.X)
        assert_allclose(some.latent(training.X).offsets, plain.offsets[:, places], rtol=1e-12)
        assert np.ptp(plain.offsets, axis=0).max() > 0.1


def test_columns_that_a_family_leaves_out():
    """No training row has the mark of unseen categories: "mixed" does not see it, "rbf" does."""
    rng = np.random.default_rng(1)
    number, kind = rng.integers(0, 2, 80), rng.integers(0, 2, 80)
    frame = pd.DataFrame({"kind": np.array(["a", "b"])[kind], "constant": np.full(80, 2.0), "number": number})
    y = np.digitize(number - kind + 0.5 * rng.normal(size=80), [-0.5, 0.5])
    small = read_training(frame, y, owner="ISBOR", workers=Workers(1))
    X = small.X
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
    assert not set(found["ard"].steps) & set(found["rbf"].steps)
    alone = results[1]  # it fits a rough model to start from
    assert_allclose(found["ard"].model.log_evidence, alone.model.log_evidence, atol=5.0)
