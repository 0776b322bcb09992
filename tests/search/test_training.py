"""Joint training: its gradient against differences, and what it does to functions."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor._core.compiled import compiled_sums
from isbor.data.rows import canonical_rows
from isbor.inference.mode import starting_thresholds
from isbor.inference.noise import noise_scale_of
from isbor.model.basis import monomials
from isbor.model.likelihood import edges, ordinal_probit
from isbor.search.adaptive import compiled_training, training
from isbor.search.adaptive.proposals import Proposals
from isbor.search.adaptive.training import Parameters, Trainable, train_jointly
from tests.compiled import callable_from_python
from tests.problems import small_rows

_densities = callable_from_python(compiled_training._densities)
_exp = callable_from_python(compiled_training._exp)
gradient = compiled_sums(compiled_training.gradient.py_func)
set_rates = callable_from_python(compiled_training.set_rates)


def trainable(rows, m=12, *, varying_noise=True, seed=0):
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
        0.2 * rng.normal(size=m) if varying_noise else None,
    )


def log_posterior(rows, parameters):
    """Return the log posterior per row of a model in training, in double precision."""
    found, layout = parameters.result(), parameters.layout
    phi = found.functions.at(monomials(rows.X)).T - layout.offset.astype(float)
    scale = 1.0 if found.noise_weights is None else noise_scale_of(phi, found.noise_weights)
    edge = edges(found.thresholds)
    at = ordinal_probit(phi @ found.weights, edge[rows.y], edge[rows.y + 1], scale=scale)
    deviation = layout.deviation.astype(float)
    penalty = training._WEIGHT_PRECISION * np.sum((deviation * found.weights) ** 2)
    if found.noise_weights is not None:
        penalty += training._NOISE_PRECISION * np.sum((deviation * found.noise_weights) ** 2)
    return (rows.weight @ at.log_p - 0.5 * penalty) / rows.weight.sum()


def gradient_of(rows, parameters, chosen=slice(None)):
    """Return the compiled gradient, from some rows."""
    X = np.ascontiguousarray(rows.X[chosen].T, dtype=np.float32)
    y, weight = rows.y[chosen], rows.weight[chosen]
    share = (weight / len(y) / rows.weight.mean()).astype(np.float32)
    by = np.zeros_like(parameters.vector)
    gradient(parameters.layout, parameters.vector, X, y, share, by)
    return by


def rows_with_a_column_of_two_values(n=150):
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(n, 2)), rng.random(n) < 0.4])
    y = np.digitize(X[:, 0] + X[:, 2] + 0.5 * rng.normal(size=n), [-0.5, 0.5, 1.5])
    rows, _ = canonical_rows(X, y, np.ones(n))
    return rows


@pytest.mark.parametrize("varying_noise", [True, False])
def test_gradient(varying_noise):
    rows = rows_with_a_column_of_two_values()
    start = trainable(rows, varying_noise=varying_noise)
    ramp = start.functions.ramp
    assert ramp.any() and not ramp.all()
    parameters = Parameters.of(rows, start)
    vector, n = parameters.vector, len(parameters.layout.column)
    set_rates(parameters.layout, vector, parameters.rate)
    free = parameters.rate > 0
    moved = np.add.reduceat(free[n : 2 * n], parameters.layout.first[:-1])
    assert_array_equal(moved[ramp], 1)  # a ramp has one shift
    if not varying_noise:
        free[2 * n + len(ramp) : 2 * n + 2 * len(ramp)] = False
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
    parameters = Parameters.of(rows, trainable(rows))
    expected = gradient_of(rows, parameters)
    batches = training._draw_batches(600, 400, np.random.default_rng(0))
    assert batches.shape == (400, 256)
    assert all(len(np.unique(batches[k : k + 2])) == 512 for k in range(0, 400, 2))  # no row comes twice
    mean = np.mean([gradient_of(rows, parameters, chosen) for chosen in batches], axis=0)
    assert_allclose(mean, expected, atol=0.03 * np.abs(expected).max())


@pytest.mark.parametrize("low", [-60.0, -9.0, -1.0, 0.0, 0.3, 3.9, 4.1, 12.0, 45.0])
@pytest.mark.parametrize("gap", [1e-4, 0.05, 1.0, 7.0, 80.0, np.inf])
def test_densities_are_those_of_the_likelihood(low, gap):
    high = low + gap
    at = ordinal_probit(np.zeros(1), np.array([low]), np.array([high]))
    assert_allclose(_densities(low, high), [at.lower[0], at.upper[0]], rtol=1e-8, atol=1e-15)
    assert_allclose(_densities(-high, -low), [at.upper[0], at.lower[0]], rtol=1e-8, atol=1e-15)


def test_exponential():
    x = np.linspace(-100.0, 0.0, 4001).astype(np.float32)
    power = np.empty_like(x)
    found = x.copy()
    _exp(found, power.view(np.int32), power)
    assert_allclose(found, np.exp(np.maximum(x, -87.0).astype(float)), rtol=4e-7)


def test_training_raises_the_log_posterior_and_is_repeatable():
    rows = small_rows(n=1000)
    start = trainable(rows, m=20)
    before = log_posterior(rows, Parameters.of(rows, start))
    found = [train_jointly(rows, start, 200, 0.03, np.random.default_rng(5)) for _ in range(2)]
    after = log_posterior(rows, Parameters.of(rows, found[0]))
    assert after > before + 0.2
    assert_array_equal(found[0].functions.centres, found[1].functions.centres)
    assert_array_equal(found[0].weights, found[1].weights)
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
    start = trainable(rows, m=6, varying_noise=False)
    twins = start.functions.take(np.array([0, 0, 1, 2, 3, 4]))
    twins = replace(twins, centres=twins.centres + np.array([[0.0], [1e-4], [0], [0], [0], [0]]))
    weights = np.array([500.0, -500.0, 0.1, 0.1, 0.1, 0.1])
    start = Trainable(twins.centred_on(rows), weights, start.thresholds, None)
    found = train_jointly(rows, start, 300, 0.03, np.random.default_rng(0))
    score = found.functions.centred_on(rows)(rows.X) @ found.weights
    assert np.std(score) < 10.0
