"""Small training problems that several tests use."""

import numpy as np
import pandas as pd

from isbor._core.parallel import Workers
from isbor.data.rows import canonical_rows
from isbor.inference.expansion import expand, streamed
from isbor.model.basis import RowDictionary
from isbor.model.cuts import RowShape

# --- Tables as a user has them -----------------------------------------------------------------------------

NOISY_THRESHOLDS = np.array([0.0, 1.0, 2.0])
NOISY_SCALE = 0.5


def noisy_score(X):
    return X[:, 0] + X[:, 1] ** 2


def noisy_rows(n, seed):
    """Rows and labels: the score cut at `NOISY_THRESHOLDS` after noise of `NOISY_SCALE`."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.digitize(noisy_score(X) + NOISY_SCALE * rng.normal(size=n), NOISY_THRESHOLDS)


def varying_cuts(n, seed, *, spread):
    """Rows of constant noise whose thresholds vary along the second feature, labels, and the thresholds.

    The lower gap is narrower by a factor of exp(spread x), and the upper one wider.
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    response = 2.0 * np.sin(1.5 * X[:, 0]) + X[:, 1] + rng.normal(size=n)
    gaps = 1.5 * np.exp(np.outer(spread * X[:, 1], [-1.0, 1.0]))
    thresholds = np.column_stack([-gaps[:, 0], np.zeros(n), gaps[:, 1]])
    return X, (response[:, None] > thresholds).sum(axis=1), thresholds


def log_score(model, X, y):
    """Mean log probability of the labels 0 … r-1."""
    return model.predict_log_proba(X)[np.arange(len(y)), y].mean()


def shop(n, seed=0):
    """Grades of a table with all there is: missing cells, categories, skewed numbers, a constant."""
    rng = np.random.default_rng(seed)
    income = np.exp(2.0 * rng.normal(size=n))
    age = rng.uniform(20, 60, n)
    missing = rng.random(n) < 0.2
    colour = rng.choice(["red", "green", "blue"], n)
    size = rng.choice(["s", "m", "l"], n)
    f = (
        np.select([colour == "red", colour == "green"], [1.5, 0.0], -1.5)
        + np.where(missing, 2.0, (age - 40) / 10)
        + 0.25 * np.log(income)
        + 0.5 * (size == "l")
    )
    frame = pd.DataFrame(
        {
            "income": income,
            "age": np.where(missing, np.nan, age),
            "one": 1.0,
            "colour": colour,
            "size": pd.Categorical(size, ["s", "m", "l"], ordered=True),
            "flag": rng.random(n) < 0.5,
        }
    )
    return frame, np.digitize(f + 0.5 * rng.normal(size=n), [-1.0, 1.0])


# --- Rows as the inside sees them --------------------------------------------------------------------------


def small_rows(seed=0, n=80, d=2, levels=4, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = 2 * np.sin(X[:, 0]) + X[:, -1] ** 2
    y = np.digitize(f + noise * rng.normal(size=n), np.linspace(-0.8, 2.0, levels - 1))
    y = np.searchsorted(np.unique(y), y)
    weight = rng.choice([1.0, 2.0, 0.5], size=n)
    rows, _ = canonical_rows(X, y, weight)
    return rows


def random_shape(rows, seed=0):
    """Noise and factors of the gaps that have nothing to do with the rows."""
    rng = np.random.default_rng(seed)
    noise_scale = np.exp(0.3 * rng.normal(size=len(rows)))
    return RowShape(noise_scale, np.exp(0.4 * rng.normal(size=(rows.n_levels - 2, len(rows)))))


def expanded(rows, basis, weights, thresholds, n_jobs=1, shape=None):
    with Workers(n_jobs) as workers:
        return expand(rows, streamed(rows, basis), weights, thresholds, workers, shape)


def expansion_of(rows, *, gamma=0.3, n_candidates=25, seed=0, shape=None):
    """An expansion at a random point, with the basis functions it belongs to."""
    rng = np.random.default_rng(seed)
    basis = RowDictionary(rows, gamma).basis(np.arange(n_candidates))
    weights = np.where(np.arange(n_candidates) < 5, rng.normal(size=n_candidates), 0.0)
    thresholds = np.sort(rng.normal(size=int(rows.y.max())))
    thresholds += 0.2 * np.arange(len(thresholds))
    return expanded(rows, basis, weights, thresholds, shape=shape), basis
