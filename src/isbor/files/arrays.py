"""Arrays as bytes, one after the other, and a table that says what they are."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isbor.files.errors import ModelFileError, damaged

__all__ = ["ArrayReader", "ArrayWriter"]

_MAX_DIMENSIONS = 3
_DTYPES = {
    code: np.dtype(code) for code in ("|b1", *(f"<{kind}{size}" for kind in "iu" for size in (2, 4, 8)))
} | {code: np.dtype(code) for code in ("|i1", "|u1", "<f2", "<f4", "<f8")}


class ArrayWriter:
    """Collects arrays. Equal arrays are written once."""

    def __init__(self) -> None:
        self.table: list[dict[str, Any]] = []
        self._contents: list[bytes] = []
        self._places: dict[tuple[object, ...], int] = {}

    def add(self, array: NDArray[Any]) -> int:
        """Add an array; return its place in the table."""
        code = array.dtype.newbyteorder("<").str
        if code not in _DTYPES or array.ndim > _MAX_DIMENSIONS:
            raise ModelFileError(
                f"An array of dtype {array.dtype} with {array.ndim} dimensions cannot be stored; numbers of "
                "at most 64 bits and booleans can. Convert the labels, for example with astype(int)."
            )
        order: Literal["C", "F"] = "F" if array.ndim > 1 and _is_by_columns(array) else "C"
        content = array.astype(_DTYPES[code], copy=False).tobytes(order=order)
        key = code, array.shape, order, content
        if key not in self._places:
            self._places[key] = len(self.table)
            self.table.append({"dtype": code, "shape": list(array.shape), "order": order})
            self._contents.append(content)
        return self._places[key]

    def content(self) -> bytes:
        """Return the bytes of all arrays."""
        return b"".join(self._contents)


def _is_by_columns(array: NDArray[Any]) -> bool:
    """Whether the first index moves fastest in memory, also for a part of an array."""
    return not array.flags.c_contiguous and abs(array.strides[0]) < abs(array.strides[-1])


class ArrayReader:
    """The arrays of a file, checked against their table."""

    def __init__(self, table: object, content: bytes) -> None:
        if not isinstance(table, list):
            raise damaged("it has no table of arrays")
        self._arrays: list[NDArray[Any]] = []
        start = 0
        for entry in table:
            dtype, shape, order = _checked_entry(entry, len(content))
            end = start + math.prod(shape) * dtype.itemsize
            if end > len(content):
                raise damaged("its arrays are larger than the file")
            array: NDArray[Any] = np.ndarray(shape, dtype, content, start, order=order)
            if dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
                raise damaged("an array of booleans holds other values")
            self._arrays.append(array)
            start = end
        if start != len(content):
            raise damaged("its arrays are smaller than the file")

    def get(self, place: object) -> NDArray[Any]:
        """Return an array at a place of the table, a copy that can be written to."""
        if type(place) is not int or not 0 <= place < len(self._arrays):
            raise damaged(f"it has no array {place!r}")
        array = self._arrays[place]
        dtype = np.dtype(np.intp) if array.dtype == np.int64 else array.dtype.newbyteorder("=")
        return array.astype(dtype, order="K", copy=True)


def _checked_entry(entry: object, n_bytes: int) -> tuple[np.dtype[Any], Sequence[int], Literal["C", "F"]]:
    """Return dtype, shape and order of an array."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "order"}:
        raise damaged("an entry of the table of arrays is none")
    code, shape, order = entry["dtype"], entry["shape"], entry["order"]
    if not isinstance(code, str) or code not in _DTYPES or order not in ("C", "F"):
        raise damaged(f"it has an array of dtype {code!r} in the order {order!r}")
    is_shape = isinstance(shape, list) and len(shape) <= _MAX_DIMENSIONS
    if not is_shape or not all(type(size) is int and 0 <= size <= n_bytes for size in shape):
        raise damaged(f"it has an array of shape {shape!r}")
    return _DTYPES[code], shape, order
