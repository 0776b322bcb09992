from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import floats, lists
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from isbor._core.parallel import Workers
from isbor.data.rows import canonical_rows
from isbor.data.warps import Preparation
from isbor.inference.mode import posterior_precision
from isbor.model.basis import RowDictionary
from isbor.model.latent import Drift, Latent
from isbor.model.likelihood import edges, ordinal_probit
from isbor.prediction.decisions import decide, margins
from isbor.prediction.empty_classes import insert_empty_levels, places_of_thresholds
from isbor.prediction.ensemble import Ensemble
from isbor.prediction.probabilities import (
    class_probabilities,
    log_class_probabilities,
    log_label_probabilities,
    normal_scores,
)
from isbor.search.recorder import Recorder
from isbor.search.settings import SolverSettings
from isbor.search.solvers.gram import solve_gram

B = np.array([-1.0, 0.2, 1.5])
MEAN = np.linspace(-5.1, 5.2, 31)
VARIANCE = np.linspace(0.0, 9.0, 31)


def score(mean, variance, noise=1.0):
    mean = np.asarray(mean, dtype=float)
    return Latent(mean, np.broadcast_to(variance, mean.shape), np.broadcast_to(noise, mean.shape))


SCORE = score(MEAN, VARIANCE, np.linspace(3.0, 0.1, 31))


@given(
    f=floats(-50, 50),
    v=floats(0, 100),
    gaps=lists(floats(0.01, 10), min_size=1, max_size=8),
    shift=floats(-20, 20),
)
def test_probabilities_sum_to_one_and_ignore_a_common_shift(f, v, gaps, shift):
    b = np.cumsum(gaps)
    p = class_probabilities(score([f], v), b)
    assert_allclose(p.sum(), 1.0)
    assert np.all(p >= 0)
    shifted = class_probabilities(score([f + shift], v), b + shift)
    assert_allclose(shifted, p, rtol=1e-6, atol=1e-12)


def test_probabilities_integrate_over_the_score():
    mean, variance, noise = 0.4, 2.0, 0.7
    p = class_probabilities(score([mean], variance, noise**2), B)[0]
    for k, (low, high) in enumerate(zip(edges(B)[:-1], edges(B)[1:], strict=True)):
        density = lambda f, low=low, high=high: (
            (ndtr((high - f) / noise) - ndtr((low - f) / noise)) * norm.pdf(f, mean, np.sqrt(variance))
        )
        assert_allclose(p[k], quad(density, -15, 15)[0], rtol=1e-7)


@pytest.mark.parametrize("varying", [False, True])
def test_probabilities_keep_their_digits_in_both_tails(varying):
    """Each is the difference of two tails on one side of the mean, from scipy; 300 rows are two chunks."""
    mean, scale = np.linspace(-36.0, 37.0, 300), np.geomspace(0.9, 1.1, 300)
    offsets = 0.1 * np.sin(np.arange(900.0)).reshape(300, 3) if varying else None
    latent = replace(score(mean, 0.5 * scale**2, 0.5 * scale**2), offsets=offsets)
    z = latent.standardised_edges(B)
    mirrored = z[:, :-1] > 0.0
    low, high = np.where(mirrored, -z[:, 1:], z[:, :-1]), np.where(mirrored, -z[:, :-1], z[:, 1:])
    assert_allclose(class_probabilities(latent, B), ndtr(high) - ndtr(low), rtol=3e-13, atol=1e-300)


def test_logarithms_agree_and_reach_into_the_tails():
    p = class_probabilities(SCORE, B)
    assert_allclose(np.exp(log_class_probabilities(SCORE, B)), p, rtol=1e-9, atol=1e-14)
    far = log_class_probabilities(score([-60.0], 0.0), B)[0]
    assert_allclose(far[-1], norm.logsf(61.5), rtol=1e-9)


