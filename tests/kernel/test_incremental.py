"""The path from one optimum to the next: against the batch optimum, and against its own conditions."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from isbor.data.rows import TrainingRows
from isbor.kernel import incremental
from isbor.kernel.incremental import extend
from isbor.kernel.kernels import Kernel
from isbor.kernel.machine import (
    Gram,
    cut_score,
    dual_objective,
    empty_machine,
    largest_violation,
    signed_bounds,
    with_thresholds,
)
from isbor.kernel.margin_set import MarginSet
from isbor.kernel.margins import margin_problem
from tests.oracles.margin_qp import solve_margin_qp

TOL = 1e-8
KERNELS = {
    "narrow": Kernel("rbf", 5.0),
    "rbf": Kernel("rbf", 0.3),
    "wide": Kernel("rbf", 1e-3),
    "linear": Kernel("linear"),
    "poly": Kernel("poly", 1.0, 2, 1.0),
}
both_constraints = pytest.mark.parametrize("constraints", ["implicit", "adjacent"])


def draw(n, r=4, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    f = 2 * np.sin(X[:, 0]) + X[:, 1] ** 2 + noise * rng.normal(size=n)
    return X, np.digitize(f, np.quantile(f, np.arange(1, r) / r))


def gram_of(kernel, X):
    X = np.asarray(X, float)
    values = KERNELS[kernel](X, TrainingRows(X, np.zeros(len(X), int), *2 * [np.ones(len(X))]))
    return 0.5 * (values + values.T)  # to the last bit


def bounds(y, price, constraints="implicit"):
    return signed_bounds(margin_problem(y, np.broadcast_to(price, y.shape), constraints), len(y))


def learn(gram, low, high, machine=None):
    """Add all rows at once, and check the result."""
    machine = extend(machine or empty_machine(low.shape[1]), gram, low, high, tol=TOL)
    assert largest_violation(machine, gram) < 1.1 * TOL
    return machine


def learn_one_by_one(gram, low, high):
    """Check the conditions after every row."""
    machine = empty_machine(low.shape[1])
    for n in range(1, len(gram) + 1):
        machine = learn(gram[:n, :n], low[:n], high[:n], machine)
    return machine


def add(members, row, threshold, gram):
    """Take a variable in if it does not depend on the members; return whether it was."""
    reaction = members.reaction(row, threshold, gram[row], 0.0)
    if not reaction.dependent:
        members.add(row, threshold, gram[row], reaction)
    return not reaction.dependent


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_the_inverse_follows_members_that_come_and_go(seed):
    rng = np.random.default_rng(seed)
    gram = gram_of("rbf", rng.normal(size=(12, 2)))
    members, listed = MarginSet(3), []
    for _ in range(40):
        if listed and rng.random() < 0.4:
            position = int(rng.integers(len(listed)))
            members.remove(position)
            listed[position] = listed[-1]
            listed.pop()
        else:
            pair = int(rng.integers(12)), int(rng.integers(3))
            if pair not in listed and add(members, *pair, gram):
                listed.append(pair)
        row, threshold = (np.array([pair[k] for pair in listed], int) for k in range(2))
        assert_array_equal(members.row, row)
        assert_array_equal(members.count, np.bincount(threshold, minlength=3))
        assert_array_equal(members.kernel(12), gram[row])
        E = threshold[:, None] == np.arange(3)
        nobody = np.diag(np.where(E.any(axis=0), 0.0, 1.0))
        dense = np.block([[nobody, E.T], [E, gram[np.ix_(row, row)]]])
        assert_array_equal(members.matrix, dense)
        assert_allclose(members.inverse @ dense, np.eye(len(dense)), atol=1e-6)
        right = rng.normal(size=len(dense))
        assert_allclose(dense @ members.solve(right), right, atol=1e-10)


def test_a_variable_that_depends_on_members_is_refused():
    """Two rows on the margins of the same two thresholds: the fourth column follows from the others."""
    gram = gram_of("rbf", [[0.0], [1.0]])
    members = MarginSet(2)
    assert all(add(members, *pair, gram) for pair in [(0, 0), (0, 1), (1, 0)])
    assert not add(members, 1, 1, gram)
    assert members.size == 3
    members.remove(0)
    assert add(members, 1, 1, gram)


def test_a_schur_complement_is_zero_if_it_is_negligible():
    """Two rows at a distance of 1e-4: ρ is that of the difference of two vectors, 2 - 2k."""
    gram = gram_of("rbf", [[0.0], [1e-4]])
    members = MarginSet(1)
    assert add(members, 0, 0, gram)
    assert_allclose(members.reaction(1, 0, gram[1], 0.0).schur, 2.0 * 0.3e-8, rtol=1e-6)
    assert not members.reaction(1, 0, gram[1], 5e-9).dependent
    assert members.reaction(1, 0, gram[1], 7e-9).dependent


def test_an_inverse_that_was_spoiled_is_computed_afresh():
    gram = gram_of("rbf", draw(8)[0])
    members = MarginSet(1)
    for row in range(8):
        assert add(members, row, 0, gram)
    members.inverse[2:5] *= 1.5
    right = np.arange(9.0)
    assert_allclose(members.matrix @ members.solve(right), right, atol=1e-9)


@pytest.mark.parametrize(("C", "beta"), [(10.0, 2.0), (1.0, 1.0)])
def test_two_rows_by_hand(C, beta):
    """f = ±1 at the two rows, margins of 1: w = 2/(x2 - x1)², halved if C is less."""
    machine = learn(gram_of("linear", [[-0.5], [0.5]]), *bounds(np.array([0, 1]), C))
    assert_allclose(machine.coef, [-beta, beta])
    assert_allclose(cut_score(machine).thresholds, [0.0], atol=1e-12)
    assert_allclose(dual_objective(machine), 2 * beta - 0.5 * beta**2)


@both_constraints
def test_three_rows_by_hand(constraints):
    """K = I: scores -2, 0, 2, and the middle row is on the margins of both thresholds, which cancel."""
    machine = learn(np.eye(3), *bounds(np.arange(3), 10.0, constraints))
    assert_allclose(machine.coef, [-2.0, 0.0, 2.0], atol=1e-12)
    assert_allclose(machine.alpha[1], [2.0, -2.0])
    assert np.sum(machine.member_row == 1) == 2
    assert_allclose(cut_score(machine).thresholds, [-1.0, 1.0])
    assert_allclose(dual_objective(machine), 4.0)


@both_constraints
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_it_is_the_batch_optimum_on_the_way(kernel, C, constraints):
    X, y = draw(120)
    order = np.random.default_rng(1).permutation(120)
    order = np.concatenate([[np.argmax(y == k) for k in range(4)], order])  # all classes first
    order = order[np.sort(np.unique(order, return_index=True)[1])]
    gram, y, machine = gram_of(kernel, X[order]), y[order], empty_machine(3)
    low, high = bounds(y, C, constraints)
    for n in (40, 80, 120):
        machine = learn(gram[:n, :n], low[:n], high[:n], machine)
        batch = solve_margin_qp(margin_problem(y[:n], np.full(n, C), constraints), gram[:n, :n])
        assert_allclose(dual_objective(machine), batch.objective, rtol=1e-8)
        assert_allclose(machine.score, gram[:n, :n] @ batch.beta, atol=1e-5)
        if kernel in ("narrow", "rbf"):  # K is far from singular, so the coefficients are unique
            assert_allclose(machine.coef, batch.beta, atol=1e-5 * max(C, 1.0))


@both_constraints
@pytest.mark.parametrize("kernel", KERNELS)
def test_all_conditions_hold_after_every_row(kernel, constraints):
    X, y = draw(60, r=5)
    learn_one_by_one(gram_of(kernel, X), *bounds(y, 1.0, constraints))


@both_constraints
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda X, y: (np.round(X), y),
        lambda X, y: (X[np.arange(len(X)) // 3], y),
        lambda X, y: (X, np.random.default_rng(0).integers(0, 4, len(y))),
        lambda X, y: (np.zeros_like(X), y),
        lambda X, y: (np.round(X), np.random.default_rng(0).integers(0, 4, len(y))),
    ],
    ids=["ties", "contradictions", "noise", "all equal", "noise and ties"],
)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_degenerate_problems_end_at_the_optimum(spoil, kernel, C, constraints):
    X, y = spoil(*draw(40))
    gram = gram_of(kernel, X)
    machine = learn_one_by_one(gram, *bounds(y, C, constraints))
    batch = solve_margin_qp(margin_problem(y, np.full(40, C), constraints), gram)
    assert_allclose(dual_objective(machine), batch.objective, rtol=1e-8)
    assert machine.n_steps < 40 * 40


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_order_of_rows_changes_neither_score_nor_thresholds(seed):
    rng = np.random.default_rng(seed)
    n, r = int(rng.integers(5, 40)), int(rng.integers(2, 5))
    X = rng.normal(size=(n, 2)) if rng.random() < 0.5 else np.round(rng.normal(size=(n, 2)))
    y = np.append(np.arange(r), rng.integers(0, r, n - r)) if n > r else np.arange(n)
    price = 10.0 ** rng.integers(-2, 3) * rng.choice([1.0, 0.5, 3.0], n)
    gram = gram_of("rbf", X)
    low, high = bounds(y, price, str(rng.choice(["implicit", "adjacent"])))
    order = rng.permutation(n)
    one = learn(gram, low, high)
    other = learn(gram[np.ix_(order, order)], low[order], high[order])
    assert_allclose(other.score, one.score[order], atol=1e-6)
    assert_allclose(cut_score(other).thresholds, cut_score(one).thresholds, atol=1e-6)


@both_constraints
@pytest.mark.parametrize("kernel", ["rbf", "narrow"])
def test_all_rows_before_the_new_one_stay_optimal_on_the_way(kernel, constraints, monkeypatch):
    """Wherever the path stops to look who is on the wrong side, it is only the new row."""
    found = []

    class Watched(incremental._Path):
        def _worst(self):
            worst = super()._worst()
            found.append(worst is not None)
            assert worst is None or worst[0] == self.n - 1
            return worst

    monkeypatch.setattr(incremental, "_Path", Watched)
    X, y = draw(80)
    learn(gram_of(kernel, X), *bounds(y, 1.0, constraints))
    assert sum(found) > 60


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_zeros_depend_on_each_other(seed):
    """Nothing but rounding is left of their Schur complements, and nothing to compare it with."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(60, 3)).astype(float)
    y = np.append([0, 1, 2], rng.integers(0, 3, 57))
    learn_one_by_one(gram_of("linear", X), *bounds(y, 1000.0, "adjacent"))


