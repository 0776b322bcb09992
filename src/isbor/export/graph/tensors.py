"""Arithmetic that is written down as nodes of an ONNX graph, instead of being computed.

`Graph` collects inputs, constants, nodes and outputs as plain data. A `Tensor` stands for the value of one of
them, and arithmetic with it adds nodes, so that formulas read as they do with arrays. All numbers are double
precision; a tensor of rows has the shape (n, columns).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["OPSETS", "Graph", "Operand", "Port", "Tensor", "concatenated", "where"]

# Operators of these versions are in runtimes since 2021. Newer ones are of no use here.
OPSETS = {"": 15, "ai.onnx.ml": 2}

Array: TypeAlias = NDArray[Any]
Operand: TypeAlias = "Tensor | Array | float"


@dataclass(frozen=True, slots=True)
class Port:
    """An input or an output of a graph."""

    name: str
    dtype: np.dtype[Any]  # object for strings
    columns: int | None  # None: one-dimensional
    comment: str


@dataclass(frozen=True, slots=True)
class Node:
    """One operation."""

    operator: str
    inputs: tuple[str, ...]
    output: str
    domain: str
    attributes: dict[str, Any]


@dataclass(slots=True)
class Graph:
    """Inputs, constants, nodes in an order in which they can be computed, and outputs."""

    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)
    _made: dict[object, str] = field(default_factory=dict)  # names of constants and nodes, by their content

    def input(self, port: Port) -> "Tensor":
        """Add an input. Inputs come before all else, so that their names are free."""
        self.inputs.append(port)
        self._taken.add(port.name)
        return Tensor(self, port.name)

    def output(self, port: Port, value: "Tensor") -> None:
        """Add an output that is equal to `value`."""
        self.outputs.append(port)
        self.nodes.append(Node("Identity", (value.name,), port.name, "", {}))

    def constant(self, value: Array | float) -> "Tensor":
        """Return a constant. Equal ones are stored once."""
        array = np.asarray(value)
        content = tuple(array.tolist()) if array.dtype == object else array.tobytes()
        key = (array.dtype.str, array.shape, content)
        if key not in self._made:
            self._made[key] = self._new_name("constant")
            self.constants[self._made[key]] = array
        return Tensor(self, self._made[key])

    def apply(self, operator: str, *operands: Operand, domain: str = "", **attributes: Any) -> "Tensor":
        """Return the result of an operator. What was computed before is not computed again."""
        inputs = tuple(self._tensor(operand).name for operand in operands)
        key = (operator, inputs, domain, repr(attributes))
        if key not in self._made:
            self._made[key] = self._new_name(operator)
            self.nodes.append(Node(operator, inputs, self._made[key], domain, attributes))
        return Tensor(self, self._made[key])

    def _tensor(self, operand: Operand) -> "Tensor":
        return operand if isinstance(operand, Tensor) else self.constant(operand)

    def _new_name(self, kind: str) -> str:
        number = len(self._made)
        while (name := f"{kind}_{number}") in self._taken:
            number += 1
        self._taken.add(name)
        return name


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value in a graph."""

    graph: Graph
    name: str

    __array_ufunc__ = None  # arrays leave arithmetic with tensors to these

    def __add__(self, other: Operand) -> "Tensor":
        return self._apply("Add", other)

    def __sub__(self, other: Operand) -> "Tensor":
        return self._apply("Sub", other)

    def __rsub__(self, other: Operand) -> "Tensor":
        return self.graph.apply("Sub", other, self)

    def __mul__(self, other: Operand) -> "Tensor":
        return self._apply("Mul", other)

    def __truediv__(self, other: Operand) -> "Tensor":
        return self._apply("Div", other)

    def __matmul__(self, other: Operand) -> "Tensor":
        return self._apply("MatMul", other)

    def __pow__(self, power: float) -> "Tensor":
        return self._apply("Pow", power)

    def __neg__(self) -> "Tensor":
        return self._apply("Neg")

    def __or__(self, other: "Tensor") -> "Tensor":
        return self._apply("Or", other)

    def __abs__(self) -> "Tensor":
        return self._apply("Abs")

    __radd__, __rmul__ = __add__, __mul__

    def equals(self, other: Operand) -> "Tensor":
        """Return where it is equal to another tensor."""
        return self._apply("Equal", other)

    def is_below(self, other: Operand) -> "Tensor":
        """Return where it is less than another tensor."""
        return self._apply("Less", other)

    def is_above(self, other: Operand) -> "Tensor":
        """Return where it is greater than another tensor."""
        return self._apply("Greater", other)

    def is_missing(self) -> "Tensor":
        """Return where it is not a number."""
        return self._apply("IsNaN")

    def is_infinite(self) -> "Tensor":
        """Return where it is infinite."""
        return self._apply("IsInf")

    def exp(self) -> "Tensor":
        """Return the exponential function."""
        return self._apply("Exp")

    def tanh(self) -> "Tensor":
        """Return the hyperbolic tangent."""
        return self._apply("Tanh")

    def sqrt(self) -> "Tensor":
        """Return the square root."""
        return self._apply("Sqrt")

    def at_least(self, other: Operand) -> "Tensor":
        """Return the maximum of both."""
        return self._apply("Max", other)

    def at_most(self, other: Operand) -> "Tensor":
        """Return the minimum of both."""
        return self._apply("Min", other)

    def within(self, low: float, high: float) -> "Tensor":
        """Return the nearest number between both."""
        return self._apply("Clip", low, high)

    def take(self, columns: Sequence[int] | Array) -> "Tensor":
        """Return some columns, by position."""
        return self._apply("Gather", np.asarray(columns, dtype=np.int64), axis=1)

    def row_sum(self) -> "Tensor":
        """Return the sum of each row, (n, 1)."""
        return self._apply("ReduceSum", np.array([1]), keepdims=1)

    def row_max(self) -> "Tensor":
        """Return the largest element of each row, (n, 1)."""
        return self._apply("ReduceMax", axes=[1], keepdims=1)

    def row_any(self) -> "Tensor":
        """Return whether any element of each row is true, (n, 1)."""
        return self.as_type(np.float64).row_max().is_above(0.0)

    def as_type(self, dtype: Any) -> "Tensor":
        """Return it with elements of another type."""
        return self._apply("Cast", to=np.dtype(dtype))

    def _apply(self, operator: str, *others: Operand, **attributes: Any) -> "Tensor":
        return self.graph.apply(operator, self, *others, **attributes)


def where(condition: Tensor, one: Operand, other: Operand) -> Tensor:
    """Return elements of `one` where the condition is true, else of `other`."""
    return condition.graph.apply("Where", condition, one, other)


def concatenated(parts: Sequence[Tensor]) -> Tensor:
    """Return the columns of all parts."""
    return parts[0] if len(parts) == 1 else parts[0].graph.apply("Concat", *parts, axis=1)
