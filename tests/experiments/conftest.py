"""Fixtures of the tests of experiments."""

import sys

import pytest


@pytest.fixture(params=["pandas", "polars"])
def library(request, monkeypatch):
    """Read tables with pandas, and as where only polars is installed."""
    if request.param == "polars":
        monkeypatch.setitem(sys.modules, "pandas", None)
    return request.param
