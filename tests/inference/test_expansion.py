from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from isbor._core import parallel
from isbor.model.basis import RowDictionary
from tests.oracles import dense
from tests.problems import expanded, expansion_of, small_rows


def test_expansion_is_the_taylor_series_of_the_log_likelihood():
    rows = small_rows()
    expansion, basis = expansion_of(rows, n_candidates=6)
    phi = basis(rows.X)

    def function(theta):
        return dense.log_likelihood(phi, rows.y, rows.weight, theta[:6], theta[6:])

    theta = np.concatenate([expansion.weights, expansion.thresholds])
    assert_allclose(expansion.log_likelihood, function(theta), rtol=1e-12)
    assert_allclose(expansion.gradient, dense.gradient(function, theta), rtol=1e-6, atol=1e-6)
    assert_allclose(expansion.precision, -dense.hessian(function, theta), rtol=1e-4, atol=1e-4)


def test_blocks_and_threads_do_not_change_the_sums(monkeypatch):
    rows = small_rows(n=500)
    basis = RowDictionary(rows, 0.3).basis(np.arange(10))
    point = np.linspace(-1, 1, 10), np.array([-1.0, 0.0, 1.0])
    whole = expanded(rows, basis, *point)
    monkeypatch.setattr(parallel, "_MAX_BLOCK_VALUES", 1)
    assert len(parallel.row_blocks(500, 10)) == 4  # the smallest blocks: 128 rows
    results = [expanded(rows, basis, *point, n_jobs) for n_jobs in (1, 2, 3)]
    for result in results:
        assert_allclose(result.precision, whole.precision, rtol=1e-12, atol=1e-12)
        assert_array_equal(result.precision, results[0].precision)
        assert_array_equal(result.gradient, results[0].gradient)


def test_moments_of_the_scores_are_weighted():
    rows = small_rows()
    basis = replace(
        RowDictionary(rows, 0.3).basis(np.arange(4)), offset=np.full(4, 0.2)
    )  # a mean that is not 0
    w = np.array([1.0, -2.0, 0.5, 3.0])
    f = basis(rows.X) @ w
    expansion = expanded(rows, basis, w, np.array([-1.0, 0.0, 1.0]))
    mean = np.average(f, weights=rows.weight)
    assert_allclose(expansion.latent_mean, mean)
    assert_allclose(expansion.latent_variance, np.average((f - mean) ** 2, weights=rows.weight))
