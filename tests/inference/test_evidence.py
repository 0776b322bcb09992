from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isbor.inference import compiled_moves
from isbor.inference.compiled_moves import KINDS, State
from isbor.inference.evidence import Move, WeightPosterior, best_move, gram_model, weight_posterior
from tests.compiled import callable_from_python
from tests.oracles import dense
from tests.problems import expansion_of, small_rows

compiled_apply_move = callable_from_python(compiled_moves.apply_move)
compiled_residual = callable_from_python(compiled_moves.residual)
optimal_precision = callable_from_python(compiled_moves.optimal_precision)


@pytest.fixture(params=[0.3, 0.01], ids=["narrow", "wide"])
def expansion(request):
    return expansion_of(small_rows(), gamma=request.param)[0]


def joint_model(expansion, active, alpha):
    """The linear term of all parameters, and the active weights and all thresholds with their prior."""
    n = len(expansion.weights)
    theta = np.concatenate([expansion.weights, expansion.thresholds])
    chosen = np.concatenate([active, np.arange(n, len(theta))])
    prior = np.append(alpha, np.full(len(theta) - n, expansion.threshold_precision))
    return expansion.precision @ theta + expansion.gradient, chosen, prior


def dense_evidence(expansion, active, alpha):
    """The evidence of the quadratic model with thresholds among its parameters, nothing integrated early."""
    linear, chosen, prior = joint_model(expansion, active, alpha)
    return dense.quadratic_evidence(expansion.precision[np.ix_(chosen, chosen)], linear[chosen], prior)


def memory(state):
    """The arrays of a posterior as compiled code takes them."""
    return State(*(getattr(state, name) for name in State._fields))


def apply_move(model, state, move):
    """The posterior after a move, by compiled code."""
    m, n = len(state.active), len(model.linear)
    after = State(np.empty(m + 1, int), *(np.empty(s) for s in (m + 1, (m + 1, m + 1), m + 1, n, n)))
    kind = KINDS.index(move.kind)
    k = compiled_apply_move(model.gram, memory(state), m, kind, move.candidate, move.alpha, after)
    active, alpha, covariance, mean, sparsity, quality = after
    return WeightPosterior(active[:k], alpha[:k], covariance[:k, :k].copy(), mean[:k], sparsity, quality)


def residual(model, state):
    return compiled_residual(model.gram, model.linear, model.floor, len(state.active), memory(state))


def random_moves(model, state, rng, count):
    """Yield (move, state after it): random additions, deletions and reestimations."""
    for _ in range(count):
        outside = np.setdiff1d(np.flatnonzero(state.sparsity > model.floor), state.active)
        kind = rng.choice(["add", "delete", "reestimate"])
        if kind == "add" and (not len(outside) or len(state.active) > 12):
            kind = "delete"
        if not len(state.active):
            kind = "add"
        j = int(rng.choice(outside if kind == "add" else state.active))
        alpha = np.inf if kind == "delete" else 10.0 ** rng.uniform(-4, 3)
        move = Move(kind, j, alpha, 0.0)
        state = apply_move(model, state, move)
        yield move, state


def test_gains_are_differences_of_the_evidence(expansion):
    model = gram_model(expansion)
    rng = np.random.default_rng(1)
    state = weight_posterior(model, np.arange(4), np.array([0.1, 1.0, 3.0, 0.01]))
    seen = set()
    for c in (0.0, 1.5):
        for _, drawn in random_moves(model, state, rng, 60):
            state = weight_posterior(model, drawn.active, drawn.alpha)
            before = dense_evidence(expansion, state.active, state.alpha)
            for may_add in (True, False):
                move = best_move(state, model.floor, penalty=c, may_add=may_add)
                after = apply_move(model, state, move)
                difference = dense_evidence(expansion, after.active, after.alpha) - before
                price = c * (len(after.active) - len(state.active))
                assert_allclose(move.gain, difference - price, rtol=1e-6, atol=1e-6)
                seen.add(move.kind)
    assert seen == {"add", "delete", "reestimate"}


def test_integrating_the_thresholds_first_changes_nothing_but_a_constant(expansion):
    model = gram_model(expansion)
    rng = np.random.default_rng(2)
    constants = []
    for _ in range(10):
        active = rng.choice(len(expansion.weights), 6, replace=False)
        alpha = 10.0 ** rng.uniform(-3, 2, 6)
        reduced = dense.quadratic_evidence(model.gram[np.ix_(active, active)], model.linear[active], alpha)
        constants.append(dense_evidence(expansion, active, alpha) - reduced)
    assert_allclose(constants, constants[0], rtol=1e-9, atol=1e-9)


