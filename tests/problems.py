"""Small training problems that several tests use."""

import numpy as np

from isbor._core.parallel import Workers
from isbor.data.rows import canonical_rows
from isbor.inference.expansion import expand, streamed
from isbor.model.basis import RowDictionary


def small_rows(seed=0, n=80, d=2, levels=4, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = 2 * np.sin(X[:, 0]) + X[:, -1] ** 2
    y = np.digitize(f + noise * rng.normal(size=n), np.linspace(-0.8, 2.0, levels - 1))
    y = np.searchsorted(np.unique(y), y)
    weight = rng.choice([1.0, 2.0, 0.5], size=n)
    rows, _ = canonical_rows(X, y, weight)
    return rows


def expanded(rows, basis, weights, thresholds, n_jobs=1):
    with Workers(n_jobs) as workers:
        return expand(rows, streamed(rows, basis), weights, thresholds, workers)


def expansion_of(rows, *, gamma=0.3, n_candidates=25, seed=0):
    """An expansion at a random point, with the basis functions it belongs to."""
    rng = np.random.default_rng(seed)
    basis = RowDictionary(rows, gamma).basis(np.arange(n_candidates))
    weights = np.where(np.arange(n_candidates) < 5, rng.normal(size=n_candidates), 0.0)
    thresholds = np.sort(rng.normal(size=int(rows.y.max())))
    thresholds += 0.2 * np.arange(len(thresholds))
    return expanded(rows, basis, weights, thresholds), basis
