"""Gaussian processes whose labels share scores, of two scales, and as sums of functions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor._core.parallel import Workers
from isbor.data.rows import TrainingRows
from isbor.gp.dense import dense_model
from isbor.gp.ep import expectation_propagation
from isbor.gp.pooled import Factors, PooledRows, pooled_evidence, score_moments
from isbor.gp.process import Covariance
from isbor.gp.two_scales import Pairs, TwoScales, fit_two_scales
from isbor.model.latent import Latent
from isbor.model.likelihood import edges, ordinal_probit
from isbor.prediction.probabilities import class_probabilities
from tests.oracles import dense
from tests.problems import small_rows

THRESHOLDS = np.array([-0.6, 0.3, 1.1])


def training_rows(X, y, weight=None):
    n = len(y)
    weight = np.ones(n) if weight is None else np.asarray(weight, float)
    return TrainingRows(np.asarray(X, float), np.asarray(y), weight, np.arange(n))


def exact(gram, rows, thresholds):
    """Iterate to the end."""
    start = Factors.weak(len(rows.y))
    return pooled_evidence(gram, rows, thresholds, start, tol=1e-10, max_rounds=2000)


def repeated_rows(seed=0, n=14, copies=40):
    """Return rows of which some are equal, with labels that differ."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))[rng.integers(0, n, copies)]
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=copies), THRESHOLDS)
    y[:4] = np.arange(4)
    return X, y


def test_equal_rows_are_pooled_in_the_order_of_their_first_labels():
    X = np.array([[2.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.0, 5.0], [1.0, 0.0]])
    rows = PooledRows.of(training_rows(X, [0, 1, 2, 1, 0]))
    assert_array_equal(rows.X, X[[0, 1, 3]])
    assert_array_equal(rows.first, [0, 1, 3])
    assert_array_equal(rows.row, [0, 1, 0, 2, 1])
    some = rows.head(2)
    assert_array_equal(some.X[some.row], X[[0, 1, 2, 4]])
    assert_array_equal(some.y, [0, 1, 2, 0])  # all labels of these rows, not the first ones only


@pytest.mark.parametrize("amplitude", [0.5, 3.0, 20.0])
def test_distinct_rows_of_weight_one_have_the_usual_propagation(amplitude):
    rows = small_rows(n=40)
    rows = training_rows(rows.X, rows.y)
    gram = Covariance(amplitude, np.array([1.0, 4.0])).gram(rows.X)
    thresholds = np.linspace(-1.0, 1.0, rows.n_levels - 1)
    usual = expectation_propagation(gram, rows, thresholds)
    pooled = exact(gram, PooledRows.of(rows), thresholds)
    assert_allclose(pooled.log_evidence, usual.log_evidence, rtol=1e-7)
    assert_allclose(pooled.posterior.coef, usual.posterior.coef, rtol=1e-4, atol=1e-5)
    assert_allclose(pooled.by_thresholds, usual.by_thresholds, rtol=1e-4, atol=1e-4)
    assert_allclose(np.tril(pooled.by_gram), np.tril(usual.by_gram), rtol=1e-4, atol=1e-4)


def test_a_weight_is_a_number_of_repetitions():
    X, y = repeated_rows()
    times = np.random.default_rng(1).integers(1, 4, len(y))
    many = PooledRows.of(training_rows(np.repeat(X, times, axis=0), np.repeat(y, times)))
    few = PooledRows.of(training_rows(X, y, times))
    gram = Covariance(2.0, np.array([1.0, 0.5])).gram(few.X)
    assert_array_equal(many.X, few.X)
    a, b = (exact(gram, rows, THRESHOLDS) for rows in (many, few))
    assert_allclose(a.log_evidence, b.log_evidence, rtol=1e-9)
    assert_allclose(a.posterior.coef, b.posterior.coef, rtol=1e-6, atol=1e-8)


