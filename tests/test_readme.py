"""Examples print what the documents say, links lead somewhere, and errors are quoted as they are raised."""

import ast
import contextlib
import io
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


BEGIN_ANEW = ["start", "data", "explaining", "export"]
GO_ON_WITH_THE_FIRST_EXAMPLE = ["labels-and-decisions", "prediction-sets", "uncertainty"]


def examples(document: str) -> list[tuple[str, str]]:
    """Return code and output of all examples that show what they print."""
    text = (README.parent / document).read_text("utf-8")
    found = re.findall(r"```python\n((?:(?!```).)*)```\n\n```\n(.*?)```", text, re.DOTALL)
    assert found
    return found


def printed(code: str, names: dict[str, object]) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "<document>", "exec"), names)
    return output.getvalue()


def can_run(code: str) -> bool:
    """Return whether all packages that an example imports are installed."""
    return all(find_spec(package) for package in re.findall(r"^(?:from|import) (\w+)", code, re.MULTILINE))


@pytest.mark.parametrize("document", ["README.md", *(f"docs/{name}.md" for name in BEGIN_ANEW)])
def test_examples_print_what_the_document_shows(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    names = {}
    for code, output in examples(document):
        assert printed(code, names) == output


@pytest.mark.parametrize("document", GO_ON_WITH_THE_FIRST_EXAMPLE)
def test_examples_that_go_on_with_the_first_one_print_what_the_document_shows(document):
    names = {}
    printed(examples("docs/start.md")[0][0], names)
    for code, output in examples(f"docs/{document}.md"):
        assert not can_run(code) or printed(code, names) == output


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
