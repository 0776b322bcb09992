"""The compiled moves against those with NumPy: the same moves in the same order, and the same numbers."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from isbor._core.linalg import UnresolvedError
from isbor.inference import compiled_moves
from isbor.inference.evidence import (
    GramModel,
    Move,
    best_move,
    make_moves,
    rounding_floor,
    weight_posterior,
)
from isbor.inference.shape import ShapeModel
from tests.oracles import dense
from tests.oracles import moves as oracle

seeds = st.integers(0, 2**32 - 1)


def random_model(rng, n, n_rows):
    """A linear model of a few of n functions, some of them large and some small."""
    phi = rng.normal(size=(n_rows, n)) * 10.0 ** rng.uniform(-1, 1, n)
    target = phi @ np.where(rng.random(n) < 0.3, rng.normal(size=n), 0.0) + rng.normal(size=n_rows)
    gram = phi.T @ phi
    return GramModel(gram, phi.T @ target, rounding_floor(np.diag(gram), n_rows))


def random_start(rng, model, m):
    active = rng.permutation(len(model.linear))[:m]
    return oracle.weight_posterior(model, active, 10.0 ** rng.uniform(-2, 2, m))


# Relative. Digits of the optimal α cancel where q² ≈ s, or s is small, but the rest hardly depends on them.
ROUNDING = {"alpha": 1e-7} | dict.fromkeys(("gain", "covariance", "mean", "sparsity", "quality"), 1e-9)


def random_shape(rng, n, n_sums=2):
    """Return a quadratic model of the weights of n functions in sums of the shape."""
    roots = rng.normal(size=(n_sums, n, 2 * n))
    prior = rng.uniform(0.5, 5.0, size=(n_sums, n))
    precision = roots @ roots.transpose(0, 2, 1) + prior[:, :, None] * np.eye(n)
    return ShapeModel(precision, 12.0 * rng.normal(size=(n_sums, n)), prior)


def assert_same_posterior(found, expected):
    assert_array_equal(found.active, expected.active)
    for name in ("alpha", "covariance", "mean", "sparsity", "quality"):
        one, other = getattr(found, name), getattr(expected, name)
        size = np.abs(other).max(initial=0.0)
        assert_allclose(one, other, rtol=ROUNDING[name], atol=ROUNDING[name] * size)


def assert_same_moves(found, expected):
    changes = [[(move.kind, move.candidate) for move in moves] for moves in (found, expected)]
    assert changes[0] == changes[1]
    for name in ("alpha", "gain"):
        one, other = ([getattr(move, name) for move in moves] for moves in (found, expected))
        assert_allclose(one, other, rtol=ROUNDING[name], atol=1e-10)


def assert_agreement(model, start, *arguments):
    """Return the moves, and the posterior after them, that both ways make."""
    found, found_moves = make_moves(model, start, *arguments)
    expected, expected_moves = oracle.make_moves(model, start, *arguments)
    assert_same_moves(found_moves, expected_moves)
    assert_same_posterior(found, expected)
    return found, found_moves


@settings(max_examples=200)
@given(
    seed=seeds,
    n=st.integers(1, 40),
    n_rows=st.integers(20, 100),
    share=st.floats(0, 1),
    dearest=st.sampled_from([0.0, 1.0, 5.0]),
    max_moves=st.sampled_from([0, 1, 2, 7, 500]),
    max_additions=st.sampled_from([-3, 0, 1, 4, 2.5, np.inf]),
)
def test_moves_of_random_problems(seed, n, n_rows, share, dearest, max_moves, max_additions):
    rng = np.random.default_rng(seed)
    model = random_model(rng, n, n_rows)
    start = random_start(rng, model, int(share * min(n, 15)))
    penalty = dearest * rng.random(n)
    _, moves = assert_agreement(model, start, penalty, 1e-3, max_moves, max_additions)
    assert len(moves) <= max_moves
    assert sum(move.kind == "add" for move in moves) <= max(np.ceil(max_additions), 0)


def test_a_long_search_makes_all_kinds_of_moves():
    rng = np.random.default_rng(0)
    model = random_model(rng, 120, 300)
    before = random_start(rng, model, 50)
    after, moves = assert_agreement(model, before, np.full(120, 0.5), 1e-3, 1300, np.inf)
    assert {move.kind for move in moves} == {"add", "delete", "reestimate"}
    assert len(moves) > 80
    assert max(move.gain for move in moves) > 1.0 > 1e-3 > best_move(after, model.floor, penalty=0.5).gain


def test_nothing_is_where_a_search_may_begin_and_end():
    model = random_model(np.random.default_rng(1), 12, 60)
    nothing = weight_posterior(model, np.arange(0), np.zeros(0))
    assert_same_posterior(nothing, oracle.weight_posterior(model, np.arange(0), np.zeros(0)))
    some, moves = assert_agreement(model, nothing, np.zeros(12), 1e-3, 100, np.inf)
    assert moves[0].kind == "add"
    dear = np.full(12, 1e6)
    none, moves = assert_agreement(model, some, dear, 1e-3, 100, np.inf)
    assert len(none.active) == 0
    assert moves[-1].kind == "delete"
    assert assert_agreement(model, nothing, dear, 1e-3, 100, np.inf)[1] == []
    assert best_move(nothing, model.floor, may_add=False) is None


def test_moves_leave_their_arguments_as_they_are():
    rng = np.random.default_rng(2)
    model, copy = (random_model(np.random.default_rng(2), 20, 60) for _ in range(2))
    start = random_start(rng, model, 5)
    kept = replace(start, **{field.name: getattr(start, field.name).copy() for field in fields(start)})
    after, moves = make_moves(model, start, np.zeros(20), 1e-3, 100, np.inf)
    assert moves
    for one, other in ((model, copy), (start, kept)):
        for field in fields(one):
            assert_array_equal(getattr(one, field.name), getattr(other, field.name))
    unmoved, _ = make_moves(model, start, np.zeros(20), 1e-3, 0, np.inf)
    assert_same_posterior(unmoved, start)
    assert not any(
        np.shares_memory(getattr(unmoved, field.name), getattr(start, field.name)) for field in fields(start)
    )


@given(seed=seeds, n=st.integers(1, 12), may_add=st.booleans(), one_price=st.booleans(), data=st.data())
def test_the_best_move_among_those_not_excluded(seed, n, may_add, one_price, data):
    rng = np.random.default_rng(seed)
    model = random_model(rng, n, 30)
    state = random_start(rng, model, int(rng.integers(n + 1)))
    excluded = data.draw(st.sets(st.integers(0, n - 1)))
    penalty = 0.7 if one_price else rng.random(n)
    arguments = {"penalty": penalty, "may_add": may_add, "excluded": excluded}
    found = best_move(state, model.floor, **arguments)
    expected = oracle.best_move(state, model.floor, **arguments)
    assert (found is None) == (expected is None)
    if found is not None:
        assert found.candidate not in excluded
        assert_same_moves([found], [expected])


@given(seed=seeds, m=st.integers(0, 12))
def test_posteriors_and_their_residuals(seed, m):
    rng = np.random.default_rng(seed)
    model = random_model(rng, 20, 40)
    expected = random_start(rng, model, m)
    assert_same_posterior(weight_posterior(model, expected.active, expected.alpha), expected)
    drifted = replace(expected, mean=expected.mean * (1 + 1e-6), covariance=expected.covariance * (1 - 1e-6))
    state = compiled_moves.State(*(getattr(drifted, name) for name in compiled_moves.State._fields))
    found = compiled_moves.residual(model.gram, model.linear, model.floor, m, state)
    assert_allclose(found, oracle.residual(model, drifted), rtol=1e-6)


# --- Ties --------------------------------------------------------------------------------------------------


def test_ties_between_additions_go_to_the_lowest_candidate():
    model = random_model(np.random.default_rng(3), 6, 40)
    twice = np.tile(np.arange(6), 2)  # each candidate has a copy
    model = GramModel(model.gram[np.ix_(twice, twice)], model.linear[twice], model.floor[twice])
    nothing = weight_posterior(model, np.arange(0), np.zeros(0))
    _, moves = assert_agreement(model, nothing, np.zeros(12), 1e-3, 100, np.inf)
    added = [move.candidate for move in moves if move.kind == "add"]
    assert len(added) > 2
    assert max(added) < 6  # its copy then gains nothing


def test_ties_between_active_functions_go_to_the_first():
    model = GramModel(np.eye(4), np.zeros(4), np.zeros(4))
    state = weight_posterior(model, np.array([2, 0, 3]), np.ones(3))
    assert best_move(state, model.floor) == oracle.best_move(state, model.floor)
    assert best_move(state, model.floor).candidate == 2
    assert best_move(state, model.floor, excluded=[2]).candidate == 0


def test_ties_between_an_addition_and_an_active_function_go_to_the_latter():
    model = GramModel(np.eye(2), np.array([3.0, 0.0]), np.zeros(2))
    state = weight_posterior(model, np.array([1]), np.ones(1))
    large = 2.0**60  # the gains themselves are rounded away
    for penalty, kind in ((np.zeros(2), "add"), (np.array([-large, large]), "delete")):
        move = best_move(state, model.floor, penalty=penalty)
        assert move == oracle.best_move(state, model.floor, penalty=penalty)
        assert move.kind == kind


# --- Lost digits -------------------------------------------------------------------------------------------


def test_collinear_candidates_are_not_added():
    """Nearly copies, but what they differ by is what explains the target."""
    rng = np.random.default_rng(4)
    phi, difference = rng.normal(size=(50, 8)), 1e-4 * rng.normal(size=(50, 4))
    phi = np.hstack([phi, phi[:, :4] + difference])
    model = GramModel(phi.T @ phi, phi.T @ (1e5 * difference.sum(axis=1)), np.full(12, 1e-5))
    start = oracle.weight_posterior(model, np.arange(4), np.full(4, 1e-6))
    assert np.all(start.quality[8:] ** 2 > 100 * start.sparsity[8:])
    _, moves = assert_agreement(model, start, np.zeros(12), 1e-3, 5, np.inf)
    assert {move.candidate for move in moves} <= set(range(8))
    without_floor = replace(model, floor=np.zeros(12))
    _, moves = assert_agreement(without_floor, start, np.zeros(12), 1e-3, 1, np.inf)
    assert moves[0].candidate >= 8


@pytest.mark.parametrize("drift", [1e-4, 1e-7])
def test_drifted_posteriors_are_factorised_again(drift):
    rng = np.random.default_rng(5)
    model = random_model(rng, 30, 80)
    start = random_start(rng, model, 10)
    drifted = replace(start, covariance=start.covariance * (1 + drift), mean=start.mean * (1 + drift))
    after, moves = assert_agreement(model, drifted, np.zeros(30), 1e-3, 20, np.inf)
    assert len(moves) > 3
    assert_same_posterior(after, weight_posterior(model, after.active, after.alpha))


def test_collinear_functions_have_no_posterior():
    model = GramModel(np.ones((2, 2)), np.ones(2), np.zeros(2))
    for compute in (weight_posterior, oracle.weight_posterior):
        with pytest.raises(UnresolvedError, match="singular"):
            compute(model, np.arange(2), np.full(2, 1e-20))


def test_moves_end_before_functions_become_collinear():
    """Candidate 1 is a copy of candidate 0, but lost digits make it look like a gain after candidate 2."""
    large = 2.0**34
    gram = np.array([[large, large, 0.0], [large, large, 0.0], [0.0, 0.0, 1.0]])
    model = GramModel(gram, np.array([1e5, 1e5, 10.0]), np.zeros(3))
    start = oracle.weight_posterior(model, np.array([0]), np.array([1e-9]))
    start = replace(
        start,
        sparsity=np.array([start.sparsity[0], 100.0, 1.0]),
        quality=np.array([start.quality[0], 1e6, 10.0]),
    )
    penalty = np.array([0.0, 0.5e10 - 40.0, 0.0])
    after, moves = assert_agreement(model, start, penalty, 1.0, 100, np.inf)
    assert [(move.kind, move.candidate) for move in moves] == [("add", 2)]
    following = best_move(after, model.floor, penalty=penalty)
    assert (following.kind, following.candidate) == ("add", 1)
    assert following.gain > 1.0


def test_no_move_of_an_active_function_follows_from_nan():
    model = random_model(np.random.default_rng(6), 5, 30)
    state = weight_posterior(model, np.arange(3), np.ones(3))
    for name in ("mean", "alpha"):
        lost = replace(state, **{name: np.array([1.0, np.nan, 1.0])})
        assert best_move(lost, model.floor, may_add=False) is None


# --- One specialisation ------------------------------------------------------------------------------------


def worth_alone(shape, active, j):
    """Return what function j adds to the evidence of the shape's sums, each not less than zero."""
    worth = 0.0
    for precision, linear, prior in zip(shape.precision, shape.linear, shape.prior, strict=True):
        some = [np.array([k for k in active if with_j or k != j], dtype=int) for with_j in (True, False)]
        whole, without = (
            dense.quadratic_evidence(precision[np.ix_(of, of)] - np.diag(prior[of]), linear[of], prior[of])
            for of in some
        )
        worth += max(whole - without, 0.0)
    return worth


