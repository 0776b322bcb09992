"""Codecs: how values of a type are written as JSON and arrays, and read again.

The types are those that the fields of frozen dataclasses and the attributes of estimators are annotated with.
So a file never says what is to be built: it gives values for what the program expects, and they are checked.

=========================  ===========================================================================
type                       in model.json
=========================  ===========================================================================
None, bool, int, str       as in JSON
float                      as in JSON; ``{"float": "inf"}``, ``"-inf"`` or ``"nan"`` if not finite
Literal                    the string
Enum                       the name of the member
tuple                      a list
array                      ``{"array": k}``, a place in the table of arrays
labels                     ``{"array": k}``, or ``{"labels": [...], "dtype": "<U6"}``, for strings
dataclass                  ``{"object": k}``, a place in the table of objects, in which an object stands
                           behind those that it refers to
other class                a list: the arguments of its constructor
=========================  ===========================================================================

An object that two others share is written once, and is shared again when it has been read.
"""

import math
import re
import reprlib
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from isbor._core.types import LabelArray
from isbor.files.arrays import ArrayReader, ArrayWriter
from isbor.files.errors import ModelFileError, damaged

__all__ = ["Codec", "Reader", "Writer", "codec_of"]


class Writer:
    """What has been written so far."""

    def __init__(self) -> None:
        self.arrays = ArrayWriter()
        self.objects: list[dict[str, Any]] = []
        self._places: dict[int, tuple[int, object]] = {}  # by identity, with the object, so that it stays

    def add(self, value: object, members: Mapping[str, "Codec"]) -> int:
        """Add an object, unless it is there; return its place."""
        if id(value) not in self._places:
            node = {"class": type(value).__name__}
            node |= {name: codec.write(getattr(value, name), self) for name, codec in members.items()}
            self.objects.append(node)
            self._places[id(value)] = len(self.objects) - 1, value
        return self._places[id(value)][0]


class Reader:
    """The tables of a file, and the objects that have been built from them.

    `check` raises an error if what an object holds does not belong together.
    """

    def __init__(self, arrays: ArrayReader, objects: object, check: Callable[[object], None]) -> None:
        if not isinstance(objects, list) or not all(isinstance(node, dict) for node in objects):
            raise damaged("it has no table of objects")
        self.arrays = arrays
        self._nodes, self._check = objects, check
        self._built: dict[int, object] = {}
        self._limit = len(objects)  # objects refer to those before them only

    def class_of(self, place: object) -> object:
        """Return the name of the class of the object at a place."""
        if type(place) is not int or not 0 <= place < self._limit:
            raise damaged(f"it has no object {place!r}")
        return self._nodes[place].get("class")

    def get(self, place: int, kind: type, members: Mapping[str, "Codec"]) -> object:
        """Return the object at a place, which must be of this class."""
        if self.class_of(place) != kind.__name__:
            raise damaged(f"object {place} is no {kind.__name__}")
        if place not in self._built:
            node, limit = self._nodes[place], self._limit
            if node.keys() != {"class", *members}:
                raise damaged(f"a {kind.__name__} lacks members, or has unknown ones")
            self._limit = place
            value = kind(**{name: codec.read(node[name], self) for name, codec in members.items()})
            self._limit = limit
            self._check(value)
            self._built[place] = value
        return self._built[place]