def test_one_label_is_exact():
    rows = PooledRows.of(training_rows([[0.0]], [1]))
    found = exact(np.array([[4.0]]), rows, THRESHOLDS)
    edge = edges(THRESHOLDS)
    likelihood = ordinal_probit(np.zeros(1), edge[1:2], edge[2:3], scale=np.sqrt(5.0))
    assert_allclose(found.log_evidence, likelihood.log_p[0])
    mean, _ = score_moments(np.array([[4.0]]), 4.0, found.posterior)
    assert_allclose(mean, 4.0 * likelihood.slope)


def test_labels_of_one_row_are_nearly_exact():
    """The integral over one score, by quadrature."""
    y = np.array([1, 1, 2, 1, 3])
    rows = PooledRows.of(training_rows(np.zeros((5, 1)), y))
    found = exact(np.array([[9.0]]), rows, THRESHOLDS)
    f = np.linspace(-20.0, 20.0, 20_001)
    edge = edges(THRESHOLDS)
    log_p = sum(ordinal_probit(f, np.full(len(f), edge[k]), np.full(len(f), edge[k + 1])).log_p for k in y)
    density = np.exp(log_p - f**2 / 18.0) / np.sqrt(18.0 * np.pi)
    total = np.trapezoid(density, f) if hasattr(np, "trapezoid") else np.trapz(density, f)
    assert_allclose(found.log_evidence, np.log(total), atol=0.01)


@pytest.mark.parametrize("weight", [1.0, 0.3], ids=["whole", "fractions"])
def test_weights_of_any_size_converge(weight):
    X, y = repeated_rows()
    rows = PooledRows.of(training_rows(X, y, np.full(len(y), weight)))
    found = exact(Covariance(10.0, np.array([1.0, 0.5])).gram(rows.X), rows, THRESHOLDS)
    assert np.isfinite(found.log_evidence)
    assert (found.posterior.precision > 0).all()


@pytest.mark.parametrize("faint", [1e-6, 1e-12, 1e-17, 1e-30])
def test_a_row_of_hardly_any_weight_changes_nothing(faint):
    """Its own labels say so little that their share of its precision is lost to rounding."""
    rng = np.random.default_rng(0)
    X, y, thresholds = rng.normal(size=(30, 2)), rng.integers(0, 3, 30), np.array([-0.5, 0.5])
    gram = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2))
    weight = np.where(np.arange(30) == 4, faint, 1.0)
    rows = PooledRows.of(training_rows(X, y, weight))
    found = pooled_evidence(gram, rows, thresholds, Factors.weak(30), tol=1e-8)
    kept = np.arange(30) != 4
    others = PooledRows.of(training_rows(X[kept], y[kept]))
    expected = pooled_evidence(gram[np.ix_(kept, kept)], others, thresholds, Factors.weak(29), tol=1e-8)
    assert_allclose(found.log_evidence, expected.log_evidence, atol=10 * faint + 1e-9)
    assert_allclose(found.factors.precision[kept], expected.factors.precision, rtol=1e-5)
    assert np.isfinite(found.factors.precision[4])


def parameters_of(X, y, seed=3):
    rng = np.random.default_rng(seed)
    point = np.concatenate([[0.4, -0.7, 1.0, -1.2], rng.normal(size=2), [-0.8], np.log([0.7, 0.9])])
    return TwoScales(point, np.arange(2))


def test_parameters_are_read_from_their_coordinates():
    X, y = repeated_rows()
    at = parameters_of(X, y)
    assert_allclose(at.response**2, 1.0 + at.smooth.amplitude**2 + at.local.amplitude**2)
    assert_allclose(at.thresholds / at.response, [-0.8, -0.1, 0.8])
    assert_allclose(at.smooth.scales, np.exp(at.point[3] + at.point[4:6]))
    assert_allclose(at.local.amplitude / at.smooth.amplitude, np.exp(-0.7))
    assert_allclose(at.gram(X), at.covariances(X, X), atol=1e-9)


