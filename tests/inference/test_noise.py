"""Noise that varies: derivatives against finite differences, and noise that is known."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isbor import ISBOR
from isbor._core.parallel import Workers
from isbor.inference.expansion import streamed
from isbor.inference.noise import expand_noise, fit_noise, noise_scale_at_rows
from isbor.inference.sparse import fit_weights
from isbor.model.basis import Functions
from isbor.model.likelihood import edges, ordinal_probit
from tests.problems import small_rows


def ramps(rows, slope=0.4):
    """One gentle ramp a feature, and a bump at the origin."""
    d = rows.X.shape[1]
    metric = np.vstack([slope * np.eye(d), np.ones(d)])
    ramp = np.append(np.ones(d, dtype=bool), False)
    origin = np.zeros(d + 1, dtype=int)
    return Functions(np.zeros((d + 1, d)), metric, ramp, np.zeros(d + 1), origin, np.ones(d + 1)).centred_on(
        rows
    )


@pytest.fixture(scope="module")
def problem():
    rows = small_rows(n=300)
    functions = ramps(rows)
    m = len(functions)
    with Workers(1) as workers:
        model = fit_weights(
            rows, functions, np.ones(m), np.zeros(m), np.linspace(-1, 1, rows.y.max()), workers
        )
    return rows, functions, model.mode


def likelihood(rows, functions, mode, weights):
    phi, cuts = functions(rows.X), edges(mode.thresholds)
    terms = ordinal_probit(phi @ mode.weights, cuts[rows.y], cuts[rows.y + 1], scale=np.exp(phi @ weights))
    return rows.weight @ terms.log_p


def test_the_slope_in_the_log_of_the_noise(problem):
    rows, functions, mode = problem
    weights = 0.3 * np.random.default_rng(0).standard_normal(len(functions))
    with Workers(1) as workers:
        here = expand_noise(rows, streamed(rows, functions), mode, weights, workers)
    assert_allclose(here.log_likelihood, likelihood(rows, functions, mode, weights), rtol=1e-12)
    h = 1e-5
    for k, step in enumerate(h * np.eye(len(weights))):
        up, down = (likelihood(rows, functions, mode, weights + s * step) for s in (1, -1))
        assert_allclose(here.gradient[k], (up - down) / (2 * h), rtol=1e-6, atol=1e-6)


def test_the_curvature_is_that_of_the_rows_that_curve_downwards(problem):
    rows, functions, mode = problem
    h = 1e-4
    one = replace(functions, offset=np.zeros(len(functions)))  # a constant, so that ln s is the weight
    constant = replace(one, metric=np.zeros_like(one.metric), ramp=np.zeros(len(one), dtype=bool)).take([0])
    phi, cuts = functions(rows.X), edges(mode.thresholds)

    def log_p(log_scale):
        scale = np.full(len(rows), np.exp(log_scale))
        return ordinal_probit(phi @ mode.weights, cuts[rows.y], cuts[rows.y + 1], scale=scale).log_p

    curvature = -(log_p(0.2 + h) - 2 * log_p(0.2) + log_p(0.2 - h)) / h**2

    class Columns:
        """The score's functions, and a constant that the score does not use."""

        def __len__(self):
            return len(functions) + 1

        def __call__(self, block):
            return np.hstack([functions(rows.X[block]), constant(rows.X[block])])

    padded = replace(
        mode,
        expansion=replace(mode.expansion, weights=np.append(mode.weights, 0.0)),
        alpha=np.ones(len(phi.T) + 1),
    )
    weights = np.zeros(len(functions) + 1)
    weights[-1] = 0.2
    with Workers(1) as workers:
        here = expand_noise(rows, Columns(), padded, weights, workers)
    assert (curvature < 0).any(), "no row for which it matters"
    assert_allclose(here.precision[-1, -1], rows.weight @ np.maximum(curvature, 0.0), rtol=1e-4)


def heteroscedastic(n, seed, spread):
    """Rows whose score rises along both features, and whose noise along the second."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    noise = np.exp(spread * X[:, 1])
    return (
        X,
        np.digitize(
            2.0 * np.sin(2.0 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n), [-2.5, -0.8, 0.8, 2.5]
        ),
        noise,
    )


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
    typical = model.sigma_
    assert np.all(far <= np.exp(3.1) * typical)
    assert np.all(far >= np.exp(-3.1) * typical)


def test_no_functions_no_noise(problem):
    rows, functions, mode = problem
    nothing = functions.take(slice(0))
    with Workers(1) as workers:
        assert fit_noise(rows, nothing, mode, workers).shape == (0,)
        assert_allclose(noise_scale_at_rows(rows, nothing, np.zeros(0), workers), 1.0)
