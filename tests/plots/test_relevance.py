import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from isbor.plots import RelevanceDisplay


class Model(BaseEstimator):
    """An estimator with relevances."""

    def fit(self, relevance, names=None):
        self.feature_relevance_ = np.array(relevance)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        return self


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def names_on_the_axis(display):
    return [text.get_text() for text in display.ax_.get_yticklabels()]


# --- What is shown ----------------------------------------------------------------------------------------


def test_bars_are_in_descending_order_from_the_top():
    display = RelevanceDisplay.from_values([0.1, 0.6, 0.0, 0.3], ["a", "b", "c", "d"])
    assert display.bars() == [("b", 0.6), ("d", 0.3), ("a", 0.1), ("c", 0.0)]
    assert [bar.get_width() for bar in display.bars_] == [0.6, 0.3, 0.1, 0.0]
    assert names_on_the_axis(display) == ["b", "d", "a", "c"]
    assert [text.get_text() for text in display.labels_] == ["60.0 %", "30.0 %", "10.0 %", "0"]
    heights = display.ax_.transData.transform([(0, bar.get_y()) for bar in display.bars_])[:, 1]
    assert np.all(np.diff(heights) < 0)


def test_the_rest_is_summed():
    relevance = np.random.default_rng(0).dirichlet(np.ones(50))
    display = RelevanceDisplay.from_values(relevance)
    bars = display.bars()
    assert len(bars) == len(display.bars_) == 21
    assert bars[-1][0] == "others (30)"
    assert_allclose(bars[-1][1], np.sort(relevance)[:30].sum())
    assert_allclose(sum(length for _, length in bars), 1)
    assert [name for name, _ in bars[:20]] == [f"x{j}" for j in np.argsort(-relevance)[:20]]
    colours = [bar.get_facecolor() for bar in display.bars_]
    assert len(set(colours[:20])) == 1
    assert colours[20] != colours[0]


@pytest.mark.parametrize(
    ("max_features", "last"), [(1, "others (3)"), (3, "others (1)"), (4, "x3"), (9, "x3")]
)
def test_at_most_so_many_are_named(max_features, last):
    display = RelevanceDisplay.from_values([0.4, 0.3, 0.2, 0.1], max_features=max_features)
    assert names_on_the_axis(display)[-1] == last
    assert len(display.bars_) == min(max_features + 1, 4)


def test_equal_features_are_in_the_order_of_the_columns():
    display = RelevanceDisplay.from_values(np.full(8, 1 / 8), max_features=3)
    assert [name for name, _ in display.bars()] == ["x0", "x1", "x2", "others (5)"]


def test_from_estimator_takes_its_relevances_and_names():
    display = RelevanceDisplay.from_estimator(Model().fit([0.25, 0.75], ["age", "dose"]))
    assert display.bars() == [("dose", 0.75), ("age", 0.25)]
    assert_array_equal(display.relevance, [0.25, 0.75])
    unnamed = RelevanceDisplay.from_estimator(Model().fit([0.25, 0.75]), max_features=1)
    assert unnamed.bars() == [("x1", 0.75), ("others (1)", 0.25)]


def test_small_shares_are_not_called_zero():
    display = RelevanceDisplay.from_values([0.9996, 0.0004])
    assert [text.get_text() for text in display.labels_] == ["100.0 %", "< 0.1 %"]


def test_without_relevance_a_sentence_is_drawn():
    display = RelevanceDisplay.from_estimator(Model().fit(np.zeros(3)))
    assert display.bars_ is None
    assert display.labels_ == []
    assert display.note_.get_text() == "The model has no basis function:\nno feature is relevant."
    assert not display.ax_.patches
    display.figure_.canvas.draw()
    assert RelevanceDisplay.from_values([1.0]).note_ is None


def test_names_that_are_alike_long_or_hold_dollars_can_be_drawn():
    names = ["a", "a", "cost_$_per_{$", 30 * "long " + "end"]
    display = RelevanceDisplay.from_values([0.4, 0.3, 0.2, 0.1], names)
    display.figure_.canvas.draw()
    shown = names_on_the_axis(display)
    assert shown[:3] == names[:3]
    assert len(shown[3]) < 40
    assert shown[3].startswith("long ")
    assert shown[3].endswith("end")
    assert display.names == names


@pytest.mark.parametrize("n_features", [1, 3, 60])
def test_nothing_is_cut_off_and_names_do_not_overlap(n_features):
    relevance = np.random.default_rng(1).dirichlet(np.ones(n_features))
    display = RelevanceDisplay.from_values(
        relevance, [f"feature of a longer name {j}" for j in range(n_features)]
    )
    display.figure_.canvas.draw()
    page = display.figure_.bbox
    names = [text.get_window_extent() for text in display.ax_.get_yticklabels()]
    numbers = [text.get_window_extent() for text in display.labels_]
    for box in [
        *names,
        *numbers,
        *(part.get_window_extent() for part in (display.ax_.title, display.ax_.xaxis.label)),
    ]:
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        assert page.y0 <= box.y0 < box.y1 <= page.y1
    for above, below in zip(names[:-1], names[1:], strict=True):
        assert below.y1 < above.y0
    for name, number in zip(names, numbers, strict=True):
        assert name.x1 < number.x0


def test_given_axes_are_used_and_none_others_are_made():
    figure, (left, right) = plt.subplots(1, 2)
    display = RelevanceDisplay.from_values([0.5, 0.5], ax=right)
    assert display.ax_ is right
    assert display.figure_ is figure
    assert not left.patches
    assert plt.get_fignums() == [figure.number]


def test_it_can_be_drawn_again():
    display = RelevanceDisplay.from_values([0.5, 0.5])
    first = display.ax_
    assert display.plot() is display
    assert display.ax_ is not first


# --- Errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relevance", [[0.5, 0.6], [2.0, 3.0], [-0.5, 1.5], [np.nan, 1.0], [-1.0, 1.0]])
def test_shares_must_sum_to_one(relevance):
    with pytest.raises(ValueError, match=r"relevance has minimum .*that sum to 1 are needed.*Divide them"):
        RelevanceDisplay.from_values(relevance)


@pytest.mark.parametrize("relevance", [[], 1.0, [[0.5, 0.5]]])
def test_one_number_a_feature_is_needed(relevance):
    with pytest.raises(ValueError, match=r"relevance has shape .*one number a feature"):
        RelevanceDisplay.from_values(relevance)


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"], "ab"])
def test_names_must_be_as_many_as_features(names):
    with pytest.raises(ValueError, match=r"names is .*a list of 2 name\(s\) is needed"):
        RelevanceDisplay.from_values([0.5, 0.5], names)


@pytest.mark.parametrize("max_features", [0, -1, 1.5, None])
def test_at_least_one_feature_is_shown(max_features):
    with pytest.raises(ValueError, match=f"max_features is {max_features}; a whole number, at least 1"):
        RelevanceDisplay.from_values([0.5, 0.5], max_features=max_features)


def test_the_estimator_must_be_fitted_and_have_relevances():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        RelevanceDisplay.from_estimator(Model())
    model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(
        TypeError, match="LogisticRegression has no feature_relevance_; a fitted ISBOR is needed"
    ):
        RelevanceDisplay.from_estimator(model)


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "isbor\[plots\]"'):
        RelevanceDisplay.from_values([0.5, 0.5])
