"""The reference process: derivatives of the noise, and dense oracles where nothing is left out."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr

from isbor._core.parallel import Workers
from isbor.data.rows import Scaling, canonical_rows
from isbor.gp import reference as reference_module
from isbor.gp.laplace import laplace
from isbor.gp.reference import fit_reference, noise_derivatives
from isbor.model.likelihood import edges
from tests.problems import small_rows


def reference(rows, slopes=None):
    d = rows.X.shape[1]
    with Workers(1) as workers:
        return fit_reference(rows, Scaling.identity(d), np.ones(d) if slopes is None else slopes, workers)


def drawn(n, noise, seed=0):
    """Rows of two features whose noise is given, as standard rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.digitize(X[:, 0] + noise(X) * rng.normal(size=n), [-0.7, 0.0, 0.7])
    return canonical_rows(X, y, np.ones(n))[0]


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_the_slope_in_the_noise(levels):
    rows = small_rows(n=60, levels=levels)
    rng = np.random.default_rng(0)
    f, t, b = 0.5 * rng.normal(size=60), 0.3 * rng.normal(size=60), np.linspace(-1.0, 1.0, levels - 1)
    slope, curvature = noise_derivatives(rows, f, b, t)

    def of_rows(t):
        edge = edges(b)
        z = (edge - f[:, None]) / np.exp(t)[:, None]
        p = np.diff(ndtr(z), axis=1)
        return rows.weight * np.log(p[np.arange(60), rows.y])

    h = 1e-5
    assert_allclose(slope, (of_rows(t + h) - of_rows(t - h)) / (2 * h), rtol=1e-5, atol=1e-7)
    assert np.all(curvature >= 0)


def test_the_curvature_in_the_noise_is_the_information_in_the_mean():
    """The mean over labels of the squared slope, row by row."""
    rows = replace(small_rows(n=40, levels=4), weight=np.ones(40))
    rng = np.random.default_rng(0)
    f, t, b = rng.normal(size=40), 0.3 * rng.normal(size=40), np.array([-0.8, 0.1, 1.0])
    p = np.diff(ndtr((edges(b) - f[:, None]) / np.exp(t)[:, None]), axis=1)
    found = [noise_derivatives(replace(rows, y=np.full(40, k)), f, b, t) for k in range(4)]
    information = sum(p[:, k] * found[k][0] ** 2 for k in range(4))
    assert_allclose(sum(p[:, k] * found[k][1] for k in range(4)), information, rtol=1e-9)


def test_with_all_rows_inducing_the_score_is_that_of_the_dense_process():
    rows = small_rows(n=80, levels=4, noise=0.7)
    found = replace(reference(rows), noise=None)
    plain = found.functions.plain(rows.X)
    shift = found.functions.offset @ found.coef
    gram = found.amplitude * plain @ plain.T
    # Refit the score without noise that varies, by giving the dense process the same thresholds.
    dense = laplace(gram, rows, found.thresholds + shift)
    law = found.law(rows.X)
    score = found.thresholds - law.mean
    assert np.ptp(score, axis=1).max() < 1e-9
    if np.abs(reference(rows).noise.coef).max() < 1e-3:
        assert_allclose(score[:, 0] + shift, gram @ dense.posterior.coef, atol=0.05)


def test_far_from_all_rows_the_score_has_its_prior_variance():
    rows = small_rows(n=150, levels=4)
    found = reference(rows)
    far = found.law(np.full((1, rows.X.shape[1]), 1e6)).covariance[0]
    near = found.law(rows.X).covariance
    assert np.all(np.diag(far) > found.amplitude)
    assert np.einsum("nkk->nk", near).max() < np.diag(far).min()


def test_covariances_are_covariances():
    rows = small_rows(n=150, levels=5)
    X = np.random.default_rng(0).normal(size=(50, rows.X.shape[1])) * 3.0
    covariance = reference(rows).law(X).covariance
    assert_allclose(covariance, np.swapaxes(covariance, 1, 2), rtol=1e-12)
    size = np.linalg.eigvalsh(covariance)
    assert np.all(size[:, 0] > -1e-9 * size[:, -1])


def test_noise_that_varies_is_found_and_noise_that_does_not_is_not():
    X = np.array([[0.0, -1.5], [0.0, 1.5]])
    varying = reference(drawn(1500, lambda X: 0.5 * np.exp(0.6 * X[:, 1])))
    quiet, loud = varying.noise.moments(X)[0]
    assert loud - quiet > 1.0
    constant = reference(drawn(1500, lambda X: 0.5))
    assert np.abs(constant.noise.moments(X)[0]).max() < 0.25


def test_the_evidence_prefers_the_truth():
    """Rows of a smooth score have a higher evidence than the same rows with labels at random."""
    rows = drawn(300, lambda X: 0.5)
    mixed = replace(rows, y=np.random.default_rng(0).permutation(rows.y))
    assert reference(rows).log_evidence > reference(mixed).log_evidence + 50.0


def test_many_rows_are_sampled():
    rows = drawn(9000, lambda X: 0.5)
    found, of_sample = reference(rows), reference(rows.head(8000))
    assert found.log_evidence == -np.inf
    assert np.isfinite(of_sample.log_evidence)
    ratio = found.law(rows.X[:50]).covariance / of_sample.law(rows.X[:50]).covariance
    assert_allclose(np.median(ratio), 8000 / 9000, rtol=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_width_and_amplitude_are_nearly_the_best_of_the_grid(seed):
    rows = drawn(120, lambda X: np.full(len(X), 0.5), seed)
    metric = np.full(2, 0.5)
    with Workers(1) as workers:
        width, amplitude = reference_module._best_scale(rows, metric, workers)
        grid = reference_module._Grid(rows, metric, workers)
        widths, amplitudes = reference_module._WIDTHS, reference_module._AMPLITUDES
        heights = [[grid.height(w, a) for a in range(len(amplitudes))] for w in range(len(widths))]
    found = heights[widths.index(width)][amplitudes.index(amplitude)]
    assert found > np.max(heights) - 0.5
