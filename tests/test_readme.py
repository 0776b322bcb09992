"""Examples print what the documents say, and links lead somewhere."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


DOCS = README.parent / "docs"


@pytest.mark.parametrize(
    "document", [README, DOCS / "explaining.md", DOCS / "export.md"], ids=lambda path: path.name
)
def test_the_example_prints_what_the_document_shows(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, output = re.search(
        r"```python\n((?:(?!```).)*)```\n\n```\n(.*?)```", document.read_text("utf-8"), re.DOTALL
    ).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(document), "exec"), {})
    assert printed.getvalue() == output


def test_relative_links_lead_somewhere():
    documents = [README, README.with_name("CONTRIBUTING.md"), *README.parent.glob("docs/**/*.md")]
    for document in documents:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text("utf-8")):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"