def test_a_lapse_bounds_probabilities_in_every_form():
    lapsing = replace(SCORE, lapse=0.1)
    p = class_probabilities(lapsing, B)
    assert_allclose(p, 0.9 * class_probabilities(SCORE, B) + 0.025, rtol=1e-12)
    assert_allclose(np.exp(log_class_probabilities(lapsing, B)), p, rtol=1e-9)
    assert_allclose(np.exp(log_class_probabilities(replace(score([-60.0], 0.0), lapse=0.1), B)[0, -1]), 0.025)


@pytest.mark.parametrize("loss", ["absolute", "zero_one", "quadratic"])
def test_decisions_minimise_the_expected_loss(loss):
    k = np.arange(4)
    cost = {
        "absolute": np.abs(k[:, None] - k),
        "zero_one": k[:, None] != k,
        "quadratic": (k[:, None] - k) ** 2,
    }
    expected = class_probabilities(SCORE, B) @ cost[loss]
    chosen = decide(SCORE, B, loss)
    assert_allclose(expected[np.arange(31), chosen], expected.min(axis=1), rtol=1e-9)
    assert_array_equal(decide(SCORE, B, cost[loss]), np.argmin(expected, axis=1))


def test_a_score_on_a_threshold_belongs_to_the_lower_class():
    assert decide(score(B, 0.0), B, "absolute").tolist() == [0, 1, 2]


def test_margins_agree_with_the_decision():
    m = margins(SCORE, B)
    assert_array_equal(m.argmax(axis=1), decide(SCORE, B, "absolute"))
    assert np.all((m > 0).sum(axis=1) == 1)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ("huber", "loss='huber' is unknown"),
        (np.ones((2, 2)), r"shape \(2, 2\).*shape \(4, 4\)"),
        (np.full((4, 4), np.nan), "finite numbers"),
    ],
)
def test_unknown_losses_are_refused(loss, message):
    with pytest.raises(ValueError, match=message):
        decide(SCORE, B, loss)


def test_drift_mixes_base_rates_into_every_form():
    rates, u = np.array([0.1, 0.2, 0.3, 0.4]), np.linspace(0.0, 1.0, 31)
    drifting = replace(SCORE, lapse=0.01, drift=Drift(u, rates))
    inside = class_probabilities(replace(SCORE, lapse=0.01), B)
    expected = (1 - u)[:, None] * inside + u[:, None] * rates
    assert_allclose(class_probabilities(drifting, B), expected, rtol=1e-12)
    assert_allclose(np.exp(log_class_probabilities(drifting, B)), expected, rtol=1e-9)
    plain = replace(drifting, lapse=0.0)
    below = np.cumsum(class_probabilities(plain, B), axis=1)[:, :-1]
    assert_allclose(ndtr(normal_scores(plain, B)[:, 1:-1]), below, rtol=1e-9)
    assert_array_equal(decide(plain, B, "absolute"), (below < 0.5).sum(axis=1))
    # Rows that do not drift are left as they are, to the last bit.
    assert_array_equal(normal_scores(plain, B)[0], normal_scores(SCORE, B)[0])


@pytest.mark.parametrize("observed", [[0, 1, 2], [2, 3, 5], [0, 4], [3, 4]])
def test_empty_levels_are_small_but_defined(observed):
    observed = np.array(observed)
    seen = np.linspace(-0.5, 1.0, len(observed) - 1)
    n_rows, n_levels = 90, 6
    scores, variance = np.linspace(-4.0, 3.0, 701), np.linspace(0.5, 0.0, 701)
    spreads = np.column_stack([scores, np.sqrt(1.0 + variance)])
    b = insert_empty_levels(seen, observed, n_levels, total_weight=n_rows, responses=spreads)
    assert b.shape == (5,)
    assert np.all(np.diff(b) > 0)
    p = class_probabilities(score(scores, variance), b)
    empty = np.setdiff1d(np.arange(n_levels), observed)
    assert np.all(p[:, empty] > 0)
    assert np.all(p[:, empty].max(axis=0) < 1.02 / (n_rows + n_levels))
    assert np.all(p[:, empty].max(axis=0) > 0.8 / (n_rows + n_levels))
    # Hardly any training score falls into the sliver that an empty level gets.
    assert np.mean(np.isin(decide(score(scores, variance), b, "absolute"), empty)) < 0.01


