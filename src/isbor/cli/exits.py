"""How a command ends: exit codes, and one sentence on standard error."""

import sys
from typing import NoReturn

import typer

__all__ = ["CLOSED_PIPE", "INTERRUPTED", "USER_ERROR", "ClosedPipeError", "fail"]

USER_ERROR = 2
INTERRUPTED = 130
CLOSED_PIPE = 141  # what a shell says of programs that such a pipe ends


class ClosedPipeError(Exception):
    """Nobody reads standard output any more, as after ``isbor … | head``.

    Not an OSError, which Typer would turn into another exit code.
    """


def fail(message: str, code: int = USER_ERROR) -> NoReturn:
    """Print one sentence and exit."""
    typer.echo(f"isbor: {message}", err=True)
    sys.exit(code)
