"""Links between files of the repository become links between pages of the site.

In the repository, pages link to README.md and CONTRIBUTING.md above them and to modules of the source. On
the site, the former are pages beside the others, and the latter lead to what is shown of a module. Links to
the script of an example lead to its page in the gallery. Docstrings name pages by their files,
docs/streams.md, which become links, too.
"""

import re

import isbor.estimators

PAGES = {"README": "start", "CONTRIBUTING": "contributing", "CHANGELOG": "changelog"}
ABOVE = re.compile(rf"\]\((\.\./)*\.\./({'|'.join(PAGES)})\.md")
MODULE = re.compile(r"\]\((?:\.\./)+src/(isbor/[\w/]+?)(?:\.py)?\)")
EXAMPLE = re.compile(r"\]\(((?:\.\./)*)examples/(?:(README)|(plot_\w+))\.(?:rst|py)\)")
PAGE = re.compile(r"\bdocs/([\w/-]+)\.md\b")
# A module of an estimator is shown by its class.
ESTIMATORS = {
    getattr(isbor.estimators, name).__module__: f"isbor.{name}"
    for name in ("GPOR", "ISBOR", "ISVOR", "KDLOR", "SBOR", "SVOR")
}


def rewrite_links(app, docname, source):
    """Rewrite the links of a Markdown page."""

    def module(match):
        name = match[1].replace("/", ".")
        return f"](#{ESTIMATORS.get(name, name)})"

    text = ABOVE.sub(lambda match: f"]({match[1] or ''}{PAGES[match[2]]}.md", source[0])
    text = EXAMPLE.sub(lambda match: f"]({match[1]}gallery/{match[3] or 'index'}.rst)", text)
    source[0] = MODULE.sub(module, text)


def link_pages(app, what, name, obj, options, lines):
    """Make links of the pages that a docstring names."""
    lines[:] = [PAGE.sub(r":doc:`/\1`", line) for line in lines]


def setup(app):
    """Register the rewriting."""
    app.connect("autodoc-process-docstring", link_pages)
    app.connect("source-read", rewrite_links)
    return {"parallel_read_safe": True}
