"""Contributions of features: against all coalitions, and against other implementations."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel

from isbor import GPOR, ISBOR, ISVOR, KDLOR, SBOR, SVOR
from isbor._core.parallel import Workers
from isbor.estimators.linear import OrderedProbit
from isbor.inspection import shapley
from isbor.inspection.background import Background
from isbor.inspection.exponentials import as_exponentials
from isbor.inspection.score import Ridge, ScoreSum
from isbor.inspection.shapley import shapley_values
from isbor.model.basis import Functions
from tests.oracles import coalitions
from tests.problems import noisy_rows, shop

SYSTEMS = [
    ISBOR(effort="fast"),
    ISBOR(basis="mixed", n_members=2),
    ISBOR(metric="ard", patience=0),
    SBOR(gamma=0.3),
    GPOR(gamma=0.3),
    OrderedProbit(),
    SVOR(probability=False),
    SVOR(kernel="linear", probability=False),
    SVOR(kernel="poly", coef0=1.0, probability=False),
    ISVOR(probability=False),
    KDLOR(probability=False),
]
TANH = Ridge()


def name(model):
    return "".join(c for c in repr(model) if c.isalnum() or c in "=.")


@pytest.fixture(scope="module", params=SYSTEMS, ids=name)
def fitted(request):
    frame, y = shop(120)
    return request.param.fit(frame, y), frame


def test_they_are_those_of_all_coalitions_and_sum_to_the_score(fitted):
    """The columns of a feature, warps and marks of missing cells among them, switch together."""
    model, frame = fitted
    found = model.explain(frame[:6], background=frame[20:40])
    rows, others = (model._encoding("test", some) for some in (frame[:6], frame[20:40]))
    expected = coalitions.shapley_values(
        model._encoded_latent, rows, others, np.full(20, 0.05), model._encoding.feature
    )
    size = np.abs(expected).max()
    assert_allclose(found.contributions, expected, atol=1e-10 * size)
    assert_allclose(found.baseline + found.contributions.sum(axis=1), found.score, rtol=1e-9)
    assert_allclose(found.score, model.latent(frame[:6]), rtol=1e-12)
    assert_array_equal(found.contributions[:, 2], 0.0)  # the constant


def test_contributions_of_functions_sum_to_the_score(fitted):
    model, frame = fitted
    found = model.explain(frame[:9])
    assert_allclose(found.intercept + found.functions.sum(axis=1), found.score, rtol=1e-9, atol=1e-9)
    assert_allclose(found.intercept + found.typical.sum(), found.baseline, rtol=1e-9, atol=1e-9)
    assert len(found.source) == found.functions.shape[1]


def random_score(ramp, k, seed, *, ridge=TANH, steep=1.0):
    """A score of three functions of k features."""
    rng = np.random.default_rng(seed)
    metric = steep * (rng.normal(size=(3, k)) if ramp else rng.uniform(0, 0.5, (3, k)))
    none = np.zeros(3)
    functions = Functions(rng.normal(size=(3, k)), metric, np.full(3, ramp), none, none.astype(int), none)
    if ridge.degree is not None:
        functions = replace(functions, centres=np.zeros((3, k)))
    weights = rng.normal(size=3)
    return ScoreSum(np.array, np.arange(k), functions, weights, 0.0, functions.origin, ridge)


def values_of(score, X, other, k):
    with Workers(2) as workers:
        return shapley_values(score, X, Background.of_rows(other), k, workers)


KINDS = [(False, TANH, 1.0), (True, TANH, 0.3), (True, TANH, 40.0)]
KINDS += [(True, Ridge(1), 1.0), (True, Ridge(3, 1.0), 1.0), (True, Ridge(2, -0.5), 1.0)]


@pytest.mark.parametrize(("ramp", "ridge", "steep"), KINDS)
@pytest.mark.parametrize("k", [1, 2, 7, 12])
def test_single_functions_of_few_and_of_many_features(ramp, ridge, steep, k):
    score = random_score(ramp, k, seed=k, ridge=ridge, steep=steep)
    X, other = np.random.default_rng(1).normal(size=(2, 3, k))
    expected = coalitions.shapley_values(
        lambda rows: score.values(rows).sum(axis=1), X, other, np.full(3, 1 / 3), score.feature
    )
    assert_allclose(values_of(score, X, other, k), expected, atol=1e-11 * max(np.abs(expected).max(), 1.0))


@pytest.mark.parametrize("ridge", [TANH, Ridge(4, 0.7)])
def test_coalitions_and_exponentials_agree(ridge, monkeypatch):
    score = random_score(True, 9, seed=3, ridge=ridge)
    X, other = np.random.default_rng(2).normal(size=(2, 4, 9))
    by_coalitions = values_of(score, X, other, 9)
    monkeypatch.setattr(shapley, "_MOST_ENUMERATED", 1)
    assert_allclose(values_of(score, X, other, 9), by_coalitions, rtol=1e-10, atol=1e-12)


def test_rows_far_outside():
    """A ramp is ±1 there, whatever the other features are; a row far out in all of them is refused."""
    score = random_score(True, 12, seed=0)
    X, other = np.random.default_rng(1).normal(size=(2, 2, 12))
    X[0, 3] = 1e9
    found = values_of(score, X[:1], other, 12)
    assert_allclose(
        found.sum(axis=1), score.values(X[:1]).sum(axis=1) - score.values(other).sum(axis=1).mean()
    )
    with pytest.raises(ValueError, match=r"lies so far outside the training rows.*out_of_range"):
        values_of(score, np.full((1, 12), 1e9), other, 12)


@given(s=st.floats(-1.0, 1.0), reach=st.floats(0.01, 300.0), degree=st.integers(0, 6))
def test_a_ridge_is_a_sum_of_exponentials(s, reach, degree):
    ridge = Ridge(degree or None, 0.3 * reach if degree else 0.0)
    terms = as_exponentials(ridge, reach)
    found = (terms.coefficients @ np.exp(terms.exponents * s * reach)).real
    expected = (s + 0.3) ** degree * reach**degree if degree else np.tanh(s * reach)
    assert_allclose(found, expected, atol=1e-12 * (2 * reach) ** degree)


def test_features_that_are_alike_contribute_alike():
    """Symmetry, and the rows of the background have weights."""
    score = random_score(False, 3, seed=5)
    functions = replace(score.functions, metric=np.ones((3, 3)), centres=np.ones((3, 1)) * np.ones(3))
    X, other = np.full((1, 3), 0.4), np.array([[0.0, 0.0, 0.0], [2.0, 1.0, 1.5]])
    score = replace(score, functions=functions)
    background = Background(other, np.array([1.0, 0.0]), other[0], other[1])
    with Workers(1) as workers:
        found = shapley_values(score, X, background, 3, workers)
    assert_allclose(found, (score.values(X) - score.values(other[:1])).sum() / 3)


def test_it_does_not_depend_on_blocks_or_the_kind_of_table(monkeypatch):
    X, y = noisy_rows(100, seed=1)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = ISBOR(basis="rbf").fit(frame, y)
    expected = model.explain(frame).contributions
    assert_array_equal(model.explain(pl.from_pandas(frame)).contributions, expected)
    monkeypatch.setattr(shapley, "_ROWS_AT_ONCE", 7)
    assert_allclose(model.explain(frame).contributions, expected, rtol=1e-12)


def test_of_a_linear_model_they_are_slopes_times_distances():
    X, y = noisy_rows(200, seed=2)
    model = OrderedProbit().fit(X, y)
    found = model.explain(X[:5], background=X)
    assert_allclose(found.contributions, model.coef_ * (X[:5] - X.mean(axis=0)), atol=1e-12)


def test_shap_finds_the_same():
    shap = pytest.importorskip("shap")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=200), [-1.0, 1.0])
    model = ISBOR(effort="fast").fit(X, y)
    explainer = shap.explainers.Exact(model.latent, shap.maskers.Independent(X[:50], max_samples=50))
    expected = explainer(X[:10])
    found = model.explain(X[:10], background=X[:50])
    assert_allclose(found.contributions, expected.values, atol=1e-9)
    assert_allclose(found.baseline, expected.base_values[0])
    # Its approximation for any function works on class probabilities.
    of_classes = shap.KernelExplainer(model.predict_proba, X[:20]).shap_values(X[:2], silent=True)
    assert_allclose(
        of_classes.sum(axis=1) + model.predict_proba(X[:20]).mean(axis=0), model.predict_proba(X[:2])
    )


def test_a_kernel_matrix_has_no_features():
    X, y = noisy_rows(40, seed=0)
    model = SVOR(kernel="precomputed", probability=False).fit(rbf_kernel(X), y)
    for ask in (model.explain, model.changes, lambda K: model.effects(0, K)):
        with pytest.raises(ValueError, match="kernel='precomputed' leaves the features unknown"):
            ask(rbf_kernel(X))
