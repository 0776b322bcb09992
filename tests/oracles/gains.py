"""Gains of functions and their ascent as in `isbor.search.adaptive.gains`, with NumPy in double precision."""

from dataclasses import replace

import numpy as np

from isbor.model import compiled_basis
from isbor.model.basis import monomials
from isbor.search.ascent import typical_widths
from tests.compiled import callable_from_python

parameter_gradient = callable_from_python(compiled_basis.parameter_gradient)

FIRST_STEP, LONGEST_STEP, SHORTEST_STEP = 0.2, 1.0, 1e-3
FASTER, SLOWER = 1.3, 0.5
COLLINEAR = 1e-4


def gains_and_slopes(fitted, functions):
    """Return the gains, (m,), and their gradients in centres and metric, (m, d) each."""
    columns = fitted.columns.reshape(len(fitted.columns), -1).astype(float)
    explained, delta, curvature, share = (
        part.reshape(columns.shape[1], -1).squeeze().astype(float) for part in fitted[1:]
    )
    powers = monomials(columns.T)
    values = functions.at(powers)
    slopes = functions.slopes(values)

    values = values - (values @ share)[:, None]
    projected, quality = values @ explained, values @ delta
    square = (curvature * values**2).sum(axis=1)
    sparsity = square - (projected**2).sum(axis=1)
    sparsity = np.where(sparsity > COLLINEAR * np.maximum(square, 1e-30), sparsity, np.inf)
    x = quality**2 / sparsity
    gain = np.where(x > 1, 0.5 * (x - 1 - np.log(np.maximum(x, 1))), 0.5 * (x - 1))

    rate = np.where(x > 1, 1 - 1 / np.maximum(x, 1), 1.0)
    by_value = np.outer(rate * quality / sparsity, delta)
    by_value += (rate * x / sparsity)[:, None] * (projected @ explained.T - curvature * values)
    by_value -= np.outer(by_value.sum(axis=1), share)  # the functions are centred
    described = functions.centres, functions.metric, functions.ramp
    return gain, *parameter_gradient(*described, (by_value * slopes) @ powers.T)


def climb(fitted, functions, n_steps):
    """Return the functions after some ascent steps by the signs of slopes, each at the best point visited."""
    used, ramp = functions.metric != 0, functions.ramp[:, None]
    width = typical_widths(functions.metric, ramp)
    here = best = functions
    highest = np.full(len(functions), -np.inf)
    steps = [np.full(used.shape, FIRST_STEP) for _ in range(2)]
    directions = [np.zeros(used.shape) for _ in range(2)]
    for n in range(n_steps + 1):
        gain, *slopes = gains_and_slopes(fitted, here)
        better = (gain > highest)[:, None]
        best = replace(
            best,
            centres=np.where(better, here.centres, best.centres),
            metric=np.where(better, here.metric, best.metric),
        )
        highest = np.maximum(gain, highest)
        if n == n_steps:
            return best
        for slope, direction, step in zip(slopes, directions, steps, strict=True):
            sign = np.sign(slope * used)
            turned = sign * direction
            step *= np.where(turned > 0, FASTER, np.where(turned < 0, SLOWER, 1.0))
            np.clip(step, SHORTEST_STEP, LONGEST_STEP, out=step)
            direction[:] = np.where(turned < 0, 0.0, sign)
        shift, growth = directions[0] * steps[0], directions[1] * steps[1]
        tilted = here.metric + growth * np.maximum(np.abs(here.metric), 0.1)
        metric = np.where(ramp, tilted, here.metric * np.exp(growth))
        metric = np.where(used & (metric == 0), 1e-6, metric)
        here = replace(here, centres=here.centres + shift * width, metric=metric)
