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
_LONGEST, _LINE = 36, 18  # characters of a label and of a line of it
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
    codes = np.unique(predicted).tolist()
    texts = {code: textwrap.fill(shorten(names[code], _LONGEST), _LINE) for code in codes}
    size = 12.0 if max(map(len, texts.values())) <= _SHORT else 9.0
    reach = {code: _reach(text, size, frame, len(predicted)) for code, text in texts.items()}
    placed: list[tuple[int, IntArray]] = []
    for code, room, is_needed in _regions(predicted, free):
        margin = reach[code]
        inside = ~_beyond(len(predicted), margin)
        apart = inside.copy()
        for other, spot in placed:
            apart &= _beyond(len(predicted), margin + reach[other], spot)
        least = 0.0 if is_needed else _ENOUGH * len(predicted)
        for allowed in (apart, inside, True)[: 3 if is_needed else 1]:
            candidates = np.where(allowed, room, 0.0)
            if candidates.max() > least:
                spot = np.array(np.unravel_index(np.argmax(candidates), room.shape))
                placed.append((code, np.clip(spot, margin, len(predicted) - 1 - margin).astype(np.intp)))
                break
    return [Label(texts[code], size, int(row), int(column)) for code, (row, column) in placed]


def _regions(predicted: IntArray, free: NDArray[np.bool_]) -> list[tuple[int, FloatArray, bool]]:
    """Return class, distances from the edges, (n, n), and whether it is the roomiest of its class.

    Those come first, the tightest at the head, because it has the least choice; then the others.
    """
    found = []
    for code in np.unique(predicted).tolist():
        regions, n_regions = ndimage.label(predicted == code)
        # The padding counts the frame of the picture as an edge.
        room = ndimage.distance_transform_edt(np.pad((predicted == code) & free, 1))[1:-1, 1:-1]
        if not room.any():
            room = np.where(predicted == code, 1.0, 0.0)
        most = ndimage.maximum(room, regions, range(1, n_regions + 1))
        roomiest = int(np.argmax(most))
        found += [(code, np.where(regions == k + 1, room, 0.0), k == roomiest) for k in range(n_regions)]
    return sorted(found, key=lambda region: (not region[2], region[1].max() * (1 if region[2] else -1)))


def _reach(text: str, size: float, frame: tuple[float, float], n: int) -> FloatArray:
    """Return half the height and half the width of a label, in steps of the grid."""
    lines = text.split("\n")
    height = size * (_LINE_HEIGHT * len(lines) + _PADDING)
    width = size * (_CHARACTER * max(map(len, lines)) + _PADDING)
    return np.minimum(0.5 * n * np.array([height / frame[1], width / frame[0]]), 0.5 * (n - 1))


def _beyond(n: int, reach: FloatArray, spot: IntArray | None = None) -> NDArray[np.bool_]:
    """Return which points of the grid are farther from a point, or nearer to the frame, than the reach."""
    if spot is None:
        beyond = [np.minimum(np.arange(n), np.arange(n)[::-1]) < least for least in reach]
    else:
        beyond = [np.abs(np.arange(n) - place) > least for place, least in zip(spot, reach, strict=True)]
    either: NDArray[np.bool_] = beyond[0][:, np.newaxis] | beyond[1]
    return either
