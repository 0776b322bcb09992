import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from isbor.kernel.discriminant import minimum_on_simplex, solve_discriminant

RIDGE = 1e-3


def draw(n, r, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.concatenate([np.arange(r), rng.integers(0, r, n - r)])
    X[:, 0] += y
    return X, y


def gaussian(X):
    return np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))


def dense_problem(K, y, weight):
    """The scatter within classes and the differences of class means by their definitions, row by row."""
    n_levels = y.max() + 1
    means = [np.average(K[:, y == c], axis=1, weights=weight[y == c]) for c in range(n_levels)]
    means = np.stack(means, axis=1)
    scatter = np.zeros_like(K)
    for i in range(len(y)):
        away = K[:, i] - means[:, y[i]]
        scatter += weight[i] * np.outer(away, away) / weight.sum()
    scatter += RIDGE * np.trace(scatter) / len(y) * np.eye(len(y))
    return scatter, np.diff(means, axis=1), means


@settings(max_examples=50)
@given(st.integers(1, 8), st.integers(0, 10_000))
def test_minimum_on_simplex_satisfies_the_conditions_of_optimality(m, seed):
    A = np.random.default_rng(seed).normal(size=(4, m))  # singular for m > 4
    Q = A.T @ A
    a = minimum_on_simplex(Q)
    assert np.all(a >= 0)
    assert_allclose(a.sum(), 1.0)
    # No corner lies below the hyperplane through the least point.
    assert np.all(Q @ a >= a @ Q @ a - 1e-9 * np.abs(Q).max())


@pytest.mark.parametrize("weighted_rows", [False, True])
def test_the_direction_minimises_the_primal(weighted_rows):
    X, y = draw(25, 4, 0)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, 25) if weighted_rows else np.ones(25)
    K = gaussian(X)
    cut = solve_discriminant(K, y, weight, ridge=RIDGE, weighted_thresholds=False)
    scatter, differences, _ = dense_problem(K, y, weight)

    def primal(point):
        return point[:-1] @ scatter @ point[:-1] - point[-1]

    best = minimize(
        primal,
        np.append(cut.coef * 0.5, 0.0),
        jac=lambda point: np.append(2 * scatter @ point[:-1], -1.0),
        constraints={
            "type": "ineq",
            "fun": lambda point: differences.T @ point[:-1] - point[-1],
            "jac": lambda point: np.hstack([differences.T, -np.ones((3, 1))]),
        },
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    ours = primal(np.append(cut.coef, np.min(differences.T @ cut.coef)))
    assert_allclose(ours, best.fun, rtol=1e-6)
    assert_allclose(K @ cut.coef, K @ best.x[:-1], atol=1e-3 * np.abs(K @ cut.coef).max())


def test_two_classes_give_the_direction_of_linear_discriminant_analysis():
    X, y = draw(60, 2, 3)
    X -= X.mean(axis=0)
    cut = solve_discriminant(X @ X.T, y, np.ones(60), ridge=1e-9, weighted_thresholds=False)
    direction = X.T @ cut.coef
    expected = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y).coef_[0]
    assert_allclose(direction / np.linalg.norm(direction), expected / np.linalg.norm(expected), atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_thresholds_lie_between_projected_means(weighted):
    X, y = draw(40, 3, 5)
    K, weight = gaussian(X), np.ones(40)
    cut = solve_discriminant(K, y, weight, ridge=RIDGE, weighted_thresholds=weighted)
    _, _, means = dense_problem(K, y, weight)
    centres = cut.coef @ means
    counts = np.bincount(y)
    for k in range(2):
        share = counts[k] / (counts[k] + counts[k + 1]) if weighted else 0.5
        assert_allclose(cut.thresholds[k], share * centres[k] + (1 - share) * centres[k + 1])


def test_a_weight_of_two_is_the_row_twice():
    X, y = draw(30, 3, 7)
    times = np.random.default_rng(0).integers(1, 4, 30)
    repeated = np.repeat(np.arange(30), times)

    def score(X, y, weight):
        K = gaussian(X)
        cut = solve_discriminant(K, y, weight, ridge=1e-6, weighted_thresholds=True)
        return K @ cut.coef - cut.thresholds.mean()

    once, more = score(X, y, times.astype(float)), score(X[repeated], y[repeated], np.ones(len(repeated)))
    # The ridge is on the coefficients, so it weighs a little less on a row that is there twice.
    assert np.corrcoef(once[repeated], more)[0, 1] > 0.999


def test_a_ridge_that_is_too_small_says_so():
    X, y = draw(30, 2, 1)
    with pytest.raises(ValueError, match="u=1e-300; raise u"):
        solve_discriminant(X @ X.T, y, np.ones(30), ridge=1e-300, weighted_thresholds=False)
