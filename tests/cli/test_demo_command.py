"""The command line as users run it: in a process of its own."""

import re
import signal
import subprocess
import sys

import matplotlib.image
import numpy as np
import pytest

import isbor

SMALL = ["--train", "400", "--test", "400"]
SMALLEST = ["--train", "100", "--test", "100"]  # where what is learned does not matter


def run(*arguments, cwd, prelude="pass"):
    """Run `isbor` with these arguments, after some Python code if given."""
    return subprocess.run(
        [sys.executable, "-c", f"{prelude}; from isbor.cli import main; main()", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )


def mae_of(model, text):
    """Return the number in the first column of a model's line of the table."""
    return float(re.search(rf"^\W*{model}\W+(\d\.\d{{4}})", text, flags=re.MULTILINE)[1])


def assert_user_error(result, message):
    assert result.returncode == 2
    assert result.stdout == ""
    assert re.fullmatch(rf"isbor: .*{message}.*\n", result.stderr), result.stderr


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    directory = tmp_path_factory.mktemp("demo")
    return directory, run("demo", "--test", "400", cwd=directory)


# --- demo -------------------------------------------------------------------------------------------------


def test_demo_prints_errors_in_the_order_that_a_saddle_must_give(demo):
    directory, result = demo
    assert result.returncode == 0
    assert result.stderr == ""
    models = ("True latent score", "ISBOR", "Gradient-boosted trees", "Linear ordered probit")
    truth, ours, trees, linear = (mae_of(model, result.stdout) for model in models)
    assert 0 <= truth < 0.05
    assert abs(ours - truth) < 0.05
    assert ours < trees < linear < 2
    assert 0 < int(re.search(r"needs (\d+) relevance vectors for 10,000 training", result.stdout)[1]) < 40
    assert "\x1b" not in result.stdout
    assert max(len(line) for line in result.stdout.splitlines() if str(directory) not in line) <= 80


def test_demo_saves_a_picture_and_says_where(demo):
    directory, result = demo
    picture = directory / "isbor-demo.png"
    assert f"Picture: {picture}\n" in result.stdout
    pixels = matplotlib.image.imread(picture)[..., :3]
    assert min(pixels.shape[:2]) > 600
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 1000


def test_the_snippet_of_demo_runs(demo):
    _, result = demo
    lines = [line.strip() for line in result.stdout.splitlines() if line.startswith("    ")]
    code = "\n".join(line for line in lines if "ISBOR" in line)
    X, y = isbor.datasets.make_saddle(100, random_state=0)
    exec(code, {"X": X, "y": y, "X_new": X})
    assert code.startswith("from isbor import ISBOR\n")


def test_demo_without_a_picture_needs_no_place_for_one_and_no_unicode(tmp_path):
    prelude = "import sys; sys.stdout.reconfigure(encoding='ascii')"
    output = ["--no-plot", "--output", "nowhere/picture.png"]
    result = run("demo", *SMALLEST, *output, cwd=tmp_path, prelude=prelude)
    assert result.returncode == 0
    assert "True latent score" in result.stdout
    assert "Picture" not in result.stdout
    assert not list(tmp_path.iterdir())


def test_demo_without_matplotlib_says_how_to_get_the_picture(tmp_path):
    prelude = "import sys; sys.modules['matplotlib'] = None"
    result = run("demo", *SMALLEST, cwd=tmp_path, prelude=prelude)
    assert result.returncode == 0
    assert result.stderr == ""
    assert 0 <= mae_of("ISBOR", result.stdout) < 0.1
    assert 'pip install "isbor[plots]"' in result.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "nowhere/picture.png"], "There is no directory .*nowhere"),
        (["--train", "5"], "5 training rows; at least 100 are needed"),
        (["--test", "many"], "--test.*integer"),
        (["--bogus"], "No such option"),
    ],
)
def test_demo_refuses_before_it_starts(arguments, message, tmp_path):
    assert_user_error(run("demo", *arguments, cwd=tmp_path), message)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
def test_interrupting_demo_leaves_one_line_and_no_picture(tmp_path):
    # A background shell may have told its children to ignore the signal.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from isbor.cli import main; main(['demo', '--train', '200000'])"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "encoding": "utf-8"}
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, **pipes) as process:
        process.stdout.readline()  # written when the work begins
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == "isbor: Interrupted.\n"
    assert not list(tmp_path.iterdir())


# --- isbor itself -----------------------------------------------------------------------------------------


def test_version_help_and_unknown_commands(tmp_path):
    result = run("--version", cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, f"isbor {isbor.__version__}\n", "")
    result = run(cwd=tmp_path)
    assert result.returncode == 0
    assert "Usage: isbor" in result.stdout
    assert "demo" in result.stdout
    assert_user_error(run("dmeo", cwd=tmp_path), "No such command 'dmeo'")