@pytest.mark.parametrize("seed", range(6))
def test_what_functions_are_worth_to_the_shape_counts_given_those_that_are_left(seed):
    rng = np.random.default_rng(seed)
    n = 12
    model, shape = random_model(rng, n, 40), random_shape(rng, n)
    start = weight_posterior(model, np.arange(n), np.ones(n))
    penalty = np.full(n, 6.0)
    _, moves = make_moves(model, start, penalty, 0.1, 200, np.inf, shape)
    state, active = start, list(range(n))
    for move in moves:
        gone = set(range(n)) - set(active)
        worth = np.array([0.0 if j in gone else worth_alone(shape, active, j) for j in range(n)])
        expected = oracle.best_move(state, model.floor, penalty=penalty - worth, excluded=gone)
        assert (move.kind, move.candidate) == (expected.kind, expected.candidate)
        assert_allclose(move.gain, expected.gain, rtol=1e-6, atol=1e-8)
        state = oracle.apply_move(model, state, expected)
        if move.kind == "delete":
            active.remove(move.candidate)
    assert 0 < len(active) < n
    _, alone = make_moves(model, start, penalty, 0.1, 200, np.inf)
    assert sum(move.kind == "delete" for move in alone) >= n - len(active)


def test_nothing_is_compiled_twice():
    rng = np.random.default_rng(7)
    model = random_model(rng, 10, 30)
    start = random_start(rng, model, 4)
    wide = np.pad(start.covariance, (0, 3))
    strided = replace(start, covariance=wide[:4, :4], mean=np.repeat(start.mean, 2)[::2])
    for state in (start, strided):
        for limit in (1, 2.0, np.inf):
            make_moves(model, state, np.zeros(10), 1, 5, limit)
        make_moves(model, state, np.zeros(10), 1, 5, 1, random_shape(rng, 10))
        for penalty in (0, 1.5, np.ones(10)):
            assert isinstance(best_move(state, model.floor, penalty=penalty, may_add=limit > 1), Move)
    for function in (compiled_moves.make_moves, compiled_moves.best_move, compiled_moves.posterior):
        assert len(function.signatures) == 1
