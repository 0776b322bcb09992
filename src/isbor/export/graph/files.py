"""A graph as the bytes of an ONNX file."""

import json
from typing import Any

import numpy as np

from isbor._version import __version__
from isbor.export.description import Described
from isbor.export.graph.tensors import OPSETS, Graph, Node, Port

__all__ = ["as_bytes"]

_FORMAT = 8  # version of the file format, as old as the operators


def as_bytes(graph: Graph, described: Described) -> bytes:
    """Return the content of the file; what is for people is taken from the description."""
    onnx = _onnx()
    helper, from_array = onnx.helper, onnx.numpy_helper.from_array
    written = helper.make_graph(
        [_node(onnx, node) for node in graph.nodes],
        described["estimator"],
        [_port(onnx, port) for port in graph.inputs],
        [_port(onnx, port) for port in graph.outputs],
        [from_array(value, name) for name, value in graph.constants.items()],
    )
    used = {node.domain for node in graph.nodes}  # only these: it makes merging with other graphs easier
    model = helper.make_model(
        written,
        opset_imports=[helper.make_opsetid(*opset) for opset in OPSETS.items() if opset[0] in used],
        ir_version=_FORMAT,
        producer_name="isbor",
        producer_version=__version__,
        doc_string=f"Ordinal regression: {described['parameters']}",
    )
    about = {
        "estimator": described["estimator"],
        "classes": json.dumps(described["classes"]),
        "features": json.dumps([_about(feature) for feature in described["features"]]),
    }
    helper.set_model_props(model, about)
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _onnx() -> Any:
    """Return the package onnx, which need not be installed and has no types for mypy."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError(
            "ONNX files are written with the package onnx, which is not installed. Install it with\n"
            '    pip install "isbor[onnx]"'
        ) from error
    return onnx


def _node(onnx: Any, node: Node) -> Any:
    attributes = {
        name: onnx.helper.np_dtype_to_tensor_dtype(value) if isinstance(value, np.dtype) else value
        for name, value in node.attributes.items()
    }
    return onnx.helper.make_node(
        node.operator,
        node.inputs,
        [node.output],
        name=f"make {node.output}",
        domain=node.domain,
        **attributes,
    )


def _port(onnx: Any, port: Port) -> Any:
    kind = onnx.helper.np_dtype_to_tensor_dtype(port.dtype)
    shape = ["rows"] if port.columns is None else ["rows", port.columns]
    return onnx.helper.make_tensor_value_info(port.name, kind, shape, doc_string=port.comment)


def _about(feature: Described) -> dict[str, Any]:
    """Return what users of the file need to know of a feature."""
    return {name: feature[name] for name in ("name", "type", "categories", "had_missing") if name in feature}
