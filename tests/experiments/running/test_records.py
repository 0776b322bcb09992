"""Records: valid JSON whatever they hold, old ones too, and what made them."""

import json
import math
import subprocess

from hypothesis import given
from hypothesis import strategies as st

import isbor
from isbor.experiments import Record
from isbor.experiments.reporting.provenance import provenance
from isbor.experiments.running.machine import source_commit

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.builds(
        Record,
        task=st.text(),
        model=st.text(),
        split=st.integers(0, 99),
        status=st.sampled_from(["ok", "timeout", "failed"]),
        reason=st.text(),
        metrics=st.dictionaries(st.text(), FINITE),
        vectors=st.none() | st.integers(0, 10**6),
        parameters=st.dictionaries(st.text(), st.none() | st.booleans() | FINITE | st.text()),
        calibration=st.lists(st.tuples(FINITE, FINITE, FINITE)).map(tuple),
        seconds=st.dictionaries(st.sampled_from(["search", "fit", "total"]), FINITE),
        commit=st.none() | st.text(),
        threads=st.none() | st.integers(1, 9),
    )
)
def test_a_record_reads_back_as_it_was(record):
    assert Record.from_json(record.to_json()) == record


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
    assert Record.from_json(record.to_json()).limits_in_words == "any time and 4 GB"


def test_older_records_load_as_made_by_an_unknown_commit():
    facts = json.loads(Record("t", "m", 0, "ok", versions={"isbor": "0.1"}, machine={"cpu": "Z80"}).to_json())
    del facts["commit"], facts["threads"]
    record = Record.from_json(json.dumps(facts))
    assert (record.commit, record.threads) == ("unknown", None)
    assert provenance([record]) == [
        ("code", "isbor 0.1, unknown commit"),
        ("versions", "unknown"),
        ("machine", "cpu Z80"),
    ]


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
