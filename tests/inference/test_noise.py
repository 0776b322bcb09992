"""Noise that varies: derivatives against finite differences, and noise that is known."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isbor import ISBOR
from isbor._core.parallel import Workers
from isbor.inference.expansion import columns_of, streamed
from isbor.inference.noise import expand_noise, fit_noise, noise_scale_at_rows
from isbor.inference.sparse import fit_weights
from isbor.model.basis import Functions
from isbor.model.likelihood import edges, ordinal_probit
from tests.problems import small_rows


@pytest.fixture(scope="module")
def problem():
    """Rows, functions (one gentle ramp a feature, a bump at the origin), and the mode of their weights."""
    rows = small_rows(n=300)
    d = rows.X.shape[1]
    m = d + 1
    metric, ramp = np.vstack([0.4 * np.eye(d), np.ones(d)]), np.arange(m) < d
    functions = Functions(
        np.zeros((m, d)), metric, ramp, np.zeros(m), np.zeros(m, int), np.ones(m)
    ).centred_on(rows)
    start = np.zeros(m), np.linspace(-1, 1, rows.y.max())
    with Workers(1) as workers:
        return rows, functions, fit_weights(rows, functions, np.ones(m), *start, workers).mode


def log_p(rows, functions, mode, log_scale):
    cuts, score = edges(mode.thresholds), functions(rows.X) @ mode.weights
    return ordinal_probit(score, cuts[rows.y], cuts[rows.y + 1], scale=np.exp(log_scale)).log_p


def test_the_slope_in_the_log_of_the_noise(problem):
    rows, functions, mode = problem
    weights = 0.3 * np.random.default_rng(0).standard_normal(len(functions))
    with Workers(1) as workers:
        here = expand_noise(rows, streamed(rows, functions), mode, weights, workers)

    def likelihood(weights):
        return rows.weight @ log_p(rows, functions, mode, functions(rows.X) @ weights)

    assert_allclose(here.log_likelihood, likelihood(weights), rtol=1e-12)
    h = 1e-5
    for k, step in enumerate(h * np.eye(len(weights))):
        up, down = likelihood(weights + step), likelihood(weights - step)
        assert_allclose(here.gradient[k], (up - down) / (2 * h), rtol=1e-6, atol=1e-6)


def test_the_curvature_is_that_of_the_rows_that_curve_downwards(problem):
    rows, functions, mode = problem
    m, h = len(functions), 1e-4
    down, here, up = (log_p(rows, functions, mode, np.full(len(rows), 0.2 + step)) for step in (-h, 0.0, h))
    curvature = -(up - 2 * here + down) / h**2

    class Columns:
        """The score's functions, and a constant that the score does not use: its weight is ln s."""

        def __len__(self):
            return m + 1

        def __call__(self, block):
            phi = functions(rows.X[block])
            return np.vstack([phi.T, np.ones(len(phi))])

    expansion = replace(mode.expansion, weights=np.append(mode.weights, 0.0))
    padded = replace(mode, expansion=expansion, alpha=np.ones(m + 1))
    with Workers(1) as workers:
        found = expand_noise(rows, Columns(), padded, np.append(np.zeros(m), 0.2), workers)
    assert (curvature < 0).any(), "no row for which it matters"
    assert_allclose(found.precision[-1, -1], rows.weight @ np.maximum(curvature, 0.0), rtol=1e-4)


def heteroscedastic(n, seed, spread):
    """Rows whose score rises along both features, and whose noise along the second."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    noise = np.exp(spread * X[:, 1])
    score = 2.0 * np.sin(2.0 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n)
    return X, np.digitize(score, [-2.5, -0.8, 0.8, 2.5]), noise


def test_noise_that_varies_is_found():
    X, y, noise = heteroscedastic(4000, 0, 0.5)
    model = ISBOR(basis="mixed").fit(X, y)
    ratio = np.log(model.noise_scale(X) / noise)
    assert np.std(ratio) < 0.4 * np.std(np.log(noise))
    constant = ISBOR(basis="mixed", noise="constant").fit(X, y)
    assert np.ptp(constant.noise_scale(X)) == 0.0
    new_X, new_y, _ = heteroscedastic(4000, 1, 0.5)

    def score(fitted):
        return np.mean(fitted.predict_log_proba(new_X)[np.arange(len(new_y)), new_y])

    assert score(model) > score(constant) + 0.02


def test_constant_noise_is_left_alone():
    X, y, _ = heteroscedastic(3000, 2, 0.0)
    scale = ISBOR(basis="mixed").fit(X, y).noise_scale(X)
    assert np.std(np.log(scale)) < 0.05


def test_one_extreme_row_does_not_overflow():
    X, y, _ = heteroscedastic(500, 3, 0.8)
    model = ISBOR(basis="mixed").fit(X, y)
    far = model.noise_scale(np.array([[1e9, 1e9], [-1e9, -1e9], [0.0, 1e9]]))
    assert np.all(np.abs(np.log(far / model.sigma_)) <= 3.1)


def test_no_functions_no_noise(problem):
    rows, functions, mode = problem
    nothing = functions.take(slice(0))
    with Workers(1) as workers:
        weights, _ = fit_noise(rows, nothing, columns_of(rows, nothing, workers), mode, workers)
        assert weights.shape == (0,)
        assert_allclose(
            noise_scale_at_rows(rows, columns_of(rows, nothing, workers), np.zeros(0), workers), 1.0
        )
