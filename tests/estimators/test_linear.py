import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq, minimize
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from isbor.data.order import on_grid
from isbor.estimators.linear import OrderedProbit


def draw(n, seed=0):
    """Rows on scales of their own, and labels of an ordered probit on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal([3.0, -1.0, 500.0], [2.0, 0.5, 100.0], size=(n, 3))
    score = X @ [0.4, -1.5, 0.003]
    return X, np.searchsorted([3.0, 3.9, 5.1], score + rng.normal(size=n))


def probabilities(score, thresholds):
    """P(y = k) of a probit, (n, r)."""
    return np.diff(ndtr(thresholds - score[:, np.newaxis]), axis=1, prepend=0.0, append=1.0)


def with_lapses(p, n):
    return (1 - 1 / (n + 2)) * p + 1 / (n + 2) / p.shape[1]


# --- The fit against others --------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_it_maximises_the_likelihood(weighted):
    X, y = draw(400)
    weight = np.random.default_rng(1).integers(1, 4, 400) / 2 if weighted else np.ones(400)
    model = OrderedProbit().fit(X, y, sample_weight=weight)

    # On standardised columns; thresholds as the first and the logarithms of the gaps, which stay in order.
    centre, spread = X.mean(axis=0), X.std(axis=0)

    def thresholds(parameters):
        return parameters[3] + np.append(0.0, np.exp(parameters[4:])).cumsum()

    def loss(parameters):
        p = probabilities((X - centre) / spread @ parameters[:3], thresholds(parameters))
        return -np.average(np.log(np.maximum(p[np.arange(400), y], 1e-300)), weights=weight)

    best = minimize(loss, np.zeros(6), jac="3-point", method="BFGS", options={"gtol": 1e-8}).x
    slopes = best[:3] / spread
    assert_allclose(model.coef_, slopes, rtol=1e-4)
    assert_allclose(model.thresholds_, thresholds(best) + centre @ slopes, rtol=1e-4)


def test_one_binary_column_gives_the_quantiles_of_the_frequencies():
    x = np.repeat([0.0, 1.0], 50)
    y = np.concatenate([np.arange(50) < 10, np.arange(50) < 35])  # 20 % and 70 %
    model = OrderedProbit().fit(x[:, np.newaxis], y)
    assert_allclose(model.thresholds_, -ndtri([0.2]), atol=1e-6)
    assert_allclose(model.coef_, [ndtri(0.7) - ndtri(0.2)], atol=1e-6)
    p = with_lapses(np.array([[0.8, 0.2], [0.3, 0.7]]), 100)
    assert_allclose(model.predict_proba([[0.0], [1.0]]), p, atol=1e-6)


def test_without_information_it_predicts_the_class_frequencies():
    y = np.repeat([1, 2, 3], [20, 30, 50])
    model = OrderedProbit().fit(np.full((100, 2), 7.0), y)
    assert_array_equal(model.coef_, [0.0, 0.0])
    assert_allclose(model.thresholds_, ndtri([0.2, 0.5]), atol=1e-6)
    assert_allclose(
        model.predict_proba([[7.0, 9.0]]), with_lapses(np.array([[0.2, 0.3, 0.5]]), 100), atol=1e-6
    )


def test_the_prior_keeps_separable_data_finite():
    """Two rows, one on each side: w maximises the mean of ln Ψ(w) - 0.5e-8 w²."""
    model = OrderedProbit().fit([[-1.0], [1.0]], [0, 1])
    w = brentq(lambda w: norm.pdf(w) / ndtr(w) - 1e-8 * w, 1, 10)
    assert_allclose(model.coef_, [w], rtol=1e-5)
    assert_allclose(model.thresholds_, [0.0], atol=1e-9)


def test_more_columns_than_rows():
    """The slopes are where the gradient of the likelihood equals that of the prior."""
    rng = np.random.default_rng(0)
    X, y = on_grid(rng.normal(size=(20, 50))), np.arange(20) % 2
    model = OrderedProbit().fit(X, y)
    z = (X @ model.coef_ - model.thresholds_) * (2 * y - 1)
    spread = X.std(axis=0)
    gradient = ((X - X.mean(axis=0)) / spread).T @ ((2 * y - 1) * np.exp(norm.logpdf(z) - norm.logcdf(z)))
    assert_allclose(gradient / 20, 1e-8 * model.coef_ * spread, rtol=1e-3)


# --- What it reads and reports -----------------------------------------------------------------------------


def test_slopes_describe_the_score():
    """Probabilities and labels follow from it as for all estimators, see test_contract."""
    X, y = draw(300)
    model = OrderedProbit().fit(X, y)
    assert_allclose(model.latent(X), X @ model.coef_, rtol=1e-9)


def test_the_slopes_of_a_category_are_its_frequencies_around_their_mean():
    frame = pd.DataFrame({"color": np.repeat(["blue", "green", "red"], 40)})
    y = np.concatenate([np.arange(40) < 8, np.arange(40) < 20, np.arange(40) < 36])
    model = OrderedProbit().fit(frame, y)
    quantiles = ndtri([0.2, 0.5, 0.9])
    assert model.column_names_.tolist()[:3] == ["color=blue", "color=green", "color=red"]
    assert_allclose(model.coef_, [*(quantiles - quantiles.mean()), 0.0], atol=1e-5)
    assert_allclose(model.thresholds_, [-quantiles.mean()], atol=1e-5)
    unseen = model.predict_proba(pd.DataFrame({"color": ["white"]}))
    assert_allclose(unseen[0, 1], with_lapses(ndtr(quantiles.mean())[None, None], 120)[0, 0], atol=0.01)


def test_only_the_ratios_of_weights_matter():
    X, y = draw(100)
    weight = np.random.default_rng(0).integers(0, 4, 100)
    heavy, light = (OrderedProbit().fit(X, y, sample_weight=unit * weight) for unit in (1.0, 1e-6))
    assert_allclose(light.coef_, heavy.coef_, rtol=1e-5)
