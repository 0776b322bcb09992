import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from scipy.stats import binomtest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isbor import ISBOR
from isbor.datasets import make_saddle
from isbor.plots import CalibrationCurve, CalibrationDisplay

MOODS = np.array(["low", "mid", "high"])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def forecasts(n_rows, n_classes, seed, sureness=1.0):
    """Labels of an ordinal probit and its probabilities, true at sureness 1, too extreme above."""
    rng = np.random.default_rng(seed)
    score, cuts, noise = rng.normal(size=n_rows), np.linspace(-1.5, 1.5, n_classes - 1), 0.6
    y = np.searchsorted(cuts, score + noise * rng.normal(size=n_rows))
    cumulative = ndtr(sureness * (cuts - score[:, np.newaxis]) / noise)
    return y, np.diff(cumulative, axis=1, prepend=0.0, append=1.0)


def shares_on_the_diagonal(display):
    """Return, for each curve, the share of intervals that hold the prediction."""
    return [np.mean((c.lower <= c.predicted) & (c.predicted <= c.upper)) for c in display.curves]


def same(one, other):
    """Say whether two curves have the same numbers."""
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("predicted", "observed", "lower", "upper", "count", "histogram")
    )


# --- What is computed -------------------------------------------------------------------------------------


def test_bins_and_error_by_hand():
    y = ["low", "mid", "low", "high", "mid", "high"]
    proba = [
        [0.9, 0.1, 0.0],
        [0.2, 0.5, 0.3],
        [0.6, 0.2, 0.2],
        [0.1, 0.3, 0.6],
        [0.4, 0.5, 0.1],
        [0.3, 0.1, 0.6],
    ]
    display = CalibrationDisplay.from_predictions(y, proba, MOODS, n_bins=2)
    low, mid = display.curves
    # P(y ≤ low), sorted: 0.1 (high), 0.2 (mid), 0.3 (high) | 0.4 (mid), 0.6 (low), 0.9 (low)
    assert low.label == "low"
    assert_allclose(low.predicted, [0.6 / 3, 1.9 / 3])
    assert_allclose(low.observed, [0, 2 / 3])
    assert_array_equal(low.count, [3, 3])
    # P(y ≤ mid), sorted: 0.4 (high), 0.4 (high), 0.7 (mid) | 0.8 (low), 0.9 (mid), 1.0 (low)
    assert mid.label == "mid"
    assert_allclose(mid.predicted, [1.5 / 3, 2.7 / 3])
    assert_allclose(mid.observed, [1 / 3, 1])
    assert_allclose(display.calibration_error, (0.6 / 3 + 0.1 / 3 + 0.5 / 3 + 0.3 / 3) / 4)
    # in twentieths: 0.1, 0.2, 0.3, 0.4, 0.6 and 0.9 begin bars 2, 4, 6 (up to rounding), 8, 12 and 18
    assert low.histogram.sum() == 6
    assert low.histogram[18] == 1


def test_the_error_weighs_bins_by_their_counts():
    # P(y ≤ 0): eight rows in one tie at 0.5, of which six come true, and two at 0.9, of which both do
    y = [0] * 6 + [1] * 2 + [0] * 2
    proba = [[0.5, 0.5]] * 8 + [[0.9, 0.1]] * 2
    display = CalibrationDisplay.from_predictions(y, proba, n_bins=5)
    assert_array_equal(display.curves[0].count, [8, 2])
    assert_allclose(display.calibration_error, 0.8 * 0.25 + 0.2 * 0.1)


def test_intervals_are_wilsons():
    y, proba = forecasts(137, 3, seed=0)
    display = CalibrationDisplay.from_predictions(y, proba, confidence=0.9)
    for curve in display.curves:
        for lower, upper, observed, count in zip(
            curve.lower, curve.upper, curve.observed, curve.count, strict=True
        ):
            interval = binomtest(round(observed * count), int(count)).proportion_ci(0.9, method="wilson")
            assert_allclose([lower, upper], interval, atol=1e-12)


