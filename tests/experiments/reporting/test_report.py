"""The report of made-up records: figures, files and page."""

import csv
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose, assert_array_equal

from isbor.datasets import make_saddle, saddle_labels
from isbor.experiments import (
    CATALOGUE,
    Experiment,
    Holdout,
    Model,
    Results,
    Saddle,
    Search,
    Task,
    write_report,
)
from isbor.experiments.reporting.figures.study import study_figures
from isbor.experiments.reporting.figures.style import model_style
from isbor.experiments.reporting.page import report_page
from isbor.experiments.reporting.tables.study import study_tables
from isbor.experiments.reporting.tables.table import to_csv, to_latex, to_markdown
from isbor.experiments.running.record_files import read_record_lines
from tests.experiments.samples import ERRORS, LATE, ONE, TWO, A, B, experiment, results_of

# --- Figures -----------------------------------------------------------------------------------------------


def lines(ax):
    """Return x and y of the lines of an axes, by colour of the model."""
    return {to_hex(line.get_color()): (line.get_xdata(), line.get_ydata()) for line in ax.get_lines()}


def colour(position):
    return model_style("", position).colour.lower()


def test_sizes_of_one_data_set_are_drawn_as_curves():
    sizes = (50, 100, 200)
    tasks = tuple(Task(f"s{n}", f"S {n}", Saddle(400, random_state=1), Holdout(n, 60)) for n in sizes)
    study = experiment(models=(A, B), tasks=tasks, splits=2, seed=5)
    errors = {("s50", "a"): [0.5, 0.7], ("s100", "a"): [0.3, 0.3], ("s200", "b"): [0.25]}
    figures = study_figures(results_of(study, errors))
    assert list(figures)[:2] == ["mae", "seconds"]
    (error,), (duration,) = (figures[name][0].axes for name in ("mae", "seconds"))
    found = lines(error)
    assert_array_equal(found[colour(0)][0], sizes)
    assert_allclose(found[colour(0)][1], [0.6, 0.3, np.nan])
    assert_allclose(found[colour(1)][1], [np.nan, np.nan, 0.25])
    assert_allclose(lines(duration)[colour(0)][1], [3.0, 3.0, np.nan])  # of search and fit
    assert error.get_yscale() == "log"
    # The error of the noise-free score on the same test rows.
    _, y, score = make_saddle(400, random_state=1, return_score=True)
    wrong = np.abs(y - saddle_labels(score))
    orders = [np.random.default_rng(5 + split).permutation(400) for split in (0, 1)]
    expected = [np.mean([wrong[order[n : n + 60]].mean() for order in orders]) for n in sizes]
    (reference,) = (line for line in error.get_lines() if line.get_linestyle() == "--")
    assert_allclose(reference.get_ydata(), expected)


def test_other_tasks_are_drawn_split_by_split():
    figures = study_figures(results_of(experiment(), ERRORS))
    assert list(figures) == ["mae", "critical-differences"]
    first, second = figures["mae"][0].axes
    assert [first.get_title(), second.get_title()] == ["Task 1", "Task 2"]
    assert_allclose(first.get_lines()[0].get_xdata(), [0.41, 0.43, 0.45])
    assert [text.get_text() for text in second.texts] == ["no result"]


def test_calibration_pools_the_bins_of_all_records():
    empty = (0.0, 0.0, 0.0)
    bins = {
        0: (empty, (4.0, 1.0, 2.0), *[empty] * 7, (2.0, 1.9, 1.0)),
        1: (empty, (6.0, 1.5, 1.0), *[empty] * 8),
    }
    errors = {("t1", "b"): [0.1, 0.1], ("t2", "b"): [0.1, 0.1], ("t1", "a"): [0.1]}
    results = results_of(
        experiment(splits=2), errors, calibration=lambda job: bins[job.split] if job.model is B else ()
    )
    figure, _ = study_figures(results)["calibration"]
    found = lines(figure.axes[0])
    assert colour(0) not in found  # A has no probabilities
    assert_allclose(found[colour(1)][0], [5.0 / 20, 3.8 / 4])
    assert_allclose(found[colour(1)][1], [6.0 / 20, 2.0 / 4])
    assert_allclose(lines(figure.axes[1])[colour(1)][1], [20, 4])
    (diagonal,) = (line for line in figure.axes[0].get_lines() if line.get_linestyle() == "--")
    assert_array_equal(diagonal.get_xydata(), [[0, 0], [1, 1]])


