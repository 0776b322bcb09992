"""A warning names the line that the user wrote, however deep in the package it arises."""

import pytest
from sklearn.exceptions import ConvergenceWarning

import isbor

SCRIPT = """
from isbor import ISBOR
from isbor.datasets import make_saddle
def fit():
    X, y = make_saddle(60, random_state=0)
    return ISBOR(gamma=0.1, max_iter=1).fit(X, y)
fit()
"""


@pytest.mark.parametrize("folder", ["elsewhere", isbor.__path__[0] + "_extension"])
def test_the_line_that_called_fit(folder):
    """Also where the name of the package is the beginning of that of the caller's."""
    path = f"{folder}/script.py"
    with pytest.warns(ConvergenceWarning, match="raise max_iter") as caught:
        exec(compile(SCRIPT, path, "exec"), {})
    (warning,) = caught
    assert (warning.filename, warning.lineno) == (path, 6)