@pytest.mark.parametrize("n_rows", [4, 10, 137])
def test_counts_are_equal_up_to_one(n_rows):
    y, proba = forecasts(n_rows, 3, seed=1)
    for curve in CalibrationDisplay.from_predictions(y, proba, range(3)).curves:
        assert len(curve.count) == min(10, n_rows)
        assert curve.count.sum() == curve.histogram.sum() == n_rows
        assert np.ptp(curve.count) <= 1
        assert np.all(np.diff(curve.predicted) > 0)


def test_equal_predictions_share_a_bin_whatever_the_order_of_rows():
    y, proba = forecasts(300, 3, seed=2)
    proba = np.round(proba, 1)
    proba[:, 2] = 1 - proba[:, :2].sum(axis=1)
    shuffled = np.random.default_rng(0).permutation(300)
    curves = CalibrationDisplay.from_predictions(y, proba).curves
    again = CalibrationDisplay.from_predictions(y[shuffled], proba[shuffled]).curves
    for curve, other in zip(curves, again, strict=True):
        assert_array_equal(curve.count, other.count)
        assert_array_equal(curve.observed, other.observed)
    constant = CalibrationDisplay.from_predictions([0, 0, 0, 1], [[0.5, 0.5]] * 4).curves[0]
    assert_array_equal(constant.count, [4])
    assert_array_equal(constant.observed, [0.75])


@pytest.mark.parametrize(("n_classes", "thresholds"), [(3, "each"), (12, "each"), (30, "pooled")])
def test_true_probabilities_are_found_calibrated(n_classes, thresholds):
    shares = [
        shares_on_the_diagonal(
            CalibrationDisplay.from_predictions(
                *forecasts(1000, n_classes, seed), range(n_classes), thresholds=thresholds
            )
        )
        for seed in range(20 if thresholds == "pooled" else 5)
    ]
    # each interval holds with probability 0.95; pooled ones that took pairs for independent, with 0.79
    assert 0.92 < np.mean(shares) <= 1


def test_probabilities_too_sure_are_found_out():
    sure = CalibrationDisplay.from_predictions(*forecasts(1000, 4, 0, sureness=3.0))
    assert np.mean(shares_on_the_diagonal(sure)) < 0.5
    middle = sure.curves[1]
    extreme = (middle.predicted > 0.001) & (middle.predicted < 0.3)
    assert np.all(middle.observed[extreme] > middle.predicted[extreme])
    right = CalibrationDisplay.from_predictions(*forecasts(1000, 4, 0))
    assert right.calibration_error < 0.03
    assert sure.calibration_error > 0.05


def test_pooled_thresholds_are_one_curve_of_all_pairs():
    y, proba = forecasts(200, 4, seed=3)
    each = CalibrationDisplay.from_predictions(y, proba)
    pooled = CalibrationDisplay.from_predictions(y, proba, thresholds="pooled")
    (curve,) = pooled.curves
    assert curve.label is None
    assert_array_equal(curve.count, np.full(10, 60))
    assert_allclose(curve.count @ curve.observed, sum(part.count @ part.observed for part in each.curves))
    assert_array_equal(curve.histogram, sum(part.histogram for part in each.curves))
    assert pooled.calibration_error == each.calibration_error


def test_pooled_intervals_allow_for_the_dependence_within_a_row():
    y, proba = forecasts(40, 6, seed=4)
    (curve,) = CalibrationDisplay.from_predictions(y, proba, range(6), thresholds="pooled", n_bins=4).curves
    cumulative = proba.cumsum(axis=1)[:, :-1]
    starts = np.sort(cumulative.ravel())[[0, 50, 100, 150]]
    bins = np.searchsorted(starts, cumulative, side="right") - 1
    for b in range(4):
        variance = joint = 0.0
        for row in range(40):
            inside = cumulative[row, bins[row] == b]
            variance += np.sum(inside * (1 - inside))
            # every ordered pair, a threshold with itself included
            joint += sum(min(p, q) - p * q for p in inside for q in inside)
        n, p, z = curve.count[b] * variance / joint, curve.observed[b], 1.959963984540054
        assert n < 0.99 * curve.count[b]
        centre, half = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        assert_allclose(
            [curve.lower[b], curve.upper[b]],
            [(centre + s * half) / (1 + z**2 / n) for s in (-1, 1)],
            rtol=1e-9,
        )


