"""From a row to columns, and from columns to inputs: the sections of docs/export.md with these names.

A model that was fitted to an array has one input, the matrix "X". Others have an input for each feature,
named like it, of shape (n, 1), as converted pipelines of scikit-learn have. Strings come as strings, and an
empty string is a missing cell. All else comes as numbers, and NaN is a missing cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from isbor.export.description import Described
from isbor.export.graph.tensors import Graph, Port, Tensor, concatenated, where

__all__ = ["OUTPUTS", "Columns", "inputs_of_functions", "read_columns"]

OUTPUTS = ("label", "probabilities")

_MISSING = ""
_PLACE_OF_MISSING, _PLACE_OF_UNSEEN = -2, -1
_FARTHEST = 1e100


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns that are made of rows."""

    values: Tensor  # (n, columns)
    numbers: list[int]  # of the columns in the description
    refused: Tensor | None  # (n, 1) whether Python refuses the row; None if it refuses none

    @classmethod
    def joined(cls, parts: Sequence["Columns"]) -> "Columns":
        """Return the columns of all parts."""
        refused = [part.refused for part in parts if part.refused is not None]
        return cls(
            concatenated([part.values for part in parts]),
            [number for part in parts for number in part.numbers],
            reduce(or_, refused) if refused else None,
        )

    def take(self, numbers: Sequence[int]) -> Tensor:
        """Return the columns with these numbers."""
        return self.values.take(np.argsort(self.numbers)[list(numbers)])


def read_columns(graph: Graph, described: Described, dtype: np.dtype[Any], is_matrix: bool) -> Columns:
    """Add the inputs, with numbers of type `dtype`, and return the columns that are made of them."""
    features: list[Described] = described["features"]
    if is_matrix:
        port = Port("X", dtype, len(features), "Rows of numbers. NaN is a missing cell.")
        return _of_numbers(graph.input(port).as_type(np.float64), described)
    _check_names([feature["name"] for feature in features])
    cells = [graph.input(_port(feature, dtype)) for feature in features]
    numeric = [cell for cell, feature in zip(cells, features, strict=True) if feature["type"] == "number"]
    parts = [_of_numbers(concatenated(numeric).as_type(np.float64), described)] if numeric else []
    categorical = [j for j, feature in enumerate(features) if feature["type"] == "category"]
    parts += [_of_category(cells[j], j, described, dtype) for j in categorical]
    return Columns.joined(parts)


def _check_names(names: Sequence[str]) -> None:
    taken = [name for name in names if name in ("", *OUTPUTS)]
    if taken:
        raise ValueError(
            f"A feature is named {taken[0]!r}, which no input of an ONNX graph can be: it is the name of "
            f"{'nothing' if not taken[0] else 'an output'}. Rename the column, and fit the model again."
        )


def _port(feature: Described, dtype: np.dtype[Any]) -> Port:
    """Return the input of a feature."""
    name = feature["name"]
    if feature["type"] == "number":
        return Port(name, dtype, 1, "A number; NaN if missing.")
    categories = ", ".join(map(str, feature["categories"]))
    if _is_text(feature):
        return Port(name, np.dtype(object), 1, f"One of: {categories}. Empty if missing.")
    return Port(name, dtype, 1, f"One of: {categories}. NaN if missing.")


def _is_text(feature: Described) -> bool:
    return all(isinstance(category, str) for category in feature["categories"])


def _of_numbers(X: Tensor, described: Described) -> Columns:
    """Return the columns of all numeric features, given their cells."""
    columns = list(enumerate(described["columns"]))
    numeric = [j for j, feature in enumerate(described["features"]) if feature["type"] == "number"]
    place = {j: p for p, j in enumerate(numeric)}
    plain = [(i, column["fill"]) for i, column in columns if column["is"] == "number"]
    marks = [
        (i, place[column["feature"]])
        for i, column in columns
        if column["is"] == "missing" and column["feature"] in place
    ]
    absent, infinite = X.is_missing(), X.is_infinite()
    filled = where(absent | infinite, np.array([[fill for _, fill in plain]]), X)
    refused = (absent | infinite) if described["refuses_missing"] else infinite
    numbers = Columns(filled, [i for i, _ in plain], refused.row_any())
    if not marks:
        return numbers
    marked = absent.as_type(np.float64).take([p for _, p in marks])
    return Columns.joined([numbers, Columns(marked, [i for i, _ in marks], None)])