def test_only_the_papers_studies_have_the_likelihood():
    assert "likelihood" in study_figures(Results.of(replace(experiment(), name="synthetic"), {}))
    assert study_figures(Results.of(experiment(), {})) == {}


# --- Files -------------------------------------------------------------------------------------------------

NASTY = "<script>alert('x & \"y\"')</script>"


def nasty_results():
    """Texts of a user that mean something in HTML, wherever there are some."""
    model = Model("nasty", f"{NASTY} model", "a:<b>", {"p": "<i>"}, {"g": ("</td>", 1.5)})
    task = replace(ONE, title=f"{NASTY} task")
    study = Experiment("n", f"{NASTY} title", (model, A), (task, TWO), 3, about=f"{NASTY} about")
    errors = {
        ("t1", "nasty"): [0.1, 0.2, f"{NASTY} reason"],
        ("t1", "a"): [0.2, 0.1, 0.3],
        ("t2", "a"): [0.5],
        ("t2", "nasty"): [0.4],
    }
    machines = ({"cpu": "<one>"}, {"cpu": "two"}, {"cpu": "two"})
    return results_of(
        study,
        errors,
        vectors=lambda job: 3,
        parameters=lambda job: {"gamma": 0.1, "basis": "x;y"},
        calibration=lambda job: ((5.0, 1.0, 2.0),) * 10,
        machine=lambda job: machines[job.split],
        versions=lambda job: {"numpy": "2", "isbor": "0.1"},
        commit=lambda job: None,
        threads=lambda job: 2,
        finished=lambda job: f"2024-05-0{job.split + 1}T10:00:00+00:00",
        peak_memory=lambda job: 123.4,
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    directory = tmp_path_factory.mktemp("report")
    page = write_report(nasty_results(), directory, command=f"isbor reproduce '{NASTY}'")
    assert page == directory / "report.html"
    return directory


def test_tables_are_written_in_three_formats(report):
    files = {path.name: path.read_text("utf-8") for path in (report / "tables").iterdir()}
    tables = study_tables(nasty_results())
    assert files == {
        f"{name}{ending}": render(table)
        for name, table in tables.items()
        for ending, render in ((".md", to_markdown), (".csv", to_csv), (".tex", to_latex))
    }
    assert {"mae", "unfinished"} <= tables.keys()


def test_all_records_can_be_read_back(report):
    with (report / "records.csv").open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    results = nasty_results()
    assert read_record_lines(report / "records.jsonl") == results.by_key
    assert len(found) == len(results.all_records) == 8
    for line, record in zip(found, results.all_records, strict=True):
        expected = {
            **{"task": record.task, "model": record.model, "split": str(record.split)},
            **{"status": record.status, "reason": record.reason, "finished": record.finished},
            "total_seconds": f"{record.seconds['total']:.4f}",
        }
        if record.ok:
            expected |= {name: str(value) for name, value in record.metrics.items()}
            expected |= {"n_train": "100", "n_test": "50", "vectors": "3", "peak_megabytes": "123.4"}
            expected |= {"search_seconds": "2.0000", "fit_seconds": "1.0000", "predict_seconds": "0.5000"}
            expected |= {"isbor": "0.1", "commit": "", "threads": "2", "parameters": "gamma=0.1; basis=x;y"}
        else:
            unknown = ("n_train", "n_test", "mae", "accuracy", "vectors", "parameters", "peak_megabytes")
            expected |= dict.fromkeys(unknown, "")
        assert {name: line[name] for name in expected} == expected


def content(directory):
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def test_equal_results_give_equal_files_and_old_ones_go(report, tmp_path):
    study = experiment(models=(A, B), splits=2)
    late = {(task, model): [0.1, 0.1 if model == "a" else LATE] for task in ("t1", "t2") for model in "ab"}
    write_report(results_of(study, late), tmp_path, command="")
    assert {"tables/wilcoxon.md", "figures/critical-differences.svg"} <= content(tmp_path).keys()
    write_report(results_of(study.only(["a"]), late), tmp_path, command="")
    names = {path.stem for path in (tmp_path / "tables").iterdir()}
    assert names == {"mae", "seconds", "seconds-with-search"}
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"mae.png", "mae.svg"}
    (tmp_path / "tables" / "mine.md").write_text("something else")
    write_report(nasty_results(), tmp_path, command=f"isbor reproduce '{NASTY}'")
    found = content(tmp_path)
    assert found.pop("tables/mine.md") == b"something else"
    assert found == content(report)


