"""The margin problem solved by small steps, against the dual solved by an interior point method."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.svm import SVC

from isbor.data.rows import TrainingRows
from isbor.kernel.kernels import Kernel
from isbor.kernel.margins import margin_problem
from isbor.kernel.smo import solve_margins
from tests.oracles.margin_qp import solve_margin_qp

EXACT = {"tol": 1e-10, "max_iter": 10_000_000, "cache_bytes": 1e9}


def draw(n, r, seed, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    f = X[:, 0] + X[:, 1] ** 2 + noise * rng.normal(size=n)
    y = np.digitize(f, np.quantile(f, np.arange(1, r) / r))
    return TrainingRows(X, y, np.ones(n), np.arange(n))


def violation(problem, K, solution):
    """Largest violation of the conditions of optimality, from the solution's variables alone."""
    gamma, s = solution.gamma, problem.sign
    assert np.all(gamma >= 0) and np.all(gamma <= problem.bound)
    beta = np.bincount(problem.row, s * gamma, minlength=len(K))
    assert_allclose(beta, solution.coef, atol=1e-9 * problem.bound.max())
    links = np.append(solution.links, 0.0)
    balance = np.bincount(problem.threshold, s * gamma)
    assert_allclose(balance, links[:-1] - links[1:], atol=1e-9 * len(K) * problem.bound.max())
    F = (K @ beta)[problem.row] - s
    b = solution.thresholds[problem.threshold]
    up = np.where(s > 0, gamma < problem.bound, gamma > 0)
    down = np.where(s > 0, gamma > 0, gamma < problem.bound)
    return max(np.max((b - F)[up]), np.max((F - b)[down]))


CASES = [
    (kernel, C, constraints)
    for kernel in (Kernel("rbf", 0.5), Kernel("rbf", 20.0), Kernel("linear"), Kernel("poly", 0.3, 2, 1.0))
    for C in (0.1, 10.0)
    for constraints in ("implicit", "explicit", "adjacent")
]


@pytest.mark.parametrize(("kernel", "C", "constraints"), CASES)
def test_it_is_the_optimum_of_the_dual(kernel, C, constraints):
    rows = draw(60, 4, 0)
    problem = margin_problem(rows.y, np.full(60, C), constraints)
    solution = solve_margins(problem, kernel, rows, **EXACT)
    reference = solve_margin_qp(problem, kernel.gram(rows))
    assert_allclose(solution.objective, reference.objective, rtol=1e-6)
    assert solution.converged
    assert violation(problem, kernel.gram(rows), solution) < 1e-4 * max(1.0, C)
    f = kernel.gram(rows) @ np.stack([solution.coef, reference.beta], axis=1)
    assert_allclose(f[:, 0], f[:, 1], atol=2e-3)


def test_explicit_constraints_put_thresholds_in_order():
    """Class 2 lies where class 0 does; the threshold below it is where the many rows of class 1 want it."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [20, 40, 20, 20])
    X = np.array([0.0, 3.0, 0.0, 3.0])[y][:, None] + 0.1 * rng.normal(size=(100, 1))
    rows = TrainingRows(X, y, np.ones(100), np.arange(100))
    free, tied = (
        solve_margins(margin_problem(y, np.ones(100), kind), Kernel("linear"), rows, **EXACT)
        for kind in ("adjacent", "explicit")
    )
    assert np.any(np.diff(free.thresholds) < -0.1)
    assert np.all(np.diff(tied.thresholds) >= 0)
    assert tied.links.max() > 0.1
    assert tied.objective > free.objective


@pytest.mark.parametrize("constraints", ["implicit", "explicit"])
def test_two_classes_are_an_ordinary_support_vector_machine(constraints):
    rows = draw(120, 2, 1)
    C = 3.0
    solution = solve_margins(
        margin_problem(rows.y, np.full(120, C), constraints), Kernel("rbf", 0.5), rows, **EXACT
    )
    reference = SVC(C=C, gamma=0.5, tol=1e-8).fit(rows.X, rows.y)
    K = Kernel("rbf", 0.5).gram(rows)
    assert_allclose(
        K @ solution.coef - solution.thresholds[0], reference.decision_function(rows.X), atol=1e-5
    )


def test_a_small_cache_changes_nothing_but_time():
    rows = draw(300, 5, 2)
    problem = margin_problem(rows.y, np.full(300, 5.0), "implicit")
    kernel = Kernel("rbf", 0.5)
    whole = solve_margins(problem, kernel, rows, **EXACT)
    little = solve_margins(problem, kernel, rows, **{**EXACT, "cache_bytes": 8 * 300 * 70})
    assert_allclose(little.objective, whole.objective, rtol=1e-9)
    assert_allclose(little.thresholds, whole.thresholds, atol=1e-5)


def test_the_gap_bounds_the_error():
    rows = draw(200, 4, 3)
    problem = margin_problem(rows.y, np.full(200, 10.0), "implicit")
    kernel = Kernel("rbf", 0.5)
    best = solve_margins(problem, kernel, rows, **EXACT).objective
    for tolerance in (0.1, 1e-2, 1e-3):
        rough = solve_margins(problem, kernel, rows, **{**EXACT, "tol": tolerance})
        assert 0 <= best - rough.objective <= rough.gap
        assert rough.gap <= tolerance * (rough.objective + rough.gap)


@pytest.mark.parametrize("constraints", ["implicit", "explicit"])
def test_a_weight_of_two_is_the_row_twice(constraints):
    rows = draw(50, 3, 4)
    times = np.random.default_rng(0).integers(1, 4, 50)
    repeated = rows.take(np.repeat(np.arange(50), times))
    kernel = Kernel("rbf", 0.5)
    once = solve_margins(margin_problem(rows.y, 2.0 * times, constraints), kernel, rows, **EXACT)
    more = solve_margins(
        margin_problem(repeated.y, np.full(len(repeated), 2.0), constraints), kernel, repeated, **EXACT
    )
    assert_allclose(once.objective, more.objective, rtol=1e-8)
    assert_allclose(once.thresholds, more.thresholds, atol=1e-4)


def test_a_limit_on_steps_is_kept():
    rows = draw(100, 4, 5)
    problem = margin_problem(rows.y, np.full(100, 10.0), "implicit")
    solution = solve_margins(problem, Kernel("rbf", 0.5), rows, **{**EXACT, "max_iter": 50})
    assert not solution.converged
    assert solution.n_iter == 50