class Codec(ABC):
    """How the values of a type are written and read."""

    needed: str  # what JSON holds for a value, for messages

    def write(self, value: Any, writer: Writer) -> Any:
        """Return what JSON holds for the value."""
        if not self.holds(value):
            kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
            raise ModelFileError(
                f"The model holds {reprlib.repr(value)}, of type {kind}, which a model file cannot hold. Set "
                "parameters to plain values by set_params, and use labels that are numbers or strings; or "
                "pickle the model."
            )
        return self.node(value, writer)

    def read(self, node: Any, reader: Reader) -> Any:
        """Return the value."""
        if not self.fits(node, reader):
            raise damaged(f"it holds {reprlib.repr(node)} where {self.needed} is needed")
        return self.value(node, reader)

    @abstractmethod
    def holds(self, value: Any) -> bool:
        """Whether the value is of the type, as far as one level says."""

    @abstractmethod
    def fits(self, node: Any, reader: Reader) -> bool:
        """Whether JSON may hold this for a value of the type, as far as one level says."""

    @abstractmethod
    def node(self, value: Any, writer: Writer) -> Any:
        """Return what JSON holds for a value of the type."""

    @abstractmethod
    def value(self, node: Any, reader: Reader) -> Any:
        """Return the value for which JSON holds this."""


class _Simple(Codec):
    """None, a boolean, a string or an integer, which `bits` limits."""

    def __init__(self, kind: type, allowed: type | tuple[type, ...], bits: float = 63) -> None:
        self._kind, self._allowed, self._bits = kind, allowed, bits
        self.needed = kind.__name__

    def holds(self, value: Any) -> bool:
        if isinstance(value, bool | np.bool_):
            return self._kind is bool
        return isinstance(value, self._allowed)

    def fits(self, node: Any, reader: Reader) -> bool:
        return type(node) is self._kind and (type(node) is not int or node.bit_length() <= self._bits)

    def node(self, value: Any, writer: Writer) -> Any:
        if value is None:
            return None
        return str.__str__(value) if self._kind is str else self._kind(value)

    def value(self, node: Any, reader: Reader) -> Any:
        return node


class _Float(Codec):
    needed = "a number with a decimal point"

    def holds(self, value: Any) -> bool:
        return isinstance(value, Real) and not isinstance(value, bool)

    def fits(self, node: Any, reader: Reader) -> bool:
        if isinstance(node, dict):
            return node.keys() == {"float"} and node["float"] in ("inf", "-inf", "nan")
        return isinstance(node, float) and math.isfinite(node)

    def node(self, value: Any, writer: Writer) -> Any:
        number = float(value)
        return number if math.isfinite(number) else {"float": repr(number)}

    def value(self, node: Any, reader: Reader) -> float:
        return float(node["float"] if isinstance(node, dict) else node)


class _OneOf(Codec):
    """One of some strings, a Literal; or a member of an Enum, by its name."""

    def __init__(self, options: Mapping[str, object]) -> None:
        self._options = options
        self.needed = f"one of {', '.join(options)}"

    def holds(self, value: Any) -> bool:
        return isinstance(value, str | Enum) and value in self._options.values()

    def fits(self, node: Any, reader: Reader) -> bool:
        return isinstance(node, str) and node in self._options

    def node(self, value: Any, writer: Writer) -> str:
        return next(name for name, option in self._options.items() if option == value)

    def value(self, node: Any, reader: Reader) -> object:
        return self._options[node]


class _Either(Codec):
    """A value of one of several types."""

    def __init__(self, codecs: Sequence[Codec]) -> None:
        self._codecs = codecs
        self.needed = " or ".join(codec.needed for codec in codecs)

    def holds(self, value: Any) -> bool:
        return any(codec.holds(value) for codec in self._codecs)

    def fits(self, node: Any, reader: Reader) -> bool:
        return any(codec.fits(node, reader) for codec in self._codecs)

    def node(self, value: Any, writer: Writer) -> Any:
        return next(codec for codec in self._codecs if codec.holds(value)).write(value, writer)

    def value(self, node: Any, reader: Reader) -> Any:
        return next(codec for codec in self._codecs if codec.fits(node, reader)).read(node, reader)


