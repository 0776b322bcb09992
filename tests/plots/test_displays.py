"""What all displays have in common."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from isbor import ISBOR
from isbor.plots import (
    CalibrationDisplay,
    DiscriminationDisplay,
    EffectsDisplay,
    ExplanationDisplay,
    LatentDisplay,
    OrdinalConfusionDisplay,
    PredictionSetDisplay,
    RelevanceDisplay,
    TraceDisplay,
)
from tests.plots.samples import a_step, an_explanation, of_bands, some_effects

LONG = ["$5 to $10 a day, all meals included", "more", "a good deal more than anybody has asked for, or $99"]


def latent():
    display = of_bands(LONG)
    display.feature_names = [LONG[0], 3 * LONG[2]]
    display.note = "Others at their mean: " + ", ".join(LONG) + "\n$7 row(s)"
    return display


def calibration():
    rng = np.random.default_rng(0)
    y, proba = rng.integers(0, 3, 60), rng.dirichlet(np.ones(3), 60)
    return CalibrationDisplay.from_predictions(np.array(LONG)[y], proba, LONG)


def confusion():
    labels = np.array(LONG)[np.random.default_rng(0).integers(0, 3, (2, 60))]
    return OrdinalConfusionDisplay.from_predictions(*labels, LONG)


def discrimination():
    rng = np.random.default_rng(0)
    y, proba = rng.integers(0, 3, 60), rng.dirichlet(np.ones(3), 60)
    return DiscriminationDisplay.from_predictions(np.array(LONG)[y], proba, LONG)


def prediction_sets():
    rng = np.random.default_rng(0)
    y, sets = rng.integers(0, 3, 60), rng.random((60, 3)) < 0.7
    return PredictionSetDisplay.from_predictions(np.array(LONG)[y], sets, LONG, coverage=0.8)


def trace():
    steps = [
        a_step("mode", -9.0, stage="selection"),
        a_step("noise", -1e6, run=2),
        a_step("mode", -7.0, run=2),
    ]
    return TraceDisplay(steps=steps)


def relevance():
    return RelevanceDisplay.from_values([0.5, 0.3, 0.2], LONG)


def explanation():
    return ExplanationDisplay(explanation=an_explanation(LONG))


def expected():
    return EffectsDisplay(effects=some_effects(LONG, ("a", "b", LONG[0])))


def probabilities():
    return EffectsDisplay(effects=some_effects(LONG, (1.0, 2.0, None)), target="probabilities")


def effects_of_two():
    return EffectsDisplay(effects=some_effects(LONG, (1.0, 2.0, 4.0), (0.0, 1.0, 2.0)))


MAKERS = [
    latent,
    calibration,
    confusion,
    discrimination,
    prediction_sets,
    trace,
    relevance,
    explanation,
    expected,
    probabilities,
    effects_of_two,
]
displays = pytest.mark.parametrize("make", MAKERS)


@displays
def test_nothing_is_cut_off_whatever_the_names(make):
    """Dollars are dollars, not mathematics."""
    figure = make().plot().figure_
    figure.canvas.draw()
    drawn, page = figure.get_tightbbox(), figure.bbox_inches
    assert page.x0 <= drawn.x0 < drawn.x1 <= page.x1
    assert page.y0 <= drawn.y0 < drawn.y1 <= page.y1


@displays
def test_given_axes_are_used_and_no_other_figure_is_made(make):
    display = make()
    plt.close("all")
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5))
    assert display.plot(ax=right) is display
    assert display.ax_ is right
    assert display.figure_ is figure
    assert not left.has_data()
    assert plt.get_fignums() == [figure.number]
    figure.canvas.draw()


@pytest.mark.parametrize(
    ("draw", "what"),
    [
        (lambda model, X, y: CalibrationDisplay.from_estimator(model, X, y), "predict_proba; a fitted class"),
        (lambda model, X, y: DiscriminationDisplay.from_estimator(model, X, y), "predict_proba; a fitted cl"),
        (lambda model, X, y: OrdinalConfusionDisplay.from_estimator(model, X, y), "classes_; a fitted class"),
        (lambda model, X, y: PredictionSetDisplay.from_estimator(model, X, y), "predict_set; a fitted Predi"),
        (lambda model, X, y: TraceDisplay.from_estimator(model), "trace_; a fitted ISBOR or SBOR"),
        (lambda model, X, y: LatentDisplay.from_estimator(model, X), "latent score; a fitted estimator"),
        (lambda model, X, y: ExplanationDisplay.from_estimator(model, X), "method explain; a fitted estim"),
        (lambda model, X, y: EffectsDisplay.from_estimator(model, 0), "method effects; a fitted estimator"),
        (lambda model, X, y: RelevanceDisplay.from_estimator(model), "feature_relevance_; a fitted ISBOR"),
    ],
)
def test_a_fitted_model_that_has_what_is_drawn_is_needed(draw, what, saddle):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        draw(ISBOR(), *saddle)
    with pytest.raises(TypeError, match=f"LinearRegression has no {what}"):
        draw(LinearRegression().fit(*saddle), *saddle)


@displays
def test_without_matplotlib_it_says_what_to_install(make, monkeypatch):
    display = make()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "isbor\[plots\]"'):
        display.plot()
