"""Where the names of classes go in a picture: in their regions, inside the frame, not on each other."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from isbor._core.types import FloatArray, IntArray
from isbor.plots.common import shorten

__all__ = ["Label", "place_labels"]

_ENOUGH = 0.03  # of the side of the grid: the distance from its edges that a region's label needs
_LONGEST, _LINE = 36, 18  # characters in a label, and in a line of it
_SHORT = 6  # characters; longer names are set smaller
# In font sizes: the width of a bold character, the height of a line, and the box around the text.
_CHARACTER, _LINE_HEIGHT, _PADDING = 0.68, 1.2, 0.6


@dataclass(frozen=True, slots=True)
class Label:
    """A class named in a region of the picture."""

    text: str
    size: float  # of the font, in points
    row: int  # the grid point in the middle of the label
    column: int


def place_labels(
    predicted: IntArray, free: NDArray[np.bool_], names: Sequence[str], frame: tuple[float, float]
) -> list[Label]:
    """Name the class of each connected region at the point farthest from its edges.

    A region without room, or in which a label would cover another, is left out, except that every class
    that occurs is named once.

    Parameters
    ----------
    predicted : (n, n) position in `names` of the class at each point of a grid
    free : (n, n) where the middle of a label should be
    names : of the classes
    frame : width and height of the grid in the picture, in points
    """
    n = len(predicted)
    texts = [textwrap.fill(shorten(name, _LONGEST), _LINE) for name in names]
    size = 12.0 if max(map(len, texts)) <= _SHORT else 9.0
    half = [_half_extent(text, size) * n / np.array(frame)[::-1] for text in texts]
    placed: list[tuple[int, IntArray]] = []
    for code, room, is_needed in _regions(predicted, free):
        margin = np.minimum(half[code], 0.5 * (n - 1))
        inside = _rectangle(n, np.full(2, 0.5 * (n - 1)), 0.5 * (n - 1) - margin)
        apart = inside.copy()
        for other, spot in placed:
            apart &= ~_rectangle(n, spot, half[code] + half[other])
        for allowed in (apart, inside, True) if is_needed else (apart,):
            candidates = np.where(allowed, room, 0.0)
            if candidates.max() > (0.0 if is_needed else _ENOUGH * n):
                spot = np.array(np.unravel_index(np.argmax(candidates), room.shape))
                placed.append((code, np.clip(spot, margin, n - 1 - margin).astype(np.intp)))
                break
    return [Label(texts[code], size, int(row), int(column)) for code, (row, column) in placed]


def _regions(predicted: IntArray, free: NDArray[np.bool_]) -> list[tuple[int, FloatArray, bool]]:
    """Return the regions: class, distance of each point from the edges, and whether it must be named.

    The roomiest region of a class must be named. These come first, the tightest ahead, because it has the
    least choice; then the others, the roomiest ahead.
    """
    needed, others = [], []
    for code in np.unique(predicted).tolist():
        regions, n_regions = ndimage.label(predicted == code)
        # The padding counts the frame of the picture as an edge.
        room = ndimage.distance_transform_edt(np.pad((predicted == code) & free, 1))[1:-1, 1:-1]
        if not room.any():
            room = np.where(predicted == code, 1.0, 0.0)
        most = ndimage.maximum(room, regions, range(1, n_regions + 1))
        for k in range(n_regions):
            if k == np.argmax(most):
                needed.append((code, np.where(regions == k + 1, room, 0.0), True))
            elif most[k] > _ENOUGH * len(predicted):
                others.append((code, np.where(regions == k + 1, room, 0.0), False))
    needed.sort(key=lambda region: region[1].max())
    others.sort(key=lambda region: -region[1].max())
    return needed + others


def _half_extent(text: str, size: float) -> FloatArray:
    """Return half the height and half the width of a label in points."""
    lines = text.split("\n")
    extent = np.array([_LINE_HEIGHT * len(lines), _CHARACTER * max(map(len, lines))]) + _PADDING
    return 0.5 * size * extent


def _rectangle(n: int, centre: FloatArray | IntArray, half: FloatArray) -> NDArray[np.bool_]:
    """Return which points of a grid lie in a rectangle."""
    rows, columns = (np.abs(np.arange(n) - c) <= h for c, h in zip(centre, half, strict=True))
    both: NDArray[np.bool_] = rows[:, np.newaxis] & columns
    return both
