"""Figures: that they show the numbers, that texts do not overlap, and that files are reproducible."""

import io
import itertools
import os
import sys
import xml.etree.ElementTree as ET

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from numpy.testing import assert_allclose, assert_array_equal

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
from isbor.experiments.reporting.figures.style import figure_svg, model_style, save_figure
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


def line_through(ax, x, y):
    """Return the line that has exactly these points."""
    (line,) = [
        line
        for line in ax.get_lines()
        if len(line.get_xdata()) == len(x)
        and np.array_equal(line.get_xdata(), x)
        and np.array_equal(line.get_ydata(), y, equal_nan=True)
    ]
    return line


def constant_curve(level, rows=ROWS):
    mean = np.full(len(rows), level)
    return Curve(rows, mean, mean - 0.1, mean + 0.1)


def curves_of(names):
    return {name: constant_curve(1.0 + k) for k, name in enumerate(names)}


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


# --- The ordinal likelihood -------------------------------------------------------------------------------


def test_likelihood_lines_are_those_of_the_likelihood():
    figure = likelihood_figure((-1.0, 0.5), sigma=0.7)
    limits = [-np.inf, -1.0, 0.5, np.inf]
    for k in range(3):
        lines = [ax.get_lines()[k] for ax in figure.axes]
        f = lines[0].get_xdata()
        at = ordinal_probit(f, np.full_like(f, limits[k]), np.full_like(f, limits[k + 1]), scale=0.7)
        for line, value in zip(lines, (at.log_p, at.score, -at.curvature), strict=True):
            assert_array_equal(line.get_ydata(), value)
    probability = sum(np.exp(line.get_ydata()) for line in figure.axes[0].get_lines()[:3])
    assert_allclose(probability, 1)
    for ax in figure.axes:
        assert [line.get_xdata()[0] for line in ax.get_lines()[3:]] == [-1.0, 0.5]


def test_each_panel_is_the_derivative_of_the_one_before():
    figure = likelihood_figure()
    for before, after in itertools.pairwise(figure.axes):
        for k in range(4):
            f, values = before.get_lines()[k].get_data()
            slope = (values[2:] - values[:-2]) / (f[2:] - f[:-2])
            assert_allclose(after.get_lines()[k].get_ydata()[1:-1], slope, atol=2e-4)


# --- Curves -----------------------------------------------------------------------------------------------


def test_curves_and_bands_are_the_numbers():
    mean = np.array([4.0, 3.0, 2.5, 2.0])
    curve = Curve(ROWS, mean, mean - 0.5, mean + 0.25)
    (ax,) = curves_figure({"a": curve}, xlabel="rows", ylabel="MAE", title="Errors").axes
    assert_array_equal(line_through(ax, ROWS, mean).get_ydata(), mean)
    (band,) = (part for part in ax.collections if part.get_alpha() == 0.13)
    corners = band.get_paths()[0].vertices
    for x, low, high in zip(ROWS, curve.low, curve.high, strict=True):
        heights = corners[corners[:, 0] == x, 1]
        assert heights.min() == low
        assert heights.max() == high
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("rows", "MAE", "Errors")


def test_unfinished_runs_leave_gaps():
    mean = np.array([3.0, np.nan, 2.0, 1.5, 1.2])
    rows = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    figure = curves_figure({"a": Curve(rows, mean, mean - 0.1, mean + 0.1)}, xlabel="", ylabel="")
    (ax,) = drawn(figure).axes
    line = line_through(ax, rows, mean)
    # Moves without drawing: at the start, and where the line goes on.
    codes = [code for _, code in line.get_path().iter_segments(remove_nans=True)]
    assert codes.count(line.get_path().MOVETO) == 2
    band, whiskers = ax.collections
    assert all(path.vertices[:, 0].min() >= 3.0 for path in band.get_paths() if len(path.vertices) > 5)
    finite = [path.vertices for path in whiskers.get_paths() if np.all(np.isfinite(path.vertices))]
    assert [ends[0, 0] for ends in finite] == [1.0, 3.0, 4.0, 5.0]


