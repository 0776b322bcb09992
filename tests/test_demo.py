import io
import os
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from rich.console import Console

from isbor import demo
from isbor.datasets import make_saddle
from isbor.demo import check_request, run_demo


@pytest.fixture(scope="module")
def found():
    return run_demo(300, 200, output=None)


def test_numbers_are_sane(found):
    for outcome in (found.isbor, *found.peers):
        assert 0 < outcome.mae < 4
        assert 0 < outcome.rps < 1
        assert 0 < outcome.seconds
        assert 1 - outcome.mae <= outcome.accuracy <= 1 - outcome.mae / 4
    assert found.isbor.mae < found.peers[0].mae < found.peers[1].mae  # true of a saddle by a wide margin
    assert found.truth.mae < 0.05
    assert found.truth.rps is None
    assert found.noise_to_signal == pytest.approx(0.006, rel=0.1)  # 0.5 over the saddle's 250/3
    assert found.picture is None


def test_the_seed_decides_everything_but_the_seconds(found):
    def numbers(result):
        outcomes = (result.isbor, *result.peers, result.truth)
        return [replace(outcome, seconds=None) for outcome in outcomes]

    assert numbers(run_demo(300, 200, output=None)) == numbers(found)
    assert numbers(run_demo(300, 200, seed=1, output=None)) != numbers(found)


def test_it_is_silent_without_a_console(capfd):
    run_demo(100, 1, output=None)
    assert capfd.readouterr() == ("", "")


def test_the_returned_model_has_no_callback(found):
    assert found.model.callback is None


def test_isbor_predicts_the_median_of_its_probabilities(found):
    X, _ = make_saddle(500, random_state=3)
    proba = found.model.predict_proba(X)
    # Lapses may move the median where it is a toss-up.
    tossed = np.abs(proba.cumsum(axis=1) - 0.5).min(axis=1) <= 1 / 300
    assert tossed.mean() < 0.02
    assert_array_equal(demo._median_labels(proba)[~tossed], found.model.predict(X)[~tossed])


def test_median_labels():
    proba = np.array([[0.5, 0.5, 0, 0, 0], [0.2, 0.2, 0.2, 0.2, 0.2], [0.4, 0.05, 0, 0, 0.55]])
    assert_array_equal(demo._median_labels(proba), [1, 3, 5])


@pytest.mark.parametrize(
    ("mae", "words"),
    [
        (0.0312, "0.0012 above that of the true score, 0.0300"),
        (0.0299, "0.0001 below that of the true score"),
        (0.03001, "the same as that of the true score"),
    ],
)
def test_the_sentences_follow_from_the_numbers(found, mae, words):
    changed = replace(found, isbor=replace(found.isbor, mae=mae), truth=replace(found.truth, mae=0.03))
    kept, error, noise = demo._findings(changed)
    assert kept == f"ISBOR kept {found.model.n_relevance_} of the 300 rows."
    assert words in error
    assert f"{found.model.sigma_:.4f}" in noise


@pytest.mark.parametrize("ending", [".png", ".pdf", ".svg", ".PNG"])
def test_the_picture_is_written_in_the_format_of_its_ending(found, tmp_path, ending):
    X, y = make_saddle(50, random_state=0)
    output = tmp_path / f"picture{ending}"
    demo._draw(found, X, y, output)
    start = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}[ending.lower()]
    assert output.read_bytes().startswith(start)


def test_the_picture_replaces_an_older_one(found, tmp_path):
    X, y = make_saddle(50, random_state=0)
    output = tmp_path / "picture.png"
    output.write_text("old")
    demo._draw(found, X, y, output)
    assert len(np.unique(matplotlib.image.imread(output)[..., :3].reshape(-1, 3), axis=0)) > 100


def test_without_matplotlib_all_but_the_picture_is_there(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = io.StringIO()
    result = run_demo(100, 50, output=tmp_path / "picture.png", console=Console(file=text, width=80))
    assert result.picture is None
    assert not (tmp_path / "picture.png").exists()
    assert "True score" in text.getvalue()
    assert 'pip install "isbor[plots]"' in text.getvalue()
    assert "ISBOR().fit(X, y)" in text.getvalue()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_train": 99}, "There are 99 rows to fit to; at least 100 are needed"),
        ({"n_test": 0}, "There are 0 rows to test on; at least 1 is needed"),
        ({"seed": -1}, "The seed is -1; a whole number from 0 to 4294967295"),
        ({"seed": 2**32}, "The seed is 4294967296"),
        ({"output": Path("picture.bmp")}, r"'picture.bmp': the name must end in one of .pdf, .png, .svg"),
        ({"output": Path("picture")}, r"'picture': the name must end in one of"),
    ],
)
def test_requests_that_cannot_be_met(changes, message):
    request = {"n_train": 100, "n_test": 100, "seed": 0, "output": None} | changes
    with pytest.raises(ValueError, match=message):
        check_request(**request)
    with pytest.raises(ValueError, match=message):
        run_demo(**request)


def test_places_where_no_picture_can_be_written(tmp_path, monkeypatch):
    def check(output):
        check_request(100, 100, seed=0, output=output)

    with pytest.raises(FileNotFoundError, match=r"There is no directory .*nowhere"):
        check(tmp_path / "nowhere" / "picture.png")
    (tmp_path / "directory.png").mkdir()
    with pytest.raises(IsADirectoryError, match=r"directory.png' is a directory"):
        check(tmp_path / "directory.png")
    check(tmp_path / "picture.png")
    # Not by chmod: root may write everywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match=r"cannot be written to .*picture.png"):
        check(tmp_path / "picture.png")
