"""What pyproject.toml and CITATION.cff say is so."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from isbor import __version__
from tests.packaging.oldest import requirements

ROOT = Path(__file__).parents[2]
MODULES = {
    "scikit-learn": "sklearn",
    "interpret-core": "interpret",
}  # of packages that are not called as their module is


def imports(folder: str) -> Iterator[tuple[Path, str]]:
    """Yield every module, and every name of one, that the files of a folder import."""
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((path, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((path, f"{node.module}.{alias.name}") for alias in node.names)


def promised(*extras: str) -> set[str]:
    return {MODULES.get(name, name) for name in requirements(*extras)}


@pytest.mark.parametrize(
    ("folder", "extras"), [("src", ("dask", "experiments", "files", "onnx")), ("benchmarks", ("bench",))]
)
def test_what_is_imported_is_promised(folder, extras):
    ours = {"isbor", "benchmarks", "tests", *sys.stdlib_module_names}
    imported = {name.split(".")[0] for _, name in imports(folder)}
    assert imported - ours <= promised(*extras)


def test_what_is_promised_is_imported():
    imported = {name.split(".")[0] for folder in ("src", "benchmarks") for _, name in imports(folder)}
    assert promised("bench") <= imported


def test_no_private_name_of_scikit_learn_is_imported():
    private = [
        (path.name, name)
        for path, name in imports("src")
        if name.startswith("sklearn") and any(part.startswith("_") for part in name.split("."))
    ]
    assert not private


def test_the_citation_names_this_version():
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
