"""Gains of single functions against the evidence's own, and the compiled code against the oracle."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor._core.parallel import Workers
from isbor.inference.evidence import gram_model, weight_posterior
from isbor.inference.expansion import expand, streamed
from isbor.inference.sparse import fit_weights
from isbor.search.adaptive import gains as module
from isbor.search.adaptive.compiled_gains import _evaluate, _new_batch, _write_slopes, climb, gains_of
from isbor.search.adaptive.compiled_proposals import best_direction
from isbor.search.adaptive.entries import Entries
from isbor.search.adaptive.gains import Directions, Gains, best_candidates
from isbor.search.adaptive.proposals import Proposals
from isbor.search.starts import start_from
from tests.oracles import gains as oracle
from tests.problems import random_shape, small_rows


@pytest.fixture(scope="module", params=["constant", "varying"])
def problem(request):
    """Rows, a model at its mode, proposed functions, and the shape of the rows."""
    rows = small_rows(n=301, d=4, levels=5)
    shape = random_shape(rows) if request.param == "varying" else None
    proposals = Proposals.of(np.random.default_rng(0), rows, np.arange(rows.X.shape[1]))
    with Workers(1) as workers:
        model = start_from(rows, proposals.fresh(8).functions(rows.X).centred_on(rows), workers)
        model = fit_weights(
            rows,
            model.functions,
            np.ones(len(model)),
            model.mode.weights,
            model.mode.thresholds,
            workers,
            shape,
        )
    return rows, model, proposals.fresh(60).functions(rows.X), shape


def values(gains, functions):
    with Workers(1) as workers:
        return gains.values(Entries.of(functions), workers)


def climbed(gains, functions, n_steps, n_jobs=1):
    entries = Entries.of(functions)
    with Workers(n_jobs) as workers:
        gains.climb(entries, n_steps, workers)
    used = functions.metric != 0
    centres, metric = functions.centres.copy(), functions.metric.copy()
    centres[used], metric[used] = entries.centre, entries.metric
    return replace(functions, centres=centres, metric=metric)


def test_gains_are_those_of_additions(problem):
    rows, model, fresh, shape = problem
    fresh = fresh.centred_on(rows)
    everything = model.functions.followed_by(fresh)
    weights = np.append(model.mode.weights, np.zeros(len(fresh)))
    with Workers(1) as workers:
        expansion = expand(rows, streamed(rows, everything), weights, model.mode.thresholds, workers, shape)
        gains = values(Gains.of(rows, model, workers, shape), fresh)
    state = weight_posterior(gram_model(expansion), np.arange(len(model)), model.mode.alpha)
    ratio = (state.quality**2 / state.sparsity)[len(model) :]
    expected = np.where(ratio > 1, 0.5 * (ratio - 1 - np.log(np.maximum(ratio, 1))), 0.5 * (ratio - 1))
    sound = state.sparsity[len(model) :] > 1e-3 * np.diag(expansion.precision)[len(model) : len(everything)]
    assert sound.sum() > 30
    assert_allclose(gains[sound], expected[sound], rtol=0.02, atol=0.02)


@pytest.fixture(params=[1, 3], ids=["one block", "three blocks"])
def gains(problem, request, monkeypatch):
    rows, model, _, shape = problem
    if request.param > 1:
        monkeypatch.setattr(module, "_SMALL_PRODUCT", 0)
    with Workers(1) as workers:
        found = Gains.of(rows, model, workers, shape)
    n_blocks, n, _ = found.fitted.explained.shape
    assert n_blocks == request.param
    assert (n_blocks * n > len(rows)) == (n_blocks > 1)  # the last block is filled up
    return found


def test_gains_and_their_slopes_are_those_of_the_oracle(problem, gains):
    _, _, fresh, _ = problem
    entries = Entries.of(fresh)
    batch = _new_batch(gains.fitted, len(fresh))
    by_centre, by_metric = np.zeros((2, len(entries.column)))
    _evaluate(gains.fitted, entries, 0, batch)
    _write_slopes(gains.fitted, entries, 0, batch, np.empty_like(batch.values), by_centre, by_metric)
    found = values(gains, fresh)
    expected, *slopes = oracle.gains_and_slopes(gains.fitted, fresh)
    assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert (expected > 1).sum() > 20
    for by, slope in zip((by_centre, by_metric), slopes, strict=True):
        assert_allclose(by, slope[fresh.metric != 0], rtol=1e-3, atol=1e-4 * np.abs(slope).max())


def test_slopes_of_the_oracle_are_derivatives(problem, gains):
    _, _, fresh, _ = problem
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
    _, _, fresh, _ = problem
    found = climbed(gains, fresh, 5)
    expected = oracle.climb(gains.fitted, fresh, 5)
    same = np.isclose(found.centres, expected.centres, atol=1e-5) & np.isclose(found.metric, expected.metric)
    assert same.all(axis=1).mean() > 0.95  # where a slope is nearly zero, its sign may differ by rounding
    before, highest = (oracle.gains_and_slopes(gains.fitted, some)[0] for some in (fresh, expected))
    assert np.mean(highest > before + 0.1) > 0.5


def test_results_do_not_depend_on_the_number_of_threads(problem, gains):
    _, _, fresh, _ = problem
    many = Entries.of(fresh.take(np.tile(np.arange(len(fresh)), 6)))
    found = []
    for n_jobs in (1, 2):
        moved = many.take(np.arange(many.n_functions))
        with Workers(n_jobs) as workers:
            gained = gains.values(many, workers)
            gains.climb(moved, 4, workers)
        found.append((gained, moved.centre, moved.metric))
    for one, other in zip(*found, strict=True):
        assert_array_equal(one, other)


def test_functions_are_compiled_for_one_type_of_arguments(problem, gains):
    _, _, fresh, _ = problem
    one = fresh.take(np.flatnonzero((fresh.metric != 0).sum(axis=1) == 1)[:1])
    for some in (one, fresh, fresh.take(slice(0))):
        assert len(values(gains, some)) == len(climbed(gains, some, 1)) == len(some)
    assert len(gains_of.signatures) == len(climb.signatures) == 1


def test_a_constant_gains_nothing(problem, gains):
    _, _, fresh, _ = problem
    nothing = replace(fresh, metric=np.zeros_like(fresh.metric))
    assert values(gains, nothing).max() < 0
    assert_array_equal(climbed(gains, nothing, 3).metric, 0.0)


def test_climbing_raises_the_gains_and_keeps_features(problem):
    rows, model, fresh, shape = problem
    proposed = Entries.of(fresh)
    with Workers(1) as workers:
        gains = Gains.of(rows, model, workers, shape)
        nothing = proposed.take(np.arange(0))
        plain, improved = (
            best_candidates(
                proposed, nothing, gains, size_prior=2.0, keep=10, n_steps=n_steps, workers=workers
            )
            for n_steps in (0, 8)
        )
        before, after = gains.values(plain, workers), gains.values(improved, workers)
    assert np.all(after >= before - 1e-4)
    assert after.max() > before.max() + 0.1
    assert_array_equal(plain.first, improved.first)
    assert_array_equal(plain.column, improved.column)


def test_the_best_direction_is_that_of_the_straight_line_that_gains_most(problem):
    rows, model, fresh, shape = problem
    d = rows.X.shape[1]
    random = np.random.default_rng(3)
    with Workers(1) as workers:
        gains = Gains.of(rows, model, workers, shape)
    quality, sparsity = (getattr(Directions.of(gains), name) for name in ("quality", "sparsity"))
    best = best_direction(quality, sparsity, np.arange(d))
    others = np.vstack([best, np.eye(d), random.normal(size=(50, d))])
    lines = replace(
        fresh.take(np.zeros(len(others), dtype=int)),
        metric=0.01 * others,  # gentle: straight over all rows
        ramp=np.ones(len(others), dtype=bool),
    )
    gained = values(gains, lines)
    # The ridge takes a little; the gain of a single column is that of its Q²/S.
    assert gained[0] > gained[1:].max() - 0.1
    x = quality**2 / np.diag(sparsity)
    expected = np.where(x > 1, 0.5 * (x - 1 - np.log(np.maximum(x, 1))), 0.5 * (x - 1))
    assert_allclose(gained[1 : d + 1], expected, rtol=0.05, atol=0.1)


def test_directions_do_not_depend_on_tiles(problem, monkeypatch):
    rows, model, _, shape = problem
    with Workers(1) as workers:
        gains = Gains.of(rows, model, workers, shape)
    whole = Directions.of(gains)
    monkeypatch.setattr("isbor.search.adaptive.gains._FEWEST_COLUMNS", 2)
    monkeypatch.setattr("isbor.search.adaptive.gains._TILE_CELLS", 1)
    tiled = Directions.of(gains)
    assert rows.X.shape[1] > 2
    assert_allclose(tiled.quality, whole.quality, rtol=1e-10)
    assert_allclose(tiled.sparsity, whole.sparsity, rtol=1e-10, atol=1e-10 * np.abs(whole.sparsity).max())
