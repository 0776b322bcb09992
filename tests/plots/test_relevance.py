import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor import ISBOR
from isbor.plots import RelevanceDisplay


def names_on_the_axis(display):
    return [text.get_text() for text in display.ax_.get_yticklabels()]


def test_bars_are_in_descending_order_from_the_top():
    display = RelevanceDisplay.from_values([0.1, 0.5999, 0.0, 0.3, 0.0001], ["a", "b", "c", "d", "e"])
    assert display.bars() == [("b", 0.5999), ("d", 0.3), ("a", 0.1), ("e", 0.0001), ("c", 0.0)]
    assert [bar.get_width() for bar in display.bars_] == [0.5999, 0.3, 0.1, 0.0001, 0.0]
    assert names_on_the_axis(display) == ["b", "d", "a", "e", "c"]
    assert [text.get_text() for text in display.labels_] == ["60.0 %", "30.0 %", "10.0 %", "< 0.1 %", "0"]


def test_the_rest_is_summed():
    relevance = np.random.default_rng(0).dirichlet(np.ones(50))
    display = RelevanceDisplay.from_values(relevance)
    bars = display.bars()
    assert [name for name, _ in bars[:20]] == [f"x{j}" for j in np.argsort(-relevance)[:20]]
    assert names_on_the_axis(display)[20] == bars[20][0] == "others (30)"
    assert_allclose(bars[20][1], np.sort(relevance)[:30].sum())


@pytest.mark.parametrize(
    ("max_features", "names"),
    [(1, ["x0", "others (3)"]), (3, ["x0", "x1", "x2", "others (1)"]), (9, ["x0", "x1", "x2", "x3"])],
)
def test_at_most_so_many_are_named_and_ties_keep_the_order_of_the_columns(max_features, names):
    display = RelevanceDisplay.from_values(np.full(4, 0.25), max_features=max_features)
    assert names_on_the_axis(display) == names


def test_from_estimator_takes_its_relevances_and_names(saddle):
    X, y = saddle
    model = ISBOR(gamma=0.1, patience=0).fit(pd.DataFrame(X, columns=["north", "east"]), y)
    display = RelevanceDisplay.from_estimator(model)
    assert_array_equal(display.relevance, model.feature_relevance_)
    assert sorted(names_on_the_axis(display)) == ["east", "north"]
    unnamed = RelevanceDisplay.from_estimator(ISBOR(gamma=0.1, patience=0).fit(X, y))
    assert sorted(names_on_the_axis(unnamed)) == ["x0", "x1"]


def test_without_relevance_a_sentence_is_drawn():
    display = RelevanceDisplay.from_values(np.zeros(3))
    assert display.bars_ is None
    assert not display.ax_.patches
    assert display.note_.get_text() == "The model has no basis function:\nno feature is relevant."


@pytest.mark.parametrize(
    ("relevance", "options", "message"),
    [
        ([0.5, 0.6], {}, r"relevance has minimum 0.5 and sum 1.1; .*sum to 1 are needed.*Divide them"),
        ([np.nan, 1.0], {}, "relevance has minimum nan"),
        ([], {}, r"relevance has shape \(0,\); one number per feature"),
        ([0.5, 0.5], {"names": ["a"]}, r"names is \['a'\].*a list of 2 name\(s\) is needed"),
        ([0.5, 0.5], {"max_features": 0}, "max_features is 0; a whole number, at least 1"),
    ],
)
def test_bad_values_are_refused(relevance, options, message):
    with pytest.raises(ValueError, match=message):
        RelevanceDisplay.from_values(relevance, **options)
