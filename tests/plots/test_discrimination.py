import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from isbor.plots import DiscriminationDisplay
from isbor.plots.discrimination import concordance


def share_in_order(higher, lower):
    """Pair by pair."""
    pairs = np.subtract.outer(np.asarray(higher), np.asarray(lower))
    return np.mean((pairs > 0) + 0.5 * (pairs == 0))


@pytest.fixture(scope="module")
def forecast():
    rng = np.random.default_rng(0)
    return rng.integers(0, 4, 90), rng.dirichlet(np.ones(4), 90).round(1)  # with ties


def drawn(forecast):
    y, proba = forecast
    return DiscriminationDisplay.from_predictions(y, proba / proba.sum(axis=1, keepdims=True), range(4))


def test_areas_are_shares_of_pairs_in_order(forecast):
    y, proba = forecast
    above = (proba / proba.sum(axis=1, keepdims=True))[:, :0:-1].cumsum(axis=1)[:, ::-1]
    display = drawn(forecast)
    assert_allclose(display.areas, [share_in_order(p[y > k], p[y <= k]) for k, p in enumerate(above.T)])
    assert_allclose(display.areas, [roc_auc_score(y > k, p) for k, p in enumerate(above.T)])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-3, 3)), min_size=2, max_size=30))
def test_concordance_is_that_of_all_pairs(rows):
    y, score = np.array(rows).T
    pairs = [
        (score[i] > score[j]) + 0.5 * (score[i] == score[j])
        for i in range(len(y))
        for j in range(len(y))
        if y[i] > y[j]
    ]
    if pairs:
        assert_allclose(concordance(y, score.astype(float)), np.mean(pairs))


def test_two_classes_have_one_area_which_is_the_concordance():
    p = np.array([0.2, 0.4, 0.4, 0.9])
    display = DiscriminationDisplay.from_predictions([0, 0, 1, 1], np.column_stack([1 - p, p]))
    assert_allclose([*display.areas, display.concordance], 0.875)


def test_curves_and_points_are_the_numbers(forecast):
    display = drawn(forecast)
    for line, (false, true) in zip(display.lines_, display.curves, strict=True):
        assert_array_equal(line.get_xydata(), np.column_stack([false, true]))
    assert_allclose(display.points_.get_offsets(), np.column_stack([display.areas, range(3)]))
    assert [text.get_text() for text in display.labels_] == [f"{area:.3f}" for area in display.areas]
    assert f"concordance {display.concordance:.3f}" in display.ax_.get_title()
    assert [tick.get_text() for tick in display.strip_.get_yticklabels()] == ["y > 0", "y > 1", "y > 2"]


def test_calibration_does_not_change_it(forecast):
    """Nor does anything else that keeps the order of the rows."""
    y, proba = forecast
    p = proba[:, 0]
    a, b = (
        DiscriminationDisplay.from_predictions(y > 1, np.column_stack([q, 1 - q])) for q in (p, 0.2 + 0.1 * p)
    )
    assert_allclose(a.areas, b.areas)


def test_a_threshold_with_rows_on_one_side_only_has_no_curve(noisy):
    X, y = noisy
    model = LogisticRegression().fit(X, y)
    some = y > 0
    display = DiscriminationDisplay.from_estimator(model, X[some], y[some])
    assert np.isnan(display.areas).tolist() == [True, False, False]
    assert len(display.labels_) == 2
    with pytest.raises(ValueError, match="All labels are 3; rows of at least two classes are needed"):
        DiscriminationDisplay.from_estimator(model, X[y == 3], y[y == 3])