@pytest.mark.parametrize("scale", [1.0, 1e3])  # gaps so wide that dividing by a tiny number overflows
def test_all_levels_observed_leaves_the_thresholds_alone(scale):
    b = insert_empty_levels(scale * B, np.arange(4), 4, total_weight=10, responses=np.zeros((1, 2)))
    assert_allclose(b, scale * B, atol=1e-12)


@pytest.mark.parametrize(
    ("observed", "n_levels", "expected"),
    [
        ([0, 1, 2, 3], 4, [0, 1, 2]),
        ([2, 3, 4], 5, [0, 0, 0, 1]),  # below
        ([0, 1, 2], 5, [0, 1, 1, 1]),  # above
        ([0, 3, 4], 5, [0, 0, 0, 1]),  # between
        ([0, 1, 4], 5, [0, 1, 1, 1]),
        ([1, 2, 5, 6], 8, [0, 0, 1, 1, 1, 2, 2]),
        ([2, 4], 7, [0, 0, 0, 0, 0, 0]),
    ],
)
def test_thresholds_of_empty_levels_move_with_the_nearest_fitted_one(observed, n_levels, expected):
    observed = np.array(observed)
    places = places_of_thresholds(observed, n_levels)
    assert places.tolist() == expected
    # Among the thresholds of all levels, those of each place lie about the fitted one, but for the ends.
    seen = np.linspace(-2.0, 2.0, len(observed) - 1)
    b = insert_empty_levels(seen, observed, n_levels, total_weight=1e4, responses=np.array([[0.0, 1.0]]))
    inside = slice(observed[0], observed[-1])
    assert_allclose(b[inside], seen[places[inside]], atol=0.01)


# --- Thresholds of each row --------------------------------------------------------------------------------


def thresholds_of_rows(n, t, seed=0):
    """Offsets of common thresholds such that those of each row are in order."""
    rng = np.random.default_rng(seed)
    common = np.linspace(-1.5, 2.0, t)
    return common, np.sort(2.0 * rng.normal(size=(n, t)), axis=1) - common


def test_offsets_are_added_to_the_common_thresholds():
    common, offsets = thresholds_of_rows(31, 3)
    latent = replace(SCORE, offsets=offsets, lapse=0.01)
    for function in (class_probabilities, log_class_probabilities, margins):
        one_by_one = [
            function(replace(score(MEAN[i : i + 1], VARIANCE[i], SCORE.noise_variance[i]), lapse=0.01), b)[0]
            for i, b in enumerate(common + offsets)
        ]
        assert_allclose(function(latent, common), one_by_one, rtol=1e-9, atol=1e-12)


# --- Averages of models ------------------------------------------------------------------------------------


def mixture(n=60, t=4, seed=0, lapse=0.0):
    """Three models with thresholds of their own, one of them the same for all rows, and the common ones."""
    rng = np.random.default_rng(seed)
    common, _ = thresholds_of_rows(n, t)
    parts = []
    for k in range(3):
        offsets = np.sort(2.0 * rng.normal(size=(1 if k == 0 else n, t)), axis=1) - common
        mean = 1.5 * rng.normal(size=n)
        parts.append(Latent(mean, rng.uniform(0, 1, n), rng.uniform(0.05, 2, n), lapse, offsets))
    moments = np.mean([[p.mean, p.variance, p.noise_variance] for p in parts], axis=0)
    return Latent(*moments, lapse, None, tuple(parts), (0.5, 0.2, 0.3)), common


def mixed(latent, common):
    """Probabilities of the parts, averaged, from the definition."""
    total = 0.0
    for part, share in zip(latent.parts, latent.shares, strict=True):
        spread = np.sqrt(part.noise_variance + part.variance)[:, None]
        below = ndtr((common + part.offsets - part.mean[:, None]) / spread)
        total = total + share * np.diff(below, axis=1, prepend=0.0, append=1.0)
    r = len(common) + 1
    return (1 - latent.lapse) * total + latent.lapse / r


