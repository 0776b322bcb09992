"""The application: its commands, and how each of them ends."""

import io
import os
import shlex
import subprocess
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from isbor import __version__
from isbor.cli.demo import demo
from isbor.cli.exits import CLOSED_PIPE, INTERRUPTED, ClosedPipeError, fail, in_words
from isbor.cli.models import evaluate, explain, export, fit, info, predict
from isbor.cli.studies import compare, reproduce

__all__ = ["main"]

app = typer.Typer(
    help="Sparse Bayesian ordinal regression: accurate, calibrated, and nothing to tune.",
    add_completion=True,
    pretty_exceptions_enable=False,
)
for _command in (fit, predict, evaluate, info, explain, export, compare, demo, reproduce):
    app.command()(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"isbor {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    # The callback of the option does the work.
    pass


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, by default with the arguments of this process, and exit."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # for terminals that cannot show a dash
    try:
        code = _run(arguments)
        _flush()
    except ClosedPipeError:
        _give_up_output()
        code = CLOSED_PIPE
    except OSError as error:
        _give_up_output()
        fail(in_words(error))
    if code == INTERRUPTED:
        fail("Interrupted.", INTERRUPTED)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """Return the exit code of a command."""
    try:
        # Typer's error handling is off: it would frame the sentence and print the usage.
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code: int = app(
                arguments or ["--help"],
                prog_name="isbor",
                standalone_mode=False,
                obj=_command_to_continue(arguments),
            )
            return code
    except (KeyboardInterrupt, typer.Abort):  # older versions of Typer raise the second
        return INTERRUPTED
    except (ClosedPipeError, OSError):
        raise
    except Exception as error:
        # Errors in the arguments: their class differs between versions of Typer, this method does not.
        if not hasattr(error, "format_message"):
            raise
        fail(error.format_message())


def _flush() -> None:
    """Write what waits, so that what goes wrong is noticed here."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise ClosedPipeError from None


def _give_up_output() -> None:
    """Let the interpreter, which flushes once more at its end, not meet the same error again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _command_to_continue(arguments: Sequence[str]) -> str:
    """Return the command that continues a run: as typed, quoted for the shell.

    ``--retry`` is left out: jobs to be rerun have lost their records already, and those that failed again
    should not run a third time.
    """
    words = ["isbor", *(word for word in arguments if word != "--retry")]
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning without its file and line of code."""
    typer.echo(f"isbor: Warning: {' '.join(str(message).split())}", err=True)
