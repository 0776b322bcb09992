"""Small pictures of characters."""

from collections.abc import Sequence

import numpy as np

__all__ = ["axis", "bar"]

_BAR_WIDTH = 24
_AXIS_WIDTH = 64
_REACH = 2.5  # an axis of scores reaches at least so far; training scores have standard deviation 1


def bar(share: float) -> str:
    """Return a bar for a share from 0 to 1.

    >>> bar(0.25)
    '######'
    """
    return "#" * round(_BAR_WIDTH * share)


def axis(thresholds: Sequence[float], names: Sequence[str]) -> str:
    """Return an axis of scores that thresholds cut into classes; names that do not fit are cut.

    >>> axis([0.0], ["low", "high"])
    '-2.5 --------------low--------------|--------------high-------------- 2.5'
    """
    low, high = min(-_REACH, *thresholds), max(_REACH, *thresholds)
    places = np.rint((np.array(thresholds) - low) / (high - low) * _AXIS_WIDTH).astype(int)
    widths = np.diff([0, *places, _AXIS_WIDTH + 1]) - 1
    classes = (
        f"{name[: max(width, 0)]:-^{max(width, 0)}}" for name, width in zip(names, widths, strict=True)
    )
    return f"{low:.1f} {'|'.join(classes)} {high:.1f}"
