"""What is slow to import, or may not be installed, waits until it is needed."""

import subprocess
import sys

import pytest

SLOW = {"matplotlib", "numba", "pandas", "polars", "psutil", "rich", "typer"}
SCIKIT_LEARN_LOADS = {"pandas", "psutil", "rich"}  # itself, if they are installed

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


@pytest.mark.parametrize("module", ["isbor", "isbor.metrics", "isbor.datasets", "isbor.plots"])
def test_the_package_loads_nothing_slow(module):
    loaded = loaded_by(f"import {module}")
    assert {module, "numpy"} <= loaded
    assert SLOW & loaded == set()


def test_the_command_loads_no_extra():
    loaded = loaded_by("from isbor.cli import main\ntry: main(['--version'])\nexcept SystemExit: pass")
    assert {"isbor.cli", "typer"} <= loaded
    assert SLOW & loaded <= {"rich", "typer"}
