"""How a command ends: exit codes, and one sentence on standard error."""

import errno
import sys
from typing import NoReturn

import typer

__all__ = ["CLOSED_PIPE", "INTERRUPTED", "USER_ERROR", "ClosedPipeError", "fail", "in_words"]

USER_ERROR = 2
INTERRUPTED = 130
CLOSED_PIPE = 141  # what a shell says of programs that such a pipe ends


class ClosedPipeError(Exception):
    """Nobody reads standard output any more, as after ``isbor … | head``.

    Not an OSError, which Typer would turn into another exit code.
    """


def in_words(error: BaseException) -> str:
    """Return what an error says as one line; of an error of the operating system, without its number."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return (
            "No space is left on the disk: the output was not written. Free some, or write to another disk."
        )
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.strerror}: {str(error.filename)!r}."
    return " ".join(str(error).split())


def fail(message: str, code: int = USER_ERROR) -> NoReturn:
    """Print one sentence and exit."""
    typer.echo(f"isbor: {message}", err=True)
    sys.exit(code)
