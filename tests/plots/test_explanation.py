import numpy as np
import pytest
from numpy.testing import assert_allclose

from isbor import ISBOR
from isbor.plots import ExplanationDisplay
from tests.plots.samples import an_explanation


def test_bars_lead_from_the_background_to_the_score():
    display = ExplanationDisplay.from_explanation(an_explanation("abcd", (0.1, -0.3, 0.8)))
    assert [length for _, length in display.bars()] == [0.8, -0.3, 0.1]
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in display.bars_]
    assert_allclose(ends, [(-0.1, 0.7), (0.7, 0.4), (0.4, 0.5)], atol=1e-12)
    assert [text.get_text() for text in display.labels_] == ["+0.80", "-0.30", "+0.10"]
    first, last = display.ax_.get_yticklabels()[0], display.ax_.get_yticklabels()[-1]
    assert (first.get_text(), last.get_text()) == ("mean score of the background", "score of the row")


def test_the_rest_is_summed():
    explanation = an_explanation("ab", (0.5, -0.2, 0.1, 0.05))
    display = ExplanationDisplay.from_explanation(explanation, max_features=2)
    assert display.bars()[-1] == ("others (2)", pytest.approx(0.15))


def test_classes_stand_between_the_thresholds():
    display = ExplanationDisplay.from_explanation(an_explanation("abcd"))
    left, right = display.ax_.get_xlim()
    edges = [left, -1.0, 0.0, 1.0, right]
    for text in display.classes_:
        k = "abcd".index(text.get_text())
        assert edges[k] < text.get_position()[0] < edges[k + 1]
        assert (text.get_fontweight() == "bold") == (text.get_text() == "c")


def test_from_estimator_explains_the_row(saddle):
    X, y = saddle
    model = ISBOR(gamma=0.1, patience=0).fit(X, y)
    display = ExplanationDisplay.from_estimator(model, X[:3], row=2, background=X[:20])
    expected = model.explain(X[2:3], background=X[:20]).contributions[0]
    assert_allclose(sorted(length for _, length in display.bars()), np.sort(expected))
    with pytest.raises(ValueError, match=r"row is 3; 3 row\(s\) are explained"):
        ExplanationDisplay.from_estimator(model, X[:3], row=3)