class _Tuple(Codec):
    """A tuple, of a fixed length or of values of one type."""

    def __init__(self, codecs: Sequence[Codec], any_length: bool) -> None:
        self._codecs, self._any_length = codecs, any_length
        self.needed = "a list" if any_length else f"a list of {len(codecs)}"

    def _each(self, n_values: int) -> Sequence[Codec]:
        return [*self._codecs] * n_values if self._any_length else self._codecs

    def holds(self, value: Any) -> bool:
        return isinstance(value, tuple) and len(value) == len(self._each(len(value)))

    def fits(self, node: Any, reader: Reader) -> bool:
        return isinstance(node, list) and len(node) == len(self._each(len(node)))

    def node(self, value: Any, writer: Writer) -> list[Any]:
        pairs = zip(self._each(len(value)), value, strict=True)
        return [codec.write(item, writer) for codec, item in pairs]

    def value(self, node: Any, reader: Reader) -> tuple[Any, ...]:
        pairs = zip(self._each(len(node)), node, strict=True)
        return tuple(codec.read(item, reader) for codec, item in pairs)


class _Array(Codec):
    """An array of one dtype."""

    needed = "an array"

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype

    def holds(self, value: Any) -> bool:
        return isinstance(value, np.ndarray) and value.dtype == self._dtype

    def fits(self, node: Any, reader: Reader) -> bool:
        return isinstance(node, dict) and node.keys() == {"array"}

    def node(self, value: Any, writer: Writer) -> Any:
        return {"array": writer.arrays.add(value)}

    def value(self, node: Any, reader: Reader) -> NDArray[Any]:
        array = reader.arrays.get(node["array"])
        if array.dtype != self._dtype:
            raise damaged(f"an array is of dtype {array.dtype}, and {self._dtype} is needed")
        return array


class _Labels(Codec):
    """Labels of one kind, as an array of whatever dtype."""

    needed = "labels"
    _widest = 1000  # characters for which room may be made beyond those of the longest label

    def holds(self, value: Any) -> bool:
        if not isinstance(value, np.ndarray) or value.ndim != 1:
            return False
        return value.dtype.kind in "biufUT" or {type(label) for label in value.tolist()} in ({str}, {int})

    def fits(self, node: Any, reader: Reader) -> bool:
        return isinstance(node, dict) and node.keys() in ({"array"}, {"labels", "dtype"})

    def node(self, value: Any, writer: Writer) -> Any:
        if value.dtype.kind in "biuf":
            return {"array": writer.arrays.add(value)}
        dtype = {"O": "object", "T": "T"}.get(value.dtype.kind, f"<U{value.dtype.itemsize // 4}")
        return {"labels": value.tolist(), "dtype": dtype}

    def value(self, node: Any, reader: Reader) -> LabelArray:
        if "array" in node:
            array: LabelArray = reader.arrays.get(node["array"])
            if array.ndim != 1:
                raise damaged("labels are no list")
            return array
        labels, dtype = node["labels"], node["dtype"]
        kinds = {type(label) for label in labels} if isinstance(labels, list) else set()
        if kinds != {str} and not (kinds == {int} and dtype == "object"):
            raise damaged("labels are of several types, or of one that labels do not have")
        if dtype not in ("object", "T"):
            width = re.fullmatch("<U([1-9][0-9]{0,8})", str(dtype))
            longest = max(map(len, labels))
            if not width or not longest <= int(width[1]) <= max(longest, self._widest):
                raise damaged(f"labels are of dtype {dtype!r}")
        try:
            return np.array(labels, dtype=dtype)
        except TypeError:
            raise ModelFileError("The labels are strings of NumPy 2. Install numpy>=2.") from None


class _Record(Codec):
    """An object of a dataclass."""

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self.needed = kind.__name__

    def _members(self) -> dict[str, Codec]:
        hints = _hints(self._kind)
        return {field.name: codec_of(hints[field.name]) for field in fields(self._kind)}

    def holds(self, value: Any) -> bool:
        return type(value) is self._kind

    def fits(self, node: Any, reader: Reader) -> bool:
        is_reference = isinstance(node, dict) and node.keys() == {"object"}
        return is_reference and reader.class_of(node["object"]) == self._kind.__name__

    def node(self, value: Any, writer: Writer) -> Any:
        return {"object": writer.add(value, self._members())}

    def value(self, node: Any, reader: Reader) -> object:
        return reader.get(node["object"], self._kind, self._members())


