"""The configuration of the documentation site: ``make docs``, then open build/docs/index.html."""

import sys
from pathlib import Path

import isbor
from isbor.search.compilation import ensure_compiled

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "ISBOR"
author = "The ISBOR developers"
release = version = isbor.__version__
html_title = f"ISBOR {release}"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "code_names",
    "dataclass_fields",
    "derivations",
    "repository_links",
]
templates_path = ["templates"]
exclude_patterns = ["examples", "results", "gallery/*.py", "gallery/*.ipynb"]
# A block of code without a language is output, a path or a sketch, and no Python.
highlight_language = "none"
toc_object_entries_show_parents = "hide"
smartquotes = False  # code outside of code has quotes, too: basis="rbf"

# --- Docstrings ---------------------------------------------------------------------------------------------

# In docstrings, `name` is a parameter or something public; the latter becomes a link.
default_role = "code_name"
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words
numpydoc_show_class_members = False  # the template of classes lists their methods
nitpick_ignore_regex = [("py:.*", r"(numpy|pandas|polars|scipy|sklearn|matplotlib|narwhals)(\..*)?")]

# --- Markdown -----------------------------------------------------------------------------------------------

myst_enable_extensions = ["dollarmath", "html_image"]
myst_fence_as_directive = {"math"}  # which GitHub renders, too
myst_heading_anchors = 4

# --- Pages --------------------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "ISBOR"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_prev_next": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "start": []}
copyright = "The ISBOR developers"

# MathJax comes with the package sphinx-mathjax-offline, so that pages need no network.
mathjax_path = "mathjax/tex-chtml.js"

# --- Gallery ------------------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/of",
    "doc_module": ("isbor",),
    "within_subsection_order": "gallery_order.ReadingOrder",
    "copyfile_regex": r".*\.rst",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "capture_repr": (),
    "min_reported_time": 1e9,
    "plot_gallery": True,
    "abort_on_example_error": True,
    "write_computation_times": False,
}


def copy_mathjax(app, exception):
    """Copy MathJax and its fonts beside the pages: the files that pages load, not those for other input."""
    import importlib.util
    import shutil

    if exception is None and app.builder.format == "html":
        origin = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static/mathjax"
        target = Path(app.outdir) / "_static/mathjax"
        for part in ("tex-chtml.js", "output/chtml/fonts", "input/tex/extensions"):
            copy = shutil.copytree if (origin / part).is_dir() else shutil.copy
            (target / part).parent.mkdir(parents=True, exist_ok=True)
            copy(origin / part, target / part, **({"dirs_exist_ok": True} if copy is shutil.copytree else {}))


def skip_what_is_inherited(app, what, name, obj, skip, options):
    """Skip methods of scikit-learn: its own documentation describes them."""
    inherited = (getattr(obj, "__module__", None) or "").startswith("sklearn")
    return True if inherited or (name.startswith("set_") and name.endswith("_request")) else None


def setup(app):
    """Connect what this file defines."""
    # What is compiled once after an installation is compiled here, not within the first example.
    app.connect("builder-inited", lambda _: ensure_compiled(), priority=1)
    app.connect("build-finished", copy_mathjax)
    app.connect("autodoc-skip-member", skip_what_is_inherited)