def test_a_model_that_never_finished_is_in_the_legend_only():
    nothing = np.full(4, np.nan)
    slow = Curve(ROWS, nothing, nothing, nothing)
    figure = curves_figure({"a": constant_curve(1.0), "slow": slow}, xlabel="", ylabel="s", log_y=True)
    assert "slow" in texts(figure)
    low, high = figure.axes[0].get_ylim()
    assert 0.8 < low < 0.9
    assert 1.1 < high < 1.2
    assert not overlaps(curves_figure({"slow": slow}, xlabel="", ylabel="", log_y=True))


def test_logarithmic_axes_have_plain_numbers():
    mean = np.array([0.001, 0.1, 20.0, 3000.0])
    figure = curves_figure(
        {"a": Curve(ROWS, mean, mean - 0.002, 1.1 * mean)}, xlabel="", ylabel="", log_y=True
    )
    shown = texts(figure)
    assert {"100", "200", "500", "0.001", "0.1", "1", "1,000"} <= set(shown)
    assert not any("^" in text or "e" in text for text in shown)
    assert not overlaps(figure)


def test_a_reference_is_a_dashed_line():
    x, y = np.array([100.0, 800.0]), np.array([2.0, 1.0])
    figure = curves_figure(curves_of("ab"), xlabel="", ylabel="", reference=Reference("limit", x, y))
    assert line_through(figure.axes[0], x, y).get_linestyle() == "--"
    assert texts(figure).count("limit") == 1


# --- The look of models -----------------------------------------------------------------------------------


def test_no_two_models_look_alike():
    looks = [model_style("m", k) for k in range(84)]
    assert len({(look.colour, look.marker) for look in looks}) == 84
    assert len({look.colour for look in looks[:7]}) == 7
    assert len({look.marker for look in looks[:12]}) == 12


def test_a_model_has_its_colour_in_all_figures_of_a_report():
    report = ["a", "b", "c", "d"]
    colour = model_style("c", 2).colour
    curve = curves_figure({"c": constant_curve(1.0)}, xlabel="", ylabel="", models=report)
    calibration = calibration_figure({"d": bins_of("d")["d"], "c": bins_of("c")["c"]}, models=report)
    scores = score_figure(errors_of("t", "dc"), xlabel="", models=report)
    assert curve.axes[0].get_lines()[0].get_color() == colour
    assert calibration.axes[0].get_lines()[1].get_color() == colour
    assert scores.axes[0].get_lines()[0].get_color() == colour
    assert [text.get_text() for text in scores.axes[0].get_yticklabels()] == ["c", "d"]


@pytest.mark.parametrize("kind", NAMED_KINDS)
def test_names_are_shown_as_they_are_and_apart(kind):
    figure = KINDS[kind](NAMES)
    shown = texts(figure)
    assert set(NAMES) <= set(shown)
    for text in visible_texts(figure):
        if text.get_text() in {*NAMES, "true $score$"}:
            assert not text.get_parse_math()
    assert not overlaps(figure)
    assert DOLLARS in figure_svg(figure)  # beside the letters' outlines, SVG has the text as a comment


@pytest.mark.parametrize("kind", NAMED_KINDS)
def test_very_long_names_that_begin_and_end_alike_are_not_merged(kind):
    figure = KINDS[kind](["x" * 40 + str(k) + "y" * 40 for k in range(3)])
    assert sum(text.startswith("xxx") and text.endswith("yyy") for text in texts(figure)) == 3
    assert not overlaps(figure)


# --- Critical differences ---------------------------------------------------------------------------------

HARD_RANKS = {
    "two": [1.2, 1.8],
    "two tied": [1.5, 1.5],
    "all tied": [6.5] * 12,
    "tied at the ends": [1.0, 1.0, 1.0, 4.5, 4.5, 7.0, 7.0, 7.0],
    "close": [6.4, 6.41, 6.42, 6.43, 6.44, 6.5, 6.5, 6.56, 6.57, 6.58, 6.59, 6.6],
    "spread": np.arange(1.0, 13.0)[::-1],
}


@pytest.mark.parametrize("difference", [0.05, 2.0, 14.0])
@pytest.mark.parametrize("ranks", HARD_RANKS.values(), ids=HARD_RANKS)
def test_texts_of_the_diagram_are_legible(ranks, difference):
    figure = diagram(ranks, difference)
    assert not overlaps(figure)
    shown = visible_texts(figure)
    assert sum("name" in text.get_text() for text in shown) == len(ranks)
    for text in shown:
        box = text.get_window_extent()
        for line in figure.axes[0].get_lines():
            path = line.get_transform().transform_path(line.get_path())
            assert not path.intersects_bbox(box, filled=False), text.get_text()


