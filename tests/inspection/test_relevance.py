"""Relevance of features: the total effect, against a score that is computed anew for every pair of rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor import ISBOR
from isbor._core.parallel import Workers
from isbor.data.rows import canonical_rows
from isbor.data.warps import Preparation
from isbor.inference.expansion import Expansion
from isbor.inference.mode import Mode
from isbor.inference.sparse import SparseModel
from isbor.inspection import relevance as relevance_module
from isbor.inspection.relevance import feature_relevance
from isbor.model.basis import Functions, RowDictionary
from isbor.prediction.ensemble import Ensemble
from tests.problems import shop, small_rows


def hand_made(rows, functions, weights):
    """A score that no fit led to."""
    scaling = canonical_rows(rows.X.copy(), rows.y, rows.weight)[1]
    m, weights = len(functions), np.asarray(weights, dtype=float)
    expansion = Expansion(weights, np.zeros(1), 0.0, np.zeros(m + 1), np.eye(m + 1), 0.0, 0.0)
    model = SparseModel(functions, Mode(np.ones(m), expansion), 0.0, len(rows))
    columns = np.arange(rows.X.shape[1])
    return Ensemble.of(Preparation(scaling, columns, (None,) * len(columns)), [model], rows.total_weight)


def bumps(rows, gamma, which, seed):
    """A score of Gaussian functions at some rows, with random weights."""
    weights = np.random.default_rng(seed).normal(size=len(which))
    return hand_made(rows, RowDictionary(rows, gamma).basis(which), weights)


def relevance(latent, rows):
    """The relevance where each column is a feature."""
    d = rows.X.shape[1]
    return feature_relevance(latent, rows, np.arange(d), d, Workers(1))


def ramps(metric):
    """tanh of linear functions through the origin."""
    metric = np.asarray(metric, dtype=float)
    m = len(metric)
    return Functions(
        np.zeros_like(metric), metric, np.ones(m, bool), np.zeros(m), np.zeros(m, int), np.ones(m)
    )


def all_pairs(latent, rows, feature=None):
    """Exchange each feature between all pairs of rows, and compute their scores from scratch."""
    feature = np.arange(rows.X.shape[1]) if feature is None else feature
    receiver, donor = (index.ravel() for index in np.indices((len(rows), len(rows))))
    share = rows.weight[receiver] * rows.weight[donor]
    score = latent.latent_of_scaled(rows.X).mean[receiver]
    effect = np.zeros(feature.max() + 1)
    for j in range(len(effect)):
        X = rows.X[receiver]
        X[:, feature == j] = rows.X[donor][:, feature == j]
        effect[j] = share @ (latent.latent_of_scaled(X).mean - score) ** 2
    return effect / effect.sum()


def test_of_a_linear_score_it_is_the_square_of_coefficient_times_spread():
    rows = small_rows(n=100, d=4)
    coefficients = np.array([1.0, -0.5, 0.0, 3.0])
    latent = hand_made(rows, ramps([1e-4 * coefficients]), [1e4])
    assert_allclose(relevance(latent, rows), coefficients**2 / np.sum(coefficients**2), atol=1e-6)


@pytest.mark.parametrize("family", [{"basis": "rbf"}, {"metric": "ard"}, {"basis": "mixed"}, {}], ids=str)
def test_it_agrees_with_scores_computed_anew(family, monkeypatch):
    called = []
    monkeypatch.setattr(
        "isbor.estimators.sparse.feature_relevance",
        lambda *arguments: called.append(arguments) or feature_relevance(*arguments),
    )
    found = ISBOR(**family).fit(*shop(90)).feature_relevance_
    ((latent, rows, feature, *_),) = called
    assert_allclose(found, all_pairs(latent, rows, feature), rtol=1e-6, atol=1e-12)
    assert_allclose(found.sum(), 1.0)
    assert found[2] == 0.0  # the constant


@pytest.mark.parametrize("gamma", [0.02, 0.5])
def test_rows_have_weights(gamma):
    rows = small_rows(n=80, d=3)
    latent = bumps(rows, gamma, np.arange(10), seed=0)
    found = relevance(latent, rows)
    assert_allclose(found, all_pairs(latent, rows), rtol=1e-9)
    assert np.abs(found - relevance(latent, replace(rows, weight=np.ones(len(rows))))).max() > 1e-3


def test_columns_of_a_feature_are_exchanged_together():
    """Two columns that are always opposite: neither ever changes alone."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 100))
    rows, _ = canonical_rows(np.column_stack([x, -x, z]), (x > 0).astype(int), np.ones(100))
    latent = hand_made(rows, ramps([[1e-4, 1e-4, 0.0], [0.0, 0.0, 1e-4]]), [1e4, 1e4])
    assert_allclose(
        feature_relevance(latent, rows, np.array([0, 0, 1]), 2, Workers(1)), [0.0, 1.0], atol=1e-12
    )


def test_a_steep_step_that_is_not_high_matters_little():
    rows = small_rows(n=150, d=2)
    latent = hand_made(rows, ramps([[0.5, 0.0], [0.0, 1e3]]), [1.0, 0.05])
    assert relevance(latent, rows)[1] < 0.02


