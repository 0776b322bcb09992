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

RBF = Kernel("rbf", 0.5)


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


def solve(rows, C, constraints="implicit", kernel=RBF, **options):
    """Solve to many digits unless the options say otherwise."""
    problem = margin_problem(rows.y, np.broadcast_to(C, len(rows)).astype(float), constraints)
    return solve_margins(
        problem, kernel, rows, **{"tol": 1e-10, "max_iter": 10_000_000, "cache_bytes": 1e9, **options}
    )


@pytest.mark.parametrize("constraints", ["implicit", "explicit", "adjacent"])
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("kernel", [RBF, Kernel("rbf", 20.0), Kernel("linear"), Kernel("poly", 0.3, 2, 1.0)])
def test_it_is_the_optimum_of_the_dual(kernel, C, constraints):
    rows = draw(60, 4, 0)
    solution = solve(rows, C, constraints, kernel)
    problem, K = margin_problem(rows.y, np.full(60, C), constraints), kernel.gram(rows)
    reference = solve_margin_qp(problem, K)
    assert_allclose(solution.objective, reference.objective, rtol=1e-6)
    assert solution.converged
    assert violation(problem, K, solution) < 1e-4 * max(1.0, C)
    assert_allclose(K @ solution.coef, K @ reference.beta, atol=2e-3)


def test_explicit_constraints_put_thresholds_in_order():
    """Class 2 lies where class 0 does; the threshold below it is where the many rows of class 1 want it."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [20, 40, 20, 20])
    X = np.array([0.0, 3.0, 0.0, 3.0])[y][:, None] + 0.1 * rng.normal(size=(100, 1))
    rows = TrainingRows(X, y, np.ones(100), np.arange(100))
    free, tied = (solve(rows, 1.0, kind, Kernel("linear")) for kind in ("adjacent", "explicit"))
    assert np.any(np.diff(free.thresholds) < -0.1)
    assert np.all(np.diff(tied.thresholds) >= 0)
    assert tied.links.max() > 0.1
    assert tied.objective > free.objective


@pytest.mark.parametrize("constraints", ["implicit", "explicit"])
def test_two_classes_are_an_ordinary_support_vector_machine(constraints):
    rows = draw(120, 2, 1)
    solution = solve(rows, 3.0, constraints)
    score = RBF.gram(rows) @ solution.coef - solution.thresholds[0]
    reference = SVC(C=3.0, gamma=0.5, tol=1e-8).fit(rows.X, rows.y)
    assert_allclose(score, reference.decision_function(rows.X), atol=1e-5)


def test_a_small_cache_changes_nothing_but_time():
    rows = draw(300, 5, 2)
    whole, little = solve(rows, 5.0), solve(rows, 5.0, cache_bytes=8 * 300 * 70)
    assert_allclose(little.objective, whole.objective, rtol=1e-9)
    assert_allclose(little.thresholds, whole.thresholds, atol=1e-5)


def test_the_gap_bounds_the_error():
    rows = draw(200, 4, 3)
    best = solve(rows, 10.0).objective
    for tolerance in (0.1, 1e-2, 1e-3):
        rough = solve(rows, 10.0, tol=tolerance)
        assert 0 <= best - rough.objective <= rough.gap
        assert rough.gap <= tolerance * (rough.objective + rough.gap)


@pytest.mark.parametrize("constraints", ["implicit", "explicit"])
def test_a_weight_of_two_is_the_row_twice(constraints):
    rows = draw(50, 3, 4)
    times = np.random.default_rng(0).integers(1, 4, 50)
    once = solve(rows, 2.0 * times, constraints)
    more = solve(rows.take(np.repeat(np.arange(50), times)), 2.0, constraints)
    assert_allclose(once.objective, more.objective, rtol=1e-8)
    assert_allclose(once.thresholds, more.thresholds, atol=1e-4)


def test_a_limit_on_steps_is_kept():
    solution = solve(draw(100, 4, 5), 10.0, max_iter=50)
    assert not solution.converged
    assert solution.n_iter == 50
