"""The temperature: found where labels are surer than the model, and 1 where they are not."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from isbor import ISBOR
from isbor.model.latent import Latent
from isbor.prediction.probabilities import class_probabilities, log_label_probabilities
from isbor.search.temperature import choose_temperature
from isbor.search.validation import Validation

THRESHOLDS = np.array([-1.0, 0.0, 1.5])


def held_out(rng, n, temperature):
    """Return a model that is right but for its standard deviations, on rows with labels drawn at random."""
    latent = Latent(rng.normal(0.0, 2.0, n), rng.uniform(0.0, 1.0, n), rng.uniform(0.5, 2.0, n))
    response = rng.normal(latent.mean, temperature * latent.response_scale)
    y = np.searchsorted(THRESHOLDS, response)
    return Validation(latent, THRESHOLDS, y, np.ones(n), 1, log_label_probabilities(latent, THRESHOLDS, y))


@pytest.mark.parametrize("true", [0.5, 2**-0.5, 2**0.25])
def test_the_temperature_of_simulated_labels_is_found(true):
    rng = np.random.default_rng(0)
    chosen = choose_temperature([held_out(rng, 2000, true) for _ in range(3)])
    assert_allclose(chosen.value, true)


def test_a_calibrated_model_is_left_alone_about_as_often_as_two_standard_errors_promise():
    rng = np.random.default_rng(1)
    values = [choose_temperature([held_out(rng, 100, 1.0)]).value for _ in range(200)]
    assert np.mean(np.array(values) == 1.0) > 0.9


def test_a_temperature_multiplies_the_standard_deviation_of_the_response():
    rng = np.random.default_rng(2)
    latent = held_out(rng, 50, 1.0).latent
    z = (THRESHOLDS - latent.mean[:, None]) / (0.6 * latent.response_scale[:, None])
    below = np.cumsum(class_probabilities(latent.tempered(0.6), THRESHOLDS), axis=1)[:, :-1]
    assert_allclose(below, norm.cdf(z), atol=1e-12)


def test_models_of_an_average_are_tempered_and_stay_apart():
    rng = np.random.default_rng(3)
    parts = held_out(rng, 50, 1.0).latent, held_out(rng, 50, 1.0).latent
    shares = (0.3, 0.7)

    def average(parts):
        mean = np.average([part.mean for part in parts], axis=0, weights=shares)
        spread = [part.variance + (part.mean - mean) ** 2 for part in parts]
        noise = np.average([part.noise_variance for part in parts], axis=0, weights=shares)
        return Latent(mean, np.average(spread, axis=0, weights=shares), noise, parts=parts, shares=shares)

    tempered, expected = average(parts).tempered(1.3), average(tuple(part.tempered(1.3) for part in parts))
    assert_allclose(tempered.variance, expected.variance)
    assert_allclose(tempered.noise_variance, expected.noise_variance)
    assert_allclose(
        class_probabilities(tempered, THRESHOLDS), class_probabilities(expected, THRESHOLDS), atol=1e-14
    )


def test_a_table_without_noise_is_predicted_more_surely():
    """Balances tip to the side of the larger product: no noise, and many rows near both thresholds."""
    rng = np.random.default_rng(0)
    X = rng.integers(1, 6, size=(400, 4))
    y = np.sign(X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3])
    model = ISBOR().fit(X, y)
    temperature = model.selection_.temperature
    assert temperature.value < 1.0
    assert f"surer (temperature {temperature.value:.2f})" in str(model.selection_)
    other = rng.integers(1, 6, size=(400, 4))
    truth = np.sign(other[:, 0] * other[:, 1] - other[:, 2] * other[:, 3])
    row, tempered = np.arange(400), model.predict_proba(other)
    noise, spread = model.noise_scale(other), model.latent(other, return_std=True)[1]
    model._model = replace(model._model, temperature=1.0)
    plain = model.predict_proba(other)
    assert np.log(tempered[row, truth + 1]).mean() > np.log(plain[row, truth + 1]).mean()
    assert_allclose(noise, temperature.value * model.noise_scale(other))
    assert np.all(spread < model.latent(other, return_std=True)[1])
    if "mixed" not in model.basis_:
        assert_allclose(noise, model.sigma_)


def test_what_is_set_has_no_temperature():
    X = np.random.default_rng(0).normal(size=(60, 2))
    selection = ISBOR(basis="rbf").fit(X, X[:, 0] > 0).selection_
    assert selection.temperature.value == 1.0
    assert str(selection.temperature).startswith("Predictions are as sure as the model is")
