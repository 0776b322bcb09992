"""Files that appear as a whole, or not at all."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["UNFINISHED", "whole_file", "write_whole"]

UNFINISHED = "unfinished-"  # names of files that a killed process was writing begin so


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name when the block ends.

    If that fails or is interrupted, what was there before is left as it was.
    """
    part = path.with_name(f"{UNFINISHED}{uuid.uuid4().hex}")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; if that fails or is interrupted, what was there before is left as it was."""
    with whole_file(path) as file:
        file.write(content)
