"""Compiled code: it is compiled again when a function that it calls has changed, and needs no cache."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import isbor

CODE = """
import numpy as np
from isbor.inference.compiled_mode import penalty, laplace_terms
print(laplace_terms(np.eye(2), np.ones(2), np.ones(2))[0], sum(laplace_terms.stats.cache_hits.values()))
"""


PAIR = """
from typing import NamedTuple
from isbor._core.compiled import compiled

class Pair(NamedTuple):
    first: float
    second: float

@compiled
def total(pair):
    return pair.first + pair.second

if __name__ == "__main__":
    from isbor.compiled_pair import Pair, total
    print(total(Pair(1.0, 2.0)), sum(total.stats.cache_hits.values()))
"""


def run(folder, code=CODE):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    value, hits = done.stdout.split()
    return float(value), int(hits)


@pytest.fixture
def package(tmp_path):
    """Return the folder of a copy of the package."""
    folder = tmp_path / "isbor"
    shutil.copytree(Path(isbor.__file__).parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_a_new_version_may_rename_what_the_cache_names(tmp_path, package):
    module = package / "compiled_pair.py"
    module.write_text(PAIR, "utf-8")
    assert run(tmp_path, PAIR) == (3.0, 0)
    assert run(tmp_path, PAIR) == (3.0, 1)
    renamed = PAIR.replace("Pair", "Couple")
    module.write_text(renamed, "utf-8")
    assert run(tmp_path, renamed) == (3.0, 0)


def test_a_change_of_a_function_reaches_those_that_call_it(tmp_path, package):
    value, hits = run(tmp_path)
    assert hits == 0
    assert run(tmp_path) == (value, 1)
    called = package / "_core" / "compiled_linalg.py"
    called.write_text(
        called.read_text("utf-8").replace("    return 2.0 * total", "    return 4.0 * total"), "utf-8"
    )
    changed, hits = run(tmp_path)
    assert changed < value
    assert hits == 0


@pytest.mark.skipif(os.name != "posix", reason="needs folders that cannot be written")
def test_nothing_needs_to_be_written(tmp_path, monkeypatch):
    """Numba refuses to cache a function if there is no folder for it; ours are compiled without one then."""
    from numba.core import caching

    from isbor._core.compiled import cache_folder, compiled

    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])

    def double(x):
        return 2 * x

    function = compiled(double)
    assert function(3) == 6
    assert cache_folder(function) is None
