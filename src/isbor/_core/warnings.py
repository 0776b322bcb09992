"""Warnings that point to the user's line of code, however deep in the package they are issued."""

import os
import sys
import warnings
from pathlib import Path

__all__ = ["warn_user"]

_PACKAGE = str(Path(__file__).parents[1]) + os.sep


def warn_user(message: str, category: type[Warning]) -> None:
    """Issue a warning that points to the first caller outside the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