def test_gradient_of_evidence_and_prior():
    X, y = repeated_rows()
    rows = PooledRows.of(training_rows(X, y, np.random.default_rng(2).integers(1, 3, len(y))))
    at = parameters_of(X, y)

    def height(point):
        there = TwoScales(point, at.group)
        return exact(there.gram(rows.X), rows, there.thresholds).log_evidence + there.log_prior

    evidence = exact(at.gram(rows.X), rows, at.thresholds)
    pairs = Pairs.of(rows.X)
    assert_allclose(
        at.gradient(pairs, at.parts(pairs), evidence), dense.gradient(height, at.point), rtol=1e-4, atol=1e-4
    )


def noisy_steps(n, d, seed, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.digitize(np.sin(2.0 * X[:, 0]) + noise * rng.normal(size=n), [-0.5, 0.5])


def fitted(X, y, **options):
    rows = PooledRows.of(training_rows(X, y))
    with Workers(1):  # one thread for linear algebra, as in a fit
        return rows, fit_two_scales(rows, np.arange(X.shape[1]), X.shape[1], **options)


def test_the_search_finds_the_relevant_column():
    X, y = noisy_steps(150, 6, seed=0)
    _, fit = fitted(X, y)
    scales = fit.parameters.smooth.scales
    assert scales[0] > 5.0 * scales[1:].max()


def test_a_start_leads_to_the_same_place():
    X, y = noisy_steps(150, 3, seed=1)
    _, first = fitted(X, y)
    _, again = fitted(X, y, start=first.parameters)
    assert again.n_climbs < first.n_climbs
    assert abs(again.evidence.log_evidence - first.evidence.log_evidence) < 2.0


def test_no_time_is_enough_for_a_model():
    X, y = noisy_steps(80, 2, seed=2)
    rows, fit = fitted(X, y, is_late=lambda: True)
    assert fit.n_climbs == 0
    model = dense_model(rows, fit)
    probabilities = class_probabilities(model.latent(X), model.mode.thresholds)
    assert np.log(probabilities[np.arange(80), y]).mean() > -np.log(3.0)


def test_more_rows_than_the_search_uses():
    X, y = noisy_steps(700, 2, seed=3)
    reports = []
    rows, fit = fitted(X, y, report=lambda log_evidence, n: reports.append(n))
    assert reports == sorted(reports) and reports[-1] < 700
    assert len(fit.evidence.posterior.coef) == 700
    _, rough = fitted(X, y, roughly=True)
    assert rough.n_climbs == fit.n_climbs - 1


def test_equal_rows_with_equal_labels_are_remembered():
    """Labels without any pattern, but the same for equal rows."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(60, 3)), 2, axis=0)
    y = np.repeat(rng.integers(0, 3, 60), 2)
    rows, fit = fitted(X, y)
    model = dense_model(rows, fit)
    known = class_probabilities(model.latent(X), model.mode.thresholds)
    assert known[np.arange(120), y].mean() > 0.7
    new = class_probabilities(model.latent(rng.normal(size=(200, 3))), model.mode.thresholds)
    assert new.max(axis=1).mean() < 0.6


def test_the_process_is_a_sum_of_functions():
    X, y = noisy_steps(60, 3, seed=4)
    rows, fit = fitted(X, y)
    model = dense_model(rows, fit)
    Z = np.random.default_rng(5).normal(size=(20, 3))
    latent = model.latent(Z)
    assert isinstance(latent, Latent)
    mean, variance = score_moments(
        fit.parameters.covariances(Z, rows.X), fit.parameters.variance, fit.evidence.posterior
    )
    assert_allclose(latent.mean, mean, rtol=1e-7, atol=1e-9)
    assert_allclose(latent.variance, variance, rtol=1e-6, atol=1e-9)
    assert_allclose(latent.mean, model.functions(Z) @ model.mode.weights, rtol=1e-7, atol=1e-7)
    score = model.latent(X).mean
    assert_allclose(model.mode.expansion.latent_mean, score.mean(), atol=1e-7)
    assert_allclose(model.mode.expansion.latent_variance, score.var(), rtol=1e-6)
