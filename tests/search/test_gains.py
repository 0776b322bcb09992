"""Gains of single functions against the evidence's own, and their slopes against differences."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isbor._core.parallel import Workers
from isbor.inference.evidence import gram_model, weight_posterior
from isbor.inference.expansion import expand, streamed
from isbor.inference.sparse import fit_weights
from isbor.search.adaptive.gains import Directions, Gains, best_candidates
from isbor.search.adaptive.proposals import Proposals
from isbor.search.starts import start_from
from tests.problems import small_rows


@pytest.fixture(scope="module")
def problem():
    rows = small_rows(n=300)
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


def test_slopes_of_gains(problem):
    rows, model, fresh = problem
    with Workers(1) as workers:
        gains = Gains.of(rows, model, workers)
        gains = replace(gains, **{name: getattr(gains, name).astype(float) for name in gains.__slots__})
        value, by_centre, by_metric = gains.slopes(fresh, workers)
        h = 3e-3  # parts of the gains are in single precision
        for name, slope in (("centres", by_centre), ("metric", by_metric)):
            step = h * (fresh.metric != 0) * (np.arange(fresh.metric.shape[1]) == 0)
            up = gains.values(replace(fresh, **{name: getattr(fresh, name) + step}), workers)
            down = gains.values(replace(fresh, **{name: getattr(fresh, name) - step}), workers)
            sound = (value > 0.1) & (fresh.metric[:, 0] != 0)
            assert sound.any()
            assert_allclose(slope[sound, 0], ((up - down) / (2 * h))[sound], rtol=2e-2, atol=2e-2)


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
