"""Tables drawn from known class probabilities, to see whether bands contain them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtr

from isbor._core.types import FloatArray, IntArray

__all__ = ["TRUTHS", "Sample", "Truth", "draw", "oracle_bands", "share_covered"]

_NOISE = 0.5
_CENTRES = np.array([[-0.8, 0.5], [0.9, -0.4]])
_TEST_ROWS = 300
_LIKELY = (0.05, 0.95)  # probabilities outside are left out


@dataclass(frozen=True, slots=True)
class Truth:
    """A score of two features that is linear in known functions, and the noise; four classes."""

    title: str
    functions: Callable[[FloatArray], FloatArray]  # (n, 2) → (n, 2)
    weights: tuple[float, float]
    log_noise_slope: float = 0.0  # of ln noise in the second feature

    def score(self, X: FloatArray) -> FloatArray:
        """Return the score."""
        return self.functions(X) @ np.array(self.weights)

    def noise(self, X: FloatArray) -> FloatArray:
        """Return the standard deviation of the noise."""
        noise: FloatArray = _NOISE * np.exp(self.log_noise_slope * X[:, 1])
        return noise

    def cuts(self) -> FloatArray:
        """Return the thresholds: quartiles of the response."""
        random = np.random.default_rng(12345)
        X = random.normal(size=(200_000, 2))
        return np.quantile(self.score(X) + self.noise(X) * random.normal(size=len(X)), [0.25, 0.5, 0.75])


def _waves(X: FloatArray) -> FloatArray:
    return np.column_stack([np.sin(2.0 * X[:, 0]), X[:, 1]])


def _lines(X: FloatArray) -> FloatArray:
    return X


def _bumps(X: FloatArray) -> FloatArray:
    return np.exp(-np.square(X[:, None] - _CENTRES).sum(axis=2))


TRUTHS = {
    "wave": Truth("sin 2x₁ + x₂", _waves, (1.0, 1.0)),
    "line": Truth("x₁ + ½x₂", _lines, (1.0, 0.5)),
    "bumps": Truth("two RBFs", _bumps, (2.0, -2.0)),
    "noise": Truth("sin 2x₁ + x₂, noise exp(0.6x₂)/2", _waves, (1.0, 1.0), 0.6),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows with labels, and test rows with their class probabilities."""

    X: FloatArray
    y: IntArray
    test: FloatArray
    truth: FloatArray  # (n, 4)


def draw(name: str, n: int, seed: int) -> Sample:
    """Draw n rows from a truth, and test rows."""
    truth, random = TRUTHS[name], np.random.default_rng([seed, n, *map(ord, name)])
    cuts = truth.cuts()
    X, test = random.normal(size=(n, 2)), random.normal(size=(_TEST_ROWS, 2))
    y = np.digitize(truth.score(X) + truth.noise(X) * random.normal(size=n), cuts)
    below = ndtr((cuts - truth.score(test)[:, None]) / truth.noise(test)[:, None])
    return Sample(X, y, test, np.diff(below, axis=1, prepend=0.0, append=1.0))


def share_covered(truth: FloatArray, low: FloatArray, high: FloatArray) -> tuple[float, float]:
    """Return the share of probabilities that lie in their bands, and the mean width of the bands."""
    likely = (truth > _LIKELY[0]) & (truth < _LIKELY[1])
    inside = (low <= truth) & (truth <= high)
    return float(inside[likely].mean()), float((high - low)[likely].mean())


def oracle_bands(
    name: str, sample: Sample, coverage: float, n_draws: int = 500
) -> tuple[FloatArray, FloatArray]:
    """Return the bands of one who knows the functions: maximum likelihood, and its normal distribution."""
    truth, levels = TRUTHS[name], np.arange(4)
    varies = truth.log_noise_slope != 0.0

    def probabilities(theta: FloatArray, X: FloatArray) -> FloatArray:
        cuts = np.cumsum(np.concatenate([theta[2:3], np.exp(theta[3:5])]))
        scale = np.exp(theta[5] * X[:, 1]) if varies else np.ones(len(X))
        below = ndtr((cuts - (truth.functions(X) @ theta[:2])[:, None]) / scale[:, None])
        return np.diff(below, axis=1, prepend=0.0, append=1.0)

    def loss(theta: FloatArray) -> float:
        p = probabilities(theta, sample.X)[sample.y[:, None] == levels]
        return -float(np.log(np.maximum(p, 1e-300)).sum())

    start = np.array([1.0, 1.0, -1.0, 0.0, 0.0, 0.0])[: 6 if varies else 5]
    found = minimize(loss, start)
    thetas = np.random.default_rng(0).multivariate_normal(found.x, found.hess_inv, n_draws)
    draws = np.stack([probabilities(theta, sample.test) for theta in thetas])
    low, high = np.quantile(draws, [0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage], axis=0)
    return low, high
