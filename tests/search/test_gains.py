"""Gains of single functions against the evidence's own, and the compiled code against the oracle."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor._core.compiled_maths import tanh
from isbor._core.parallel import Workers
from isbor.inference.evidence import gram_model, weight_posterior
from isbor.inference.expansion import expand, streamed
from isbor.inference.sparse import fit_weights
from isbor.search.adaptive import gains as module
from isbor.search.adaptive.compiled_gains import _evaluate, _new_batch, _write_slopes, climb, gains_of
from isbor.search.adaptive.gains import Directions, Gains, best_candidates
from isbor.search.adaptive.proposals import Proposals
from isbor.search.starts import start_from
from tests.oracles import gains as oracle
from tests.problems import small_rows


@pytest.fixture(scope="module")
def problem():
    rows = small_rows(n=301, d=4)
    proposals = Proposals(np.random.default_rng(0), np.arange(rows.X.shape[1]), np.ones(rows.X.shape[1]))
    with Workers(1) as workers:
        model = start_from(rows, proposals.fresh(rows, 8).centred_on(rows), workers)
        model = fit_weights(
            rows,
            model.functions,
            np.ones(len(model)),
            model.mode.weights,
            model.mode.thresholds,
            workers,
        )
    return rows, model, proposals.fresh(rows, 60)


def test_gains_are_those_of_additions(problem):
    rows, model, fresh = problem
    fresh = fresh.centred_on(rows)
    everything = model.functions.followed_by(fresh)
    weights = np.append(model.mode.weights, np.zeros(len(fresh)))
    with Workers(1) as workers:
        expansion = expand(rows, streamed(rows, everything), weights, model.mode.thresholds, workers)
        gains = Gains.of(rows, model, workers).values(fresh, workers)
    state = weight_posterior(gram_model(expansion), np.arange(len(model)), model.mode.alpha)
    ratio = (state.quality**2 / state.sparsity)[len(model) :]
    expected = np.where(ratio > 1, 0.5 * (ratio - 1 - np.log(np.maximum(ratio, 1))), 0.5 * (ratio - 1))
    sound = state.sparsity[len(model) :] > 1e-3 * np.diag(expansion.precision)[len(model) : len(everything)]
    assert sound.sum() > 30
    assert_allclose(gains[sound], expected[sound], rtol=0.02, atol=0.02)


@pytest.fixture(params=[1, 3], ids=["one block", "three blocks"])
def gains(problem, request, monkeypatch):
    rows, model, _ = problem
    if request.param > 1:
        monkeypatch.setattr(module, "_SMALL_PRODUCT", 0)
    with Workers(1) as workers:
        found = Gains.of(rows, model, workers)
    n_blocks, n, _ = found.fitted.explained.shape
    assert n_blocks == request.param
    assert (n_blocks * n > len(rows)) == (n_blocks > 1)  # the last block is filled up
    return found


def test_gains_and_their_slopes_are_those_of_the_oracle(problem, gains):
    _, _, fresh = problem
    entries = module._entries(fresh)
    batch = _new_batch(gains.fitted, len(fresh))
    by_centre, by_metric = np.zeros((2, len(entries.column)))
    _evaluate(gains.fitted, entries, 0, batch)
    _write_slopes(gains.fitted, entries, 0, batch, np.empty_like(batch.values), by_centre, by_metric)
    with Workers(1) as workers:
        found = gains.values(fresh, workers)
    expected, *slopes = oracle.gains_and_slopes(gains.fitted, fresh)
    assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert (expected > 1).sum() > 20
    for by, slope in zip((by_centre, by_metric), slopes, strict=True):
        assert_allclose(by, slope[fresh.metric != 0], rtol=1e-3, atol=1e-4 * np.abs(slope).max())


def test_slopes_of_the_oracle_are_derivatives(problem, gains):
    _, _, fresh = problem
    value, *slopes = oracle.gains_and_slopes(gains.fitted, fresh)
    h = 1e-5
    for name, slope in zip(("centres", "metric"), slopes, strict=True):
        for k in range(fresh.metric.shape[1]):
            step = h * (fresh.metric != 0) * (np.arange(fresh.metric.shape[1]) == k)
            up, down = (
                oracle.gains_and_slopes(gains.fitted, replace(fresh, **{name: getattr(fresh, name) + change}))
                for change in (step, -step)
            )
            sound = (fresh.metric[:, k] != 0) & (np.abs(value) > 1e-3)  # the slope jumps at zero
            assert sound.any()
            assert_allclose(slope[sound, k], ((up[0] - down[0]) / (2 * h))[sound], rtol=1e-4, atol=1e-5)


def test_climbing_is_that_of_the_oracle(problem, gains):
    _, _, fresh = problem
    with Workers(1) as workers:
        found = gains.climbed(fresh, 5, workers)
    expected = oracle.climb(gains.fitted, fresh, 5)
    same = np.isclose(found.centres, expected.centres, atol=1e-5) & np.isclose(found.metric, expected.metric)
    assert same.all(axis=1).mean() > 0.95  # where a slope is nearly zero, its sign may differ by rounding
    before, highest = (oracle.gains_and_slopes(gains.fitted, some)[0] for some in (fresh, expected))
    assert np.mean(highest > before + 0.1) > 0.5
    # Columns that are not used keep their centres.
    assert_array_equal(found.centres[fresh.metric == 0], fresh.centres[fresh.metric == 0])


def test_results_do_not_depend_on_the_number_of_threads(problem, gains):
    _, _, fresh = problem
    many = fresh.followed_by(fresh).followed_by(fresh)
    values, climbed = [], []
    for n_jobs in (1, 2):
        with Workers(n_jobs) as workers:
            values.append(gains.values(many, workers))
            climbed.append(gains.climbed(many, 4, workers))
    assert_array_equal(values[0], values[1])
    assert_array_equal(climbed[0].centres, climbed[1].centres)
    assert_array_equal(climbed[0].metric, climbed[1].metric)


def test_functions_are_compiled_for_one_type_of_arguments(problem, gains):
    _, _, fresh = problem
    one = fresh.take(np.flatnonzero((fresh.metric != 0).sum(axis=1) == 1)[:1])
    with Workers(1) as workers:
        for some in (one, fresh, fresh.take(slice(0))):
            assert len(gains.values(some, workers)) == len(gains.climbed(some, 1, workers)) == len(some)
    assert len(gains_of.signatures) == len(climb.signatures) == 1


def test_tanh():
    size = np.geomspace(1e-30, 20.0, 3001)
    x = np.concatenate([-size, [0.0], size]).astype(np.float32)
    power = np.empty_like(x)
    found = x.copy()
    tanh(found, power.view(np.int32), power)
    assert_allclose(found, np.tanh(x.astype(float)), rtol=2e-7)


def test_a_constant_gains_nothing(problem, gains):
    _, _, fresh = problem
    nothing = replace(fresh, metric=np.zeros_like(fresh.metric))
    with Workers(1) as workers:
        assert gains.values(nothing, workers).max() < 0
        assert_array_equal(gains.climbed(nothing, 3, workers).metric, 0.0)


def test_climbing_raises_the_gains_and_keeps_features(problem):
    rows, model, fresh = problem
    with Workers(1) as workers:
        gains = Gains.of(rows, model, workers)
        nothing = fresh.take(slice(0))
        plain, climbed = (
            best_candidates(fresh, nothing, gains, size_prior=2.0, keep=10, n_steps=n_steps, workers=workers)
            for n_steps in (0, 8)
        )
        before, after = gains.values(plain, workers), gains.values(climbed, workers)
    assert np.all(after >= before - 1e-4)
    assert after.max() > before.max() + 0.1
    assert np.array_equal(plain.metric != 0, climbed.metric != 0)


def test_the_best_direction_is_that_of_the_straight_line_that_gains_most(problem):
    rows, model, _ = problem
    d = rows.X.shape[1]
    random = np.random.default_rng(3)
    proposals = Proposals(random, np.arange(d), np.ones(d))
    with Workers(1) as workers:
        directions = Directions.of(Gains.of(rows, model, workers))
        best = directions.best(np.ones((1, d), dtype=bool))
        others = np.vstack([best, np.eye(d), random.normal(size=(50, d))])
        lines = replace(
            proposals.fresh(rows, len(others)),
            metric=0.01 * others,  # gentle: straight over all rows
            ramp=np.ones(len(others), dtype=bool),
        )
        gains = Gains.of(rows, model, workers).values(lines, workers)
    # The ridge takes a little; the strength of a single column is its Q²/S.
    assert gains[0] > gains[1:].max() - 0.1
    x = directions.strength
    expected = np.where(x > 1, 0.5 * (x - 1 - np.log(np.maximum(x, 1))), 0.5 * (x - 1))
    assert_allclose(gains[1 : d + 1], expected, rtol=0.05, atol=0.1)


def test_oblique_ramps_use_the_columns_of_their_features(problem):
    rows, model, _ = problem
    d = rows.X.shape[1]
    proposals = Proposals(np.random.default_rng(4), np.arange(d), np.ones(d))
    with Workers(1) as workers:
        ramps = proposals.oblique(rows, 40, Directions.of(Gains.of(rows, model, workers)))
    assert ramps.ramp.all()
    assert set(np.count_nonzero(ramps.metric, axis=1)) == {min(size, d) for size in (3, 6)}
