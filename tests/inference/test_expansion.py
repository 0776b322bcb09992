from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor._core import parallel
from isbor._core.parallel import Workers
from isbor.inference.expansion import expand, expand_partly, streamed
from isbor.model.basis import RowDictionary
from tests.oracles import dense
from tests.problems import expanded, expansion_of, random_shape, small_rows


@pytest.mark.parametrize("levels", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("varying", [False, True], ids=["constant", "varying"])
def test_expansion_is_the_taylor_series_of_the_log_likelihood(levels, varying):
    rows = small_rows(levels=levels)
    shape = random_shape(rows) if varying else None
    expansion, basis = expansion_of(rows, n_candidates=6, shape=shape)
    phi = basis(rows.X)
    described = (shape.noise_scale, shape.gap_factors) if varying else ()

    def function(theta):
        return dense.log_likelihood(phi, rows.y, rows.weight, theta[:6], theta[6:], *described)

    theta = np.concatenate([expansion.weights, expansion.thresholds])
    assert_allclose(expansion.log_likelihood, function(theta), rtol=1e-12)
    assert_allclose(expansion.gradient, dense.gradient(function, theta), rtol=1e-6, atol=1e-6)
    assert_allclose(expansion.precision, -dense.hessian(function, theta), rtol=1e-4, atol=1e-4)


def test_factors_of_one_are_constant_thresholds():
    rows = small_rows(levels=5)
    ones = replace(random_shape(rows), noise_scale=np.ones(len(rows)), gap_factors=np.ones((3, len(rows))))
    plain, varying = (expansion_of(rows, shape=shape)[0] for shape in (None, ones))
    assert_allclose(varying.log_likelihood, plain.log_likelihood, rtol=1e-12)
    assert_allclose(varying.gradient, plain.gradient, rtol=1e-9, atol=1e-9)
    assert_allclose(varying.precision, plain.precision, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("varying", [False, True], ids=["constant", "varying"])
def test_a_partial_expansion_has_the_same_numbers(varying):
    rows = small_rows()
    shape = random_shape(rows) if varying else None
    whole, basis = expansion_of(rows, n_candidates=8, shape=shape)
    with Workers(1) as workers:
        part = expand_partly(rows, basis, 5, whole.weights, whole.thresholds, workers, shape)
    assert_allclose(part.gradient, whole.gradient, rtol=1e-12, atol=1e-12)
    known = np.ones(whole.precision.shape, dtype=bool)
    known[5:8, 5:8] = np.eye(3)  # the others come later
    assert_allclose(part.precision[known], whole.precision[known], rtol=1e-12, atol=1e-12)
    later = (part.later.curvature * part.later.values) @ part.later.values.T
    assert_allclose(later, whole.precision[:8, :8], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("varying", [False, True], ids=["constant", "varying"])
def test_in_single_precision_only_the_inner_products_of_functions_are_rounded(varying):
    rows = small_rows(n=1200)
    shape = random_shape(rows) if varying else None
    exact, basis = expansion_of(rows, n_candidates=8, shape=shape)
    with Workers(1) as workers:
        point = exact.weights, exact.thresholds
        found = expand(rows, streamed(rows, basis), *point, workers, shape, single=True)
    assert_array_equal(found.gradient, exact.gradient)
    assert_array_equal(found.precision[8:], exact.precision[8:])
    assert_allclose(found.precision, exact.precision, rtol=1e-5)
    assert not np.array_equal(found.precision, exact.precision)
    assert_array_equal(found.precision, found.precision.T)


@pytest.mark.parametrize("varying", [False, True], ids=["constant", "varying"])
def test_blocks_and_threads_do_not_change_the_sums(monkeypatch, varying):
    rows = small_rows(n=500)
    shape = random_shape(rows) if varying else None
    basis = RowDictionary(rows, 0.3).basis(np.arange(10))
    point = np.linspace(-1, 1, 10), np.array([-1.0, 0.0, 1.0])
    whole = expanded(rows, basis, *point, shape=shape)
    monkeypatch.setattr(parallel, "_MAX_BLOCK_VALUES", 1)
    assert len(parallel.row_blocks(500, 10)) == 4  # the smallest blocks: 128 rows
    results = [expanded(rows, basis, *point, n_jobs, shape) for n_jobs in (1, 2, 3)]
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
