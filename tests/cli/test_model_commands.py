"""Models on the command line: ``isbor fit``, ``predict``, ``evaluate``, ``info``, ``explain``, ``export``."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.parquet
import pytest

import isbor
from isbor import export, metrics, sources
from tests.cli.test_demo_command import assert_user_error, run

ORDER = ["poor", "fair", "good"]
HEADER = ["größe", "my colour", "weight, kg", "grade", "id"]


def rows_of_a_school(n, seed=100):
    """Return rows of text: a number, a category, a number, a grade that depends on them, an identifier."""
    random = np.random.default_rng(seed)
    rows = []
    for k in range(n):
        size, colour = random.normal(), random.choice(["red", "blue", ""])
        grade = ORDER[int(np.searchsorted([-0.5, 0.8], size + (colour == "red") + random.normal(0, 0.5)))]
        rows.append([f"{size:.3f}", str(colour), f"{random.normal(60, 9):.1f}", grade, f"{k:03d}"])
    return rows


def write(path, rows, *, header=HEADER, encoding="utf-8", newline="\n", delimiter=","):
    with path.open("w", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator=newline).writerows([header, *rows])
    return path


def read(text):
    return list(csv.DictReader(text.splitlines()))


@pytest.fixture(scope="module")
def school(tmp_path_factory):
    """Return a directory with tables and a model that the command has fitted, and what it printed."""
    directory = tmp_path_factory.mktemp("my schöol")
    write(directory / "train 1.csv", rows_of_a_school(120), encoding="utf-8-sig", newline="\r\n")
    write(directory / "new.csv", rows_of_a_school(40, seed=101))
    result = run(
        "fit", "train 1.csv", "--target", "grade", "--order", "poor,fair,good", "--ignore", "id",
        "--basis", "rbf", "--effort", "fast", "--cv", "2", "-o", "grädes.isbor", cwd=directory,
    )  # fmt: skip
    return directory, result


@pytest.fixture
def call(capsysbinary, monkeypatch):
    """Return what runs `isbor` in this process, which takes less time, and returns what a process would."""
    from isbor.cli import main

    def call(*arguments, cwd):
        monkeypatch.chdir(cwd)
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        out, err = (stream.decode() for stream in capsysbinary.readouterr())
        return subprocess.CompletedProcess(arguments, stop.value.code or 0, out, err)

    return call


def start(*arguments, cwd, **options):
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from isbor.cli import main; main()"
    )
    return subprocess.Popen([sys.executable, "-c", code, *arguments], cwd=cwd, **options)


# --- fit --------------------------------------------------------------------------------------------------


def test_fit_reports_what_the_model_is_like(school):
    directory, result = school
    assert result.returncode == 0, result.stderr
    counts = [sum(row[3] == grade for row in rows_of_a_school(120)) for grade in ORDER]
    for grade, count in zip(ORDER, counts, strict=True):
        assert any(line.split()[:2] == [grade, str(count)] for line in result.stdout.splitlines())
    assert "weight, kg" in result.stdout
    assert "2-fold cross-validation" in result.stdout
    assert "[ISBOR] fitted in" in result.stderr
    assert list(isbor.load(directory / "grädes.isbor").feature_names_in_) == HEADER[:3]


def test_the_model_is_that_of_the_library(school):
    directory, _ = school
    table = sources.open_table(directory / "train 1.csv", target="grade", ignore="id")
    ours = isbor.ISBOR(basis="rbf", effort="fast", classes=ORDER).fit(table)
    X = next(sources.open_table(directory / "new.csv", columns=HEADER[:3]).blocks()).X
    saved = isbor.load(directory / "grädes.isbor")
    np.testing.assert_allclose(saved.predict_proba(X), ours.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["new.csv", "--target", "grade"], "text, of unknown order: .*--order"),
        (["new.csv", "--target", "grad"], "'grad', which is not a column .*Did you mean 'grade'"),
        (["new.csv", "--target", "grade", "--order", "poor,good"], "'fair', which --order does not name"),
        (["new.csv", "--target", "grade", "--order", "poor"], "at least 2 different labels"),
        (["nowhere.csv", "--target", "grade"], "There is no file 'nowhere.csv'"),
        (["empty.csv", "--target", "grade"], "empty.csv is empty"),
        (["header.csv", "--target", "grade", "--order", "poor,fair,good"], "has no rows"),
        (["latin.csv", "--target", "grade"], "not text in UTF-8.*cp1252"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_fit_is_one_sentence_and_no_file(arguments, message, school, tmp_path, call):
    directory, _ = school
    (tmp_path / "empty.csv").write_bytes(b"")
    write(tmp_path / "header.csv", [])
    write(tmp_path / "new.csv", rows_of_a_school(40))
    write(tmp_path / "latin.csv", rows_of_a_school(3), encoding="cp1252")
    assert_user_error(call("fit", *arguments, "-o", "out.isbor", cwd=tmp_path), message)
    assert not list(tmp_path.glob("*.isbor"))


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("new.csv/model.isbor", "no folder .*new.csv"),
        (".", "is a folder"),
        (os.devnull, "not a regular file"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_the_fit(output, message, school, call):
    arguments = ["fit", "nowhere.csv", "--target", "grade", "-o", output]  # so no table was read
    assert_user_error(call(*arguments, cwd=school[0]), message)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
def test_an_interrupted_fit_leaves_one_line_and_no_file(tmp_path):
    write(tmp_path / "large.csv", rows_of_a_school(20_000))
    arguments = ["fit", "large.csv", "--target", "grade", "--order", "poor,fair,good", "-o", "out.isbor"]
    process = start(*arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stderr.readline()  # of the progress
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (130, "")
    assert err.endswith("isbor: Interrupted.\n")
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["large.csv"]


# --- predict ----------------------------------------------------------------------------------------------


def test_predictions_are_those_of_the_library_to_the_last_digit(school, call):
    directory, _ = school
    options = ["--proba", "--interval", "0.8", "--score", "--keep", "--loss", "zero_one"]
    result = call("predict", "grädes.isbor", "new.csv", *options, cwd=directory)
    assert (result.returncode, result.stderr) == (0, "")
    rows = read(result.stdout)
    model = isbor.load(directory / "grädes.isbor")
    X = next(sources.open_table(directory / "new.csv", columns=HEADER[:3]).blocks()).X
    assert [row["prediction"] for row in rows] == model.predict(X, loss="zero_one").tolist()
    assert [float(row["score"]) for row in rows] == model.latent(X).tolist()
    lower, upper = model.predict_proba_interval(X, 0.8)
    for k, grade in enumerate(ORDER):
        assert [float(row[f"P({grade})"]) for row in rows] == model.predict_proba(X)[:, k].tolist()
        assert [float(row[f"P({grade}) lower"]) for row in rows] == lower[:, k].tolist()
        assert [float(row[f"P({grade}) upper"]) for row in rows] == upper[:, k].tolist()
    # What is kept is as in the file: 007 and 1.50 too.
    assert [[row[name] for name in HEADER] for row in rows] == rows_of_a_school(40, seed=101)


def test_files_in_other_formats_give_the_same_predictions(school, tmp_path, call):
    directory, _ = school
    model = str(directory / "grädes.isbor")
    rows = rows_of_a_school(40, seed=101)
    german = [
        [size.replace(".", ","), colour, kg.replace(".", ","), *rest] for size, colour, kg, *rest in rows
    ]
    write(tmp_path / "semi.csv", german, delimiter=";", encoding="cp1252", newline="\r\n")
    swapped = [[*row[::-1]] for row in rows]
    write(tmp_path / "pipes.csv", swapped, header=HEADER[::-1], delimiter="|", encoding="utf-16")
    expected = call("predict", model, str(directory / "new.csv"), "--score", cwd=tmp_path).stdout
    for path, options in (("semi.csv", ["--encoding", "cp1252"]), ("pipes.csv", [])):
        assert call("predict", model, path, "--score", *options, cwd=tmp_path).stdout == expected
    arguments = ["predict", model, "semi.csv", "--encoding", "cp1252", "--score", "-o"]
    assert call(*arguments, "out.parquet", cwd=tmp_path).returncode == 0
    found = pa.parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [{name: str(cell) for name, cell in row.items()} for row in found] == read(expected)


def test_a_table_from_a_pipe_gives_the_same_predictions(school, call):
    directory, _ = school
    process = start(
        "predict", "grädes.isbor", "-", cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )  # fmt: skip
    out, _ = process.communicate((directory / "new.csv").read_bytes(), timeout=300)
    assert process.returncode == 0
    assert out.decode() == call("predict", "grädes.isbor", "new.csv", cwd=directory).stdout


def test_missing_columns_are_listed_and_what_was_there_stays(school, tmp_path, call):
    directory, _ = school
    write(tmp_path / "other.csv", [["1", "2"]], header=["size", "weight, kg"])
    (tmp_path / "out.csv").write_text("precious")
    result = call("predict", str(directory / "grädes.isbor"), "other.csv", "-o", "out.csv", cwd=tmp_path)
    assert_user_error(result, "lacks 2 of the 3 columns .*'größe', 'my colour'")
    assert (tmp_path / "out.csv").read_text() == "precious"
    assert {path.name for path in tmp_path.iterdir()} == {"other.csv", "out.csv"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "--interval", "90"], "--interval is 90; a number between 0 and 1 is needed"),
        (["evaluate", "--target", "Grade"], "--target names 'Grade', .*Did you mean 'grade'"),
    ],
)
def test_a_mistake_in_an_option_is_said_of_the_option(arguments, message, school, call):
    command, *options = arguments
    assert_user_error(call(command, "grädes.isbor", "new.csv", *options, cwd=school[0]), message)


def test_a_table_is_warned_of_once(tmp_path, call):
    rows = [[f"row {row[0]}", *row[1:]] for row in rows_of_a_school(40)]
    write(tmp_path / "train.csv", rows)
    options = "--order", "poor,fair,good", "--basis", "rbf", "--effort", "fast", "--cv", "2"
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = call("fit", "train.csv", "--target", "grade", *options, "-o", "g.isbor", cwd=tmp_path)
    assert result.returncode == 0
    assert result.stderr.count("different categories") == 1


def test_an_error_in_a_later_block_leaves_the_output_as_it_was(school, tmp_path, call):
    directory, _ = school
    rows = [[*row[:3], "", "0"] for row in rows_of_a_school(200)] * 400
    rows[-1] = ["inf", *rows[-1][1:]]
    write(tmp_path / "long.csv", rows)
    result = call("predict", str(directory / "grädes.isbor"), "long.csv", "-o", "out.csv", cwd=tmp_path)
    assert_user_error(result, "rows 65536 to 79999")
    assert {path.name for path in tmp_path.iterdir()} == {"long.csv"}


def test_a_reader_that_goes_away_ends_a_prediction_quietly(school, tmp_path):
    directory, _ = school
    write(tmp_path / "long.csv", rows_of_a_school(200) * 400)
    arguments = ["predict", str(directory / "grädes.isbor"), "long.csv", "--keep"]
    with start(*arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=300) == 141
        assert process.stderr.read() == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_one_sentence(school):
    directory, _ = school
    with open("/dev/full", "wb") as full:
        process = start(
            "predict", "grädes.isbor", "new.csv", cwd=directory, stdout=full, stderr=subprocess.PIPE
        )
        _, err = process.communicate(timeout=300)
    assert process.returncode == 2
    assert err.startswith(b"isbor: No space is left on the disk") and err.count(b"\n") == 1


@pytest.fixture
def small_disk(tmp_path):
    """Return a folder on a disk of 256 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only an administrator of Linux can mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_fills_up_keeps_what_was_there(school, tmp_path, small_disk, call):
    directory, _ = school
    write(tmp_path / "long.csv", rows_of_a_school(10_000))
    (small_disk / "out.csv").write_text("precious")
    for output in ("out.csv", "out.parquet"):
        arguments = ["predict", str(directory / "grädes.isbor"), "long.csv", "--keep", "--proba", "-o"]
        result = call(*arguments, str(small_disk / output), cwd=tmp_path)
        assert_user_error(result, "No space is left on the disk")
    assert [(path.name, path.read_text()) for path in small_disk.iterdir()] == [("out.csv", "precious")]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
