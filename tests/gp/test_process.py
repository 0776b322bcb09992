"""Gaussian processes: Laplace's approximation, gradients of both evidences, the search for parameters."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

from isbor.data.rows import Scaling, TrainingRows
from isbor.gp.ep import expectation_propagation
from isbor.gp.hyperparameters import ProcessSettings, _Coordinates, fit_process
from isbor.gp.laplace import laplace
from isbor.gp.process import Covariance, Process
from isbor.inference.mode import find_mode, log_evidence
from isbor.model.likelihood import edges, ordinal_probit
from tests.oracles import dense
from tests.problems import expanded, small_rows

THRESHOLDS = np.array([-0.6, 0.3, 1.1])
INFERENCES = pytest.mark.parametrize("infer", [laplace, expectation_propagation], ids=["laplace", "ep"])


def rows_of(X, y, weight=None):
    n = len(y)
    return TrainingRows(
        np.asarray(X, float), np.asarray(y), np.ones(n) if weight is None else weight, np.arange(n)
    )


def test_covariance_is_its_formula():
    rng = np.random.default_rng(0)
    X, Z, theta = rng.normal(size=(5, 3)), rng.normal(size=(4, 3)), np.array([0.5, 2.0, 0.0])
    squares = ((X[:, None] - Z) ** 2) @ theta
    assert_allclose(Covariance(1.5, theta)(X, Z), 2.25 * np.exp(-squares))


def test_gram_is_symmetric_and_equal_rows_have_equal_scores():
    X = 1e4 + np.repeat(np.random.default_rng(0).normal(size=(4, 2)), 2, axis=0)
    gram = Covariance(3.0, np.array([0.7, 0.1])).gram(X)
    assert np.array_equal(gram, gram.T)
    assert np.all(np.diag(gram) == 9.0)
    assert_allclose(np.diag(gram, 1)[::2], 9.0, rtol=1e-6)


def test_covariance_gradient():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 3))
    by_gram = rng.normal(size=(6, 6))
    by_gram += by_gram.T

    def value(p):
        return (by_gram * Covariance(np.exp(p[0]), np.exp(p[1:])).gram(X)).sum()

    p = np.array([0.3, -1.0, 0.2, -0.4])
    covariance = Covariance(np.exp(p[0]), np.exp(p[1:]))
    amplitude, scales = covariance.gradient(X, covariance.gram(X), np.asfortranarray(np.tril(by_gram)))
    assert_allclose(np.append(amplitude, scales), dense.gradient(value, p), rtol=1e-7)


@pytest.mark.parametrize("amplitude", [0.5, 3.0, 20.0])
def test_laplace_is_the_shared_posterior_with_thresholds_held_fixed(amplitude):
    """Weights of the columns of chol(K) with prior precision 1 are the same model."""
    rows = small_rows(n=50)
    gram = Covariance(amplitude, np.array([1.0, 4.0])).gram(rows.X)
    gram[np.diag_indices(len(rows))] *= 1 + 1e-9  # the other side needs a factor of K itself
    phi = np.linalg.cholesky(gram)
    rows = replace(rows, X=np.arange(len(rows), dtype=float)[:, None])

    class Columns:
        def __len__(self):
            return len(rows)

        def __call__(self, X):
            return phi[X[:, 0].astype(int)]

    def held(w, b):
        """Thresholds without pull or coupling, and with unit prior precision."""
        free, n = expanded(rows, Columns(), w, b), len(w)
        gradient, precision = free.gradient.copy(), free.precision.copy()
        gradient[n:] = b
        precision[n:], precision[:, n:] = 0.0, 0.0
        return replace(free, gradient=gradient, precision=precision, held_precision=1.0)

    mode = find_mode(held, np.ones(len(rows)), np.zeros(len(rows)), THRESHOLDS, tol=1e-20)
    evidence = laplace(gram, rows, THRESHOLDS)
    assert_allclose(gram @ evidence.posterior.coef, phi @ mode.weights, atol=1e-6)
    # There the evidence has the thresholds' prior in it.
    assert_allclose(evidence.log_evidence, log_evidence(mode) + 0.5 * THRESHOLDS @ THRESHOLDS, rtol=1e-8)


@pytest.mark.parametrize(
    ("infer", "amplitude", "thresholds", "atol", "score_atol"),
    [
        (laplace, 100.0, 50 * THRESHOLDS, 1e-6, 1e-5),
        (expectation_propagation, 30.0, 20 * THRESHOLDS, 1e-8, 1e-4),
    ],
)
def test_a_start_elsewhere_leads_to_the_same_posterior(infer, amplitude, thresholds, atol, score_atol):
    rows = small_rows(n=40, noise=0.05)
    narrow = Covariance(1.0, np.full(2, 5.0)).gram(rows.X)
    wide = Covariance(amplitude, np.full(2, 0.1)).gram(rows.X)
    elsewhere = infer(narrow, rows, THRESHOLDS).posterior
    cold, warm = infer(wide, rows, thresholds), infer(wide, rows, thresholds, elsewhere)
    assert_allclose(warm.log_evidence, cold.log_evidence, atol=atol)
    assert_allclose(wide @ warm.posterior.coef, wide @ cold.posterior.coef, atol=score_atol)
    assert_allclose(warm.posterior.precision, cold.posterior.precision, atol=1e-6)


def test_equal_rows_are_one_score():
    """With a covariance of all ones the posterior is that of one number."""
    y, weight = np.array([0, 1, 1, 3, 2, 2]), np.array([1.0, 2.0, 0.5, 1.0, 1.0, 3.0])
    rows, variance = rows_of(np.zeros((6, 2)), y, weight), 4.0
    edge = edges(THRESHOLDS)

    def terms(f):
        return ordinal_probit(np.full(6, f), edge[y], edge[y + 1])

    mode = minimize_scalar(lambda f: 0.5 * f**2 / variance - weight @ terms(f).log_p, options={"xtol": 1e-12})
    expected = -mode.fun - 0.5 * np.log1p(variance * (weight @ terms(mode.x).curvature))
    evidence = laplace(Covariance(2.0, np.ones(2)).gram(rows.X), rows, THRESHOLDS)
    assert_allclose(evidence.log_evidence, expected, rtol=1e-9)


def test_laplace_takes_a_weight_for_a_repetition():
    rows = small_rows(n=30)
    rows = replace(rows, weight=np.where(np.arange(len(rows)) % 3 == 0, 2.0, 1.0))
    twice = rows.take(np.repeat(np.arange(len(rows)), rows.weight.astype(int)))
    twice = replace(twice, weight=np.ones(len(twice)))
    covariance = Covariance(3.0, np.full(2, 0.5))
    one, two = (laplace(covariance.gram(some.X), some, THRESHOLDS) for some in (rows, twice))
    assert_allclose(two.log_evidence, one.log_evidence, rtol=1e-9)
    assert_allclose(two.by_thresholds, one.by_thresholds, rtol=1e-7)


@INFERENCES
def test_order_of_rows_does_not_matter(infer):
    rows = small_rows(n=40)
    order = np.random.default_rng(0).permutation(len(rows))
    covariance = Covariance(3.0, np.full(2, 0.5))
    one, two = (infer(covariance.gram(some.X), some, THRESHOLDS) for some in (rows, rows.take(order)))
    assert_allclose(two.log_evidence, one.log_evidence, rtol=1e-10)
    assert_allclose(two.posterior.coef, one.posterior.coef[order], atol=1e-6)


def evidence_and_gradient(infer, rows, coordinates, point):
    covariance, thresholds = coordinates.read(point)
    gram = covariance.gram(rows.X)
    evidence = infer(gram, rows, thresholds)
    by_kernel = covariance.gradient(rows.X, gram, evidence.by_gram)
    return evidence.log_evidence, coordinates.gradient(point, *by_kernel, evidence.by_thresholds)


@INFERENCES
@pytest.mark.parametrize("ard", [False, True])
@pytest.mark.parametrize("amplitude", [0.3, 3.0, 30.0])
def test_the_gradient_is_that_of_the_log_evidence(infer, ard, amplitude):
    rows = small_rows(n=20)  # with weights ½, 1 and 2
    d = rows.X.shape[1]
    coordinates = _Coordinates.of(rows, ProcessSettings(d), np.arange(d) if ard else np.zeros(d, int))
    point = coordinates.point(amplitude, np.array([0.4, 0.1][: coordinates.n_groups]))
    at = partial(evidence_and_gradient, infer, rows, coordinates)
    expected = dense.gradient(lambda p: at(p)[0], point, step=1e-4)
    assert_allclose(at(point)[1], expected, rtol=1e-5, atol=1e-5)


@INFERENCES
def test_predictions_are_the_conditional_gaussian(infer):
    rows = small_rows(n=25)
    covariance = Covariance(2.0, np.array([1.0, 3.0]))
    K = covariance.gram(rows.X)
    posterior = infer(K, rows, THRESHOLDS).posterior
    latent = Process(Scaling.identity(2), rows.X, covariance, posterior, lapse=0.0)
    new = np.random.default_rng(1).normal(size=(7, 2))
    score = latent.latent(new)

    inverse = np.linalg.inv(K)
    sigma = np.linalg.inv(inverse + np.diag(posterior.precision))
    across = covariance(new, rows.X) @ inverse
    assert_allclose(score.mean, across @ sigma @ posterior.linear, rtol=1e-6, atol=1e-8)
    expected = covariance.gram(new) - across @ (K - sigma) @ across.T
    assert_allclose(score.variance, np.diag(expected), rtol=1e-6)
    assert_allclose(latent.latent(rows.X).variance, np.diag(sigma), rtol=1e-6)
    # Far from all rows nothing is known.
    far = latent.latent(np.full((1, 2), 1e100))
    assert_allclose([far.mean[0], far.variance[0]], [0.0, 4.0])


@INFERENCES
def test_the_search_ends_where_the_evidence_has_no_slope(infer):
    rows = small_rows(n=60)
    fit = fit_process(rows, infer, ProcessSettings(2, tol=1e-12))
    coordinates = _Coordinates.of(rows, ProcessSettings(2), np.zeros(2, int))
    point = coordinates.point(fit.covariance.amplitude, fit.covariance.scales[:1], fit.thresholds)
    log_evidence, slope = evidence_and_gradient(infer, rows, coordinates, point)
    assert_allclose(log_evidence, fit.log_evidence, atol=1e-6)
    assert np.abs(slope).max() < 1e-2
    assert fit.converged


def test_a_given_width_stays_and_the_best_width_is_better():
    rows = small_rows(n=60)
    free = fit_process(rows, laplace, ProcessSettings(2))
    best = free.covariance.scales[0]
    again = fit_process(rows, laplace, ProcessSettings(2, gamma=best))
    assert_allclose(again.covariance.scales, best)
    assert_allclose(again.log_evidence, free.log_evidence, atol=1e-2)
    for factor in (0.2, 5.0):
        other = fit_process(rows, laplace, ProcessSettings(2, gamma=factor * best))
        assert_allclose(other.covariance.scales, factor * best)
        assert other.log_evidence < free.log_evidence - 0.1


@INFERENCES
def test_labels_without_noise_lead_to_little_noise(infer):
    x = np.linspace(-1, 1, 40)
    rows = rows_of(x[:, None], np.digitize(x, [-0.4, 0.5]))
    fit = fit_process(rows, infer, ProcessSettings(1))
    assert fit.covariance.amplitude > 20
    assert np.all(np.diff(fit.thresholds) > 0)
    latent = Process(Scaling.identity(1), rows.X, fit.covariance, fit.posterior, lapse=0.0)
    score = latent.latent(rows.X)
    assert np.array_equal(np.searchsorted(fit.thresholds, score.mean), rows.y)
    assert np.all(np.isfinite(score.variance))


def test_pure_noise_leads_to_class_frequencies():
    """Where all rows are equal, nothing but the thresholds can be learned."""
    rows = rows_of(np.zeros((40, 1)), np.repeat([0, 1, 2], [8, 20, 12]))
    fit = fit_process(rows, laplace, ProcessSettings(1))
    p = np.exp(ordinal_probit(np.zeros(3), edges(fit.thresholds)[:-1], edges(fit.thresholds)[1:]).log_p)
    assert_allclose(p, [0.2, 0.5, 0.3], atol=1e-3)
    assert_allclose(fit.log_evidence, 8 * np.log(0.2) + 20 * np.log(0.5) + 12 * np.log(0.3), atol=0.01)