def test_certain_forecasts_count_a_row_once():
    proba = np.eye(4)[[0, 1, 2, 3, 3]]
    (curve,) = CalibrationDisplay.from_predictions([0, 1, 2, 3, 3], proba, thresholds="pooled").curves
    assert_array_equal(curve.predicted, curve.observed)
    assert_array_equal(curve.predicted, [0, 1])
    assert_array_equal(curve.count, [9, 6])
    # rows with a 0: 4 of 5; with a 1: 3 of 5
    assert_allclose(curve.upper[0], binomtest(0, 4).proportion_ci(method="wilson").high)
    assert_allclose(curve.lower[1], binomtest(3, 3).proportion_ci(method="wilson").low)


@pytest.mark.parametrize(("n_classes", "n_curves"), [(2, 1), (8, 7), (9, 1), (30, 1)])
def test_many_classes_are_pooled(n_classes, n_curves):
    y, proba = forecasts(200, n_classes, seed=5)
    display = CalibrationDisplay.from_predictions(y, proba, range(n_classes))
    assert len(display.curves) == len(display.lines_) == n_curves
    each = CalibrationDisplay.from_predictions(y, proba, range(n_classes), thresholds="each")
    assert [curve.label for curve in each.curves] == list(range(n_classes - 1))


# --- Estimators and labels --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saddle():
    X, y = make_saddle(400, random_state=0)
    return X, MOODS[(y - 1) // 2]


def test_from_estimator_is_from_its_predictions(saddle):
    X, y = saddle
    model = ISBOR(gamma=0.1, patience=0, classes=MOODS.tolist()).fit(X[:200], y[:200])
    display = CalibrationDisplay.from_estimator(model, X[200:], y[200:])
    expected = CalibrationDisplay.from_predictions(y[200:], model.predict_proba(X[200:]), MOODS)
    assert [curve.label for curve in display.curves] == ["low", "mid"]
    assert all(map(same, display.curves, expected.curves))
    assert display.calibration_error == expected.calibration_error


def test_columns_of_classifiers_that_sort_their_labels_are_put_in_order(saddle):
    X, y = saddle
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    assert model.classes_.tolist() == ["high", "low", "mid"]
    expected = CalibrationDisplay.from_predictions(y, model.predict_proba(X)[:, [1, 2, 0]], MOODS)
    by_list = CalibrationDisplay.from_estimator(model, X, y, classes=MOODS.tolist())
    ordered = pd.Categorical(y, MOODS, ordered=True)
    by_categories = CalibrationDisplay.from_estimator(model, X, ordered)
    for display in (by_list, by_categories):
        assert [curve.label for curve in display.curves] == ["low", "mid"]
        assert all(map(same, display.curves, expected.curves))


def test_a_class_that_the_estimator_does_not_know_has_probability_zero(saddle):
    X, y = saddle
    model = LogisticRegression().fit(X[y != "mid"], y[y != "mid"])
    low, mid = CalibrationDisplay.from_estimator(model, X, y, classes=MOODS).curves
    assert_allclose(low.predicted, mid.predicted)
    assert mid.count @ mid.observed == np.sum(y != "high")


def test_an_ordered_categorical_brings_its_order(saddle):
    _, y = saddle
    proba = np.random.default_rng(0).dirichlet(np.ones(3), len(y))
    display = CalibrationDisplay.from_predictions(pd.Series(pd.Categorical(y, MOODS, ordered=True)), proba)
    assert all(map(same, display.curves, CalibrationDisplay.from_predictions(y, proba, MOODS).curves))


# --- What is drawn ----------------------------------------------------------------------------------------


@pytest.fixture
def display():
    y, proba = forecasts(300, 3, seed=6)
    return CalibrationDisplay.from_predictions(MOODS[y], proba, MOODS)


def test_points_and_bars_are_the_numbers(display):
    for curve, drawn in zip(display.curves, display.lines_, strict=True):
        line, _, (bars,) = drawn.lines
        assert_array_equal(line.get_xdata(), curve.predicted)
        assert_array_equal(line.get_ydata(), curve.observed)
        ends = np.array(bars.get_segments())
        assert_allclose(ends[:, :, 0], np.repeat(curve.predicted[:, np.newaxis], 2, axis=1))
        assert_allclose(ends[:, :, 1], np.column_stack([curve.lower, curve.upper]), atol=1e-12)
    assert_array_equal(display.diagonal_.get_xydata(), [[0, 0], [1, 1]])
    heights = [bar.get_height() for bar in display.strip_.patches]
    assert_array_equal(heights, np.concatenate([curve.histogram for curve in display.curves]))


def test_the_legend_names_the_thresholds(display):
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts == ["perfect calibration", "P(y ≤ low)", "P(y ≤ mid)"]
    assert display.legend_.get_title().get_text() == "bars: 95 % intervals"
    assert f"{display.calibration_error:.3f}" in display.ax_.get_title()


def test_curves_differ_in_lightness_and_in_marker():
    lines = [part.lines[0] for part in CalibrationDisplay.from_predictions(*forecasts(300, 8, 0)).lines_]
    assert len({line.get_marker() for line in lines}) == 7
    lightness = [
        np.dot(matplotlib.colors.to_rgb(line.get_color()), [0.2126, 0.7152, 0.0722]) for line in lines
    ]
    assert np.all(np.diff(lightness) > 0.03)
    assert lightness[-1] < 0.8  # still visible on white


def test_labels_with_dollars_and_long_labels_can_be_drawn():
    y, proba = forecasts(100, 3, seed=7)
    labels = np.array(["$0 to $10_{", "up to " + 20 * "very " + "much", "more"])
    display = CalibrationDisplay.from_predictions(labels[y], proba, labels)
    display.figure_.canvas.draw()
    _, dollars, long = [text.get_text() for text in display.legend_.get_texts()]
    assert dollars == "P(y ≤ $0 to $10_{)"
    assert len(long) < 40
    assert "…" in long
    assert long.endswith("much)")


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_given_axes_are_used_and_the_strip_stays_in_their_room(layout):
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout=layout)
    y, proba = forecasts(100, 3, seed=8)
    display = CalibrationDisplay.from_predictions(y, proba, ax=right)
    assert display.ax_ is right
    assert display.figure_ is figure
    assert not left.lines
    assert plt.get_fignums() == [figure.number]
    figure.canvas.draw()
    room = right.get_position(original=True)
    strip = display.strip_.get_position()
    assert_allclose(strip.y0, room.y0, atol=1e-9)
    assert strip.y1 < right.get_position().y0
    assert_allclose([strip.x0, strip.x1], [room.x0, room.x1], atol=1e-9)
    assert_allclose(right.get_position().y1, room.y1, atol=1e-9)


