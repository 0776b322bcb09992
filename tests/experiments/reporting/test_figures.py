"""Figures: that they show the numbers, that texts do not overlap, and that files are reproducible."""

import itertools
import xml.etree.ElementTree as ET
from io import BytesIO

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from numpy.testing import assert_allclose, assert_array_equal

from isbor.experiments.reporting.figures.critical_difference import critical_difference_figure
from isbor.experiments.reporting.figures.curves import (
    calibration_figure,
    curves_figure,
    likelihood_figure,
)
from isbor.experiments.reporting.figures.score_panels import score_figure
from isbor.experiments.reporting.figures.style import rendered
from isbor.experiments.reporting.significance import Friedman
from isbor.model.likelihood import ordinal_probit

NAMES = [
    "$a$ for $b_{",
    "_hidden",
    "ISBOR (one width, by the evidence)",
    *(f"model {k}" for k in range(4, 13)),
]
SIZES = [100, 200, 400, 800]


def visible_texts(figure):
    """Return the texts that are drawn: an axis has more, beyond its ends."""
    shown = []
    draw = Text.draw

    def draw_and_note(self, renderer):
        if self.get_visible() and self.get_text():
            shown.append(self)
        draw(self, renderer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", draw_and_note)
        FigureCanvasAgg(figure).draw()
    return shown


def texts(figure):
    return [text.get_text() for text in visible_texts(figure)]


def overlaps(figure):
    """Return the pairs of texts that overlap, and the texts that leave the page."""
    boxes = [(text.get_text(), text.get_window_extent()) for text in visible_texts(figure)]
    page = figure.bbox
    outside = [
        (name, None)
        for name, box in boxes
        if box.x0 < page.x0 or box.y0 < page.y0 or box.x1 > page.x1 or box.y1 > page.y1
    ]
    pairs = [
        (first, second)
        for (first, a), (second, b) in itertools.combinations(boxes, 2)
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 0.5 and min(a.y1, b.y1) - max(a.y0, b.y0) > 0.5
    ]
    return outside + pairs


def diagram(ranks, difference, names):
    found = Friedman(tuple(names), tuple(ranks), 9, 1.0, 0.1, difference, 0.1)
    return critical_difference_figure(found, dict(zip(names, names, strict=True)))


def curves_of(names):
    values = {name: [np.array([1.0, 1.2]) + k] * len(SIZES) for k, name in enumerate(names)}
    return curves_figure(SIZES, values, ylabel="MAE", title="Errors", reference=np.array(SIZES) / 100)


def calibration_of(names):
    count, shares = np.arange(10.0, 110.0, 10.0), np.linspace(0.05, 0.95, 10)
    return calibration_figure(
        {
            name: np.column_stack([count, count * shares, count * shares ** (1 + k / 10)])
            for k, name in enumerate(names)
        }
    )


def scores_of(names):
    rng = np.random.default_rng(0)
    tasks = ("first", "a second one with a longer title, of three lines")
    return score_figure({task: {name: rng.normal(1, 0.1, 5) for name in names} for task in tasks}, xlabel="")


NAMED_KINDS = {
    "curves": curves_of,
    "calibration": calibration_of,
    "scores": scores_of,
    "differences": lambda names: diagram(np.linspace(1, len(names), len(names)), 1.5, names),
}
KINDS = {**NAMED_KINDS, "likelihood": lambda names: likelihood_figure()}


# --- Numbers ----------------------------------------------------------------------------------------------


def test_the_likelihood_and_its_derivatives():
    limits = [-np.inf, -1.5, 0.0, 1.5, np.inf]
    figure = likelihood_figure()
    for k in range(4):
        lines = [ax.get_lines()[k] for ax in figure.axes]
        f = lines[0].get_xdata()
        at = ordinal_probit(f, np.full_like(f, limits[k]), np.full_like(f, limits[k + 1]))
        for line, value in zip(lines, (at.log_p, at.slope, -at.curvature), strict=True):
            assert_array_equal(line.get_ydata(), value)


def test_curves_bands_and_gaps_are_the_numbers():
    values = [np.array(of_size) for of_size in ([3.0], [], [2.0, 3.0], [0.1, 0.2, 0.9])]
    figure = curves_figure(SIZES, {"a": values}, ylabel="MAE", title="Errors", reference=np.ones(4))
    (ax,) = figure.axes
    curve, reference = ax.get_lines()
    assert_array_equal(curve.get_xdata(), SIZES)
    assert_allclose(curve.get_ydata(), [3.0, np.nan, 2.5, 0.4])
    corners = np.concatenate([path.vertices for path in ax.collections[0].get_paths()])
    deviation = np.sqrt(((0.3**2) + (0.2**2) + (0.5**2)) / 2)
    for x, low, high in ((400, 2.5 - np.sqrt(0.5), 2.5 + np.sqrt(0.5)), (800, 0.2, 0.4 + deviation)):
        heights = corners[corners[:, 0] == x, 1]
        assert_allclose((heights.min(), heights.max()), (low, high))  # never below half the mean
    assert_array_equal(reference.get_ydata(), np.ones(4))
    assert {"training rows", "MAE", "Errors", "true score"} <= set(texts(figure))


def test_every_split_is_a_dot_and_the_mean_a_mark():
    errors = {"t1": {"a": [1.0, 2.0, 6.0], "b": [4.0, 4.0, 4.0]}, "": {"a": [0.25], "b": [0.5]}}
    figure = score_figure(errors, xlabel="MAE")
    first, second = figure.axes
    dots_a, mean_a, dots_b, mean_b = first.get_lines()
    assert_array_equal(dots_a.get_xdata(), [1.0, 2.0, 6.0])
    assert_array_equal(mean_a.get_xydata(), [[3.0, 0.0]])
    assert_array_equal(dots_b.get_xdata(), [4.0, 4.0, 4.0])
    assert_array_equal(mean_b.get_xydata(), [[4.0, 1.0]])
    assert_array_equal(second.get_lines()[1].get_xydata(), [[0.25, 0.0]])
    assert "mean of finished splits" not in texts(figure)
    some = score_figure({"t": {"a": [1.0, 2.0], "b": [3.0, np.nan], "c": [np.nan] * 2}}, xlabel="MAE")
    assert [line.get_xdata()[0] for line in some.axes[0].get_lines()[1::2]] == [1.5, 3.0]
    assert texts(some).count("no result") == texts(some).count("mean of finished splits") == 1


def test_the_diagram_has_a_rank_for_each_name_and_a_bar_for_each_group():
    names, ranks = ["a", "b", "c", "d", "e"], np.array([3.5, 1.0, 5.0, 2.0, 3.0])
    figure = diagram(ranks, 1.25, names)
    (ax,) = figure.axes
    ruler, dots, *bars = (line.get_xydata() for line in ax.get_lines())
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["critical difference", "b", "d", "e", "a", "c"]
    assert_array_equal(ruler[:, 0], [1.0, 2.25])
    assert {labels[int(row)]: rank for rank, row in dots} == dict(zip(names, ranks, strict=True))
    joined = [[labels[int(row)] for row in (np.ceil(bar[0, 1]), np.floor(bar[1, 1]))] for bar in bars]
    assert joined == [["b", "d"], ["d", "e"], ["e", "a"]]
    assert {f"{value:.2f}" for value in (1.25, *ranks)} <= set(texts(figure))


# --- Legible ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NAMED_KINDS)
def test_names_are_shown_literally_and_do_not_overlap(kind):
    figure = KINDS[kind](NAMES)
    assert set(NAMES) <= set(texts(figure))
    assert not any(text.get_parse_math() for text in visible_texts(figure) if text.get_text() in NAMES)
    assert not overlaps(figure)
    long = KINDS[kind](["x" * 40 + str(k) + "y" * 40 for k in range(3)])
    assert sum(text.startswith("xxx") and text.endswith("yyy") for text in texts(long)) == 3
    assert not overlaps(long)


def test_texts_of_a_diagram_do_not_overlap_if_all_or_nothing_differs():
    assert not overlaps(diagram([1.5, 1.5], 14.0, "ab"))
    assert not overlaps(diagram(np.linspace(6.4, 6.6, 12), 0.05, NAMES))


# --- Files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_files_open_and_are_the_same_each_time(kind):
    def files():
        return [rendered(KINDS[kind](["a", "b", "c"]), ending) for ending in ("png", "svg")]

    open_figures = plt.get_fignums()
    png, svg = files()
    assert plt.get_fignums() == open_figures
    with matplotlib.rc_context({"text.usetex": True, "axes.facecolor": "black", "font.size": 20}):
        assert files() == [png, svg]
    assert 0.01 < np.mean(plt.imread(BytesIO(png))[..., :3].min(axis=2) < 0.9) < 0.5
    assert ET.fromstring(svg).tag.endswith("svg")