@pytest.mark.parametrize("lapse", [0.0, 0.03])
def test_probabilities_of_an_average_are_averages(lapse):
    latent, common = mixture(lapse=lapse)
    p = class_probabilities(latent, common)
    assert_allclose(p, mixed(latent, common), rtol=1e-9, atol=1e-12)
    assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    sound = p > 1e-200
    assert sound.mean() > 0.9
    log_p = log_class_probabilities(latent, common)
    assert_allclose(log_p[sound], np.log(p[sound]), rtol=1e-8, atol=1e-8)
    y = np.random.default_rng(0).integers(len(common) + 1, size=len(p))
    of_labels = log_label_probabilities(latent, common, y)
    assert_allclose(of_labels, log_p[np.arange(len(y)), y], rtol=1e-12)


def test_logarithms_of_an_average_are_finite_far_in_the_tails():
    """The best of the parts decides: its share and its own tail."""
    common = np.array([0.0, 1.0])
    parts = tuple(
        Latent(np.array([mean]), np.zeros(1), np.ones(1), 0.0, np.array([[shift, shift]]))
        for mean, shift in ((-300.0, 0.0), (-250.0, 0.0), (-251.0, -1.0))
    )
    latent = Latent(np.array([-260.0]), np.zeros(1), np.ones(1), 0.0, None, parts, (0.5, 0.25, 0.25))
    found = log_class_probabilities(latent, common)[0]
    assert np.all(np.isfinite(found))
    assert class_probabilities(latent, common)[0, 2] == 0.0
    assert_allclose(found[2], np.log(0.5) + norm.logsf(251.0), rtol=1e-12)
    scores = normal_scores(latent, common)[0]
    assert_allclose(norm.logsf(scores[2]), found[2], rtol=1e-9)
    assert np.all(np.diff(scores) > 0)


