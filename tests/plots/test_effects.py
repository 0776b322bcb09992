import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor import ISBOR, SVOR
from isbor.plots import EffectsDisplay
from tests.plots.samples import some_effects


def test_a_curve_has_its_band_and_missing_cells_stand_aside():
    effects = some_effects("abc", (1.0, 2.0, 4.0, None))
    ax = EffectsDisplay.from_effects(effects).ax_
    curve = ax.lines[0]
    assert_allclose(curve.get_xydata(), np.column_stack([[1.0, 2.0, 4.0], effects.expected[:3]]))
    assert ax.get_xticklabels()[-1].get_text() == "missing"
    assert ax.get_xticks()[-1] > 4.0
    band = ax.collections[0].get_paths()[0].vertices
    low, high = effects.expected_band
    assert_allclose([band[:, 1].min(), band[:, 1].max()], [low[0], high[2]])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b", "c"]


def test_probabilities_are_stacked_from_the_lowest_class_up():
    effects = some_effects("abc", ("red", "blue"))
    ax = EffectsDisplay.from_effects(effects, target="probabilities").ax_
    tops = np.array([[bar.get_y() + bar.get_height() for bar in bars] for bars in ax.containers])
    assert_allclose(tops.T, np.cumsum(effects.probabilities, axis=1))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["c", "b", "a"]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["red", "blue"]


def test_a_map_of_numbers_has_lines_at_the_thresholds():
    effects = some_effects("abc", (0.0, 1.0, 2.0), (0.0, 1.0, None))
    ax = EffectsDisplay.from_effects(effects).ax_
    surface, lines = ax.collections
    assert_array_equal(surface.get_array(), effects.score[:, :2].T)
    assert_allclose(lines.levels, effects.thresholds)
    assert {text.get_text() for text in ax.texts} == {"a | b", "b | c"}


def test_a_map_of_categories_names_the_classes():
    effects = some_effects("abc", ("s", "m"), ("red", "blue", None))
    ax = EffectsDisplay.from_effects(effects).ax_
    assert_array_equal(ax.collections[0].get_array(), effects.score.T)
    assert [text.get_text() for text in ax.texts] == ["a", "a", "b", "b", "c", "c"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["red", "blue", "missing"]


def test_from_estimator_computes_them(saddle):
    X, y = saddle
    model = ISBOR(gamma=0.1, patience=0).fit(X, y)
    display = EffectsDisplay.from_estimator(model, 0, X, kind="ale", grid_size=4, target="probabilities")
    assert_allclose(display.effects.score, model.effects(0, X, kind="ale", grid_size=4).score)
    assert display.ax_.get_title() == "Accumulated local effects"


def test_what_is_refused(saddle):
    with pytest.raises(ValueError, match="target is 'score'"):
        EffectsDisplay.from_effects(some_effects("ab", (0.0, 1.0)), target="score")
    model = SVOR(probability=False).fit(*saddle)
    with pytest.raises(ValueError, match="no class probabilities.*probability=True"):
        EffectsDisplay.from_estimator(model, 0)
    assert EffectsDisplay.from_estimator(model, (0, 1), grid_size=5).effects.score.shape == (5, 5)
