"""The fields of data classes, which the source describes in comments beside them.

    scores: FloatArray  # (n,) largest first

becomes a line under "Attributes". A class whose docstring has parameters or attributes is left as it is.
"""

import ast
import dataclasses
import inspect
import textwrap


def fields_of(kind):
    """Yield name, type and comment of each field that a class itself declares."""
    source = textwrap.dedent(inspect.getsource(kind))
    lines = source.splitlines()
    for node in ast.parse(source).body[0].body:
        if isinstance(node, ast.AnnAssign):
            comment = lines[node.end_lineno - 1][node.end_col_offset :].partition("#")[2].strip()
            yield node.target.id, ast.unparse(node.annotation), comment


def list_fields(app, what, name, obj, options, lines):
    """Append the fields to the docstring of a data class."""
    described = {"Parameters", "Attributes"} & set(lines)
    if what == "class" and dataclasses.is_dataclass(obj) and not described:
        section = ["Attributes", "----------"]
        for field, kind, comment in fields_of(obj):
            section += [f"{field} : {kind.replace('|', 'or')}", *([f"    {comment}"] if comment else [])]
        later = (i for i, line in enumerate(lines) if line in ("See Also", "Notes", "Examples"))
        at = next(later, len(lines))
        lines[at:at] = [*section, ""]


def setup(app):
    """Register the listing; numpydoc reads the docstring afterwards."""
    app.connect("autodoc-process-docstring", list_fields, priority=100)
    return {"parallel_read_safe": True}
