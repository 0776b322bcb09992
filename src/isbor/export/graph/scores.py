r"""The score of a model: mean and variance, noise and thresholds of each row; sections of docs/export.md.

The argument of an exponential is a quadratic function of the inputs, and that of a ramp a linear one, so the
arguments of all functions are products of a matrix with x² and x, as in `isbor.model.basis`. Of a Gaussian
process, the inverse of the Cholesky factor takes its place, because ONNX solves no systems of equations.
The factor has no singular value below 1, so its inverse magnifies no error.

**Factors go into matrices.** Runtimes replace a matrix product times a number by one operation, which has the
number in single precision. So no factor of such a product is multiplied by a number here, nor is the product.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from isbor._core.types import FloatArray, IntArray
from isbor.export.description import Described
from isbor.export.graph.tensors import Tensor, concatenated

__all__ = ["Score", "inputs_used", "score_of_model"]

_SATURATION = 3.0


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a model, and how it is cut. All are (n, 1) or (n, r-1), or constants for all rows."""

    mean: Tensor  # of the score
    scale: Tensor  # standard deviation of score plus noise
    thresholds: Tensor | FloatArray


@dataclass(frozen=True, slots=True)
class _Functions:
    """Values of functions, (n, m), and their numbers in the description."""

    values: Tensor
    order: IntArray  # (m,)

    def sums(self, weights: FloatArray) -> Tensor:
        """Return sums with these weights, (m,) or (m, k) in the description's order: (n, 1) or (n, k)."""
        return self.values @ np.reshape(weights, (len(weights), -1))[self.order]


def inputs_used(described: Described) -> list[int]:
    """Return the inputs on which any score depends."""
    used: set[int] = set()
    for model in described["models"]:
        score = model["score"]
        if score["kind"] == "functions":
            used.update(p for one in score["functions"] for p in one["inputs"])
        elif score["kind"] == "kernel":
            used.update(range(len(described["inputs"])))
        else:
            used.update(
                np.flatnonzero(np.any([part["metric"] for part in score["covariance"]], axis=0)).tolist()
            )
    return sorted(used)


def score_of_model(
    model: Described, x: Tensor, used: Sequence[int], temperature: float, zero: Tensor
) -> Score:
    """Return the score of a model at inputs x, those with the numbers `used`; `zero` is (n, 1)."""
    score, scale, thresholds = model["score"], model["scale"], np.array([model["thresholds"]])
    n_functions = len(score["functions"] if score["kind"] == "functions" else score["rows"])
    if not n_functions:  # the score is constant
        return Score(zero + model["shift"], zero + temperature * scale, thresholds)
    functions = _values(score, x, used)
    weights = (
        [one["weight"] for one in score["functions"]] if score["kind"] == "functions" else score["weights"]
    )
    mean = functions.sums(scale * np.array(weights)) + model["shift"]
    noise = zero + 1.0
    if model["noise"]:
        noise = (_saturated(functions, np.array(model["noise"])) * _SATURATION).exp()
    if model["gaps"]:
        thresholds = thresholds + _threshold_shifts(model["gaps"], functions, scale)
    variance = noise * noise + _variance(score, functions)
    return Score(mean, variance.sqrt() * (temperature * scale), thresholds)


def _values(score: Described, x: Tensor, used: Sequence[int]) -> _Functions:
    """Return the values of the functions of a score."""
    if score["kind"] == "functions":
        return _bumps_and_ramps(score["functions"], x, used)
    rows = np.array(score["rows"])[:, list(used)]
    if score["kind"] == "process":
        parts = [
            _bumps(rows, np.tile(np.array(part["metric"])[list(used)], (len(rows), 1)), x)
            * np.full((1, len(rows)), part["variance"])
            for part in score["covariance"]
        ]
        values = sum(parts[1:], start=parts[0])
    elif score["kernel"] == "rbf":
        values = _bumps(rows, np.full(rows.shape, score["gamma"]), x)
    elif score["kernel"] == "linear":
        values = x @ rows.T
    else:
        values = (x @ (score["gamma"] * rows.T) + score["coef0"]) ** float(score["degree"])
    return _Functions(values, np.arange(len(rows)))