def test_the_path_gets_on_even_if_nobody_may_join(monkeypatch):
    """The way out of a circle, taken all the time: a method of its own, and slower, with the same result."""
    X, y = draw(60)
    gram, (low, high) = gram_of("rbf", np.round(X, 1)), bounds(y, 1.0)
    reference = learn_one_by_one(gram, low, high)
    monkeypatch.setattr(incremental, "_IDLE_STEPS", -(10**9))
    machine = learn_one_by_one(gram, low, high)
    assert_allclose(machine.score, reference.score, atol=1e-6)
    assert machine.n_steps != reference.n_steps


def test_a_path_without_end_is_an_error(monkeypatch):
    monkeypatch.setattr(incremental, "_MAX_STEPS", -(10**9))
    X, y = draw(30)
    with pytest.raises(ArithmeticError, match=r"Raise it, or lower C"):
        learn(gram_of("rbf", X), *bounds(y, 1.0))


@both_constraints
def test_raised_bounds_are_those_of_weighted_rows(constraints):
    X, y = draw(50)
    gram = gram_of("rbf", X)
    price = np.random.default_rng(0).choice([1.0, 2.0, 5.0], 50)
    at_once = learn(gram, *bounds(y, price, constraints))
    machine = learn(gram, *bounds(y, 1.0, constraints))
    for row in range(50):
        raised = np.where(np.arange(50) <= row, price, 1.0)
        machine = learn(gram, *bounds(y, raised, constraints), machine)
    assert_allclose(machine.score, at_once.score, atol=1e-6)
    assert_allclose(dual_objective(machine), dual_objective(at_once), rtol=1e-9)


