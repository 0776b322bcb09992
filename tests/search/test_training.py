"""Joint training: its gradient against differences, and what it does to functions."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor.data.rows import canonical_rows
from isbor.inference.mode import starting_thresholds
from isbor.inference.noise import noise_scale_of
from isbor.model.basis import column_costs, monomials
from isbor.model.likelihood import edges, ordinal_probit
from isbor.search.adaptive import training
from isbor.search.adaptive.proposals import Proposals
from isbor.search.adaptive.training import Trainable, train_jointly
from tests.problems import small_rows


def trainable(rows, m=12, *, varying_noise=True, seed=0):
    """Return random functions, bumps and ramps, with random weights."""
    rng = np.random.default_rng(seed)
    proposals = Proposals(rng, np.arange(rows.X.shape[1]), column_costs(rows))
    thresholds = starting_thresholds(rows.y, rows.weight)
    return Trainable(
        proposals.fresh(rows, m).centred_on(rows),
        rng.normal(size=m),
        thresholds,
        0.2 * rng.normal(size=m) if varying_noise else None,
    )


def log_posterior(rows, model):
    """Return the log posterior per row of a model in training, in double precision."""
    found = model.result()
    phi = found.functions.at(monomials(rows.X)).T - model.offset.astype(float)
    scale = 1.0 if found.noise_weights is None else noise_scale_of(phi, found.noise_weights)
    edge = edges(found.thresholds)
    at = ordinal_probit(phi @ found.weights, edge[rows.y], edge[rows.y + 1], scale=scale)
    deviation = model.deviation.astype(float)
    penalty = training._WEIGHT_PRECISION * np.sum((deviation * found.weights) ** 2)
    if found.noise_weights is not None:
        penalty += training._NOISE_PRECISION * np.sum((deviation * found.noise_weights) ** 2)
    return (rows.weight @ at.log_p - 0.5 * penalty) / rows.weight.sum()


def everything(rows):
    """Return all rows as one batch."""
    powers = np.ascontiguousarray(monomials(rows.X).T, dtype=np.float32)
    return powers, rows.y, (rows.weight / rows.weight.sum()).astype(np.float32)


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
    assert start.functions.ramp.any() and not start.functions.ramp.all()
    model = training._Model.of(rows, start)
    model.set_rates()
    rng = np.random.default_rng(1)
    assert_array_equal((model.rate.shift > 0)[start.functions.ramp].sum(axis=1), 1)  # one shift a ramp
    model.at.vector[:] += 0.1 * rng.normal(size=len(model.at.vector)) * (model.rate.vector > 0)
    model.set_gradient(*everything(rows))
    for name in ("scale", "shift", "weights", "noise_weights", "thresholds"):
        at, by = getattr(model.at, name).reshape(-1), getattr(model.by, name).reshape(-1)
        rate = getattr(model.rate, name).reshape(-1)
        expected = np.zeros(len(at))
        for k in np.flatnonzero(rate > 0):
            here, values, places = at[k], [], []
            for step in (1e-2, -1e-2, 5e-3, -5e-3):
                at[k] = here + np.float32(step)
                places.append(float(at[k]))
                values.append(log_posterior(rows, model))
            at[k] = here
            coarse = (values[0] - values[1]) / (places[0] - places[1])
            fine = (values[2] - values[3]) / (places[2] - places[3])
            expected[k] = (4 * fine - coarse) / 3
        assert_allclose(np.where(rate > 0, by, 0.0), expected, rtol=1e-3, atol=2e-6, err_msg=name)


def test_a_batch_of_all_rows_has_the_gradient_of_all_and_batches_have_it_on_average():
    rows = small_rows(n=600)
    model = training._Model.of(rows, trainable(rows))
    model.set_gradient(*everything(rows))
    expected = model.by.weights.copy()
    batches = training._Batches(rows, np.random.default_rng(0))
    seen, total = [], np.zeros(len(expected))
    for _ in range(400):
        powers, y, share = batches.draw()
        seen.append(len(y))
        model.set_gradient(powers, y, share)
        total += model.by.weights
    assert set(seen) == {training._BATCH}
    spread = np.abs(expected).max()
    assert_allclose(total / 400, expected, atol=0.05 * spread)


def test_training_raises_the_log_posterior_and_is_repeatable():
    rows = small_rows(n=1000)
    start = trainable(rows, m=20)
    before = log_posterior(rows, training._Model.of(rows, start))
    found = [train_jointly(rows, start, 200, 0.03, np.random.default_rng(5)) for _ in range(2)]
    after = log_posterior(rows, training._Model.of(rows, found[0]))
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
