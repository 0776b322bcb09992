"""Figures: that they show the numbers, that texts do not overlap, and that files are reproducible."""

import itertools
import xml.etree.ElementTree as ET

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from numpy.testing import assert_array_equal

from isbor.experiments.reporting.figures.critical_difference import critical_difference_figure
from isbor.experiments.reporting.figures.curves import (
    CalibrationBins,
    Curve,
    Reference,
    calibration_figure,
    curves_figure,
    likelihood_figure,
)
from isbor.experiments.reporting.figures.score_panels import score_figure
from isbor.experiments.reporting.figures.style import save_figure
from isbor.experiments.reporting.significance import Friedman
from isbor.model.likelihood import ordinal_probit

DOLLARS = "$a$ for $b_{"
NAMES = [DOLLARS, "_hidden", "ISBOR (one width, by the evidence)", *(f"model {k}" for k in range(4, 13))]
ROWS = np.array([100.0, 200.0, 400.0, 800.0])


def drawn(figure):
    FigureCanvasAgg(figure).draw()
    return figure


def texts(figure):
    return [text.get_text() for text in visible_texts(figure)]


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
        drawn(figure)
    return shown


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


def assert_one_line(ax, x, y):
    """Check that one line has exactly these points."""
    found = [
        np.array_equal(line.get_xdata(), x) and np.array_equal(line.get_ydata(), y, equal_nan=True)
        for line in ax.get_lines()
    ]
    assert sum(found) == 1


def curves_of(names):
    means = {name: np.full(len(ROWS), 1.0 + k) for k, name in enumerate(names)}
    return {name: Curve(ROWS, mean, mean - 0.1, mean + 0.1) for name, mean in means.items()}


def bins_of(names):
    predicted = np.linspace(0.05, 0.95, 10)
    return {
        name: CalibrationBins(np.arange(10, 110, 10), predicted, predicted ** (1 + k / 10))
        for k, name in enumerate(names)
    }


def errors_of(tasks, names, n_splits=5):
    rng = np.random.default_rng(0)
    return {task: {name: rng.normal(1, 0.1, n_splits).tolist() for name in names} for task in tasks}


def diagram(ranks, difference, names=None, n_tasks=9):
    found = Friedman(tuple(map(str, range(len(ranks)))), tuple(ranks), n_tasks, 1.0, 0.1, difference, 0.1)
    titles = [f"{'long ' * (k % 4)}name {k} $x$" for k in range(len(ranks))] if names is None else names
    return critical_difference_figure(found, dict(zip(found.models, titles, strict=True)))


KINDS = {
    "curves": lambda names: curves_figure(
        curves_of(names), xlabel="rows", ylabel="MAE", reference=Reference("true $score$", ROWS, ROWS)
    ),
    "calibration": lambda names: calibration_figure(bins_of(names)),
    "scores": lambda names: score_figure(errors_of(["first", "second"], names), xlabel="MAE"),
    "differences": lambda names: diagram(np.linspace(1, len(names), len(names)), 1.5, names),
    "likelihood": lambda names: likelihood_figure(np.arange(len(names) - 1.0)),
}
NAMED_KINDS = [kind for kind in KINDS if kind != "likelihood"]
CLOSE_RANKS = [6.4, 6.41, 6.42, 6.43, 6.44, 6.5, 6.5, 6.56, 6.57, 6.58, 6.59, 6.6]


# --- Numbers ----------------------------------------------------------------------------------------------


def test_the_likelihood_and_its_derivatives():
    figure = likelihood_figure((-1.0, 0.5), sigma=0.7)
    limits = [-np.inf, -1.0, 0.5, np.inf]
    for k in range(3):
        lines = [ax.get_lines()[k] for ax in figure.axes]
        f = lines[0].get_xdata()
        at = ordinal_probit(f, np.full_like(f, limits[k]), np.full_like(f, limits[k + 1]), scale=0.7)
        for line, value in zip(lines, (at.log_p, at.slope, -at.curvature), strict=True):
            assert_array_equal(line.get_ydata(), value)


def test_curves_bands_and_gaps_are_the_numbers():
    rows = np.array([100.0, 200.0, 400.0, 800.0, 1600.0])
    mean = np.array([3.0, np.nan, 2.5, 2.0, 1.2])
    curve = Curve(rows, mean, mean - 0.5, mean + 0.25)
    reference = Reference("limit", rows[:2], np.array([2.0, 1.0]))
    figure = curves_figure({"a": curve}, xlabel="rows", ylabel="MAE", title="Errors", reference=reference)
    (ax,) = drawn(figure).axes
    assert_one_line(ax, rows, mean)
    band = ax.collections[0]
    corners = np.concatenate([path.vertices for path in band.get_paths()])
    for x, low, high in zip(rows[2:], curve.low[2:], curve.high[2:], strict=True):
        heights = corners[corners[:, 0] == x, 1]
        assert (heights.min(), heights.max()) == (low, high)
    assert_one_line(ax, rows[:2], [2.0, 1.0])
    assert {"rows", "MAE", "Errors", "limit"} <= set(texts(figure))


