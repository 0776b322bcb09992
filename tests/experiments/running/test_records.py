"""Records: valid JSON whatever they hold, old ones too, and what made them."""

import json
import math
import subprocess
from pathlib import Path

import isbor
from isbor.experiments import Record
from isbor.experiments.reporting.provenance import provenance
from isbor.experiments.running.machine import source_commit
from isbor.experiments.running.record_files import read_record_lines

KEPT = Path(__file__).parents[3] / "docs" / "results" / "benchmarks.jsonl"


def test_json_has_null_where_a_number_is_not_finite():
    record = Record(
        "t",
        "m",
        0,
        "ok",
        metrics={"mae": 0.5, "rps": math.nan},
        parameters={"gamma": math.inf, "grid": (1.0, -math.inf)},
        calibration=((1.0, math.nan, 0.0),),
        limits={"seconds": math.inf, "memory": 4.0},
    )

    def refuse(constant):
        raise AssertionError(constant)

    facts = json.loads(record.to_json(), parse_constant=refuse)
    assert facts["metrics"] == {"mae": 0.5, "rps": None}
    assert facts["parameters"] == {"gamma": None, "grid": [1.0, None]}
    assert Record.from_json(record.to_json()).allowance == "any time and 4 GB"


def test_records_without_a_commit_are_of_an_unknown_one():
    text = KEPT.read_text("utf-8")
    assert "NaN" not in text
    assert "Infinity" not in text
    lines = {entry["key"]: entry["record"] for entry in map(json.loads, text.splitlines())}
    records = read_record_lines(KEPT)
    assert len(records) == len(lines) >= 695
    old = [records[key] for key, facts in lines.items() if "commit" not in facts]
    assert old
    assert {(record.commit, record.threads) for record in old} == {("unknown", None)}
    code, *_, machine = provenance(old[:1])
    assert code == ("code", "isbor 0.1.0.dev0, unknown commit")
    assert machine == ("machine", "cpu AMD EPYC, cores 2, system Linux x86_64")


def test_the_commit_is_that_of_isbors_own_checkout(tmp_path, monkeypatch):
    source = tmp_path / "isbor" / "__init__.py"
    source.parent.mkdir()
    source.write_text("")
    monkeypatch.setattr(isbor, "__file__", str(source))

    def git(*words):
        names = ("-c", "user.name=a", "-c", "user.email=a@b")
        command = ["git", "-C", str(tmp_path), *names, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    find = source_commit.__wrapped__
    assert find() is None
    git("init")
    (tmp_path / "other").write_text("")
    git("add", "other")
    git("commit", "-m", "not isbor")
    assert find() is None
    git("add", "isbor")
    git("commit", "-m", "isbor")
    commit = git("rev-parse", "HEAD")
    assert find() == commit
    source.write_text("changed = True")
    assert find() == f"{commit}-dirty"
