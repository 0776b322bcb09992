"""The documents' tables: they are what the committed records give, and the records are of known studies."""

import json

import pytest

from benchmarks import studies
from benchmarks.scoreboard import SCOREBOARD
from benchmarks.tables import DOCUMENTS, RECORDS, TABLES, known_records, rewritten
from isbor.experiments import STUDIES, Record, load_study


@pytest.fixture(scope="module")
def known():
    return known_records()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_documents_have_the_tables_that_the_records_give(document, known):
    text = document.read_text("utf-8")
    assert "<!-- table: " in text
    assert rewritten(text, known) == text, "Run `make tables`."


def test_every_record_is_of_a_study(known):
    """A change of a study that makes other jobs of it leaves its records behind."""
    all_studies = [load_study(name) for name in STUDIES] + [
        getattr(studies, name) for name in studies.__all__
    ]
    all_studies.append(SCOREBOARD)
    assert known.keys() <= {job.key for study in all_studies for job in study.jobs()}


def test_records_are_json_without_nan():
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON.")

    for line in RECORDS.read_text("utf-8").splitlines():
        json.loads(line, parse_constant=refuse)


def test_a_study_of_the_paper_counts_in_the_comparison(known):
    """The same fit is run once: the comparison has no ISBOR of its own on the paper's splits."""
    jobs = [job for job in studies.PAPER.jobs() if job.model.name in ("isbor", "isbor-evidence")]
    assert len(jobs) == 280
    assert all(job.key in known for job in jobs)


def test_a_table_is_printed_between_its_marks():
    sets = {task.name: k for k, task in enumerate(studies.PAPER.tasks)}
    errors = {"isbor": 0.25, "trees": 0.5}
    known = {
        job.key: Record(
            *(job.task.name, job.model.name, job.split, "ok"),
            n_train=100,
            n_test=10,
            vectors=7 if job.model.name == "isbor" else None,
            metrics={"mae": errors[job.model.name] + job.split % 2, "log_loss": 1.0 + sets[job.task.name]},
            versions={"isbor": "1.2"},
            commit="abc",
        )
        for job in studies.PAPER.jobs()
        if job.model.name in errors and job.split < 6
    }
    text = "before\n<!-- table: headline -->\nold\n<!-- end -->\nafter <!-- end -->\n"
    found = rewritten(text, known)
    start, _, rest = found.partition("<!-- table: headline -->\n")
    table, _, end = rest.partition("<!-- end -->")
    assert (start, end) == ("before\n", "\nafter <!-- end -->\n")
    lines = [line.replace("\\[", "[").split("|") for line in table.splitlines() if line.startswith("|")]
    cells = {line[1].strip(): [cell.strip() for cell in line[2:4]] for line in lines}
    assert cells["ISBOR()"] == ["**0.750 (1.000) [6]**", "**0.750 (2.000) [6]**"]
    assert cells["… functions"] == ["7", "7"]
    assert cells["boosted trees"] == ["*1.000 (1.000) [6]*", "*1.000 (2.000) [6]*"]
    assert cells["LogisticAT"] == ["–", "–"]
    assert "isbor 1.2, commit abc" in table
    assert rewritten(found, known) == found
    assert "Not yet rerun with the present version: `isbor reproduce" in rewritten(text, {})


def test_an_unknown_table_is_named():
    with pytest.raises(ValueError, match="no table 'nonsense'; there are headline"):
        rewritten("<!-- table: nonsense -->\n<!-- end -->", {})
    assert len(TABLES) > 10
