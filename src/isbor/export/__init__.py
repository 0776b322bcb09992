"""Fitted models outside Python: a plain description, and a page that computes predictions.

May import `isbor.estimators` and the packages below it.

`to_json`
    A file from which predictions can be computed in any language (docs/export.md).
`to_html`
    A page for browsers: features can be changed, and it shows what is predicted.
`to_onnx`
    A graph for ONNX runtimes: labels and class probabilities.
"""

from isbor.export.files import to_html, to_json, to_onnx

__all__ = ["to_html", "to_json", "to_onnx"]
