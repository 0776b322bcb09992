"""Slow and simple: the formulas of the model, written from their definitions with dense matrices."""

import numpy as np
from scipy.special import ndtr


def log_likelihood(phi, y, weight, w, b, sigma=1.0):
    """Σ v ln(Ψ(z1) - Ψ(z2)) from the definition; for moderate scores only."""
    edge = np.concatenate([[-np.inf], b, [np.inf]])
    f = phi @ w
    return weight @ np.log(ndtr((edge[y + 1] - f) / sigma) - ndtr((edge[y] - f) / sigma))


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
