from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from isbor._core.parallel import Workers
from isbor.inference.expansion import columns_of
from isbor.inference.mode import find_mode, find_mode_at_rows, log_evidence, starting_thresholds
from isbor.model.basis import RowDictionary
from isbor.model.likelihood import edges, ordinal_probit
from tests.oracles import dense
from tests.problems import expanded, random_shape, small_rows

ALPHA = np.array([0.3, 1.0, 0.01, 5.0, 0.1])


def mode_of(rows, alpha=ALPHA, weights=0 * ALPHA, thresholds=None, shape=None, **options):
    basis = RowDictionary(rows, 0.3).basis(np.arange(5))
    thresholds = starting_thresholds(rows.y, rows.weight) if thresholds is None else thresholds
    expand_at = partial(expanded, rows, basis, shape=shape)
    return find_mode(expand_at, alpha, weights, thresholds, **options), basis


@pytest.mark.parametrize("varying", [False, True], ids=["constant", "varying"])
def test_mode_is_where_another_optimiser_finds_it(varying):
    rows = small_rows()
    shape = random_shape(rows) if varying else None
    described = (shape.noise_scale, shape.gap_factors) if varying else ()
    mode, basis = mode_of(rows, shape=shape)
    phi, m = basis(rows.X), len(ALPHA)
    f = phi @ mode.weights
    beta = 1 / (1 + np.cov(f, aweights=rows.weight, ddof=0))
    assert_allclose(mode.expansion.threshold_precision, beta)

    def descent(theta):  # thresholds by their logarithmic gaps, so that any point is ordered
        b = np.cumsum(np.concatenate([theta[m : m + 1], np.exp(theta[m + 1 :])]))
        log_prior = -0.5 * ALPHA @ theta[:m] ** 2 - 0.5 * beta * b @ b
        return -log_prior - dense.log_likelihood(phi, rows.y, rows.weight, theta[:m], b, *described)

    start = np.concatenate([np.zeros(m), [-1.0], np.zeros(len(mode.thresholds) - 1)])
    found = minimize(descent, start, method="BFGS", options={"gtol": 1e-7})
    b = np.cumsum(np.concatenate([found.x[m : m + 1], np.exp(found.x[m + 1 :])]))
    assert_allclose(mode.weights, found.x[:m], atol=1e-4)
    assert_allclose(mode.thresholds, b, atol=1e-4)
    with Workers(1) as workers:  # the same in one go
        columns = columns_of(rows, basis, workers)
        start = 0 * ALPHA, starting_thresholds(rows.y, rows.weight)
        at_rows = find_mode_at_rows(rows, columns, ALPHA, *start, workers, shape)
    assert_allclose(at_rows.weights, mode.weights, atol=1e-6)
    assert_allclose(at_rows.thresholds, mode.thresholds, atol=1e-6)


def test_mode_has_no_slope_and_ordered_thresholds_from_a_bad_start():
    weights, thresholds = np.array([50.0, -80.0, 20.0, 0.0, 30.0]), np.array([0.0, 1e-6, 40.0])
    mode, _ = mode_of(small_rows(noise=0.05), 1e-4 * ALPHA, weights, thresholds)
    beta = mode.expansion.threshold_precision
    slope = mode.expansion.gradient - np.concatenate([1e-4 * ALPHA * mode.weights, beta * mode.thresholds])
    assert np.abs(slope / np.sqrt(np.diag(mode.expansion.precision))).max() < 1e-4
    assert np.all(np.diff(mode.thresholds) > 0)


def test_starting_thresholds_give_the_class_frequencies():
    y, weight = np.array([0, 0, 1, 2, 2]), np.array([1.0, 2.0, 3.0, 1.0, 1.0])
    cuts = edges(starting_thresholds(y, weight))
    p = np.exp(ordinal_probit(np.zeros(3), cuts[:-1], cuts[1:]).log_p)
    assert_allclose(p, [3 / 8, 3 / 8, 2 / 8], rtol=1e-5)


def test_log_evidence_is_the_laplace_formula():
    rows = small_rows()
    mode, basis = mode_of(rows)
    phi, m = basis(rows.X), len(ALPHA)
    theta = np.concatenate([mode.weights, mode.thresholds])
    precision = np.append(ALPHA, np.full(len(mode.thresholds), mode.expansion.threshold_precision))

    def log_posterior(theta):
        log_prior = 0.5 * (np.log(precision / (2 * np.pi)) - precision * theta**2).sum()
        return dense.log_likelihood(phi, rows.y, rows.weight, theta[:m], theta[m:]) + log_prior

    _, log_det = np.linalg.slogdet(-dense.hessian(log_posterior, theta))
    expected = log_posterior(theta) + 0.5 * len(theta) * np.log(2 * np.pi) - 0.5 * log_det
    assert_allclose(log_evidence(mode), expected, atol=1e-4)


@pytest.mark.parametrize("c", [0.2, 7.0])
@pytest.mark.parametrize("flat", [True, False])
def test_noise_is_a_gauge(c, flat):
    """(w, b, σ, α, β) → (cw, cb, cσ, α/c², β/c²) changes neither the likelihood nor the mode.

    Under a flat prior of the thresholds the evidence shifts by (r-1) ln c; under the proper one not at all.
    """
    rows = small_rows()
    mode, basis = mode_of(rows, tol=1e-16)
    phi, m, t = basis(rows.X), len(ALPHA), len(mode.thresholds)
    theta = np.concatenate([mode.weights, mode.thresholds])
    precision = np.append(ALPHA, np.full(t, mode.expansion.threshold_precision))

    def log_joint(theta, precision, sigma):
        log_prior = 0.5 * (np.log(precision / (2 * np.pi)) - precision * theta**2)
        if flat:
            log_prior[m:] = 0.0
        likelihood = dense.log_likelihood(phi, rows.y, rows.weight, theta[:m], theta[m:], sigma)
        return likelihood + log_prior.sum()

    def laplace(theta, precision, sigma):
        prior = np.where(np.arange(m + t) < m, precision, 0.0) if flat else precision
        _, log_det = np.linalg.slogdet(mode.expansion.precision / sigma**2 + np.diag(prior))
        return log_joint(theta, precision, sigma) + 0.5 * (m + t) * np.log(2 * np.pi) - 0.5 * log_det

    one, scaled = laplace(theta, precision, 1.0), laplace(c * theta, precision / c**2, c)
    assert_allclose(scaled - one, t * np.log(c) if flat else 0.0, atol=1e-9)
    if not flat:
        assert_allclose(one, log_evidence(mode), atol=1e-9)
        slope = dense.gradient(lambda x: log_joint(x, precision / c**2, c), c * theta)
        assert_allclose(slope, 0.0, atol=1e-5)
