"""The gradient of the log evidence against finite differences of the log evidence itself."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isbor._core.parallel import Workers
from isbor.inference.compiled_gradient import evidence_gradient
from isbor.inference.compiled_mode import mode_of_block
from isbor.inference.expansion import block_of, columns_of
from isbor.inference.mode import find_mode_at_rows, log_evidence
from isbor.model.basis import Functions
from isbor.model.compiled_basis import powers_of
from isbor.model.cuts import RowShape
from tests.problems import small_rows


@pytest.fixture(scope="module")
def problem():
    rows = small_rows(n=200)
    rng = np.random.default_rng(1)
    noise_scale = np.exp(0.5 * rng.standard_normal(len(rows)))
    shape = RowShape(noise_scale, np.empty((0, len(rows))))  # the same thresholds for all rows
    m, d = 6, rows.X.shape[1]
    metric = 2.0 ** rng.uniform(-2, 2, size=(m, d))
    metric[0, 0] = metric[3, 1] = 0.0
    ramp = np.arange(m) >= 3
    metric[ramp] *= rng.choice([-1.0, 1.0], size=(3, d))
    functions = Functions(rows.X[:m], metric, ramp, np.zeros(m), np.arange(m), np.ones(m)).centred_on(rows)
    return rows, functions, 2.0 ** rng.uniform(-2, 3, m), shape


def evidence(rows, functions, alpha, shape, beta):
    start = np.zeros(len(alpha)), np.linspace(-1, 1, rows.y.max())
    with Workers(1) as workers:
        columns = columns_of(rows, functions, workers)
        mode = find_mode_at_rows(rows, columns, alpha, *start, workers, shape, held_precision=beta, tol=1e-22)
    return log_evidence(mode)


@pytest.mark.parametrize("beta", [0.2, 3.0])
def test_the_gradient_is_that_of_the_log_evidence(problem, beta):
    rows, functions, alpha, shape = problem
    block = block_of(np.ascontiguousarray(functions(rows.X).T), rows, slice(0, len(rows)), shape)
    start = np.zeros(len(alpha)), np.linspace(-1, 1, rows.y.max())
    theta, sums, _ = mode_of_block(block, alpha, *start, beta, 1e-22, False)
    described = functions.centres, functions.metric, functions.ramp, functions.offset
    *gradient, _ = evidence_gradient(block, powers_of(rows.X), *described, alpha, theta, sums, beta)
    h = 1e-4
    for name, found in zip(("centres", "metric"), gradient, strict=False):
        values = getattr(functions, name)
        numeric = np.zeros_like(values)
        for index in np.ndindex(values.shape):
            step = np.zeros_like(values)
            step[index] = h
            # The metric of a bump is not negative: at zero, differences are forward ones.
            at_end = name == "metric" and values[index] == 0.0 and not functions.ramp[index[0]]
            places, factors = ((0, 1, 2), (-1.5, 2.0, -0.5)) if at_end else ((-1, 1), (-0.5, 0.5))
            around = [
                evidence(rows, replace(functions, **{name: values + s * step}), alpha, shape, beta)
                for s in places
            ]
            numeric[index] = np.dot(factors, around) / h
        assert_allclose(found, numeric, rtol=1e-5, atol=1e-5, err_msg=name)
    for k, factor in enumerate(np.exp(h * np.eye(len(alpha)))):
        up, down = (evidence(rows, functions, a, shape, beta) for a in (alpha * factor, alpha / factor))
        assert_allclose(gradient[2][k], (up - down) / (2 * h), rtol=1e-5, atol=1e-6)
