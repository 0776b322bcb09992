import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from isbor.basis import RowDictionary
from isbor.blocks import Workers
from isbor.likelihood import edges, ordinal_probit
from isbor.posterior import UnresolvedError, factorise, find_mode, log_evidence, starting_thresholds
from isbor.statistics import expand
from tests.oracles import dense
from tests.unit.problems import small_rows

ALPHA = np.array([0.3, 1.0, 0.01, 5.0, 0.1])


def mode_of(rows, alpha=ALPHA, **options):
    basis = RowDictionary(rows, 0.3).basis(np.arange(len(alpha)))
    with Workers(1) as workers:
        mode = find_mode(
            lambda w, b: expand(rows, basis, w, b, workers),
            alpha,
            np.zeros(len(alpha)),
            starting_thresholds(rows.y, rows.weight),
            **options,
        )
    return mode, basis


def test_mode_is_where_another_optimiser_finds_it():
    rows = small_rows()
    mode, basis = mode_of(rows)
    phi, m = basis(rows.X), len(ALPHA)

    def descent(theta):  # thresholds by their logarithmic gaps, so that any point is ordered
        b = np.cumsum(np.concatenate([theta[m : m + 1], np.exp(theta[m + 1 :])]))
        return 0.5 * ALPHA @ theta[:m] ** 2 - dense.log_likelihood(phi, rows.y, rows.weight, theta[:m], b)

    start = np.concatenate([np.zeros(m), [-1.0], np.zeros(len(mode.thresholds) - 1)])
    found = minimize(descent, start, method="BFGS", options={"gtol": 1e-7})
    b = np.cumsum(np.concatenate([found.x[m : m + 1], np.exp(found.x[m + 1 :])]))
    assert_allclose(mode.weights, found.x[:m], atol=1e-4)
    assert_allclose(mode.thresholds, b, atol=1e-4)


def test_mode_has_no_slope_and_ordered_thresholds_from_a_bad_start():
    rows = small_rows(noise=0.05)
    basis = RowDictionary(rows, 0.3).basis(np.arange(5))
    with Workers(1) as workers:
        mode = find_mode(
            lambda w, b: expand(rows, basis, w, b, workers),
            1e-4 * ALPHA,
            np.array([50.0, -80.0, 20.0, 0.0, 30.0]),
            np.array([0.0, 1e-6, 40.0]),
        )
    slope = mode.expansion.gradient - np.concatenate([1e-4 * ALPHA * mode.weights, np.zeros(3)])
    size = np.sqrt(np.diag(mode.expansion.precision))
    assert np.abs(slope / size).max() < 1e-4
    assert np.all(np.diff(mode.thresholds) > 0)


def test_starting_thresholds_give_the_class_frequencies():
    y, weight = np.array([0, 0, 1, 2, 2]), np.array([1.0, 2.0, 3.0, 1.0, 1.0])
    cuts = edges(starting_thresholds(y, weight))
    p = np.exp(ordinal_probit(np.zeros(3), cuts[:-1], cuts[1:]).log_p)
    assert_allclose(p, [3 / 8, 3 / 8, 2 / 8])


def test_log_evidence_is_the_laplace_formula():
    rows = small_rows()
    mode, basis = mode_of(rows)
    phi, m = basis(rows.X), len(ALPHA)
    theta = np.concatenate([mode.weights, mode.thresholds])

    def log_posterior(theta):
        log_prior = 0.5 * (np.log(ALPHA / (2 * np.pi)) - ALPHA * theta[:m] ** 2).sum()
        return dense.log_likelihood(phi, rows.y, rows.weight, theta[:m], theta[m:]) + log_prior

    _, log_det = np.linalg.slogdet(-dense.hessian(log_posterior, theta))
    expected = log_posterior(theta) + 0.5 * len(theta) * np.log(2 * np.pi) - 0.5 * log_det
    assert_allclose(log_evidence(mode), expected, atol=1e-4)


@pytest.mark.parametrize("c", [0.2, 7.0])
def test_noise_is_a_gauge(c):
    """(w, b, σ, α) → (cw, cb, cσ, α/c²) changes nothing but the evidence, by (r-1) ln c."""
    rows = small_rows()
    mode, basis = mode_of(rows, tolerance=1e-16)
    phi, m = basis(rows.X), len(ALPHA)

    def log_joint(theta, alpha, sigma):
        log_prior = 0.5 * (np.log(alpha) - alpha * theta[:m] ** 2).sum()
        return (
            dense.log_likelihood(phi, rows.y, rows.weight, theta[:m], theta[m:], sigma)
            + log_prior
            - 0.5 * m * np.log(2 * np.pi)
        )

    theta = np.concatenate([mode.weights, mode.thresholds])
    here = log_joint(theta, ALPHA, 1.0)
    there = log_joint(c * theta, ALPHA / c**2, c)
    assert_allclose(there, here - m * np.log(c), rtol=1e-12)  # densities of cw are 1/c of those of w
    slope = dense.gradient(lambda t: log_joint(t, ALPHA / c**2, c), c * theta)
    assert_allclose(slope, 0.0, atol=1e-5)
    # The evidence, with its Hessian in the scaled coordinates.
    precision = mode.expansion.precision + np.diag(np.concatenate([ALPHA, np.zeros(len(theta) - m)]))
    _, log_det = np.linalg.slogdet(precision / c**2)
    scaled = there + 0.5 * len(theta) * np.log(2 * np.pi) - 0.5 * log_det
    assert_allclose(scaled - log_evidence(mode), len(mode.thresholds) * np.log(c), atol=1e-9)


def test_factor_solves_and_measures_badly_scaled_matrices():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(6, 6))
    size = 10.0 ** np.arange(-9, 9, 3)
    core = A @ A.T + np.eye(6)
    factor = factorise(core * size * size[:, None])
    right = rng.normal(size=6)
    assert_allclose(factor.solve(right), np.linalg.solve(core, right / size) / size, rtol=1e-10)
    assert_allclose(factor.log_determinant, np.linalg.slogdet(core)[1] + 2 * np.log(size).sum())


def test_singular_matrices_are_refused():
    with pytest.raises(UnresolvedError, match="singular"):
        factorise(np.ones((3, 3)))
    with pytest.raises(UnresolvedError, match="no curvature"):
        factorise(np.diag([1.0, 0.0]))