def _bumps_and_ramps(functions: Sequence[Described], x: Tensor, used: Sequence[int]) -> _Functions:
    place = {p: k for k, p in enumerate(used)}
    centres, metric = np.zeros((2, len(functions), len(used)))
    for m, one in enumerate(functions):
        own = [place[p] for p in one["inputs"]]
        centres[m, own], metric[m, own] = one["centre"], one["metric"]
    is_ramp = np.array([one["shape"] == "ramp" for one in functions])
    bumps, ramps = np.flatnonzero(~is_ramp), np.flatnonzero(is_ramp)
    parts = [_bumps(centres[bumps], metric[bumps], x)] if len(bumps) else []
    if len(ramps):
        heights: FloatArray = (metric * centres)[ramps].sum(axis=1)
        parts.append((x @ metric[ramps].T - heights[None]).tanh())
    order = np.concatenate([bumps, ramps])
    offsets = np.array([functions[m]["offset"] for m in order])
    return _Functions(concatenated(parts) - offsets[None], order)


def _bumps(centres: FloatArray, metric: FloatArray, x: Tensor) -> Tensor:
    """Return exp(-Σ_d θ_d (x_d - z_d)²), (n, m)."""
    tilt = metric * centres
    heights: FloatArray = (tilt * centres).sum(axis=1)
    arguments = x @ (2.0 * tilt.T) - (x * x) @ metric.T - heights[None]
    return arguments.at_most(0.0).exp()  # rounding may make an exponent positive


def _variance(score: Described, functions: _Functions) -> Tensor | float:
    """Return the variance of the score, on the scale of the functions."""
    if score["kind"] == "kernel":
        return 0.0
    if score["kind"] == "functions":
        whitened = functions.sums(np.array(score["whitening"]).T)
        return (whitened * whitened).row_sum()
    n = len(score["precision"])
    lower = np.zeros((n, n))
    lower[np.tril_indices(n)] = np.concatenate(score["cholesky"])
    inverse = solve_triangular(lower, np.diag(np.sqrt(score["precision"])), lower=True)
    whitened = functions.sums(inverse.T)
    prior: float = sum(part["variance"] for part in score["covariance"])
    least: float = score["least_variance"]
    return (prior - (whitened * whitened).row_sum()).at_least(least)


# --- Noise and thresholds that vary ------------------------------------------------------------------------


def _saturated(functions: _Functions, weights: FloatArray) -> Tensor:
    """Return sums of the functions after saturation, in units of the limit."""
    return functions.sums(weights / _SATURATION).tanh()


def _threshold_shifts(gaps: Described, functions: _Functions, scale: float) -> Tensor:
    """Return how far the thresholds of rows are from those of the average row, (n, r-1)."""
    sums = _saturated(functions, np.array(gaps["weights"]).T)
    growth = (sums @ (_SATURATION * np.array(gaps["patterns"]))).exp() - 1.0
    thresholds = np.array(gaps["thresholds"])
    shifts = _on_the_way(len(thresholds)) * (scale * np.diff(thresholds))  # (thresholds, gaps)
    return growth @ shifts[gaps["places"]].T


def _on_the_way(t: int) -> FloatArray:
    """Return σ, (t, t-1): the part of each gap on the way from the middle to each threshold."""
    k, low, middle = np.arange(t)[:, None], np.arange(t - 1), 0.5 * (t - 1)
    up = np.minimum(k, low + 1.0) - np.maximum(middle, low)
    down = np.minimum(middle, low + 1.0) - np.maximum(k, low)
    sigma: FloatArray = np.maximum(up, 0.0) - np.maximum(down, 0.0)
    return sigma