# --- The page ----------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Collects the tags with their attributes, and the texts by their tags; tags must be closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "img", "br", "hr", "link", "input"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.texts.append((self.open[-1], data.strip()))

    def of(self, tag):
        return [text for where, text in self.texts if where == tag]


@pytest.fixture(scope="module")
def page(report):
    return Page((report / "report.html").read_text("utf-8"))


def test_the_page_fetches_nothing_and_has_the_figures(page):
    forbidden = {"script", "link", "iframe", "object", "embed", "base", "form", "i", "b"}
    assert not {tag for tag, _ in page.tags} & forbidden
    targets = [value for _, facts in page.tags for name, value in facts.items() if name in ("href", "src")]
    ids = {f"#{facts['id']}" for _, facts in page.tags if "id" in facts}
    assert all(target in ids or target.startswith("data:image/svg+xml;base64,") for target in targets)
    assert not re.search(r"url\(|@import|https?:", page.of("style")[0])
    captions = [facts["alt"] for tag, facts in page.tags if tag == "img"]
    assert len(captions) == 3  # errors, critical differences, calibration
    assert page.of("figcaption") == captions
    assert any(facts.get("class") == "number best" for _, facts in page.tags)


def test_the_page_says_what_was_run_when_and_where_and_shows_texts_literally(page):
    assert page.of("title") == page.of("h1") == [f"{NASTY} title"]
    assert f"{NASTY} about" in page.of("p")
    assert f"isbor reproduce '{NASTY}'" in page.of("pre")
    assert {f"{NASTY} model", f"{NASTY} task"} <= set(page.of("th"))
    assert {f"{NASTY} reason", "p = <i>", "g = {</td>, 1.5}"} <= set(page.of("td"))
    assert page.of("p")[0] == (
        "7 of 12 jobs finished, 1 failed, 4 were not run. Computed from 2024-05-01 to 2024-05-03."
    )
    # The record of the failure, made up as it is, knows no machine.
    assert {
        "isbor 0.1, not from a checkout (7 records)",
        "isbor of unknown version, unknown commit (1 records)",
        "numpy 2 (7 records)",
        "cpu <one>, 2 threads (4 records)",
    } <= set(page.of("dd"))
    assert any(
        "on one thread, with at most 9 s and 2.5 GB, search included." in text for text in page.of("p")
    )
    assert page.of("caption") == [table.title for table in study_tables(nasty_results()).values()]


def test_the_page_says_how_each_model_was_tuned():
    models = tuple(CATALOGUE[name] for name in ("isvor", "gpor", "linear", "trees"))
    study = experiment(models=models, tasks=(ONE,), splits=1, search=Search(3, rows_at_most=300))
    page = Page(report_page(results_of(study, {("t1", "isvor"): [0.1]}), {}, {}, "isbor"))
    assert any(
        "Grid search: 3-fold cross-validation of “mae” on at most 300 training rows; grid points more than 5 "
        "standard errors behind" in text
        for text in page.of("p")
    )
    tuning = page.of("td")[2::3]
    assert tuning[0].endswith("(searched by isbor:SVOR with probability = False)")
    assert tuning[1:] == [
        "kernel parameters by the evidence, within the fit",
        "none: defaults",
        "none: parameters as given, otherwise defaults",
    ]
    assert study.how_tuned() in page.of("p")