class _Constructed(Codec):
    """An object of another class, by the arguments of its constructor, which `__reduce__` gives."""

    def __init__(self, kind: Any) -> None:
        types = get_type_hints(kind.__init__)
        types.pop("return")
        self._kind, self._arguments = kind, _Tuple([codec_of(each) for each in types.values()], False)
        self.needed = self._arguments.needed

    def holds(self, value: Any) -> bool:
        return type(value) is self._kind

    def fits(self, node: Any, reader: Reader) -> bool:
        return self._arguments.fits(node, reader)

    def node(self, value: Any, writer: Writer) -> Any:
        return self._arguments.write(value.__reduce__()[1], writer)

    def value(self, node: Any, reader: Reader) -> object:
        return self._kind(*self._arguments.read(node, reader))


class _Anything(Codec):
    """What a parameter may be: a simple value, labels, or a list, tuple or dict of such values."""

    needed = "the value of a parameter"

    def __init__(self) -> None:
        simple = [codec_of(kind) for kind in (None, bool, float, str)]
        self._codecs = [_Simple(int, Integral, bits=math.inf), *simple, _Labels()]

    def holds(self, value: Any) -> bool:
        is_collection = isinstance(value, list | tuple | Mapping) or hasattr(value, "__array__")
        return is_collection or any(codec.holds(value) for codec in self._codecs)

    def fits(self, node: Any, reader: Reader) -> bool:
        return True

    def node(self, value: Any, writer: Writer) -> Any:
        if isinstance(value, list):
            return [self.write(item, writer) for item in value]
        if isinstance(value, tuple):
            return {"tuple": [self.write(item, writer) for item in value]}
        if isinstance(value, Mapping):
            return {"dict": [[self.write(part, writer) for part in item] for item in value.items()]}
        if not any(codec.holds(value) for codec in self._codecs):
            value = np.asarray(value)  # such as an index of pandas
        return _Either(self._codecs).write(value, writer)

    def value(self, node: Any, reader: Reader) -> Any:
        if isinstance(node, list):
            return [self.read(item, reader) for item in node]
        for name, kind in (("tuple", tuple), ("dict", _pairs)):
            if isinstance(node, dict) and node.keys() == {name} and isinstance(node[name], list):
                return kind(self.read(item, reader) for item in node[name])
        return _Either(self._codecs).read(node, reader)


def _pairs(items: Iterable[Any]) -> dict[Any, Any]:
    """Return a dict of the items of a parameter."""
    pairs = list(items)
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str | bool | int | float):
            raise damaged("the items of a parameter are no keys and values")
    return dict(pairs)


@cache
def codec_of(kind: Any) -> Codec:
    """Return the codec of a type, as annotations name it. Any is for parameters."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is None or kind is type(None):
        return _Simple(type(None), type(None))
    if kind is Any:
        return _Anything()
    if kind is float:
        return _Float()
    if kind in (bool, int, str):
        allowed: dict[type, Any] = {bool: (bool, np.bool_), int: Integral, str: str}
        return _Simple(kind, allowed[kind])
    if origin is Literal:
        return _OneOf({option: option for option in arguments})
    if origin in (Union, types.UnionType):
        return _Either([codec_of(argument) for argument in arguments])
    if origin is tuple:
        any_length = len(arguments) == 2 and arguments[1] is Ellipsis
        return _Tuple([codec_of(argument) for argument in arguments[: 1 if any_length else None]], any_length)
    if origin is np.ndarray:
        (scalar,) = get_args(arguments[1])
        return _Labels() if scalar in (np.generic, np.object_) else _Array(np.dtype(scalar))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _OneOf({member.name: member for member in kind})
    if is_dataclass(kind):
        return _Record(kind)  # type: ignore[arg-type]
    return _Constructed(kind)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
