import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

from isbor.meta import PredictionSetClassifier
from isbor.plots import PredictionSetDisplay


@pytest.fixture(scope="module")
def fitted(noisy):
    X, y = noisy
    return PredictionSetClassifier(LogisticRegression()).fit(X[:100], y[:100]), X[100:], y[100:]


def test_shares_intervals_and_sizes_are_those_of_the_rows(fitted):
    model, X, y = fitted
    display = PredictionSetDisplay.from_estimator(model, X, y, coverage=0.8, confidence=0.9)
    sets = model.predict_set(X, 0.8)
    for place, rows in enumerate([np.arange(len(y)), *(np.flatnonzero(y == k) for k in range(4))]):
        contained = [bool(sets[i, y[i]]) for i in rows]
        assert display.count[place] == len(rows)
        test = binomtest(sum(contained), len(rows)).proportion_ci(0.9, method="wilson")
        assert_allclose(
            [display.covered[place], display.lower[place], display.upper[place]],
            [np.mean(contained), test.low, test.high],
            atol=1e-12,
        )
        size = sets[rows].sum(axis=1)
        assert_allclose(display.sizes[place], [np.mean(size == k) for k in range(5)])
        assert display.labels_[place].get_text() == f"{size.mean():.2f}"
    line, _, (bars,) = display.points_.lines
    assert_array_equal(line.get_xdata(), display.covered)
    ends = np.array(bars.get_segments())[:, :, 0]
    assert_allclose(ends, np.column_stack([display.lower, display.upper]), atol=1e-12)
    assert_array_equal(display.nominal_.get_xdata(), [0.8, 0.8])
    occurring = np.flatnonzero(display.sizes[0])
    for size, part in zip(occurring, display.bars_, strict=True):
        assert_allclose([bar.get_width() for bar in part], display.sizes[:, size])


def test_a_class_without_rows_has_no_point():
    sets = np.array([[True, False, True], [True, True, False]])
    display = PredictionSetDisplay.from_predictions([0, 2], sets, range(3), coverage=0.9)
    assert_array_equal(display.covered, [0.5, 1.0, np.nan, 0.0])
    assert len(display.points_.lines[0].get_xdata()) == 3
    assert [text.get_text() for text in display.labels_] == ["2.00", "2.00", "", "2.00"]


@pytest.mark.parametrize(
    ("sets", "options", "message"),
    [
        ([[0.5, 0.5]], {}, r"shape \(1, 2\) and type float64; booleans of shape \(1, 2\) are needed"),
        ([[True]], {}, r"shape \(1, 1\).*a column for each of the classes \[0, 1\]"),
        ([[True, False]], {"coverage": 90}, "coverage is 90; a number between 0 and 1"),
        ([[True, False]], {"confidence": 95}, "confidence is 95; a number between 0 and 1"),
    ],
)
def test_bad_sets_and_options_are_refused(sets, options, message):
    with pytest.raises(ValueError, match=message):
        PredictionSetDisplay.from_predictions([0], np.array(sets), [0, 1], **{"coverage": 0.9, **options})
