"""Explanations: how much the background matters, what they cost, and what bands of effects are worth.

``python -m benchmarks.explanations`` prints the numbers of docs/decisions/0039-exact-explanations.md, in a
few minutes.
"""

import time
from itertools import product

import numpy as np
from scipy.special import ndtr
from sklearn.datasets import load_diabetes

from isbor import GPOR, ISBOR
from isbor._core.types import FloatArray, IntArray
from isbor.inspection.background import Background

_SIZES = (25, 50, 100, 200, 400)
_THRESHOLDS = np.array([0.0, 1.0, 2.0])
_NOISE = 0.5


def _dense(n: int, seed: int) -> tuple[FloatArray, IntArray]:
    """Rows of twenty features that all matter, and five grades."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    score = 2.0 * np.tanh(X @ rng.normal(size=20) / 2.0) + X[:, 0] * X[:, 1]
    return X, np.digitize(score + 0.5 * rng.normal(size=n), [-2.0, -1.0, 0.0, 1.0])


def background() -> None:
    """Print the mean distance of contributions from those with all training rows, and the time of a row."""
    diabetes = load_diabetes()
    tables = {
        "diabetes": (diabetes.data, np.digitize(diabetes.target, [90, 140, 210])),
        "20 features": _dense(4000, 100),
    }
    for name, (X, y) in tables.items():
        model = ISBOR().fit(X, y)
        rows = X[:20]
        full = model.explain(rows, background=X[:1500], functions=False)
        size = np.abs(full.contributions).mean()
        print(f"{name}: {model.basis_}, {model.n_relevance_} functions, mean contribution {size:.3f}")
        kept: Background = model._background
        for n in _SIZES:
            start = time.process_time()
            found = model.explain(rows, background=kept.X[:n], functions=False)
            seconds = (time.process_time() - start) / len(rows)
            apart = np.abs(found.contributions - full.contributions).mean()
            baseline = abs(found.baseline - full.baseline)
            print(f"  {n:4d} rows: off by {apart:.3f}, baseline by {baseline:.3f}; {seconds:.4f} s a row")


def bands() -> None:
    """Print how often bands of partial dependence contain that of the truth, from the smallest value up."""
    models = ISBOR(effort="fast"), ISBOR(basis="rbf"), GPOR()
    for n, model in product((100, 400), models):
        inside, width, error = [], [], []
        for seed in range(100, 130):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(n, 2))
            score = X[:, 0] + X[:, 1] ** 2
            y = np.digitize(score + _NOISE * rng.normal(size=n), _THRESHOLDS)
            found = model.fit(X, y).effects(0, X, grid_size=7)
            at = X[:, :1] * 0.0 + np.array(found.values[0], dtype=np.float64) + X[:, 1:] ** 2
            truth = 3.0 - ndtr((_THRESHOLDS - at[..., None]) / _NOISE).sum(axis=2).mean(axis=0)
            low, high = np.asarray(found.expected_band)
            inside.append((low <= truth) & (truth <= high))
            width.append(high - low)
            error.append(np.abs(found.expected - truth))
        covered = " ".join(f"{share:.2f}" for share in np.mean(inside, axis=0))
        print(
            f"{n} rows, {model}: bands of 90 % contain {np.mean(inside):.0%} ({covered}), "
            f"mean width {np.mean(width):.3f}, mean error {np.mean(error):.3f}",
            flush=True,
        )


if __name__ == "__main__":
    background()
    bands()
