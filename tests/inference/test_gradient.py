"""The gradient of the log evidence against finite differences of the log evidence itself."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isbor._core.parallel import Workers
from isbor.inference.expansion import streamed
from isbor.inference.gradient import evidence_gradient
from isbor.inference.mode import log_evidence
from isbor.model.basis import Functions
from tests.problems import mode_of, small_rows

exact_mode = partial(mode_of, tol=1e-22)


@pytest.fixture(scope="module")
def problem():
    rows = small_rows(n=200)
    rng = np.random.default_rng(1)
    noise_scale = np.exp(0.5 * rng.standard_normal(len(rows)))
    m, d = 6, rows.X.shape[1]
    metric = 2.0 ** rng.uniform(-2, 2, size=(m, d))
    metric[0, 0] = metric[3, 1] = 0.0
    ramp = np.arange(m) >= 3
    metric[ramp] *= rng.choice([-1.0, 1.0], size=(3, d))
    functions = Functions(rows.X[:m], metric, ramp, np.zeros(m), np.arange(m), np.ones(m)).centred_on(rows)
    return rows, functions, 2.0 ** rng.uniform(-2, 3, m), noise_scale


@pytest.mark.parametrize("beta", [0.2, 3.0])
def test_the_gradient_is_that_of_the_log_evidence(problem, beta):
    rows, functions, alpha, noise_scale = problem
    with Workers(1) as workers:
        mode = exact_mode(rows, functions, alpha, noise_scale=noise_scale, beta=beta)
        columns = streamed(rows, functions)
        gradient = evidence_gradient(rows, functions, columns, mode, workers, noise_scale)

    def evidence(functions, alpha):
        return log_evidence(exact_mode(rows, functions, alpha, noise_scale=noise_scale, beta=beta))

    h = 1e-4
    for name in ("centres", "metric"):
        values = getattr(functions, name)
        numeric = np.zeros_like(values)
        for index in np.ndindex(values.shape):
            step = np.zeros_like(values)
            step[index] = h
            up, down = (evidence(replace(functions, **{name: values + s * step}), alpha) for s in (1, -1))
            numeric[index] = (up - down) / (2 * h)
        assert_allclose(getattr(gradient, name), numeric, rtol=1e-5, atol=1e-5, err_msg=name)
    for k in range(len(alpha)):
        factor = np.ones(len(alpha))
        factor[k] = np.exp(h)
        numeric_alpha = (evidence(functions, alpha * factor) - evidence(functions, alpha / factor)) / (2 * h)
        assert_allclose(gradient.log_alpha[k], numeric_alpha, rtol=1e-5, atol=1e-6)


def test_blocks_and_threads_do_not_matter(problem, monkeypatch):
    rows, functions, alpha, noise_scale = problem
    mode = exact_mode(rows, functions, alpha, noise_scale=noise_scale)
    with Workers(1) as workers:
        whole = evidence_gradient(rows, functions, streamed(rows, functions), mode, workers, noise_scale)
    monkeypatch.setattr(
        "isbor.inference.gradient.row_blocks", lambda n, _: [slice(i, i + 17) for i in range(0, n, 17)]
    )
    with Workers(3) as workers:
        parts = evidence_gradient(rows, functions, streamed(rows, functions), mode, workers, noise_scale)
    assert_allclose(parts.centres, whole.centres, rtol=1e-10, atol=1e-10)
    assert_allclose(parts.metric, whole.metric, rtol=1e-10, atol=1e-10)
    assert_allclose(parts.log_alpha, whole.log_alpha, rtol=1e-10, atol=1e-10)
