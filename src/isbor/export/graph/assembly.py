"""The graph of a whole model."""

from typing import Any

import numpy as np

from isbor.export.description import Described
from isbor.export.graph.probabilities import class_probabilities, drift_share, levels
from isbor.export.graph.rows import OUTPUTS, inputs_of_functions, read_columns
from isbor.export.graph.scores import inputs_used, score_of_model
from isbor.export.graph.tensors import Graph, Port, where

__all__ = ["assemble"]


def assemble(described: Described, dtype: str, is_matrix: bool) -> Graph:
    """Return the graph of a described model; inputs of numbers, and probabilities, are of type `dtype`."""
    graph, label, probabilities = Graph(), *OUTPUTS
    columns = read_columns(graph, described, np.dtype(dtype), is_matrix)
    zero = columns.values.take([0]) * 0.0
    used = inputs_used(described)
    x = inputs_of_functions(columns, described, used) if used else zero
    scores = [score_of_model(model, x, used, described["temperature"], zero) for model in described["models"]]
    drift = drift_share(described["drift"], columns)
    classes = _classes(described["classes"])
    found = graph.apply("Gather", classes, levels(described, scores, drift), axis=0)
    graph.output(Port(label, classes.dtype, None, "The predicted class."), found)
    if described["probabilities"]:
        p = class_probabilities(described, scores, drift, zero)
        if columns.refused is not None:
            p = where(columns.refused, np.nan, p)
        names = ", ".join(map(str, described["classes"]))
        port = Port(probabilities, np.dtype(dtype), len(classes), f"Probabilities of the classes {names}.")
        graph.output(port, p.as_type(dtype))
    return graph


def _classes(labels: list[Any]) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the labels as an array of strings, booleans, integers or double precision numbers."""
    is_text = any(isinstance(label, str) for label in labels)
    return np.array(list(map(str, labels)), dtype=object) if is_text else np.array(labels)