def test_calibration_lines_and_counts_are_the_bins():
    bins = CalibrationBins(
        np.array([10, 0, 400, 20]), np.array([0.1, np.nan, 0.6, 0.9]), np.array([0.2, np.nan, 0.5, 0.95])
    )
    ax, strip = calibration_figure({"a": bins}).axes
    assert_one_line(ax, [0.1, 0.6, 0.9], [0.2, 0.5, 0.95])
    assert_one_line(ax, [0, 1], [0, 1])
    assert_one_line(strip, [0.1, 0.6, 0.9], [10, 400, 20])


def test_every_split_is_a_dot_and_the_mean_a_mark():
    errors = {"t1": {"a": [1.0, 2.0, 6.0], "b": [4.0, 4.0, 4.0]}, "": {"b": [0.5], "a": [0.25]}}
    first, second = score_figure(errors, xlabel="MAE").axes
    dots_a, mean_a, dots_b, mean_b = first.get_lines()
    assert_array_equal(dots_a.get_xdata(), [1.0, 2.0, 6.0])
    assert_array_equal(mean_a.get_xydata(), [[3.0, 0.0]])
    assert_array_equal(dots_b.get_xdata(), [4.0, 4.0, 4.0])
    assert_array_equal(mean_b.get_xydata(), [[4.0, 1.0]])
    # A model has the same row in all panels.
    assert_array_equal(second.get_lines()[1].get_xydata(), [[0.25, 0.0]])


def test_a_mean_of_some_splits_is_explained():
    errors = {"t": {"a": [1.0, 2.0], "b": [3.0, np.nan], "c": [5.0], "d": [np.nan, np.nan]}}
    figure = score_figure(errors, xlabel="MAE")
    means = figure.axes[0].get_lines()[1::2]
    assert [line.get_xdata()[0] for line in means] == [1.5, 3.0, 5.0]
    assert "mean of finished splits" in texts(figure)
    assert texts(figure).count("no result") == 1
    assert "mean of finished splits" not in texts(score_figure(errors_of("t", "ab"), xlabel=""))


def test_the_diagram_has_a_stem_and_a_number_for_each_name():
    names, ranks = ["a", "b", "c", "d", "e"], np.array([3.5, 1.0, 5.0, 2.0, 3.0])
    figure = drawn(diagram(ranks, 1.5, names, n_tasks=1))
    stems = [line.get_xydata() for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 3]
    by_height = {(stem[2, 1], stem[2, 0] < 1.0): stem[0, 0] for stem in stems}
    place = {text.get_text(): text.get_position() for text in visible_texts(figure)}
    for name, rank in zip(names, ranks, strict=True):
        assert by_height[place[name][1], place[name][0] < 1.0] == rank
        assert place[f"{rank:.2f}"][1] == place[name][1]
    assert {"critical difference 1.50", "Mean rank over 1 task, best at the left"} <= place.keys()


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


@pytest.mark.parametrize(("ranks", "difference"), [([1.5, 1.5], 14.0), (CLOSE_RANKS, 0.05)])
def test_texts_of_the_diagram_do_not_overlap(ranks, difference):
    assert not overlaps(diagram(ranks, difference))


# --- Files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_files_open_and_are_the_same_each_time(kind, tmp_path):
    open_figures = plt.get_fignums()
    png, svg = save_figure(KINDS[kind](["a", "b", "c"]), tmp_path / "new" / "size-0.5")
    assert plt.get_fignums() == open_figures
    assert (png.name, svg.name) == ("size-0.5.png", "size-0.5.svg")
    first = png.read_bytes(), svg.read_bytes()
    with matplotlib.rc_context({"text.usetex": True, "axes.facecolor": "black", "font.size": 20}):
        save_figure(KINDS[kind](["a", "b", "c"]), tmp_path / "new" / "size-0.5")
    assert (png.read_bytes(), svg.read_bytes()) == first
    assert 0.01 < np.mean(plt.imread(png)[..., :3].min(axis=2) < 0.9) < 0.5
    assert ET.fromstring(first[1]).tag.endswith("svg")