def test_nothing_is_cut_off(display):
    display.figure_.canvas.draw()
    page = display.figure_.bbox
    for artist in (
        display.ax_.title,
        display.ax_.yaxis.label,
        display.strip_.xaxis.label,
        display.strip_.yaxis.label,
        display.legend_,
    ):
        box = artist.get_window_extent()
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        assert page.y0 <= box.y0 < box.y1 <= page.y1
    numbers = [text for text in display.ax_.get_xticklabels() if text.get_visible() and text.get_text()]
    assert not numbers  # they stand below the strip


def test_it_can_be_drawn_again(display):
    first = display.ax_
    assert display.plot() is display
    assert display.ax_ is not first
    assert len(display.lines_) == 2


def test_a_curve_of_one_bin_made_by_hand_can_be_drawn():
    curve = CalibrationCurve(
        label="low",
        predicted=np.array([0.5]),
        observed=np.array([1.0]),
        lower=np.array([0.6]),
        upper=np.array([1.0]),
        count=np.array([5]),
        histogram=np.full(20, 1),
    )
    display = CalibrationDisplay(curves=[curve], calibration_error=0.5).plot()
    display.figure_.canvas.draw()
    assert len(display.lines_) == 1


# --- Errors -----------------------------------------------------------------------------------------------


def test_strings_need_an_order():
    with pytest.raises(ValueError, match=r"y holds strings, whose order must be given\. Pass\n    classes="):
        CalibrationDisplay.from_predictions(["low", "high"], [[0.5, 0.5], [0.5, 0.5]])


