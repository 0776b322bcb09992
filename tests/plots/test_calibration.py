import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isbor import ISBOR
from isbor.plots import CalibrationDisplay

MOODS = np.array(["low", "mid", "high"])


def forecasts(n_rows, n_classes, seed, sureness=1.0):
    """Labels of an ordinal probit and its probabilities, true at sureness 1, too extreme above."""
    rng = np.random.default_rng(seed)
    score, thresholds, noise = rng.normal(size=n_rows), np.linspace(-1.5, 1.5, n_classes - 1), 0.6
    y = np.searchsorted(thresholds, score + noise * rng.normal(size=n_rows))
    cumulative = ndtr(sureness * (thresholds - score[:, np.newaxis]) / noise)
    return y, np.diff(cumulative, axis=1, prepend=0.0, append=1.0)


def shares_on_the_diagonal(display):
    """Return, for each curve, the share of intervals that hold the prediction."""
    return [np.mean((c.lower <= c.predicted) & (c.predicted <= c.upper)) for c in display.curves]


def assert_same(display, expected):
    """The curves have the same numbers."""
    for one, other in zip(display.curves, expected.curves, strict=True):
        assert one.label == other.label
        for name in ("predicted", "observed", "lower", "upper", "count", "histogram"):
            assert_array_equal(getattr(one, name), getattr(other, name))
    assert display.calibration_error == expected.calibration_error


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


def test_equal_predictions_share_a_bin_and_the_error_weighs_bins_by_their_counts():
    # P(y ≤ 0): eight rows at 0.5, of which six come true, and two at 0.9, of which both do
    y = np.array([0] * 6 + [1] * 2 + [0] * 2)
    proba = np.array([[0.5, 0.5]] * 8 + [[0.9, 0.1]] * 2)
    display = CalibrationDisplay.from_predictions(y, proba, n_bins=5)
    assert_array_equal(display.curves[0].count, [8, 2])
    assert_allclose(display.calibration_error, 0.8 * 0.25 + 0.2 * 0.1)
    order = np.random.default_rng(0).permutation(10)
    assert_same(CalibrationDisplay.from_predictions(y[order], proba[order], n_bins=5), display)


@pytest.mark.parametrize("n_rows", [4, 10, 137])
def test_bins_have_equal_counts_and_wilsons_intervals(n_rows):
    y, proba = forecasts(n_rows, 3, seed=1)
    for curve in CalibrationDisplay.from_predictions(y, proba, range(3), confidence=0.9).curves:
        assert len(curve.count) == min(10, n_rows)
        assert curve.count.sum() == curve.histogram.sum() == n_rows
        assert np.ptp(curve.count) <= 1
        for b, count in enumerate(curve.count.tolist()):
            test = binomtest(round(curve.observed[b] * count), count)
            assert_allclose(
                [curve.lower[b], curve.upper[b]], test.proportion_ci(0.9, method="wilson"), atol=1e-12
            )


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


def test_overconfident_probabilities_are_found_out():
    sure = CalibrationDisplay.from_predictions(*forecasts(1000, 4, 0, sureness=3.0))
    assert np.mean(shares_on_the_diagonal(sure)) < 0.5
    right = CalibrationDisplay.from_predictions(*forecasts(1000, 4, 0))
    assert right.calibration_error < 0.03 < 0.05 < sure.calibration_error


@pytest.mark.parametrize(("n_classes", "n_curves"), [(2, 1), (8, 7), (9, 1), (30, 1)])
def test_thresholds_of_many_classes_are_pooled(n_classes, n_curves):
    y, proba = forecasts(200, n_classes, seed=5)
    display = CalibrationDisplay.from_predictions(y, proba, range(n_classes))
    assert len(display.curves) == len(display.lines_) == n_curves
    each = CalibrationDisplay.from_predictions(y, proba, range(n_classes), thresholds="each")
    assert [curve.label for curve in each.curves] == list(range(n_classes - 1))
    pooled = CalibrationDisplay.from_predictions(y, proba, range(n_classes), thresholds="pooled")
    (curve,) = pooled.curves
    assert curve.label is None
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


# --- Estimators and labels --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def moods(saddle):
    X, y = saddle
    return X, MOODS[(y - 1) // 2]


def test_from_estimator_is_from_its_predictions(moods):
    X, y = moods
    model = ISBOR(gamma=0.1, patience=0, classes=MOODS.tolist()).fit(X[:200], y[:200])
    display = CalibrationDisplay.from_estimator(model, X[200:], y[200:])
    assert [curve.label for curve in display.curves] == ["low", "mid"]
    assert_same(display, CalibrationDisplay.from_predictions(y[200:], model.predict_proba(X[200:]), MOODS))


def test_columns_of_classifiers_that_sort_their_labels_are_put_in_order(moods):
    X, y = moods
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    proba = model.predict_proba(X)[:, [1, 2, 0]]
    expected = CalibrationDisplay.from_predictions(y, proba, MOODS)
    assert_same(CalibrationDisplay.from_estimator(model, X, y, classes=MOODS.tolist()), expected)
    ordered = pd.Categorical(y, MOODS, ordered=True)
    assert_same(CalibrationDisplay.from_estimator(model, X, ordered), expected)
    assert_same(CalibrationDisplay.from_predictions(pd.Series(ordered), proba), expected)


def test_a_class_that_the_estimator_does_not_know_has_probability_zero(moods):
    X, y = moods
    model = LogisticRegression().fit(X[y != "mid"], y[y != "mid"])
    low, mid = CalibrationDisplay.from_estimator(model, X, y, classes=MOODS).curves
    assert_allclose(low.predicted, mid.predicted)
    assert mid.count @ mid.observed == np.sum(y != "high")


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


# --- Errors -----------------------------------------------------------------------------------------------


HALVES, THREE = [[0.5, 0.5]] * 2, [[0.5, 0.5]] * 3


@pytest.mark.parametrize(
    ("y", "proba", "option", "message"),
    [
        (["low", "high"], HALVES, {}, r"strings, whose order must be given\. Pass\n    classes="),
        ([1, 2, 3], THREE, {}, r"shape \(3, 2\).*3 class\(es\) \[1, 2, 3\], \(3, 3\) is.*classes="),
        ([0, 1], [[0.5, 0.5], [0.5, 0.6]], {}, "row sums from 1 to 1.1.*Pass the output of predict_proba"),
        ([1, 1], [[1.0], [1.0]], {}, "proba has 1 column.*at least 2 classes are needed"),
        ([0, 1], HALVES, {"n_bins": 0}, "n_bins is 0; a whole number, at least 1"),
        ([0, 1], HALVES, {"confidence": 95}, "confidence is 95; a number between 0 and 1"),
        ([0, 1], HALVES, {"thresholds": "all"}, """is 'all'; "each" .* "pooled" .* or "auto" is needed"""),
    ],
)
def test_bad_labels_probabilities_and_options_are_refused(y, proba, option, message):
    with pytest.raises(ValueError, match=message):
        CalibrationDisplay.from_predictions(y, proba, **option)


def test_a_classifier_of_the_same_classes_is_needed(moods):
    X, y = moods
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"not in classes: \['mid'\].*Here y is the estimator's classes_"):
        CalibrationDisplay.from_estimator(model, X, y, classes=["low", "high"])
