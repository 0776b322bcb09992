"""The two processes that compile: together they compile all that fits need, and nothing twice."""

import os
import subprocess
import sys

import pytest

CODE = """
import gc
from numba.core.dispatcher import Dispatcher
from isbor.search.compilation import {function}, ensure_compiled
ensure_compiled()
{function}()
functions = [f for f in gc.get_objects() if isinstance(f, Dispatcher)]
print(*(f.py_func.__module__ + "." + f.py_func.__name__ for f in functions if f.stats.{count}))
"""


def functions_with(count, function):
    code = CODE.format(count=count, function=function)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_fits_find_all_compiled_code_in_the_cache():
    assert functions_with("cache_misses", "compile_search") == set()


def test_nothing_is_compiled_by_both_processes():
    modes, proposals = (functions_with("cache_hits", name) for name in ("compile_modes", "compile_proposals"))
    assert modes
    assert proposals
    assert not modes & proposals


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        ("ISBOR().fit([[0.0], [1.0]], ['low', 'high'])", "whose order must be given"),
        ("ISBOR().fit(pandas.DataFrame({'a': [1, 'b']}), [0, 1])", "values of several types in column 'a'"),
    ],
)
def test_mistakes_are_found_before_anything_is_compiled(fit, message, tmp_path):
    code = f"import pandas\nfrom isbor import ISBOR\n{fit}"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}  # an empty cache
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert message in done.stderr
    assert "compiling" not in done.stderr