def test_lowered_bounds_start_anew():
    X, y = draw(30)
    gram, low_price = gram_of("rbf", X), bounds(y, 1.0)
    machine = learn(gram, *low_price, learn(gram, *bounds(y, 5.0)))
    assert_allclose(machine.score, learn(gram, *low_price).score, atol=1e-6)


def test_rows_that_are_not_seen_have_the_score_of_a_machine_without_them():
    X, y = draw(60)
    gram = gram_of("rbf", X)
    seen = np.arange(60) % 3 > 0
    low, high = bounds(y, 1.0)
    machine = learn(gram, low * seen[:, None], high * seen[:, None])
    without = learn(gram[np.ix_(seen, seen)], low[seen], high[seen])
    assert_array_equal(machine.coef[~seen], 0.0)
    assert_allclose(machine.score, gram[:, seen] @ without.coef, atol=1e-6)


@both_constraints
def test_thresholds_may_be_added_at_both_ends(constraints):
    X, y = draw(60, r=5)
    order = np.argsort(np.abs(y - 2), kind="stable")  # class 2 alone, then its neighbours, then the ends
    X, y = X[order], y[order]
    gram = gram_of("rbf", X)
    machine = empty_machine(0)
    for width in range(3):
        n = int(np.sum(np.abs(y - 2) <= width))
        machine = with_thresholds(machine, np.arange(1, 2 * width - 1), 2 * width)
        machine = learn(gram[:n, :n], *bounds(y[:n] - y[:n].min(), 1.0, constraints), machine)
    assert_allclose(machine.score, learn(gram, *bounds(y, 1.0, constraints)).score, atol=1e-6)


