"""The shape of the response: derivatives against finite differences, and noise and gaps that are known."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor import ISBOR
from isbor._core.parallel import Workers
from isbor.inference.compiled_expansion import add_shape_block
from isbor.inference.expansion import columns_of, streamed
from isbor.inference.shape import ShapeFit, expand_shape, fit_shape, shape_at_rows, shape_model
from isbor.inference.sparse import fit_weights
from isbor.model.basis import Functions
from isbor.model.compiled_cuts import shape_of_values
from isbor.model.cuts import gap_patterns, n_shape_sums
from tests.oracles import dense
from tests.problems import log_score, small_rows, varying_cuts

LEVELS = [3, 4, 5, 7]
SUMS = [(levels, q) for levels in LEVELS for q in range(n_shape_sums("thresholds", levels - 1))]
sums = pytest.mark.parametrize(("levels", "q"), SUMS)


def gentle_functions(rows):
    """One gentle ramp a feature, and a bump at the origin."""
    d = rows.X.shape[1]
    m = d + 1
    metric, ramp = np.vstack([0.4 * np.eye(d), np.ones(d)]), np.arange(m) < d
    return Functions(np.zeros((m, d)), metric, ramp, np.zeros(m), np.zeros(m, int), np.ones(m)).centred_on(
        rows
    )


@pytest.fixture(scope="module")
def problems():
    """For each number of levels: rows, functions, the mode of their weights, and weights of the shape."""
    found = {}
    for levels in LEVELS:
        rows = small_rows(n=300, levels=levels, noise=1.0)
        functions = gentle_functions(rows)
        m, n_sums = len(functions), n_shape_sums("thresholds", levels - 1)
        start = np.zeros(m), np.linspace(-1, 1, levels - 1)
        with Workers(1) as workers:
            mode = fit_weights(rows, functions, np.ones(m), *start, workers).mode
        weights = 0.3 * np.random.default_rng(levels).standard_normal((n_sums, m))
        found[levels] = rows, functions, mode, weights
    return found


def shape_of(phi, weights, n_thresholds):
    """Return the noise and the factors of the gaps at rows with the values phi, (n, m)."""
    log_scale, *patterned = 3.0 * np.tanh(weights @ phi.T / 3.0)
    log_factors = np.zeros((n_thresholds - 1, len(phi)))
    for pattern, t in zip(gap_patterns(n_thresholds, len(patterned)), patterned, strict=True):
        log_factors += np.outer(pattern, t)
    return np.exp(log_scale), np.exp(log_factors)


def probabilities(phi, mode, weights):
    shape = shape_of(phi, weights, len(mode.thresholds))
    return dense.probabilities(phi @ mode.weights, mode.thresholds, *shape)


def test_weights_in_another_layout_compile_nothing_anew(problems):
    rows, functions, mode, weights = problems[5]
    columns = streamed(rows, functions)
    compiled = []
    with Workers(1) as workers:
        for laid_out in (weights, np.asfortranarray(weights)):
            expand_shape(rows, columns, mode, laid_out, 1, workers)
            shape_at_rows(rows, columns, laid_out, 4, workers)
            compiled.append((len(add_shape_block.signatures), len(shape_of_values.signatures)))
    assert compiled[0] == compiled[1]


@sums
def test_the_slope_in_each_sum(problems, levels, q):
    rows, functions, mode, weights = problems[levels]
    phi = functions(rows.X)
    with Workers(1) as workers:
        here = expand_shape(rows, streamed(rows, functions), mode, weights, q, workers)

    def likelihood(of_sum):
        trial = weights.copy()
        trial[q] = of_sum
        shape = shape_of(phi, trial, levels - 1)
        return dense.log_likelihood(phi, rows.y, rows.weight, mode.weights, mode.thresholds, *shape)

    assert_array_equal(here.weights, weights[q])
    assert_allclose(here.log_likelihood, likelihood(weights[q]), rtol=1e-12)
    expected = dense.gradient(likelihood, weights[q])
    assert np.abs(expected).max() > 1.0
    assert_allclose(here.gradient, expected, rtol=1e-6, atol=1e-6)


@sums
def test_the_curvature_is_the_fisher_information(problems, levels, q):
    """Summed over all labels with their probabilities, it is the mean of squared slopes."""
    rows, functions, mode, weights = problems[levels]
    phi = functions(rows.X)
    p = probabilities(phi, mode, weights)
    labels = np.tile(np.arange(levels), len(rows))
    everything = np.repeat(np.arange(len(rows)), levels)
    every_label = replace(rows.take(everything), y=labels, weight=p.ravel())
    with Workers(1) as workers:
        found = expand_shape(every_label, streamed(every_label, functions), mode, weights, q, workers)

    def log_p(of_sum):
        trial = weights.copy()
        trial[q] = of_sum
        return np.log(probabilities(phi, mode, trial)).ravel()

    slopes = dense.gradient(log_p, weights[q])  # (m, rows × labels)
    assert_allclose(found.precision, (slopes * p.ravel()) @ slopes.T, rtol=1e-6, atol=1e-6)
    assert_allclose(found.gradient, 0.0, atol=1e-9)  # slopes have the mean zero


@sums
def test_no_row_curves_upwards(problems, levels, q):
    rows, functions, mode, weights = problems[levels]
    for k in range(0, len(rows), 20):
        one = replace(rows.take(slice(k, k + 1)), weight=np.ones(1))
        with Workers(1) as workers:
            found = expand_shape(one, streamed(one, functions), mode, weights, q, workers)
        assert (
            np.linalg.eigvalsh(found.precision).min() > -1e-6 * np.trace(found.precision) - 1e-12
        )  # in single precision


def test_sums_saturate(problems):
    """Beyond the limit of a sum, neither the likelihood nor anything else changes with it."""
    rows, functions, mode, weights = problems[5]
    for q in range(len(weights)):
        far = weights.copy()
        far[q] *= 1e6
        with Workers(1) as workers:
            columns = streamed(rows, functions)
            here, farther = (
                expand_shape(
                    rows, columns, mode, np.where(np.arange(3)[:, None] == q, c * far, far), q, workers
                )
                for c in (1, 2)
            )
        assert np.isfinite(here.log_likelihood)
        assert_allclose(here.log_likelihood, farther.log_likelihood, rtol=1e-9)
        assert_allclose(here.gradient, 0.0, atol=1e-6)
        assert_allclose(here.precision, 0.0, atol=1e-6)


def test_shapes_at_rows_are_those_of_the_definition(problems):
    for levels, (rows, functions, _, weights) in problems.items():
        with Workers(2) as workers:
            columns = columns_of(rows, functions, workers)
            assert shape_at_rows(rows, columns, None, levels - 1, workers) is None
            for n_sums in range(1, len(weights) + 1):
                found = shape_at_rows(rows, columns, weights[:n_sums], levels - 1, workers)
                scale, factors = shape_of(functions(rows.X), weights[:n_sums], levels - 1)
                assert_allclose(found.noise_scale, scale, rtol=1e-12)
                assert_allclose(found.gap_factors, factors if n_sums > 1 else factors[:0], rtol=1e-12)


# --- Fits of the shape -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn(problems):
    """Rows whose labels are drawn from the model, with a known shape, and a fit of the shape."""
    rng = np.random.default_rng(0)
    _, functions, mode, _ = problems[5]
    X = rng.normal(size=(20_000, 2))
    weights = np.array([[0.5, 0.0, 0.0], [0.0, -0.7, 0.0], [0.0, 0.0, 0.0]])
    p = probabilities(functions(X), mode, weights)
    y = (rng.random((len(X), 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    rows = replace(problems[5][0], X=X, y=y, weight=np.ones(len(X)), source=np.arange(len(X)))
    with Workers(2) as workers:
        columns = columns_of(rows, functions, workers)
        found = fit_shape(rows, functions, columns, mode, np.zeros((3, 3)), np.full(3, 30.0), workers)
    return rows, functions, mode, weights, found


def test_a_known_shape_is_found(drawn):
    rows, functions, mode, weights, found = drawn
    assert isinstance(found, ShapeFit)
    phi = functions(rows.X)
    for truth, fitted in zip(weights, found.weights, strict=True):
        assert np.sqrt(np.mean((phi @ (fitted - truth)) ** 2)) < 0.05
    assert found.precision[2] > 20 * found.precision[:2].max()  # the third sum is zero


@pytest.mark.parametrize("kept", [[0, 1, 2], [0, 2], [1], []])
def test_the_model_of_the_shape_is_that_of_some_of_its_functions(drawn, kept):
    """Its evidence and its weights, by the quadratic model of the likelihood in the weights of each sum."""
    rows, functions, mode, _, fitted = drawn
    rows, precision = rows.head(2000), np.array([30.0, 3.0, 300.0])
    reach = np.square(functions(rows.reference.X)).max(axis=0)
    prior = precision[:, None] * np.where(functions.ramp, reach, 1.0)
    with Workers(1) as workers:
        columns = columns_of(rows, functions, workers)
        found = shape_model(
            rows, functions, columns, mode, fitted.weights, precision, workers, rows.total_weight
        )
        sums = [expand_shape(rows, columns, mode, fitted.weights, q, workers) for q in range(3)]
    found, evidence, inside = found.take(np.array(kept, dtype=int)), 0.0, np.ix_(kept, kept)
    for q, here in enumerate(sums):
        linear = here.precision @ fitted.weights[q] + here.gradient
        evidence += dense.quadratic_evidence(here.precision[inside], linear[kept], prior[q, kept])
        at = here.precision[inside] + np.diag(prior[q, kept])
        assert_allclose(found.mode[q], np.linalg.solve(at, linear[kept]), rtol=1e-6, atol=1e-9)
    assert_allclose(found.log_evidence, evidence, rtol=1e-6, atol=1e-9)


def test_no_functions_no_shape(problems):
    rows, functions, mode, _ = problems[4]
    nothing = functions.take(slice(0))
    with Workers(1) as workers:
        columns = columns_of(rows, nothing, workers)
        found = fit_shape(rows, nothing, columns, mode, np.zeros((2, 0)), np.ones(2), workers)
        assert found.weights.shape == (2, 0)
        shape = shape_at_rows(rows, columns, found.weights, 3, workers)
    assert_array_equal(shape.noise_scale, 1.0)
    assert_array_equal(shape.gap_factors, np.ones((2, len(rows))))


# --- Noise of estimators -----------------------------------------------------------------------------------


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
    assert log_score(model, new_X, new_y) > log_score(constant, new_X, new_y) + 0.02


def test_constant_noise_is_left_alone():
    X, y, _ = heteroscedastic(3000, 2, 0.0)
    scale = ISBOR(basis="mixed").fit(X, y).noise_scale(X)
    assert np.std(np.log(scale)) < 0.05


def test_one_extreme_row_does_not_overflow():
    X, y, _ = heteroscedastic(500, 3, 0.8)
    model = ISBOR(basis="mixed").fit(X, y)
    far = model.noise_scale(np.array([[1e9, 1e9], [-1e9, -1e9], [0.0, 1e9]]))
    assert np.all(np.abs(np.log(far / model.sigma_)) <= 3.1)


# --- Thresholds of estimators ------------------------------------------------------------------------------


def log_gap_ratio(thresholds):
    """How much wider the upper gap is than the lower one, as a logarithm."""
    gaps = np.diff(thresholds, axis=-1)
    return np.log(gaps[..., -1] / gaps[..., 0])


def test_thresholds_that_vary_are_found():
    X, y, truth = varying_cuts(4000, 0, spread=0.8)
    new_X, new_y, _ = varying_cuts(4000, 1, spread=0.8)
    model = ISBOR(basis="mixed").fit(X, y)
    constant = ISBOR(basis="mixed", thresholds="constant").fit(X, y)
    assert_array_equal(np.ptp(constant.thresholds_at(X), axis=0), 0.0)
    assert_allclose(constant.thresholds_at(X[:1])[0], constant.thresholds_, rtol=1e-12)
    assert log_score(model, new_X, new_y) > log_score(constant, new_X, new_y) + 0.02
    found = model.thresholds_at(X)
    assert np.all(np.diff(found, axis=1) > 0)
    error = log_gap_ratio(found) - log_gap_ratio(truth)
    assert np.std(error) < 0.4 * np.std(log_gap_ratio(truth))
    # Thresholds and scores in units of the noise, which is constant: the whole distribution.
    assert np.std(np.log(model.noise_scale(X))) < 0.15


def test_constant_thresholds_are_left_alone():
    X, y, _ = varying_cuts(4000, 2, spread=0.0)
    log_gaps = np.log(np.diff(ISBOR(basis="mixed").fit(X, y).thresholds_at(X), axis=1))
    assert np.std(log_gaps, axis=0).max() < 0.05


def test_one_extreme_row_leaves_the_thresholds_in_order():
    X, y, _ = varying_cuts(2000, 3, spread=0.8)
    model = ISBOR(basis="mixed").fit(X, y)
    far = np.array([[1e9, 1e9], [-1e9, -1e9], [0.0, 1e9], [0.0, -1e9]])
    thresholds = model.thresholds_at(far)
    assert np.all(np.isfinite(thresholds))
    assert np.all(np.diff(thresholds, axis=1) > 0)
    assert np.all(np.isfinite(model.predict_log_proba(far)))
