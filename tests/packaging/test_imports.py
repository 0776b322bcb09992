"""What is slow to import, or may not be installed, waits until it is needed."""

import pickle
import subprocess
import sys

import pytest

import isbor
from isbor.demo import LEAST_ROWS

SLOW = {"dask", "distributed", "duckdb", "matplotlib", "numba", "onnx", "pandas", "polars", "psutil"}
SLOW |= {"pyarrow", "rich", "typer"}
SCIKIT_LEARN_LOADS = {"pandas", "psutil", "pyarrow", "rich"}  # itself, if they are installed

WATCH = """
import builtins, sys
unwatched = builtins.__import__
def watched(name, globals=None, *others):
    if globals and (globals.get("__name__") or "").startswith("isbor"):
        print(name.partition(".")[0])
    return unwatched(name, globals, *others)
builtins.__import__ = watched
"""


def loaded_by(code: str) -> set[str]:
    """Return what our modules import, and all else that a fresh interpreter loads, for some code."""
    code = f"{WATCH}{code}\nprint(*sys.modules.keys() - {SCIKIT_LEARN_LOADS}, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


def command(*arguments: str) -> str:
    return f"from isbor.cli import main\ntry: main({list(arguments)})\nexcept SystemExit: pass"


@pytest.mark.parametrize(
    "module",
    ["isbor.estimators", "isbor.export", "isbor.metrics", "isbor.datasets", "isbor.plots", "isbor.sources"],
)
def test_the_package_loads_nothing_slow(module):
    loaded = loaded_by(f"import {module}")
    assert {module, "numpy"} <= loaded
    assert SLOW & loaded <= ({"numba"} if module in ("isbor.estimators", "isbor.export") else set())


COMMANDS = {"application", "demo", "exits", "models", "options", "studies"}
CLI = {"isbor", "isbor._version", "isbor.cli", *(f"isbor.cli.{name}" for name in COMMANDS)}


@pytest.mark.parametrize(
    ("code", "ours"),
    [
        ("import isbor; dir(isbor); isbor.__version__", {"isbor", "isbor._version"}),
        (command("--version"), CLI),
        (command("--help"), CLI),
        (command("demo", "--help"), CLI),
        (command("compare", "--help"), CLI),
        (command("fit", "--help"), CLI),
    ],
)
def test_what_computes_nothing_loads_no_numbers(code, ours):
    loaded = loaded_by(code)
    assert {name for name in loaded if name.partition(".")[0] == "isbor"} == ours
    assert {"numpy", "scipy", "sklearn", "joblib", "narwhals"} & loaded == set()
    assert SLOW & loaded <= {"rich", "typer"}


def test_the_command_loads_no_extra():
    loaded = loaded_by(command("demo", "--train", "5"))
    assert {"isbor.demo", "typer"} <= loaded
    assert SLOW & loaded <= {"numba", "rich", "typer"}


def test_the_help_says_how_many_rows_the_demo_needs():
    done = subprocess.run([sys.executable, "-c", command("demo", "--help")], capture_output=True, text=True)
    assert f"at least {LEAST_ROWS}." in done.stdout


# --- The public names, although they are imported when they are first used ---------------------------------


def test_each_public_name_is_found_when_it_is_first_used():
    code = """
import isbor
before = set(vars(isbor))
for name in isbor.__all__:
    assert name not in before and name in dir(isbor), name
    found = getattr(isbor, name)
    assert found.__name__.rpartition(".")[2] == name
    assert found is vars(isbor)[name], name  # the second time is an ordinary look-up
from isbor import plots  # a module that is no public name
assert isbor.plots is plots
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_star_imports_all_public_names():
    names = {}
    exec("from isbor import *", names)
    assert set(isbor.__all__) == names.keys() - {"__builtins__"}


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="module 'isbor' has no attribute 'ISBOOR'"):
        isbor.ISBOOR  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'ISBOOR'"):
        from isbor import ISBOOR  # noqa: F401


def test_a_pickle_is_read_by_an_interpreter_that_has_imported_nothing():
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer))"
    pickled = pickle.dumps(isbor.ISBOR(gamma=0.5))
    done = subprocess.run([sys.executable, "-c", code], input=pickled, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "ISBOR(gamma=0.5)"


def test_help_describes_the_public_names():
    done = subprocess.run(
        [sys.executable, "-c", "import isbor; help(isbor)"], capture_output=True, text=True, check=True
    )
    assert "class ISBOR(" in done.stdout
    assert "class OrderedLabelEncoder(" in done.stdout