def test_a_class_between_two_others_goes_on_from_there():
    """Implicit constraints: the new threshold starts without anybody on it, the other stays as it is."""
    X, y = draw(60)
    order = np.argsort(y == 1, kind="stable")  # class 1 comes last
    y, gram = y[order], gram_of("rbf", X[order])
    n = int(np.sum(y != 1))
    machine = learn(gram[:n, :n], *bounds(np.searchsorted([0, 2, 3], y[:n]), 1.0))
    machine = with_thresholds(machine, np.array([0, 2]), 3)
    low, high = bounds(y, 1.0)
    assert np.all(low[:n] <= machine.low) and np.all(high[:n] >= machine.high)  # so nothing starts anew
    assert_allclose(learn(gram, low, high, machine).score, learn(gram, low, high).score, atol=1e-6)


def test_one_class_alone_is_beyond_its_thresholds_by_the_margin():
    X, _ = draw(10)
    low, high = bounds(np.append(np.ones(10, int), 2), 1.0)
    machine = learn(gram_of("rbf", X), low[:10], high[:10])
    assert_array_equal(machine.coef, 0.0)
    assert_allclose(cut_score(machine).thresholds, [-1.0, 1.0])


def test_a_free_threshold_is_in_the_middle_of_its_interval():
    """C is so small that all variables are at their bounds: b is free while one row a side is inside."""
    gram = gram_of("linear", np.array([[-2.0], [-1.0], [1.0], [3.0]]))
    machine = learn(gram, *bounds(np.array([0, 0, 1, 1]), 0.01))
    f = gram @ [-0.01, -0.01, 0.01, 0.01]
    assert_allclose(machine.score, f)
    # γ = C everywhere: b is above f + 1 of none, below f - 1 of none.
    assert_allclose(cut_score(machine).thresholds, 0.5 * ((f[2:] - 1).max() + (f[:2] + 1).min()))


def test_linked_thresholds_are_refused():
    with pytest.raises(ValueError, match='choose "implicit" or "adjacent"'):
        bounds(np.array([0, 1, 2]), 1.0, "explicit")


def test_what_is_held_never_changes():
    K = gram_of("rbf", draw(9)[0])
    first = Gram(K[:3, :3].copy())
    second = first.append(K[3:5, :3], K[3:5, 3:5])
    third = second.append(K[5:6, :5], K[5:6, 5:6])
    rival = second.append(-K[5:6, :5], -K[5:6, 5:6])  # there would be room for it, had the third not come
    copy = pickle.loads(pickle.dumps(third))
    fourth = copy.append(K[6:9, :6], K[6:9, 6:9])
    for n, gram in ((3, first), (5, second), (6, third), (6, copy), (9, fourth)):
        assert len(gram) == n
        assert_array_equal(gram.values, K[:n, :n])
    assert_array_equal(rival.values[5:], -K[5:6, :6])
