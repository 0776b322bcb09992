"""What all displays have in common."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from isbor.plots import CalibrationDisplay, LatentDisplay, RelevanceDisplay

LONG = ["$5 to $10 a day, all meals included", "more", "a good deal more than anybody has asked for, or $99"]


def latent():
    xx, yy = np.meshgrid(np.linspace(0, 1, 30), np.linspace(0, 1, 30))
    return LatentDisplay(
        xx=xx,
        yy=yy,
        score=xx + yy,
        thresholds=np.array([0.7, 1.3]),
        classes=np.array(LONG),
        vectors=np.array([[0.2, 0.2], [0.9, 0.8]]),
        vectors_name="relevance vectors",
        coef=np.array([-2.0, 1.0]),
        feature_names=[LONG[0], 3 * LONG[2]],
        rows=np.array([[0.1, 0.5], [0.4, 0.5]]),
        codes=np.array([0, 1]),
        note="Others at their mean: " + ", ".join(LONG) + "\n$7 row(s)",
    )


def calibration():
    rng = np.random.default_rng(0)
    y, proba = rng.integers(0, 3, 60), rng.dirichlet(np.ones(3), 60)
    return CalibrationDisplay.from_predictions(np.array(LONG)[y], proba, LONG)


def relevance():
    return RelevanceDisplay.from_values([0.5, 0.3, 0.2], LONG)


displays = pytest.mark.parametrize("make", [latent, calibration, relevance])


def assert_inside(figure):
    """Everything that is drawn, as matplotlib measures it, lies inside the figure."""
    figure.canvas.draw()
    drawn, page = figure.get_tightbbox(), figure.bbox_inches
    assert page.x0 <= drawn.x0 < drawn.x1 <= page.x1
    assert page.y0 <= drawn.y0 < drawn.y1 <= page.y1


@displays
def test_nothing_is_cut_off_whatever_the_names(make):
    """Dollars are dollars, not mathematics."""
    display = make()
    assert_inside(display.plot().figure_)


@displays
@pytest.mark.parametrize("layout", [None, "constrained"])
def test_given_axes_are_used_and_no_other_figure_is_made(make, layout):
    display = make()
    plt.close("all")
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout=layout)
    assert display.plot(ax=right) is display
    assert display.ax_ is right
    assert display.figure_ is figure
    assert not left.has_data()
    assert plt.get_fignums() == [figure.number]
    figure.canvas.draw()


@displays
def test_without_matplotlib_it_says_what_to_install(make, monkeypatch):
    display = make()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "isbor\[plots\]"'):
        display.plot()


def test_matplotlib_is_imported_only_to_draw():
    code = "import sys, isbor.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