def _matches(cell: Tensor, feature: Described, dtype: np.dtype[Any]) -> tuple[Tensor, Tensor]:
    """Return which category a cell is, (n, categories), and whether it is missing, (n, 1)."""
    name, categories = feature["name"], feature["categories"]
    if not _is_text(feature):
        values = np.array(categories, dtype=dtype)
        if len(np.unique(values)) < len(values):
            raise ValueError(
                f"Two categories of the feature {name!r} are equal in single precision, which its input has. "
                "Choose dtype='float64'."
            )
        return cell.equals(values[None]), cell.is_missing()
    if _MISSING in categories and feature["had_missing"]:
        raise ValueError(
            f"The feature {name!r} has missing cells and the category '', which are both the empty string in "
            "ONNX. Rename the category, and fit the model again."
        )
    places = {_MISSING: _PLACE_OF_MISSING} | {category: k for k, category in enumerate(categories)}
    place = cell.graph.apply(
        "LabelEncoder",
        cell,
        domain="ai.onnx.ml",
        keys_strings=list(places),
        values_int64s=list(places.values()),
        default_int64=_PLACE_OF_UNSEEN,
    )
    return place.equals(np.arange(len(categories))[None]), place.equals(np.array(_PLACE_OF_MISSING))


def _of_category(cell: Tensor, number: int, described: Described, dtype: np.dtype[Any]) -> Columns:
    """Return the columns of the categorical feature with this number, given its cells."""
    own = [(i, column) for i, column in enumerate(described["columns"]) if column["feature"] == number]
    feature = described["features"][number]
    categories = feature["categories"]
    matches, absent = _matches(cell, feature, dtype)
    one_hot = matches.as_type(np.float64)
    known = one_hot.row_sum()
    made = [one_hot] if categories else []
    for _, column in own[len(categories) :]:
        if column["is"] == "rank":
            rank = one_hot @ np.arange(len(categories), dtype=np.float64)[:, None]
            made.append(rank + (1.0 - known) * column["fill"])
        elif column["is"] == "missing":
            made.append(absent.as_type(np.float64))
        else:  # "unseen"
            counted = known + absent.as_type(np.float64) if feature["had_missing"] else known
            made.append(1.0 - counted)
    refused = [absent] if described["refuses_missing"] else []
    refused += [] if _is_text(feature) else [cell.is_infinite()]
    return Columns(concatenated(made), [i for i, _ in own], reduce(or_, refused) if refused else None)


# --- From columns to inputs --------------------------------------------------------------------------------


def inputs_of_functions(columns: Columns, described: Described, used: Sequence[int]) -> Tensor:
    """Return the inputs with these numbers, (n, used)."""
    inputs = [described["inputs"][p] for p in used]
    source = [one["column"] for one in inputs]
    mean, lift, factor = (
        np.array([described["scaling"][of]])[:, source] for of in ("mean", "lift", "factor")
    )
    z = ((columns.take(source) - mean) * lift * factor).within(-_FARTHEST, _FARTHEST)
    plain = [p for p, one in enumerate(inputs) if one["warp"] is None]
    if len(plain) == len(inputs):
        return z
    parts = [z.take(plain)] if plain else []
    warped = [p for p, one in enumerate(inputs) if one["warp"] is not None]
    parts += [_warped(z.take([p]), inputs[p]["warp"]) for p in warped]
    return concatenated(parts).take(np.argsort(plain + warped))


def _warped(z: Tensor, warp: Described) -> Tensor:
    """Return the piecewise linear function: the sum of what each piece has risen before z."""
    knots, values = np.array(warp["knots"]), np.array(warp["values"])
    # Divided, not multiplied: one over the length of a piece may be infinite.
    share = ((z - knots[None, :-1]) / np.diff(knots)[None]).within(0.0, 1.0)
    return share @ np.diff(values)[:, None] + values[:1]