def test_an_interrupted_prediction_keeps_what_was_there(school, tmp_path):
    directory, _ = school
    write(tmp_path / "long.csv", rows_of_a_school(1000) * 400)
    (tmp_path / "out.csv").write_text("precious")
    arguments = ["predict", str(directory / "grädes.isbor"), "long.csv", "--interval", "0.9", "-o", "out.csv"]
    process = start(*arguments, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while not any(path.name.startswith("unfinished-") for path in tmp_path.iterdir()):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (130, "isbor: Interrupted.\n")
    assert {path.name for path in tmp_path.iterdir()} == {"long.csv", "out.csv"}
    assert (tmp_path / "out.csv").read_text() == "precious"


def test_a_file_that_is_no_model_is_refused(school, call):
    assert_user_error(call("predict", "new.csv", "new.csv", cwd=school[0]), "no model file of isbor")


# --- evaluate, info, explain ------------------------------------------------------------------------------


def test_evaluation_agrees_with_the_metrics(school, call):
    directory, _ = school
    result = call("evaluate", "grädes.isbor", "new.csv", "--target", "grade", "--json", cwd=directory)
    found = json.loads(result.stdout)
    model = isbor.load(directory / "grädes.isbor")
    block = next(sources.open_table(directory / "new.csv", target="grade", ignore="id").blocks())
    y, p = block.y.to_pylist(), model.predict_proba(block.X)
    predicted = model.predict(block.X).tolist()
    assert found["model"]["mae"] == pytest.approx(metrics.mean_absolute_error(y, predicted, labels=ORDER))
    assert found["model"]["rps"] == pytest.approx(metrics.ranked_probability_score(y, p, labels=ORDER))
    assert found["model"]["log_loss"] == pytest.approx(metrics.log_loss(y, p, labels=ORDER))
    pairs = list(zip(y, predicted, strict=True))
    assert found["confusion"] == [[pairs.count((true, said)) for said in ORDER] for true in ORDER]
    median = sorted(y, key=ORDER.index)[len(y) // 2 - 1]
    assert found["baseline"]["prediction"] == median
    assert found["baseline"]["accuracy"] == pytest.approx(y.count(median) / len(y))
    shares = np.array([y.count(grade) for grade in ORDER]) / len(y)
    assert found["baseline"]["log_loss"] == pytest.approx(-(shares @ np.log(shares)))
    text = call("evaluate", "grädes.isbor", "new.csv", "--target", "grade", cwd=directory).stdout
    assert f"{found['model']['mae']:.4f}" in text


def test_a_label_that_is_no_class_cannot_be_evaluated(school, tmp_path, call):
    rows = [[*row[:3], "superb", "1"] for row in rows_of_a_school(3)]
    write(tmp_path / "new.csv", rows)
    model = str(school[0] / "grädes.isbor")
    result = call("evaluate", model, "new.csv", "--target", "grade", cwd=tmp_path)
    assert_user_error(result, "'superb'; the classes are poor, fair, good")


def test_information_is_that_of_the_model(school, call):
    found = json.loads(call("info", "grädes.isbor", "--json", cwd=school[0]).stdout)
    model = isbor.load(school[0] / "grädes.isbor")
    assert found["classes"] == ORDER
    assert found["thresholds"] == model.thresholds_.tolist()
    assert list(found["relevance"].values()) == model.feature_relevance_.tolist()
    assert found["parameters"] == {"basis": "rbf", "effort": "fast"}
    assert (found["size"], found["parts"]) == (model.n_relevance_, "basis functions")
    assert found["total_weight"] == 120
    text = call("info", "grädes.isbor", cwd=school[0]).stdout
    assert text.startswith("ISBOR(basis='rbf', effort='fast'), 3 features; of categories: my colour (2)\n")
    assert found["n_categories"] == [None, 2, None]


def test_explanations_are_those_of_the_row(school, call):
    directory, _ = school
    arguments = ["explain", "grädes.isbor", "new.csv", "--row", "7"]
    (found,) = json.loads(call(*arguments, "--json", cwd=directory).stdout)["rows"]
    X = next(sources.open_table(directory / "new.csv", columns=HEADER[:3]).blocks()).X
    ours = isbor.load(directory / "grädes.isbor").explain(X.slice(7, 1))
    assert found["row"] == 7
    assert list(found["contributions"].values()) == ours.contributions[0].tolist()
    assert call(*arguments, cwd=directory).stdout.startswith("Row 7: class ")
    assert_user_error(call(*arguments[:-1], "40", cwd=directory), "no row 40; the table has 40 rows")


def test_exported_files_are_those_of_the_library(school, tmp_path, call):
    model = school[0] / "grädes.isbor"
    files = "--html", "page.html", "--json", "model.json"
    result = call("export", str(model), *files, "--no-bands", cwd=tmp_path)
    assert re.fullmatch(r"page\.html: \d+ kB\nmodel\.json: \d+ kB\n", result.stderr)
    export.to_html(isbor.load(model), tmp_path / "ours.html", bands=False)
    export.to_json(isbor.load(model), tmp_path / "ours.json", bands=False)
    assert (tmp_path / "page.html").read_bytes() == (tmp_path / "ours.html").read_bytes()
    assert (tmp_path / "model.json").read_bytes() == (tmp_path / "ours.json").read_bytes()
    message = "Give --html page.html, --json model.json, or --onnx model.onnx"
    assert_user_error(call("export", str(model), cwd=tmp_path), message)


def test_an_exported_graph_predicts_as_the_command_does(school, call):
    directory, _ = school
    arguments = ["grädes.isbor", "--onnx", "grädes.onnx", "--onnx-dtype", "float64"]
    result = run("export", *arguments, cwd=directory)
    assert result.returncode == 0, result.stderr
    session = onnxruntime.InferenceSession(str(directory / "grädes.onnx"))
    cells = read((directory / "new.csv").read_text("utf-8"))  # an empty cell is missing here and there
    types = {port.name: object if port.type == "tensor(string)" else float for port in session.get_inputs()}
    rows = {name: np.array([[row[name]] for row in cells]).astype(kind) for name, kind in types.items()}
    label, probabilities = session.run(None, rows)
    expected = read(call("predict", "grädes.isbor", "new.csv", "--proba", cwd=directory).stdout)
    assert label.tolist() == [row["prediction"] for row in expected]
    columns = [[float(row[f"P({grade})"]) for row in expected] for grade in ORDER]
    np.testing.assert_allclose(probabilities.T, columns, rtol=0, atol=1e-10)


@pytest.mark.slow
def test_a_million_rows_are_predicted_in_bounded_memory(school, tmp_path):
    directory, _ = school
    text = write(tmp_path / "new.csv", rows_of_a_school(1000)).read_text("utf-8")
    header, rows = text.split("\n", 1)
    with (tmp_path / "long.csv").open("w", encoding="utf-8") as file:
        file.write(f"{header}\n")
        for _ in range(1000):
            file.write(rows)
    code = (
        "import resource, sys\n"
        "from isbor.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peaks = []
    for name in ("new.csv", "long.csv"):
        arguments = ["predict", str(directory / "grädes.isbor"), name, "--proba", "-o", f"out-{name}"]
        done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=tmp_path, stdout=subprocess.PIPE)
        assert done.returncode == 0
        peaks.append(int(done.stdout))  # kilobytes
    with (tmp_path / "out-long.csv").open() as file:
        assert sum(1 for _ in file) == 1_000_001
    assert peaks[1] - peaks[0] < 400_000
