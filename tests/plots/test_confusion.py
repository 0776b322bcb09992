import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, mean_absolute_error

from isbor import ISBOR
from isbor.plots import OrdinalConfusionDisplay

GRADES = ["poor", "fair", "good", "excellent"]


@pytest.fixture(scope="module")
def labels():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 4, 83)
    return true, np.clip(true + rng.integers(-2, 3, 83), 0, 3), rng.random(83)


@pytest.mark.parametrize("normalize", [None, "true", "pred", "all"])
@pytest.mark.parametrize("weighted", [False, True])
def test_cells_are_the_matrix_of_scikit_learn(labels, normalize, weighted):
    true, predicted, weight = labels
    given = {"sample_weight": weight if weighted else None}
    display = OrdinalConfusionDisplay.from_predictions(
        true, predicted, range(4), normalize=normalize, **given
    )
    assert_allclose(display.confusion_matrix, confusion_matrix(true, predicted, **given))
    shown = confusion_matrix(true, predicted, normalize=normalize or "true", **given)
    assert_allclose(np.reshape(display.cells_.get_array(), (4, 4)), shown)
    numbers = display.confusion_matrix if normalize is None else 100 * shown
    texts = [float(text.get_text().removesuffix(" %")) for text in display.text_]
    assert_allclose(texts, np.ravel(numbers), atol=0.51 if normalize else 1e-4)
    assert_allclose(display.mean_absolute_error, mean_absolute_error(true, predicted, **given))


def test_bars_are_shares_of_rows_that_are_so_many_classes_off(labels):
    true, predicted, _ = labels
    display = OrdinalConfusionDisplay.from_predictions(true, predicted, range(4))
    off = predicted - true
    low, high = display.bars_
    assert_allclose([bar.get_width() for bar in low], [np.mean(off == -k) for k in range(3)])
    assert_allclose([bar.get_width() for bar in high], [0.0, np.mean(off == 1), np.mean(off == 2)])
    assert_allclose(display.errors, [np.mean(off == k) for k in range(-3, 4)])
    shares = [f"{100 * np.mean(np.abs(off) == k):.1f} %" for k in range(3)]
    assert [text.get_text() for text in display.labels_] == shares
    assert [tick.get_text() for tick in display.strip_.get_yticklabels()] == ["exact", "1 class", "2 classes"]
    assert display.strip_.get_title() == f"Off by {np.abs(off).mean():.2f} classes on average"


def test_great_distances_share_a_bar_and_many_classes_have_no_numbers():
    true, predicted = np.arange(20), np.arange(20)[::-1]  # off by 1, 3, …, 19
    display = OrdinalConfusionDisplay.from_predictions(true, predicted, range(20))
    widths = [sum(bar.get_width() for bar in pair) for pair in zip(*display.bars_, strict=True)]
    assert_allclose(widths, [0, 0.1, 0, 0.1, 0, 0.1, 0.7])
    assert display.strip_.get_yticklabels()[-1].get_text() == "6 or more"
    assert display.text_ == []


def test_the_order_is_that_of_the_labels(noisy):
    X, codes = noisy
    y = np.array(GRADES)[codes]
    model = ISBOR(gamma=0.3, patience=0, classes=GRADES).fit(X, y)
    display = OrdinalConfusionDisplay.from_estimator(model, X, y)
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == GRADES
    assert_array_equal(display.confusion_matrix, confusion_matrix(y, model.predict(X), labels=GRADES))
    sorts = LogisticRegression().fit(X, y)
    expected = confusion_matrix(y, sorts.predict(X), labels=GRADES)
    categorical = pd.Series(pd.Categorical(y, GRADES, ordered=True))
    for known in ({"y": y, "classes": GRADES}, {"y": categorical}):
        display = OrdinalConfusionDisplay.from_estimator(sorts, X, **known)
        assert_array_equal(display.confusion_matrix, expected)


def test_bad_options_and_strings_without_order_are_refused():
    with pytest.raises(ValueError, match="normalize is 'rows'; 'true', 'pred', 'all' or None is needed"):
        OrdinalConfusionDisplay.from_predictions([1, 2], [1, 2], normalize="rows")
    with pytest.raises(ValueError, match="whose order must be given"):
        OrdinalConfusionDisplay.from_predictions(["low", "high"], ["low", "high"])
