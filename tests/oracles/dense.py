"""Slow and simple: the formulas of the model, written from their definitions with dense matrices."""

import numpy as np
from scipy.special import ndtr


def log_likelihood(phi, y, weight, w, b, sigma=1.0):
    """Σ v ln(Ψ(z1) - Ψ(z2)) from the definition; for moderate scores only."""
    cuts = np.concatenate([[-np.inf], b, [np.inf]])
    f = phi @ w
    return weight @ np.log(ndtr((cuts[y + 1] - f) / sigma) - ndtr((cuts[y] - f) / sigma))


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
    """ln ∫ exp(-½ θᵀPθ + hᵀθ) Π N(w_m | 0, 1/α_m) dθ with flat priors for the other parameters.

    precision and linear cover the active weights first, then the thresholds.
    """
    m = len(alpha)
    prior = np.concatenate([alpha, np.zeros(len(linear) - m)])
    joint = precision + np.diag(prior)
    _, log_det = np.linalg.slogdet(joint)
    free = len(linear) - m
    return 0.5 * (
        linear @ np.linalg.solve(joint, linear) + np.log(alpha).sum() - log_det + free * np.log(2 * np.pi)
    )
