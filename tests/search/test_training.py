"""Joint training: its gradient against differences, and what it does to functions."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor.data.rows import canonical_rows
from isbor.inference.mode import starting_thresholds
from isbor.model.basis import monomials
from isbor.model.cuts import RowShape, gap_patterns
from isbor.model.likelihood import ordinal_probit
from isbor.search.adaptive import training
from isbor.search.adaptive.compiled_training import _likelihood, gradient, set_rates
from isbor.search.adaptive.proposals import Proposals
from isbor.search.adaptive.training import Parameters, Trainable, train_jointly
from tests.oracles import dense
from tests.problems import small_rows

PRECISIONS = np.array([0.2, 1.0, 3.0, 0.5])


def trainable(rows, m=12, *, n_sums=1, seed=0):
    """Return random functions, bumps and ramps, with random weights; no ramp is too flat for training."""
    rng = np.random.default_rng(seed)
    proposals = Proposals.of(rng, rows, np.arange(rows.X.shape[1]))
    thresholds = starting_thresholds(rows.y, rows.weight)
    functions = proposals.fresh(10 * m).functions(rows.X).centred_on(rows)
    steep = np.linalg.norm(functions.metric, axis=1) > 2 * training._FLATTEST
    return Trainable(
        functions.take(np.flatnonzero(steep | ~functions.ramp)[:m]),
        rng.normal(size=m),
        thresholds,
        0.2 * rng.normal(size=(n_sums, m)),
        PRECISIONS[:n_sums],
    )


def parts_of(parameters):
    """Return scales, shifts, weights, weights of the shape, middle and log gaps, in double precision."""
    layout = parameters.layout
    n, m = len(layout.column), len(layout.ramp)
    return np.split(parameters.vector.astype(float), np.cumsum([n, n, m, layout.n_sums * m, 1]))


def log_posterior(rows, parameters):
    """Return the log posterior per row of a model in training, in double precision."""
    layout, found = parameters.layout, parameters.result(rows)
    *_, weights, shape_weights, middle, log_gaps = parts_of(parameters)
    shape_weights = shape_weights.reshape(layout.n_sums, len(weights))
    values = found.functions.at(monomials(rows.X)).T
    phi = (values - layout.offset.astype(float)) / layout.deviation.astype(float)
    t = len(log_gaps) + 1
    thresholds = np.concatenate([[0.0], np.cumsum(np.exp(log_gaps))])
    thresholds += middle - 0.5 * (thresholds[(t - 1) // 2] + thresholds[t // 2])
    shape = ()
    if layout.n_sums:
        predictors = 3.0 * np.tanh(shape_weights @ phi.T / 3.0)
        patterns = gap_patterns(t, layout.n_sums - 1)
        shape = np.exp(predictors[0]), np.exp(patterns.T @ predictors[1:])
    p = dense.probabilities(phi @ weights, thresholds, *(shape or (1.0,)))[np.arange(len(rows)), rows.y]
    likelihood = rows.weight @ np.log(p + layout.lapse)
    penalty = training._WEIGHT_PRECISION * np.sum(weights**2)
    penalty += np.sum(PRECISIONS[: layout.n_sums] @ (layout.height.astype(float) * shape_weights**2))
    return (likelihood - 0.5 * penalty) / rows.weight.sum()


def gradient_of(rows, parameters, chosen=slice(None)):
    """Return the compiled gradient, from some rows."""
    X = np.ascontiguousarray(rows.X[chosen].T, dtype=np.float32)
    y, weight = rows.y[chosen], rows.weight[chosen]
    share = (weight / len(y) / rows.weight.mean()).astype(np.float32)
    by = np.zeros_like(parameters.vector)
    gradient(parameters.layout, parameters.vector, X, y, share, by)
    return by


def rows_with_a_column_of_two_values(n=150, levels=4):
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(n, 2)), rng.random(n) < 0.4])
    cuts = np.arange(levels - 1) - 0.5 if levels <= 4 else np.linspace(-0.8, 1.6, levels - 1)
    y = np.digitize(X[:, 0] + X[:, 2] + 0.5 * rng.normal(size=n), cuts)
    rows, _ = canonical_rows(X, y, np.ones(n))
    return rows


@pytest.mark.parametrize(
    ("levels", "n_sums"), [(4, 0), (4, 1), (2, 1), (3, 1), (4, 2), (5, 3), (6, 4), (6, 2)]
)
def test_gradient(levels, n_sums):
    rows = rows_with_a_column_of_two_values(levels=levels)
    start = trainable(rows, n_sums=n_sums)
    ramp = start.functions.ramp
    assert ramp.any() and not ramp.all()
    parameters = Parameters.of(rows, start)
    parameters = replace(parameters, layout=parameters.layout._replace(lapse=0.05))
    vector, n = parameters.vector, len(parameters.layout.column)
    set_rates(parameters.layout, vector, parameters.rate)
    free = parameters.rate > 0
    moved = np.add.reduceat(free[n : 2 * n], parameters.layout.first[:-1])
    assert_array_equal(moved[ramp], 1)  # a ramp has one shift
    assert len(vector) == 2 * n + (1 + n_sums) * len(ramp) + levels - 1
    vector += 0.1 * np.random.default_rng(1).normal(size=len(vector)) * free
    expected = np.zeros(len(vector))
    for k in np.flatnonzero(free):
        here, values, places = vector[k], [], []
        for step in (1e-2, -1e-2, 5e-3, -5e-3):
            vector[k] = here + np.float32(step)
            places.append(float(vector[k]))
            values.append(log_posterior(rows, parameters))
        vector[k] = here
        coarse = (values[0] - values[1]) / (places[0] - places[1])
        fine = (values[2] - values[3]) / (places[2] - places[3])
        expected[k] = (4 * fine - coarse) / 3
    found = gradient_of(rows, parameters)
    assert_allclose(np.where(free, found, 0.0), expected, rtol=1e-3, atol=2e-6)
    assert (np.abs(expected) > 1e-3).sum() > 20


def test_batches_have_the_gradient_of_all_rows_on_average():
    rows = small_rows(n=600)
    parameters = Parameters.of(rows, trainable(rows, n_sums=2))
    expected = gradient_of(rows, parameters)
    batches = training._draw_batches(600, 400, np.random.default_rng(0))
    assert batches.shape == (400, 256)
    assert all(len(np.unique(batches[k : k + 2])) == 512 for k in range(0, 400, 2))  # no row comes twice
    mean = np.mean([gradient_of(rows, parameters, chosen) for chosen in batches], axis=0)
    assert_allclose(mean, expected, atol=0.03 * np.abs(expected).max())


@pytest.mark.parametrize("low", [-60.0, -9.0, -1.0, 0.0, 0.3, 3.9, 4.1, 12.0, 45.0])
@pytest.mark.parametrize("gap", [1e-4, 0.05, 1.0, 7.0, 80.0])
def test_gradients_of_the_likelihood_far_from_the_label_and_between_close_thresholds(low, gap):
    # Two thresholds: the middle of both, and the logarithm of the gap.
    thresholds = np.array([low + 0.5 * gap, np.log(gap)], dtype=np.float32)
    middle, gap = float(thresholds[0]), float(np.exp(thresholds[1].astype(float)))
    low, high = middle - 0.5 * gap, middle + 0.5 * gap
    at = ordinal_probit(np.zeros(1), np.array([low]), np.array([high]))
    sums, by_threshold = np.zeros((2, 1), np.float32), np.zeros(2, np.float32)
    no_patterns = np.empty((0, 1))
    _likelihood(np.ones(1, np.intp), np.ones(1, np.float32), sums, thresholds, no_patterns, 0.0, by_threshold)
    assert_allclose(sums[0], at.slope, rtol=1e-6, atol=1e-7)
    by_gap = 0.5 * gap * (at.upper[0] + at.lower[0])
    assert_allclose(by_threshold, [at.upper[0] - at.lower[0], by_gap], rtol=1e-5, atol=1e-7)
    by_scale = low * at.lower[0] - high * at.upper[0]
    assert_allclose(sums[1], by_scale, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("label", range(5))
@pytest.mark.parametrize("size", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("lapse", [0.0, 0.02])
def test_gradients_of_the_likelihood_in_each_sum(label, size, lapse):
    """With random sums, and so large that they are near their limits."""
    rng = np.random.default_rng(label)
    thresholds = np.array([0.3, 0.1, -0.5, 0.4], dtype=np.float32)
    start = (np.array([[1.0], *(size * np.ones((3, 1)))]) * rng.normal(size=(4, 1))).astype(np.float32)
    patterns = gap_patterns(4)

    def log_p(parameters):
        predictors = 3.0 * np.tanh(parameters[1:4] / 3.0)
        gaps = np.exp(parameters[5:])
        b = np.concatenate([[0.0], np.cumsum(gaps)])
        b += parameters[4] - 0.5 * (b[1] + b[2])
        factors = np.exp(predictors[1:] @ patterns)[:, None]
        edge = np.pad(dense.row_thresholds(b, factors)[0], 1, constant_values=(-np.inf, np.inf))
        score, scale = parameters[:1], np.exp(predictors[:1])
        at = ordinal_probit(score, edge[label : label + 1], edge[label + 1 :][:1], scale=scale)
        return np.log(np.exp(at.log_p[0]) + lapse) if lapse else at.log_p[0]

    sums, by_threshold = start.copy(), np.zeros(4, np.float32)
    y, share = np.full(1, label, np.intp), np.ones(1, np.float32)
    _likelihood(y, share, sums, thresholds, patterns, lapse, by_threshold)
    expected = dense.gradient(log_p, np.concatenate([start.ravel(), thresholds]).astype(float))
    assert_allclose(np.append(sums, by_threshold), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n_sums", [0, 1, 2])
def test_training_raises_the_log_posterior_and_is_repeatable(n_sums):
    rows = small_rows(n=1000)
    start = trainable(rows, m=20, n_sums=n_sums)
    before = log_posterior(rows, Parameters.of(rows, start))
    found = [train_jointly(rows, start, 200, 0.03, np.random.default_rng(5)) for _ in range(2)]
    after = log_posterior(rows, Parameters.of(rows, found[0]))
    assert after > before + 0.2
    assert_array_equal(found[0].functions.centres, found[1].functions.centres)
    assert_array_equal(found[0].weights, found[1].weights)
    assert_array_equal(found[0].shape_weights, found[1].shape_weights)
    assert found[0].shape_weights.shape == (n_sums, 20)
    assert np.all(np.diff(found[0].thresholds) > 0)
    # A feature that a function does not use stays unused, a used one used.
    assert_array_equal(found[0].functions.metric != 0, start.functions.metric != 0)


def test_centres_of_bumps_do_not_move_along_a_column_of_two_values():
    rows = rows_with_a_column_of_two_values()
    start = trainable(rows, m=30)
    found = train_jointly(rows, start, 100, 0.03, np.random.default_rng(0)).functions
    bumps = ~start.functions.ramp
    assert_allclose(found.centres[bumps, 2], start.functions.centres[bumps, 2], rtol=1e-6)
    moved = np.abs(found.centres - start.functions.centres)[bumps, :2][start.functions.metric[bumps, :2] != 0]
    assert np.median(moved) > 0.01


def test_a_flat_ramp_becomes_a_steeper_one_of_the_same_direction():
    metric = np.array([[3e-4, -4e-4], [3.0, -4.0], [3e-4, 0.0]])
    steeper, flat = training._not_too_flat(metric, np.array([True, True, False]))
    assert_array_equal(flat, [True, False, False])
    assert_allclose(steeper[0], np.array([0.6, -0.8]) * training._FLATTEST)
    assert_array_equal(steeper[1:], metric[1:])


def test_functions_that_cancel_do_not_blow_up():
    """Two nearly equal functions of large weights: full steps would change the score by hundreds."""
    rows = small_rows(n=1000)
    start = trainable(rows, m=6, n_sums=0)
    twins = start.functions.take(np.array([0, 0, 1, 2, 3, 4]))
    twins = replace(twins, centres=twins.centres + np.array([[0.0], [1e-4], [0], [0], [0], [0]]))
    weights = np.array([500.0, -500.0, 0.1, 0.1, 0.1, 0.1])
    start = replace(start, functions=twins.centred_on(rows), weights=weights)
    found = train_jointly(rows, start, 300, 0.03, np.random.default_rng(0))
    score = found.functions.centred_on(rows)(rows.X) @ found.weights
    assert np.std(score) < 10.0


# --- Centres of functions ----------------------------------------------------------------------------------


def probabilities_of(model, X):
    """Class probabilities of a model in training."""
    phi, t = model.functions(X), len(model.thresholds)
    shape = RowShape.constant(len(X))
    if len(model.shape_weights):
        shape = RowShape.of(np.ascontiguousarray(phi.T), model.shape_weights, t)
    factors = shape.gap_factors if len(shape.gap_factors) else np.ones((t - 1, len(X)))
    return dense.probabilities(phi @ model.weights, model.thresholds, shape.noise_scale, factors)


@pytest.mark.parametrize("levels", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("n_sums", [0, 1, 3])
def test_centred_functions_give_the_same_probabilities(levels, n_sums):
    n_sums = min(n_sums, 1 + len(gap_patterns(levels - 1)))
    rows = small_rows(levels=levels, n=300)
    centred = trainable(rows, n_sums=n_sums)
    # Sums so small that they do not saturate.
    offset = centred.functions.offset + 0.5 * np.random.default_rng(4).normal(size=12)
    small = replace(
        centred,
        functions=replace(centred.functions, offset=offset),
        shape_weights=0.01 * centred.shape_weights,
    )
    found = small.centred_on(rows)
    assert_allclose(found.functions.offset, centred.functions.offset, rtol=1e-12)
    expected = probabilities_of(small, rows.X)
    assert_allclose(probabilities_of(found, rows.X), expected, rtol=1e-6, atol=1e-9)
    changed = replace(small, functions=found.functions)
    assert np.abs(probabilities_of(changed, rows.X) - expected).max() > 0.01
    assert_array_equal(found.shape_weights, small.shape_weights)
    assert np.all(np.diff(found.thresholds) > 0)


@pytest.mark.parametrize("sum_number", [0, 1, 2])
def test_each_constant_of_the_shape_goes_to_the_thresholds(sum_number):
    """One sum at a time, so that none hides behind another."""
    rows = small_rows(levels=5, n=300)
    start = trainable(rows, n_sums=3)
    shape_weights = np.where(np.arange(3)[:, None] == sum_number, 0.001 * start.shape_weights, 0.0)
    moved = replace(start.functions, offset=start.functions.offset + 20.0)
    before = replace(start, functions=moved, weights=0.0 * start.weights, shape_weights=shape_weights)
    after = before.centred_on(rows)
    expected = probabilities_of(before, rows.X)
    assert_allclose(probabilities_of(after, rows.X), expected, rtol=1e-5)
    plain = replace(after, thresholds=before.thresholds)
    assert not np.allclose(probabilities_of(plain, rows.X), expected, rtol=1e-3)


def test_parameters_describe_the_start():
    """Before the first step, the result is the start."""
    rows = small_rows(levels=6, n=400)
    start = trainable(rows, n_sums=4)
    found = Parameters.of(rows, start).result(rows)
    assert_allclose(found.thresholds, start.thresholds, atol=1e-5)
    assert_allclose(found.weights, start.weights, rtol=1e-4, atol=1e-5)
    assert_allclose(found.shape_weights, start.shape_weights, rtol=1e-4, atol=1e-5)
    assert_array_equal(found.shape_precision, start.shape_precision)
    assert_allclose(probabilities_of(found, rows.X), probabilities_of(start, rows.X), atol=1e-5)
