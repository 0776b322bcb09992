"""A check: every module of the source that derives something is on a page of the site.

The mathematics is in the docstrings of modules. ``automodule`` puts them on pages; a module that nobody has
put there would be missed without notice.
"""

import ast
from pathlib import Path

from sphinx.util import logging

import isbor

SOURCE = Path(isbor.__file__).parent


def modules_with_equations():
    """Yield the names of all modules whose docstrings have equations."""
    for path in sorted(SOURCE.rglob("*.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        if ".. math::" in docstring:
            parts = path.relative_to(SOURCE.parent).with_suffix("").parts
            yield ".".join(part for part in parts if part != "__init__")


def warn_of_missing(app, env):
    """Warn of each module with equations that no page shows."""
    shown = env.get_domain("py").modules
    for name in modules_with_equations():
        if name not in shown:
            logging.getLogger(__name__).warning("no page of docs/mathematics shows %s", name)


def setup(app):
    """Check when all pages are read."""
    app.connect("env-check-consistency", warn_of_missing)
    return {"parallel_read_safe": True}
