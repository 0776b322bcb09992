"""The role of text in single backticks: code, and a link if it names something that has a page.

Docstrings write `parameter`, `PublicClass` and `isbor.package.module` alike. A name that begins with
``isbor.`` must exist; any other is a link where that is possible.
"""

import importlib.util

from docutils import nodes
from sphinx.roles import XRefRole
from sphinx.util.nodes import make_refnode

PUBLIC = (
    "isbor",
    *(f"isbor.{name}" for name in ("metrics", "meta", "sources", "export", "plots", "datasets")),
)


class CodeName(XRefRole):
    """A reference to any Python object, which need not be one."""

    def __init__(self):
        super().__init__(innernodeclass=nodes.literal)

    def process_link(self, env, refnode, has_explicit_title, title, target):
        """Note the module and class in which names are looked up."""
        refnode["py:module"] = env.ref_context.get("py:module")
        refnode["py:class"] = env.ref_context.get("py:class")
        refnode["refdomain"] = "py"
        refnode["reftype"] = "obj"
        refnode["code_name"] = True
        return title, target


def exists(name):
    """Return whether a module, or a name in one, exists."""
    package, _, last = name.rpartition(".")
    if importlib.util.find_spec(name.split(".")[0]) is None:
        return False
    try:
        if importlib.util.find_spec(name):
            return True
    except ModuleNotFoundError:  # the package is a class or a module
        pass
    return hasattr(importlib.import_module(package), last)


def link_or_code(app, env, node, contnode):
    """Return a link to a public name, or plain code if there is none and need not be one."""
    name = node["reftarget"]
    if not node.get("code_name"):
        return None
    if name.startswith("isbor."):
        return contnode if exists(name) else None
    if name[:1].isupper() or "_" in name.strip("_"):  # others are names of parameters, too
        objects = env.domains.python_domain.objects
        for package in PUBLIC:
            if found := objects.get(f"{package}.{name}"):
                return make_refnode(
                    app.builder, node["refdoc"], found.docname, found.node_id, contnode, f"{package}.{name}"
                )
    return contnode


def setup(app):
    """Register the role."""
    app.add_role("code_name", CodeName())
    app.connect("missing-reference", link_or_code)
    return {"parallel_read_safe": True}
