"""Slow and simple: the formulas of the model, written from their definitions with dense matrices."""

import numpy as np
from scipy.special import ndtr


def row_thresholds(b, gap_factors):
    """Return the thresholds of each row, (n, r-1): gaps times their factors, added up from the middle."""
    gaps = np.diff(b)[:, None] * gap_factors
    above = np.vstack([np.zeros(gap_factors.shape[1]), np.cumsum(gaps, axis=0)])
    low, high = (len(b) - 1) // 2, len(b) // 2  # the two in the middle, or the middle one twice
    return ((b[low] + b[high]) / 2 + above - (above[low] + above[high]) / 2).T


def probabilities(f, b, sigma=1.0, gap_factors=None):
    """P(y = k) at each row, (n, r), from the definition; for moderate scores only."""
    thresholds = np.tile(b, (len(f), 1)) if gap_factors is None else row_thresholds(b, gap_factors)
    z = (thresholds - f[:, None]) / np.broadcast_to(sigma, len(f))[:, None]
    below = np.diff(ndtr(z), axis=1, prepend=0.0, append=1.0)
    above = -np.diff(ndtr(-z), axis=1, prepend=1.0, append=0.0)  # has more digits in the upper tail
    return np.where(np.pad(z, ((0, 0), (1, 0)), constant_values=-1.0) > 0.0, above, below)


def log_likelihood(phi, y, weight, w, b, sigma=1.0, gap_factors=None):
    """Σ v ln p of the labels."""
    return weight @ np.log(probabilities(phi @ w, b, sigma, gap_factors)[np.arange(len(y)), y])


def gradient(function, x, step=1e-5):
    """Central differences of a scalar function."""
    return np.array([(function(x + h) - function(x - h)) / (2 * step) for h in step * np.eye(len(x))])


def hessian(function, x, step=1e-4):
    """Central differences of central differences."""
    return np.array(
        [
            (gradient(function, x + h, step) - gradient(function, x - h, step)) / (2 * step)
            for h in step * np.eye(len(x))
        ]
    )


def quadratic_evidence(precision, linear, alpha):
    """ln ∫ exp(-½ θᵀPθ + hᵀθ) Π N(θ_m | 0, 1/α_m) dθ over active weights and thresholds."""
    joint = precision + np.diag(alpha)
    _, log_det = np.linalg.slogdet(joint)
    return 0.5 * (linear @ np.linalg.solve(joint, linear) + np.log(alpha).sum() - log_det)
