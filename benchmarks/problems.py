"""A table that several benchmarks draw."""

import numpy as np

from isbor._core.types import FloatArray, IntArray

__all__ = ["draw_grades"]


def draw_grades(n: int, d: int, seed: int) -> tuple[FloatArray, IntArray]:
    """Return rows whose grade depends on four of d features: a line, a wave and a product."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = X[:, 0] + 2.0 * np.sin(2.0 * X[:, 1]) + X[:, 2] * X[:, 3]
    return X, np.digitize(f + 0.5 * rng.normal(size=n), [-2.0, -0.7, 0.7, 2.0])
