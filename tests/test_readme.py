"""Examples print what the documents say, links lead somewhere, and errors are quoted as they are raised."""

import ast
import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.parametrize("document", ["README.md", "docs/start.md", "docs/data.md", "docs/explaining.md"])
def test_examples_print_what_the_document_shows(document):
    text = (README.parent / document).read_text("utf-8")
    examples = re.findall(r"```python\n((?:(?!```).)*)```\n\n```\n(.*?)```", text, re.DOTALL)
    assert examples
    names = {}
    for code, output in examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, document, "exec"), names)
        assert printed.getvalue() == output


def test_errors_are_quoted_as_they_are_raised():
    trees = [ast.parse(path.read_text("utf-8")) for path in (README.parent / "src").rglob("*.py")]
    texts = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    raised = "\n".join(text for text in texts if isinstance(text, str))
    quoted = re.findall(
        r"^### `(.*)`$", (README.parent / "docs/questions.md").read_text("utf-8"), re.MULTILINE
    )
    assert quoted
    for part in (part for error in quoted for part in error.split("…")):
        assert part in raised, part


def test_relative_links_lead_somewhere():
    above = [README.with_name(name) for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    documents = [*above, *README.parent.glob("docs/*.md"), *README.parent.glob("docs/decisions/*.md")]
    for document in documents:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text("utf-8")):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"
