"""Every public class has an example, which pytest runs, and says what to look at next."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[2] / "docs/reference"

PACKAGES = ["isbor", "isbor.datasets", "isbor.experiments", "isbor.export", "isbor.meta", "isbor.metrics"]
PACKAGES += ["isbor.plots", "isbor.sources"]


def public(kind):
    """Return the public classes or functions by their full names."""
    modules = {package: importlib.import_module(package) for package in PACKAGES}
    found = {
        f"{package}.{name}": getattr(module, name)
        for package, module in modules.items()
        for name in module.__all__
    }
    return {name: value for name, value in found.items() if kind(value)}


@pytest.mark.parametrize("name", public(inspect.isclass))
def test_a_class_has_an_example_and_says_what_to_look_at_next(name):
    docstring = inspect.getdoc(public(inspect.isclass)[name])
    assert "\nExamples\n--------\n>>> " in docstring
    assert "\nSee Also\n--------\n" in docstring


@pytest.mark.parametrize("name", public(inspect.isfunction))
def test_a_function_has_an_example(name):
    assert "\nExamples\n--------\n" in inspect.getdoc(public(inspect.isfunction)[name])


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_a_page_of_the_reference(package):
    page = REFERENCE / ("estimators.rst" if package == "isbor" else f"{package.removeprefix('isbor.')}.rst")
    modules = {name.removeprefix("isbor.") for name in PACKAGES}  # which have pages of their own
    listed = set(re.findall(r"^   (\w+)$", page.read_text("utf-8"), re.MULTILINE))
    assert listed == set(importlib.import_module(package).__all__) - modules
