"""What is written: the description as JSON or as an ONNX graph, and a page that holds it."""

import html
import json
import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Literal, TypeAlias

from isbor._core.whole_files import write_whole
from isbor.export.description import describe, exportable
from isbor.export.graph.assembly import assemble
from isbor.export.graph.files import as_bytes

__all__ = ["to_html", "to_json", "to_onnx"]

PathArgument: TypeAlias = str | os.PathLike[str]


def to_json(model: object, path: PathArgument, *, bands: bool = True) -> None:
    """Write a fitted model as plain JSON, from which predictions can be computed without ISBOR.

    docs/export.md says what the file holds, and has the formulas. ``isbor/export/model.js`` reads it in
    JavaScript. All numbers are those of the model, with as many digits as double precision needs.

    Parameters
    ----------
    model : ISBOR, SBOR, GPOR, SVOR, ISVOR or KDLOR
        A fitted estimator. A Gaussian process of more than about 2,000 rows is refused.
    path : str or path
        File to write. It is written completely or not at all.
    bands : bool, default=True
        Whether to write what bands need as well, 200 to 400 kB.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from isbor import ISBOR
    >>> from isbor.datasets import make_saddle
    >>> from isbor.export import to_json
    >>> model = ISBOR(basis="rbf").fit(*make_saddle(200, random_state=0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     to_json(model, Path(folder) / "model.json")
    ...     found = json.loads((Path(folder) / "model.json").read_text())
    >>> found["classes"]
    [1, 2, 3, 4, 5]
    """
    place = _writable(path)
    write_whole(place, (_lines(describe(exportable(model, "to_json"), bands)) + "\n").encode())


def to_html(model: object, path: PathArgument, *, title: str | None = None, bands: bool = True) -> None:
    """Write a page on which features can be changed, and which shows what the model predicts.

    The page needs no server, no network and no other file: the model runs in the browser. It holds the whole
    model, and of Gaussian processes and kernel machines training rows, so whoever has it has those.

    Parameters
    ----------
    model : ISBOR, SBOR, GPOR, SVOR, ISVOR or KDLOR
        A fitted estimator with class probabilities. A Gaussian process of more than about 2,000 rows is
        refused.
    path : str or path
        File to write. It is written completely or not at all.
    title : str, default=None
        Heading of the page; by default, the name of the estimator.
    bands : bool, default=True
        Whether to show bands around probabilities, for which the page is 200 to 400 kB larger.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from isbor import ISBOR
    >>> from isbor.datasets import make_saddle
    >>> from isbor.export import to_html
    >>> model = ISBOR(basis="rbf").fit(*make_saddle(200, random_state=0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     to_html(model, Path(folder) / "model.html", title="The saddle")
    ...     "The saddle" in (Path(folder) / "model.html").read_text("utf-8")
    True
    """
    place = _writable(path)
    described = describe(exportable(model, "to_html"), bands)
    if not described["probabilities"]:
        raise ValueError(
            f"This {described['estimator']} has probability=False; the page shows class probabilities. Set "
            "probability=True before fit."
        )
    write_whole(place, _page(described, title or described["estimator"]).encode())


def to_onnx(model: object, path: PathArgument, *, dtype: Literal["float32", "float64"] = "float32") -> None:
    """Write a fitted model as an ONNX graph, which runtimes in many languages compute.

    The outputs are those of a classifier of skl2onnx without ZipMap: ``label``, (n,), and ``probabilities``,
    (n, classes). A model that was fitted to an array has the input ``X``, (n, features). Others have an input
    for each feature, named like it, of shape (n, 1): strings for strings, else numbers, also for booleans and
    numbers that are categories. NaN and the empty string are missing cells. A category that did not occur in
    training is unseen, as in `predict`. Where Python would refuse a row, because of a missing cell or an
    infinite number, its probabilities are NaN.

    Parameters
    ----------
    model : ISBOR, SBOR, GPOR, SVOR, ISVOR or KDLOR
        A fitted estimator. A Gaussian process of more than about 2,000 rows is refused.
    path : str or path
        File to write. It is written completely or not at all.
    dtype : {"float32", "float64"}, default="float32"
        Type of numeric inputs and of probabilities. The graph computes in double precision either way, so
        this matters only for numbers that single precision rounds, such as 1234567.8.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import onnxruntime
    >>> from isbor import ISBOR
    >>> from isbor.datasets import make_saddle
    >>> from isbor.export import to_onnx
    >>> X, y = make_saddle(200, random_state=0)
    >>> model = ISBOR(basis="rbf").fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     to_onnx(model, Path(folder) / "model.onnx")
    ...     session = onnxruntime.InferenceSession(Path(folder) / "model.onnx")
    >>> label, probabilities = session.run(None, {"X": X.astype("float32")})
    >>> bool((label == model.predict(X)).all())
    True
    """
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype is {dtype!r}; 'float32' or 'float64' is needed.")
    place = _writable(path)
    estimator = exportable(model, "to_onnx")
    described, encoding = describe(estimator, bands=False), estimator._encoding
    is_matrix = encoding.feature_names is None and not any(encoding.categories)
    if is_matrix and encoding.missing == "auto":  # of arrays
        described["refuses_missing"] = not encoding.indicator.any()
    write_whole(place, as_bytes(assemble(described, dtype, is_matrix), described))


def _writable(path: PathArgument) -> Path:
    """Return the path; raise an error if no file can be written there."""
    place = Path(path)
    folder = place.absolute().parent
    if place.is_dir():
        raise IsADirectoryError(f"{str(place)!r} is a directory; give the name of a file.")
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no directory {str(folder)!r}; create it or choose another.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"No file can be written to {str(folder)!r}; choose another directory.")
    return place


def _lines(described: Mapping[str, object]) -> str:
    """Return JSON with a line for each part, and for each element of a list of objects."""
    parts = []
    for name, value in described.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            text = "[\n  " + ",\n  ".join(map(_json, value)) + "\n ]"
        else:
            text = _json(value)
        parts.append(f" {_json(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}"


def _json(value: object) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _page(described: Mapping[str, object], title: str) -> str:
    folder = resources.files("isbor.export")
    parts = {
        # In JSON, "<" occurs in strings only. Escaped, no string can end the element.
        "MODEL": _lines(described).replace("<", "\\u003c"),
        "TITLE": html.escape(title),
        "STYLE": folder.joinpath("page.css").read_text("utf-8"),
        "READER": folder.joinpath("model.js").read_text("utf-8"),
        "SCRIPT": folder.joinpath("page.js").read_text("utf-8"),
    }
    page, *others = folder.joinpath("page.html").read_text("utf-8").split("{{")
    for other in others:
        name, _, rest = other.partition("}}")
        page += parts[name] + rest
    return page
