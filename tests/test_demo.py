from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from isbor import demo
from isbor.datasets import make_saddle
from isbor.demo import run_demo


@pytest.fixture(scope="module")
def found():
    return run_demo(300, 200, output=None)


def test_numbers_are_sane(found):
    for outcome in (found.isbor, *found.peers):
        assert 0 <= outcome.mae < 4
        assert 0 < outcome.rps < 1
        assert 1 - outcome.mae <= outcome.accuracy <= 1 - outcome.mae / 4
    assert found.truth.rps is None
    assert found.noise_to_signal == pytest.approx(0.006, rel=0.1)  # 0.5 over the saddle's 250/3
    assert found.picture is None
    assert found.model.callback is None


def test_the_seed_decides_everything_but_the_seconds_and_nothing_is_printed(found, capfd):
    def numbers(result):
        outcomes = (result.isbor, *result.peers, result.truth)
        return [replace(outcome, seconds=None) for outcome in outcomes]

    assert numbers(run_demo(300, 200, output=None)) == numbers(found)
    assert numbers(run_demo(300, 200, seed=1, output=None)) != numbers(found)
    assert capfd.readouterr() == ("", "")


def test_labels_are_medians():
    proba = np.array([[0.5, 0.5, 0, 0, 0], [0.2, 0.2, 0.2, 0.2, 0.2], [0.4, 0.05, 0, 0, 0.55]])
    assert_array_equal(demo._median_labels(proba), [1, 3, 5])


@pytest.mark.parametrize(
    ("mae", "words"),
    [(0.0312, "0.0012 above that of"), (0.0299, "0.0001 below that of"), (0.03001, "the same as that of")],
)
def test_the_sentences_follow_from_the_numbers(found, mae, words):
    changed = replace(found, isbor=replace(found.isbor, mae=mae), truth=replace(found.truth, mae=0.03))
    size, error, noise = demo._findings(changed)
    assert size == f"ISBOR needs {found.model.n_relevance_} relevance vectors for 300 training rows."
    assert error == f"Its MAE is {words} the true latent score."
    assert f"as {found.model.sigma_:.4f}; the true value is {found.noise_to_signal:.4f}" in noise


@pytest.mark.parametrize(("ending", "start"), [(".pdf", b"%PDF"), (".svg", b"<?xml"), (".PNG", b"\x89PNG")])
def test_the_picture_has_the_format_of_its_ending_and_replaces_an_older_one(found, tmp_path, ending, start):
    output = tmp_path / f"picture{ending}"
    output.write_text("old")
    demo._draw(found, *make_saddle(50, random_state=0), output)
    assert output.read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_train": 99}, "There are 99 training rows; at least 100 are needed"),
        ({"n_test": 0}, "There are 0 test rows; at least 1 is needed"),
        ({"seed": -1}, "The seed is -1; a whole number from 0 to 4294967295"),
        ({"output": Path("picture")}, r"'picture': the name must end in one of .pdf, .png, .svg"),
        ({"output": Path("nowhere/picture.png")}, "There is no directory .*nowhere"),
        ({"output": Path("directory.png")}, "directory.png' is a directory"),
    ],
)
def test_bad_arguments_are_refused(changes, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("directory.png").mkdir()
    with pytest.raises((ValueError, OSError), match=message):
        run_demo(**{"n_train": 100, "n_test": 100, "output": None} | changes)
