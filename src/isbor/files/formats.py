"""Versions of the format, and how files of earlier ones become files of this one.

The format has a number of its own. It rises whenever a class that files hold gets, loses or renames a member,
or a member changes its meaning. Then `_LATER` gets a function that makes a description of the new format of
one of the format before, and tests/files/examples a file that the new version wrote.
"""

from collections.abc import Callable
from typing import Any

from isbor._version import __version__
from isbor.files.errors import ModelFileError, damaged

__all__ = ["FORMAT", "in_this_format"]

FORMAT = 1

_Description = dict[str, Any]
_LATER: dict[int, Callable[[_Description], _Description]] = {}  # by the format before


def in_this_format(description: object) -> _Description:
    """Return the description of a model as this version would have written it."""
    if not isinstance(description, dict):
        raise damaged("model.json holds no object")
    number, version = description.get("format"), description.get("isbor")
    if type(number) is not int or number < 1 or not isinstance(version, str):
        raise damaged("it does not say which version of isbor wrote it")
    if number > FORMAT:
        raise ModelFileError(
            f"The file has format {number} and was written by isbor {version[:30]}; this is isbor "
            f"{__version__}, which reads formats up to {FORMAT}. Install isbor {version[:30]} or later."
        )
    for earlier in range(number, FORMAT):
        description = _LATER[earlier](description)
    return description
