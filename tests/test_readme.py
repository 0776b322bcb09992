"""The README's example prints what the README says."""

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_example_prints_what_the_readme_shows():
    code, output = re.search(
        r"```python\n(.*?)```\n\n```\n(.*?)```", README.read_text("utf-8"), re.DOTALL
    ).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(README), "exec"), {})
    assert printed.getvalue() == output


def test_relative_links_lead_somewhere():
    documents = [README, README.with_name("CONTRIBUTING.md"), *README.parent.glob("docs/**/*.md")]
    for document in documents:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text("utf-8")):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"