def test_a_binary_column_is_the_same_feature_as_numbers_and_as_a_category():
    rng = np.random.default_rng(0)
    x, flag = rng.normal(size=600), rng.random(600) < 0.3
    y = np.digitize(x + 1.5 * flag + 0.3 * rng.normal(size=600), [-0.5, 0.5, 1.0])
    found = [
        ISBOR(gamma=0.2).fit(pd.DataFrame({"x": x, "flag": column}), y).feature_relevance_
        for column in (flag, flag.astype(int))
    ]
    assert found[0][1] > 0.1
    # Two searches, with the rows in other orders: over six seeds they differ by up to .06.
    assert_allclose(found[0], found[1], atol=0.03)


def test_skewed_features_count_by_their_effect():
    """The score is linear in the logarithms, which functions see as warps."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 3))
    y = np.digitize(Z @ [2.0, 1.0, 0.0] + 0.5 * rng.normal(size=400), [-2, 0, 2])
    model = ISBOR(basis="mixed", n_members=1).fit(np.exp(2.0 * Z), y)
    assert_allclose(model.feature_relevance_, [0.8, 0.2, 0.0], atol=0.06)


def test_order_and_repetition_of_rows():
    frame, y = shop(150)
    X = frame.drop(columns="age")  # what takes the place of missing cells is tested elsewhere
    times = np.random.default_rng(1).integers(1, 4, 150)
    repeated = np.random.default_rng(2).permutation(np.repeat(np.arange(150), times))
    model = ISBOR(gamma=0.1).fit(X, y, sample_weight=times)
    again = ISBOR(gamma=0.1).fit(X.iloc[repeated], y[repeated])
    assert_allclose(again.feature_relevance_, model.feature_relevance_, atol=1e-6)


def test_few_pairs_are_about_as_good_as_all(monkeypatch):
    rows = small_rows(n=600, d=3)
    latent = bumps(rows, 0.2, np.arange(12), seed=1)
    exact = all_pairs(latent, rows)
    assert_allclose(relevance(latent, rows), exact, atol=0.015)
    monkeypatch.setattr(relevance_module, "_MAX_VALUES", 12 * 3 * 300)  # half of the rows, one pair each
    found = relevance(latent, rows)
    assert np.any(found != exact)
    assert_allclose(found, exact, atol=0.1)


def test_pairs_do_not_depend_on_labels(monkeypatch):
    """In the order of the rows the two labels alternate, and the first feature tells them apart."""
    x, z = np.random.default_rng(0).normal(size=(2, 1000))
    rows, _ = canonical_rows(np.column_stack([x, z]), (x > np.median(x)).astype(int), np.ones(1000))
    latent = hand_made(rows, ramps([[1e-4, 1e-4]]), [1e4])
    monkeypatch.setattr(relevance_module, "_MAX_PAIRS", 1000)
    assert_allclose(relevance(latent, rows), [0.5, 0.5], atol=0.05)


def test_every_row_is_in_as_many_pairs():
    for n, n_pairs in ((7, 20), (7, 1000), (2, 20), (1, 20)):
        receiver, donor = relevance_module._pairs(n, n_pairs)
        assert len(receiver) == n * min(n_pairs // n, n - 1)
        assert np.all(receiver != donor)
        assert len({*zip(receiver.tolist(), donor.tolist(), strict=True)}) == len(receiver)
        for side in (receiver, donor):
            assert_array_equal(np.bincount(side, minlength=n), len(side) // n)


@pytest.mark.parametrize(
    ("metric", "weight", "expected"),
    [
        (np.empty((0, 2)), [], [0.0, 0.0]),
        ([[0.0, 0.0]], [0.0], [0.0, 0.0]),
        ([[1.0, 1.0]], [0.0], [0.0, 0.0]),
        ([[0.0, 1.0, 0.0]], [1.0], [0.0, 1.0, 0.0]),
    ],
    ids=["no function", "of no feature", "of no weight", "of one feature"],
)
def test_features_that_change_nothing_have_none(metric, weight, expected):
    rows = small_rows(n=60, d=len(expected))
    assert_array_equal(relevance(hand_made(rows, ramps(metric), weight), rows), expected)


@pytest.mark.parametrize("huge", [1e8, 1e100])
def test_huge_values(huge):
    """A row so far out changes nothing but its own pairs."""
    rows = small_rows(n=60, d=3)
    X = rows.X.copy()
    X[0, 1], X[1, 2], X[2] = huge, -huge, huge
    basis = RowDictionary(rows, 0.2).basis(np.arange(3, 10))
    steep = ramps([[0.0, 1.0, 0.0], [1.0, 0.0, 0.5]])
    latent = hand_made(rows, basis.followed_by(steep), np.random.default_rng(0).normal(size=9))
    rows = replace(rows, X=X)
    assert_allclose(relevance(latent, rows), all_pairs(latent, rows), rtol=1e-3)