@pytest.mark.parametrize("seed", range(3))
def test_normal_scores_invert_the_cumulative_probabilities(seed):
    latent, common = mixture(seed=seed)
    z = normal_scores(latent, common)
    assert_array_equal(z[:, [0, -1]], np.tile([-np.inf, np.inf], (60, 1)))
    assert np.all(np.diff(z, axis=1) > 0)
    below = np.cumsum(mixed(latent, common), axis=1)[:, :-1]
    assert_allclose(ndtr(z[:, 1:-1]), below, rtol=1e-9, atol=1e-12)
    above = np.cumsum(mixed(latent, common)[:, ::-1], axis=1)[:, ::-1][:, 1:]
    assert_allclose(ndtr(-z[:, 1:-1]), above, rtol=1e-7, atol=1e-12)
    # Of equal parts, it is the score of each.
    part = latent.parts[1]
    equal = replace(latent, parts=(part,) * 3)
    assert_allclose(normal_scores(equal, common), normal_scores(part, common), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_decisions_of_an_average_minimise_the_expected_loss(seed):
    latent, common = mixture(seed=seed)
    p, levels = mixed(latent, common), np.arange(len(common) + 1)
    for loss, cost in (
        ("absolute", np.abs(levels[:, None] - levels)),
        ("zero_one", levels[:, None] != levels),
        ("quadratic", (levels[:, None] - levels) ** 2),
    ):
        expected = p @ cost
        chosen = decide(latent, common, loss)
        assert len(np.unique(chosen)) > 2
        assert_allclose(expected[np.arange(60), chosen], expected.min(axis=1), rtol=1e-9)
    m = margins(latent, common)
    assert_array_equal(m.argmax(axis=1), decide(latent, common, "absolute"))
    assert np.all((m > 0).sum(axis=1) == 1)


def test_the_median_of_an_average_is_not_that_of_the_average_score():
    """One sure model out of three does not decide, however far away its score is."""
    parts = tuple(
        Latent(np.array([mean]), np.zeros(1), np.ones(1), 0.0, np.zeros((1, 2))) for mean in (-2, -2, 100)
    )
    share = 1.0 / 3.0
    latent = Latent(np.array([32.0]), np.array([2312.0]), np.ones(1), 0.0, None, parts, (share,) * 3)
    assert decide(latent, np.array([0.0, 1.0]), "absolute").tolist() == [0]


@pytest.mark.parametrize(("seed", "gamma"), [(0, 0.05), (1, 0.3), (2, 0.01)])
def test_variance_and_probabilities_against_importance_sampling(seed, gamma):
    """Exact posterior moments by weighting draws from a wider version of the Laplace approximation."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 2))
    f = X[:, 0] + 0.7 * X[:, 1] ** 2
    y = np.digitize(f + 0.5 * rng.normal(size=150), [0.0, 0.8])
    rows, scaling = canonical_rows(X, y, np.ones(150))
    preparation = Preparation.plain(scaling)
    rows = preparation.of_rows(rows)
    dictionary = RowDictionary(rows, gamma)
    with Workers(1) as workers:
        recorder = Recorder("fit", rows.source)
        model, _ = solve_gram(rows, dictionary, None, SolverSettings(), workers, recorder)
    mode, m = model.mode, len(model.functions.origin)
    assert m >= 1
    basis = dictionary.basis(model.functions.origin)
    new = 1.2 * rng.normal(size=(100, 2))
    latent = Ensemble.of(preparation, [model], 150.0).latent(new)
    mean, variance = latent.mean, latent.variance
    phi = basis(preparation(new))

    precision, beta = posterior_precision(mode), mode.expansion.threshold_precision
    centre = np.append(mode.weights, mode.thresholds)

    def weighted(draws, log_density):
        w, b = draws[:, :m], draws[:, m:]
        edge = np.column_stack([np.full(len(b), -np.inf), b, np.full(len(b), np.inf)])
        scores = w @ basis(rows.X).T
        log_p = ordinal_probit(scores.ravel(), edge[:, rows.y].ravel(), edge[:, rows.y + 1].ravel()).log_p
        log_prior = -0.5 * w**2 @ mode.alpha - 0.5 * beta * (b**2).sum(axis=1)
        log_posterior = log_p.reshape(scores.shape).sum(axis=1) + log_prior
        weight = np.exp(log_posterior - log_density - (log_posterior - log_density).max())
        return weight / weight.sum()

    def draw(matrix, size=20_000, dof=8):
        z = rng.normal(size=(size, len(matrix))) * np.sqrt(dof / rng.chisquare(dof, size))[:, None]
        return z @ np.linalg.inv(np.linalg.cholesky(matrix)), -0.5 * (dof + len(matrix)) * np.log1p(
            (z**2).sum(axis=1) / dof
        )

    # v: the variance of the score given the thresholds.
    step, log_density = draw(precision[:m, :m])
    draws = centre + np.pad(step, ((0, 0), (0, len(mode.thresholds))))
    weight = weighted(draws, log_density)
    scores = draws[:, :m] @ phi.T
    exact_mean = weight @ scores
    exact_variance = weight @ (scores - exact_mean) ** 2
    assert_allclose(np.median(variance / exact_variance), 1.0, atol=0.05)
    assert_allclose(variance, exact_variance, rtol=0.2)

    # The probabilities: the thresholds uncertain as well.
    step, log_density = draw(precision)
    draws = centre + step
    ordered = np.all(np.diff(draws[:, m:], axis=1) > 0, axis=1)
    draws, log_density = draws[ordered], log_density[ordered]
    weight = weighted(draws, log_density)
    scores = draws[:, :m] @ phi.T
    for k in range(len(mode.thresholds)):
        exact = weight @ ndtr(draws[:, m + k, None] - scores)
        ours = ndtr((mode.thresholds[k] - mean) / np.sqrt(1 + variance))
        error = np.abs(ours - exact)
        assert error.mean() < 0.005
        # Where the rows leave the score uncertain its posterior is skewed, and Laplace's Gaussian is not.
        assert error[variance < 0.1].max() < 0.015
        assert error.max() < 0.06
