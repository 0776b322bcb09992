"""The gradient of the log evidence against finite differences of the log evidence itself."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isbor._core.parallel import Workers
from isbor.inference.expansion import expand, streamed
from isbor.inference.gradient import evidence_gradient
from isbor.inference.mode import find_mode, log_evidence
from isbor.model.basis import Functions
from tests.problems import small_rows


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


def mode_of(rows, functions, alpha, noise_scale, beta=None):
    columns = streamed(rows, functions)
    with Workers(1) as workers:

        def held(w, b):
            return replace(expand(rows, columns, w, b, workers, noise_scale), held_precision=beta)

        return find_mode(held, alpha, np.zeros(len(alpha)), np.linspace(-1, 1, rows.y.max()), tol=1e-22)


def gradient_at(rows, functions, mode, noise_scale, n_jobs=1):
    with Workers(n_jobs) as workers:
        return evidence_gradient(rows, functions, streamed(rows, functions), mode, workers, noise_scale)


@pytest.mark.parametrize("beta", [0.2, 3.0])
def test_the_gradient_is_that_of_the_log_evidence(problem, beta):
    rows, functions, alpha, noise_scale = problem
    gradient = gradient_at(rows, functions, mode_of(*problem, beta), noise_scale)

    def evidence(functions, alpha):
        return log_evidence(mode_of(rows, functions, alpha, noise_scale, beta))

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
    for k, factor in enumerate(np.exp(h * np.eye(len(alpha)))):
        numeric = (evidence(functions, alpha * factor) - evidence(functions, alpha / factor)) / (2 * h)
        assert_allclose(gradient.log_alpha[k], numeric, rtol=1e-5, atol=1e-6)


def test_blocks_and_threads_do_not_matter(problem, monkeypatch):
    rows, functions, _, noise_scale = problem
    mode = mode_of(*problem)
    whole = gradient_at(rows, functions, mode, noise_scale)
    blocks = [slice(i, i + 17) for i in range(0, len(rows), 17)]
    monkeypatch.setattr("isbor.inference.gradient.row_blocks", lambda *_: blocks)
    parts = gradient_at(rows, functions, mode, noise_scale, n_jobs=3)
    for name in ("centres", "metric", "log_alpha"):
        assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-10, atol=1e-10)
