"""Expectation propagation: moments by quadrature, evidence by integration, and what must hold at its end."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import floats
from numpy.testing import assert_allclose
from scipy.special import log_ndtr

from isbor.gp.ep import expectation_propagation, tilted
from isbor.gp.laplace import laplace
from isbor.gp.process import Covariance
from isbor.model.likelihood import edges, ordinal_probit
from tests.gp.test_process import THRESHOLDS, rows_of
from tests.problems import small_rows


def integrated(mean, variance, low, high, weight):
    """ln Ẑ, and mean and variance of the tilted distribution, by a sum over a fine grid.

    For smooth functions that vanish at both ends the error of the sum falls exponentially with the step.
    """
    reach = 13 * np.sqrt(variance) + 12
    f = np.linspace(mean - reach, mean + reach, 300_001)
    # In the left tail, where ln Ψ is accurate.
    flip = low + high < 2 * f
    upper, lower = np.where(flip, high - f, f - low), np.where(flip, low - f, f - high)
    log_p = log_ndtr(upper) + np.log1p(-np.exp(log_ndtr(lower) - log_ndtr(upper)))
    exponent = weight * log_p - 0.5 * (f - mean) ** 2 / variance
    mass = np.exp(exponent - exponent.max())
    log_z = np.log(mass.sum() * (f[1] - f[0])) + exponent.max() - 0.5 * np.log(2 * np.pi * variance)
    average = mass @ f / mass.sum()
    return log_z, average, mass @ (f - average) ** 2 / mass.sum()


@pytest.mark.parametrize("weight", [0.01, 0.5, 1.0, 2.0, 7.3, 300.0])
def test_tilted_moments(weight):
    cases = [
        (mean, variance, low, high)
        for mean, variance in ((0.3, 0.01), (-2.0, 1.0), (4.0, 30.0))
        for low, high in ((-np.inf, 0.5), (0.5, np.inf), (-0.2, 0.1), (-1.0, 3.0))
    ]
    mean, variance, low, high = np.array(cases).T
    terms = tilted(mean, variance, low, high, np.full(len(cases), weight))
    expected = np.array([integrated(*case, weight) for case in cases])
    assert_allclose(terms.log_z, expected[:, 0], rtol=1e-8, atol=1e-10)
    assert_allclose(mean + variance * terms.slope, expected[:, 1], rtol=1e-8, atol=1e-8)
    assert_allclose(variance * (1 - variance * terms.curvature), expected[:, 2], rtol=1e-8)


@pytest.mark.parametrize("weight", [0.3, 1.0, 5.0, 1e3])
def test_tilted_derivatives(weight):
    mean = np.tile(np.linspace(-4, 4, 9), 4)
    low = np.repeat([-np.inf, -0.5, 0.4, 1.0], 9)
    high = np.repeat([-0.5, -0.3, 3.0, np.inf], 9)
    variance, weight = np.tile([0.2, 2.0, 50.0], 12), np.full(36, weight)

    def at(mean, low, high):
        return tilted(mean, variance, low, high, weight)

    terms = at(mean, low, high)
    h = 1e-4
    up, down = at(mean + h, low, high), at(mean - h, low, high)
    size = 1 + np.abs(terms.log_z)
    assert_allclose(terms.slope / size, (up.log_z - down.log_z) / (2 * h) / size, atol=1e-6)
    assert_allclose(terms.curvature, -(up.slope - down.slope) / (2 * h), rtol=1e-5, atol=1e-7)
    by_upper = (at(mean, low, high + h).log_z - at(mean, low, high - h).log_z) / (2 * h)
    by_lower = (at(mean, low + h, high).log_z - at(mean, low - h, high).log_z) / (2 * h)
    assert_allclose(terms.upper / size, by_upper / size, atol=1e-6)
    assert_allclose(-terms.lower / size, by_lower / size, atol=1e-6)


@given(
    mean=floats(-100, 100),
    log_variance=floats(-8, 12),
    low=floats(-50, 50),
    log_gap=floats(-6, 5),
    log_weight=floats(-30, 9),
)
def test_a_likelihood_takes_variance_away(mean, log_variance, low, log_gap, log_weight):
    """0 ≤ 1 - ch ≤ 1, and by the log-concavity of the likelihood c(1 - ch) ≥ 1/(1/c + v)."""
    c, v = np.exp(log_variance), np.exp(log_weight)
    terms = tilted(*np.array([[mean], [c], [low], [low + np.exp(log_gap)], [v]]))
    left = 1 - c * terms.curvature[0]
    assert terms.curvature[0] >= 0
    assert left >= (1 - 1e-7) / (1 + v * c)
    assert terms.log_z[0] <= 1e-12
    assert np.isfinite([terms.slope[0], terms.upper[0], terms.lower[0]]).all()


def test_weight_one_is_the_limit_of_weights_beside_it():
    mean, variance = np.array([0.2, -3.0]), np.array([1.0, 40.0])
    low, high = np.array([-np.inf, 0.1]), np.array([0.4, 2.0])
    exact = tilted(mean, variance, low, high, np.ones(2))
    beside = tilted(mean, variance, low, high, np.full(2, 1 + 1e-9))
    for name in ("log_z", "slope", "curvature", "upper", "lower"):
        assert_allclose(getattr(beside, name), getattr(exact, name), rtol=1e-7)


@pytest.mark.parametrize("amplitude", [0.1, 2.0, 100.0])
@pytest.mark.parametrize("label", range(4))
def test_one_row_is_exact(amplitude, label):
    def evidence(thresholds, weight):
        rows = rows_of([[0.7]], [label], np.array([weight]))
        return expectation_propagation(np.full((1, 1), amplitude**2), rows, thresholds).log_evidence

    edge = edges(np.linspace(-1, 1, 3) * amplitude)
    low, high = edge[[label]], edge[[label + 1]]
    exact = ordinal_probit(np.zeros(1), low, high, scale=np.hypot(1, amplitude)).log_p[0]
    assert_allclose(evidence(edge[1:-1], 1.0), exact, rtol=1e-10)
    if amplitude == 2.0:
        edge = edges(THRESHOLDS)
        expected, _, _ = integrated(0.0, 4.0, edge[label], edge[label + 1], 3.7)
        assert_allclose(evidence(THRESHOLDS, 3.7), expected, rtol=1e-9)


def integrated_evidence(gram, rows, thresholds, n_nodes=60):
    """ln p(y) of three rows on a product grid of Gauss-Hermite nodes."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    weights = weights / weights.sum()
    grid = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 3)
    mass = np.einsum("i,j,k->ijk", weights, weights, weights).ravel()
    f = grid @ np.linalg.cholesky(gram).T
    edge = edges(thresholds)
    log_p = sum(
        rows.weight[i] * ordinal_probit(f[:, i], np.full(len(f), edge[y]), np.full(len(f), edge[y + 1])).log_p
        for i, y in enumerate(rows.y)
    )
    return np.log(mass @ np.exp(log_p))


