"""Warnings that point at the user's line, however deep in the package they arise."""

import sys
import warnings
from pathlib import Path

__all__ = ["warn_user"]

_PACKAGE = str(Path(__file__).parents[1])


def warn_user(message: str, category: type[Warning]) -> None:
    """Issue a warning that names the line of the caller outside the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
