"""Files that appear as a whole, or not at all."""

import os
import uuid
from contextlib import suppress
from pathlib import Path

__all__ = ["UNFINISHED", "write_whole"]

UNFINISHED = "unfinished-"  # names of files that a killed process was writing begin so


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; if that fails or is interrupted, what was there before is left as it was."""
    part = path.with_name(f"{UNFINISHED}{uuid.uuid4().hex}")
    try:
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