@pytest.mark.parametrize("amplitude", [0.5, 1.5, 3.0])
@pytest.mark.parametrize("y", [(0, 1, 3), (2, 2, 0), (3, 0, 3)])
@pytest.mark.parametrize("weight", [(1.0, 1.0, 1.0), (2.0, 0.5, 1.0)])
def test_evidence_of_three_rows_by_integration(amplitude, y, weight):
    rows = rows_of([[0.0], [0.4], [1.3]], y, np.array(weight))
    gram = Covariance(amplitude, np.ones(1)).gram(rows.X)
    exact = integrated_evidence(gram, rows, THRESHOLDS)
    error = expectation_propagation(gram, rows, THRESHOLDS).log_evidence - exact
    assert abs(error) < 0.01
    assert abs(error) < abs(laplace(gram, rows, THRESHOLDS).log_evidence - exact)


def two_clusters():
    """Many rows that say the same: factors renewed all at once would never settle here."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-50, 1, 40), rng.normal(50, 1, 40)])[:, None]
    return rows_of(X / 50, np.repeat([0, 1], 40))


@pytest.mark.parametrize(
    ("rows", "covariance", "thresholds", "tolerance"),
    [
        (small_rows(n=40), Covariance(2.0, np.full(2, 0.5)), THRESHOLDS, 1e-6),
        (two_clusters(), Covariance(10.0, np.full(1, 0.6)), np.zeros(1), 1e-4),
    ],
    ids=["few", "clusters"],
)
def test_moments_match(rows, covariance, thresholds, tolerance):
    """Take each factor out and put the likelihood in its place, with dense matrices."""
    gram = covariance.gram(rows.X)
    posterior = expectation_propagation(gram, rows, thresholds).posterior
    sigma = gram - gram @ np.linalg.solve(gram + np.diag(1 / posterior.precision), gram)
    mean, variance = sigma @ posterior.linear, np.diag(sigma)
    cavity_variance = 1 / (1 / variance - posterior.precision)
    cavity_mean = cavity_variance * (mean / variance - posterior.linear)
    edge = edges(thresholds)
    terms = tilted(cavity_mean, cavity_variance, edge[rows.y], edge[rows.y + 1], rows.weight)
    new_mean = cavity_mean + cavity_variance * terms.slope
    new_variance = cavity_variance * (1 - cavity_variance * terms.curvature)
    assert_allclose((new_mean - mean) / np.sqrt(variance), 0.0, atol=tolerance)
    assert_allclose(new_variance / variance, 1.0, atol=tolerance)


def test_equal_rows_make_a_singular_covariance_and_do_no_harm():
    spread = []
    for k in (1, 3):
        rows = rows_of(np.zeros((6 * k, 1)), np.tile([0, 1, 1, 3, 2, 2], k))
        gram = Covariance(2.0, np.ones(1)).gram(rows.X)
        posterior = expectation_propagation(gram, rows, THRESHOLDS).posterior
        spread.append(1 / (1 / 4.0 + posterior.precision.sum()))
        assert_allclose(gram[0] @ posterior.coef, spread[-1] * posterior.linear.sum(), rtol=1e-9)
    assert_allclose(spread[1], spread[0] / 3, rtol=0.1)  # three times the data