def test_stems_lead_from_ranks_to_names_and_numbers():
    names, ranks = ["a", "b", "c", "d", "e"], [3.5, 1.25, 4.5, 2.0, 3.75]
    figure = drawn(diagram(ranks, 0.1, names, n_tasks=8))
    (ax,) = figure.axes
    stems = [line.get_xydata() for line in ax.get_lines() if len(line.get_xdata()) == 3]
    by_height = {(stem[2, 1], stem[2, 0] < 1.0): stem[0, 0] for stem in stems}
    shown = visible_texts(figure)
    for name, rank in zip(names, ranks, strict=True):
        (label,) = (text for text in shown if text.get_text() == name)
        x, y = label.get_position()
        assert by_height[y, x < 1.0] == rank
        (number,) = (text for text in shown if text.get_text() == f"{rank:.2f}")
        assert number.get_position()[1] == y
    # The best three on the left, best on top; the others on the right, worst on top.
    place = {text.get_text(): text.get_position() for text in shown}
    assert sorted("bda", key=lambda name: place[name][1]) == list("bda")
    assert place["b"][0] == place["d"][0] == place["a"][0] < 1
    assert place["c"][0] == place["e"][0] > 5
    assert place["c"][1] < place["e"][1]
    assert place["best"][0] < 1 < 5 < place["worst"][0]
    assert "Mean rank over 8 tasks, best at the left" in place


def test_bars_join_groups_and_do_not_touch():
    ranks = np.array([1.0, 2.0, 3.0, 3.5, 5.0])
    (ax,) = diagram(ranks, 1.5).axes
    bars = [line.get_xydata() for line in ax.get_lines() if line.get_linewidth() == 3.0]
    joined = [set(ranks[(ranks >= bar[0, 0]) & (ranks <= bar[1, 0])]) for bar in bars]
    assert joined == [{1.0, 2.0}, {2.0, 3.0, 3.5}, {3.5, 5.0}]
    for first, second in itertools.combinations(bars, 2):
        apart = first[1, 0] < second[0, 0] or second[1, 0] < first[0, 0]
        assert apart or first[0, 1] != second[0, 1]


@pytest.mark.parametrize("difference", [0.3, 6.0])
def test_the_ruler_is_as_long_as_the_critical_difference(difference):
    figure = diagram([1.0, 2.0, 3.0], difference, n_tasks=1)
    rulers = [line for line in figure.axes[0].get_lines() if line.get_linewidth() == 1.2]
    assert_allclose(np.ptp(rulers[0].get_xdata()), difference)
    assert {f"critical difference {difference:.2f}", "Mean rank over 1 task, best at the left"} <= set(
        texts(figure)
    )


# --- Calibration ------------------------------------------------------------------------------------------


def test_calibration_lines_and_counts_are_the_bins():
    bins = CalibrationBins(
        np.array([10, 0, 400, 20]),
        np.array([0.1, np.nan, 0.6, 0.9]),
        np.array([0.2, np.nan, 0.5, 0.95]),
    )
    ax, strip = calibration_figure({"a": bins}).axes
    assert_array_equal(line_through(ax, [0.1, 0.6, 0.9], [0.2, 0.5, 0.95]).get_marker(), "o")
    assert line_through(ax, [0, 1], [0, 1]).get_linestyle() == "--"
    line_through(strip, [0.1, 0.6, 0.9], [10, 400, 20])
    assert strip.get_yscale() == "log"
    assert ax.get_xlim() == strip.get_xlim()


# --- Scores -----------------------------------------------------------------------------------------------


