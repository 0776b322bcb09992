"""Seeded small problems with the defects that real tables have, and what a model of them has to hold."""

import numpy as np
from numpy.testing import assert_allclose

from isbor.estimators.latent import LatentClassifier


def named_problems():
    """Yield (name, X, y): each of the classic troubles by itself."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=120), [-1.0, 0.0, 1.0])
    yield "duplicated rows", np.repeat(X, 5, axis=0), np.repeat(y, 5)
    yield "contradicting labels", np.repeat(X, 3, axis=0), rng.integers(0, 4, 360)
    yield "duplicated columns", np.hstack([X, X, X]), y
    yield "constant columns", np.hstack([X, np.full((120, 2), 0.1)]), y
    yield "columns of 1e12", X * [1e12, 1.0, 1e12], y
    yield "columns of 1e-12", X * [1e-12, 1.0, 1e-12], y
    yield "columns of 1e12 and 1e-12 far from zero", X * [1e12, 1.0, 1e-12] + [1e15, 1e3, 1e-9], y
    yield "one row per class", rng.normal(size=(6, 2)), np.arange(6)
    yield "one row per class, two classes", np.array([[0.0], [1.0]]), np.array([0, 1])
    yield "two classes", X, (y > 1).astype(int)
    yield "40 classes", rng.normal(size=(400, 2)), np.repeat(np.arange(40), 10)
    yield "30 ordered classes", np.linspace(0, 1, 300)[:, None], np.repeat(np.arange(30), 10)
    yield "separable", X, np.digitize(X[:, 0], [-0.5, 0.5])
    yield "separable with a wide gap", np.vstack([X - 100, X + 100]), np.repeat([0, 1], 120)
    yield "pure noise", X, rng.integers(0, 3, 120)
    yield "fewer rows than twice the classes", rng.normal(size=(9, 4)), np.arange(9) % 5
    yield "all-equal X", np.ones((50, 3)), np.arange(50) % 3
    yield "10,000 columns", rng.normal(size=(80, 10_000)), np.arange(80) % 4
    yield "one outlier", np.vstack([X, [[1e9, 0.0, 0.0]]]), np.append(y, 3)
    yield "a rare class", X, np.where(np.arange(120) == 7, 9, y)
    yield "values near the limits", X * 1e300, y
    yield "small changes of a large value", 1e9 + 1e-5 * X, y
    yield "400 constant columns", np.hstack([X, np.full((120, 400), 0.1)]), y


def random_problem(seed):
    """Return X, y, sample_weight of a small problem with random defects."""
    rng = np.random.default_rng(seed)
    n, d, r = int(rng.integers(2, 60)), int(rng.integers(1, 6)), int(rng.integers(2, 7))
    X = rng.choice([rng.normal, rng.standard_cauchy, rng.exponential])(size=(n, d))
    if rng.random() < 0.3:
        X = np.round(X)
    if rng.random() < 0.2:
        X[:, rng.integers(d)] = rng.normal()
    if rng.random() < 0.2:
        X *= 10.0 ** rng.integers(-12, 13, size=d)
    if rng.random() < 0.2:
        X = X[rng.integers(0, n, n)]
    spread = X.std(axis=0)
    f = (X / np.where(spread > 0, spread, 1.0)) @ rng.normal(size=d)
    if rng.random() < 0.3:
        f = np.sin(3.0 * f)
    f = f + rng.choice([0.0, 0.1, 1.0, 10.0]) * rng.normal(size=n)
    y = np.digitize(f, np.sort(rng.choice(f, r - 1)))
    if len(np.unique(y)) < 2:
        y = np.arange(n) % 2
    weight = rng.choice([0.0, 0.5, 1.0, 7.0, 1e-17], size=n) if rng.random() < 0.3 else np.ones(n)
    if len(np.unique(y[weight > 1e-9])) < 2:  # one class alone is refused, rightly
        weight = np.ones(n)
    return X, y, weight


NUMBERS = ("thresholds_", "sigma_", "coef_", "dual_coef_", "alpha_", "gamma_", "log_evidence_")


def check_fitted(model, X):
    """Nothing is NaN or infinite, probabilities sum to one, thresholds are in order."""
    is_latent = isinstance(model, LatentClassifier)
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(X)
        assert_allclose(p.sum(axis=1), 1.0)
        assert np.all(p >= 0)
        assert np.all(np.isfinite(model.predict_log_proba(X)))
    numbers = [getattr(model, attribute) for attribute in NUMBERS if hasattr(model, attribute)]
    scores = model.latent(X, return_std=True) if is_latent else (model.latent(X),)
    for value in (*scores, model.decision_function(X), *numbers):
        assert value is None or np.all(np.isfinite(value))
    gaps = np.diff(model.thresholds_)
    assert np.all(gaps > 0 if is_latent else gaps >= 0)
    if is_latent:
        thresholds = model.thresholds_at(X)
        assert thresholds.shape == (len(X), len(model.classes_) - 1)
        assert np.all(np.isfinite(thresholds))
        assert np.all(np.diff(thresholds, axis=1) > 0)
    assert set(model.predict(X)) <= set(model.classes_)