def test_sparsity_and_quality_by_their_definitions(expansion):
    n, active, alpha = len(expansion.weights), np.array([3, 7, 11]), np.array([0.2, 1.0, 4.0])
    state = weight_posterior(gram_model(expansion), active, alpha)
    linear, chosen, prior = joint_model(expansion, active, alpha)
    joint = expansion.precision[np.ix_(chosen, chosen)] + np.diag(prior)
    cross = expansion.precision[:n, chosen]
    expected_s = np.diag(expansion.precision)[:n] - np.sum(cross * np.linalg.solve(joint, cross.T).T, axis=1)
    expected_q = linear[:n] - cross @ np.linalg.solve(joint, linear[chosen])
    assert_allclose(state.sparsity, expected_s, rtol=1e-7, atol=1e-9)
    assert_allclose(state.quality, expected_q, rtol=1e-7, atol=1e-9)
    assert_allclose(state.covariance, np.linalg.inv(joint)[:3, :3], rtol=1e-8)


def digits_lost(model, state):
    """The largest difference to a fresh factorisation, in units of the numbers' own sizes."""
    fresh = weight_posterior(model, state.active, state.alpha)
    size = np.sqrt(np.diag(fresh.covariance))
    scale = np.diag(model.gram)
    differences = (
        (state.covariance - fresh.covariance) / size / size[:, None],
        (state.mean - fresh.mean) / size / (1 + np.abs(fresh.mean / size)),
        (state.sparsity - fresh.sparsity) / scale,
        (state.quality - fresh.quality) / np.sqrt(scale) / (1 + np.abs(fresh.quality) / np.sqrt(scale)),
    )
    return max(np.abs(difference).max(initial=0.0) for difference in differences)


def test_five_hundred_moves_lose_no_digits(expansion):
    model = gram_model(expansion)
    rng = np.random.default_rng(3)
    state = weight_posterior(model, np.arange(3), np.ones(3))
    worst = 0.0
    for _ in range(500):
        ((_, state),) = random_moves(model, state, rng, 1)
        if residual(model, state) > 1e-10:
            state = weight_posterior(model, state.active, state.alpha)
        worst = max(worst, digits_lost(model, state))
    assert worst < 1e-8


def test_without_refactorisation_digits_are_lost():
    """So the residual has something to see: wide functions, moves over many orders of magnitude."""
    model = gram_model(expansion_of(small_rows(), gamma=0.0003)[0])
    rng = np.random.default_rng(3)
    checked = weight_posterior(model, np.arange(3), np.ones(3))
    for move, unchecked in random_moves(model, checked, rng, 300):
        checked = apply_move(model, checked, move)
        if residual(model, checked) > 1e-10:
            checked = weight_posterior(model, checked.active, checked.alpha)
        if digits_lost(model, unchecked) > 1e-8:
            break
    assert digits_lost(model, checked) < 1e-8 < digits_lost(model, unchecked)


@pytest.mark.parametrize("last", [0.5 * (1 + 1e-6), 0.6])
def test_residual_sees_a_wrong_state(expansion, last):
    model = gram_model(expansion)
    state = weight_posterior(model, np.arange(5), np.full(5, 0.5))
    assert residual(model, state) < 1e-12
    wrong = weight_posterior(model, np.arange(5), np.array([0.5, 0.5, 0.5, 0.5, last]))
    assert residual(model, replace(state, covariance=wrong.covariance, mean=wrong.mean)) > 1e-10


@pytest.mark.parametrize(("s", "q"), [(2.0, 3.0), (1e-6, 0.5), (100.0, 11.0)])
def test_optimal_precision_maximises_the_contribution(s, q):
    contribution = lambda a: 0.5 * (np.log(a / (a + s)) + q**2 / (a + s))
    best = optimal_precision(s, q)
    assert np.argmax(contribution(best * np.array([0.5, 0.99, 1.0, 1.01, 2.0]))) == 2
    assert optimal_precision(2.0, 1.0) == np.inf  # it does not pay: it leaves


def test_collinear_and_constant_candidates_are_never_added():
    model = gram_model(expansion_of(small_rows(), n_candidates=10)[0])
    # A copy of candidate 0, and a constant (all of it taken up by the thresholds).
    gram = np.pad(model.gram, (0, 2))
    gram[10, :10] = gram[:10, 10] = model.gram[0]
    gram[10, 10] = model.gram[0, 0]
    gram[11, 11] = 1e-18
    linear = np.concatenate([model.linear, [model.linear[0], 1e-7]])
    wide = replace(
        model, gram=gram, linear=linear, floor=np.append(model.floor, [model.floor[0], model.floor.min()])
    )
    state = weight_posterior(wide, np.array([0]), np.array([1e-9]))
    assert state.quality[11] ** 2 > state.sparsity[11]  # by the formulas alone both would
    for _ in range(8):
        move = best_move(state, wide.floor, excluded=state.active.tolist())
        if move is None:
            break
        assert move.candidate not in (10, 11)
        state = apply_move(wide, state, move)