def test_every_split_is_a_dot_and_the_mean_a_mark():
    errors = {"t1": {"a": [1.0, 2.0, 6.0], "b": [4.0, 4.0, 4.0]}, "": {"b": [0.5], "a": [0.25]}}
    first, second = score_figure(errors, xlabel="MAE").axes
    dots_a, mean_a, dots_b, mean_b = first.get_lines()
    assert_array_equal(dots_a.get_xdata(), [1.0, 2.0, 6.0])
    assert_array_equal(mean_a.get_xydata(), [[3.0, 0.0]])
    assert_array_equal(dots_b.get_xdata(), [4.0, 4.0, 4.0])
    assert len(set(dots_b.get_ydata())) == 3
    assert_allclose(dots_a.get_ydata(), dots_b.get_ydata() - 1.0)
    assert_array_equal(mean_b.get_xydata(), [[4.0, 1.0]])
    # The same line a model, whatever the order within a task.
    assert_array_equal(second.get_lines()[1].get_xydata(), [[0.25, 0.0]])
    assert_array_equal(second.get_lines()[3].get_xydata(), [[0.5, 1.0]])
    assert [ax.get_title() for ax in (first, second)] == ["t1", ""]
    assert first.get_ylim()[0] > first.get_ylim()[1]


def test_a_mean_of_some_splits_is_hollow_and_explained():
    errors = {"t": {"a": [1.0, 2.0], "b": [3.0, np.nan], "c": [5.0], "d": [np.nan, np.nan]}}
    figure = score_figure(errors, xlabel="MAE")
    means = figure.axes[0].get_lines()[1::2]
    assert [line.get_xdata()[0] for line in means] == [1.5, 3.0, 5.0]
    assert [line.get_markerfacecolor() == "white" for line in means] == [False, True, True]
    assert "mean of finished splits" in texts(figure)
    assert texts(figure).count("no result") == 1
    assert "mean of finished splits" not in texts(score_figure(errors_of("t", "ab"), xlabel=""))


@pytest.mark.parametrize("n_models", [2, 12])
@pytest.mark.parametrize("n_tasks", [1, 3, 10])
def test_panels_of_many_tasks_and_long_names_are_legible(n_tasks, n_models):
    tasks = [("a task with $ and a rather long name " * (k % 3) + f"task {k}")[-70:] for k in range(n_tasks)]
    figure = score_figure(errors_of(tasks, NAMES[:n_models]), xlabel="mean absolute error in $")
    assert [ax.get_title().replace("\n", " ").split() for ax in figure.axes] == [t.split() for t in tasks]
    assert not overlaps(figure)


# --- Files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_files_open_and_are_the_same_each_time(kind, tmp_path):
    open_figures = plt.get_fignums()
    figure = KINDS[kind](["a", "b", "c"])
    assert plt.get_fignums() == open_figures
    png, svg = save_figure(figure, tmp_path / "new" / "size-0.5")
    assert (png.name, svg.name) == ("size-0.5.png", "size-0.5.svg")
    first = png.read_bytes(), svg.read_bytes()
    with matplotlib.rc_context(
        {"text.usetex": True, "axes.facecolor": "black", "font.size": 20, "lines.linewidth": 7}
    ):
        settings = dict(matplotlib.rcParams)
        save_figure(KINDS[kind](["a", "b", "c"]), tmp_path / "new" / "size-0.5")
        assert dict(matplotlib.rcParams) == settings
    assert (png.read_bytes(), svg.read_bytes()) == first
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [png.name, svg.name]

    image = plt.imread(io.BytesIO(first[0]))
    assert image[..., :3].max() == 1.0
    assert 0.01 < np.mean(image[..., :3].min(axis=2) < 0.9) < 0.5
    assert_allclose(image.shape[1::-1], figure.get_size_inches() * 150, atol=1)
    assert ET.fromstring(first[1]).tag.endswith("svg")
    element = figure_svg(figure)  # drawn a third time
    assert element.startswith("<svg")
    assert first[1].decode().endswith(element)
    assert "<dc:date>" not in element


def test_a_figure_that_cannot_be_written_leaves_the_old_files(tmp_path, monkeypatch):
    png, svg = save_figure(likelihood_figure(), tmp_path / "a")
    before = png.read_bytes(), svg.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save_figure(likelihood_figure((0.0,)), tmp_path / "a")
    assert (png.read_bytes(), svg.read_bytes()) == before
    assert sorted(tmp_path.iterdir()) == [png, svg]


def test_markup_in_names_stays_text():
    name = "</svg><script>alert(1)</script>-->"
    element = figure_svg(curves_figure({name: constant_curve(1.0)}, xlabel=name, ylabel=""))
    assert "<script>" not in element
    assert element.count("</svg>") == 1
    ET.fromstring(element)


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "isbor\[plots\]"'):
        likelihood_figure()