@pytest.mark.parametrize("proba", [[[0.5, 0.5]] * 3, [[0.5, 0.25, 0.25]] * 2, [0.1, 0.2, 0.3]])
def test_probabilities_need_a_row_a_label_and_a_column_a_class(proba):
    with pytest.raises(
        ValueError, match=r"proba has shape .*3 class\(es\) \[1, 2, 3\], \(3, 3\) is needed.*classes="
    ):
        CalibrationDisplay.from_predictions([1, 2, 3], proba)


@pytest.mark.parametrize("row", [[0.5, 0.6], [-0.5, 1.5], [np.nan, 1.0], [np.inf, 0.0]])
def test_probabilities_must_be_such(row):
    with pytest.raises(
        ValueError, match=r"each row summing to 1, are needed\. Pass the output of predict_proba"
    ):
        CalibrationDisplay.from_predictions([0, 1], [[0.5, 0.5], row])


def test_one_class_has_no_thresholds():
    with pytest.raises(ValueError, match="proba has 1 column.*at least 2 are needed"):
        CalibrationDisplay.from_predictions([1, 1], [[1.0], [1.0]])


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"n_bins": 0}, "n_bins is 0; a whole number, at least 1"),
        ({"n_bins": 2.5}, "n_bins is 2.5; a whole number, at least 1"),
        ({"confidence": 95}, "confidence is 95; a number between 0 and 1"),
        ({"thresholds": "all"}, """thresholds is 'all'; "each" .* "pooled" .* or "auto" is needed"""),
    ],
)
def test_options_are_checked(option, message):
    with pytest.raises(ValueError, match=message):
        CalibrationDisplay.from_predictions([0, 1], [[0.5, 0.5]] * 2, **option)


def test_the_estimator_must_predict_probabilities(saddle):
    X, y = saddle
    with pytest.raises(TypeError, match="LinearRegression has no predict_proba; a fitted classifier"):
        CalibrationDisplay.from_estimator(LinearRegression(), X, y)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        CalibrationDisplay.from_estimator(ISBOR(), X, y)


def test_the_order_must_hold_the_classes_of_the_estimator_and_the_labels(saddle):
    X, y = saddle
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"not in classes: \['mid'\].*Here y is the estimator's classes_"):
        CalibrationDisplay.from_estimator(model, X, y, classes=["low", "high"])
    with pytest.raises(ValueError, match=r"not in classes: \['other'\]"):
        CalibrationDisplay.from_estimator(model, X, np.full(len(X), "other"), classes=MOODS)


def test_without_matplotlib_it_says_what_to_install(display, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "isbor\[plots\]"'):
        CalibrationDisplay.from_predictions([0, 1], [[0.5, 0.5]] * 2)
    with pytest.raises(ImportError, match=r'pip install "isbor\[plots\]"'):
        display.plot()
