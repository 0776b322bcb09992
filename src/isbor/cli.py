"""The command ``isbor``.

A mistake of the user's is answered by one sentence on standard error and exit code 2, Ctrl-C by one line and
exit code 130. A fault of ours keeps its traceback: that is what has to be reported.
"""

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from isbor import __version__
from isbor.demo import LEAST_ROWS, check_request, run_demo

__all__ = ["app", "main"]

_USER_ERROR = 2
_INTERRUPTED = 130

app = typer.Typer(
    help="Sparse Bayesian ordinal regression: accurate, calibrated, and nothing to tune.",
    add_completion=False,
    pretty_exceptions_enable=False,
)


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
    # A callback, though it does nothing itself, keeps `demo` a command by name while it is the only one.
    pass


@app.command()
def demo(
    train: Annotated[int, typer.Option(help=f"Rows to fit to, at least {LEAST_ROWS}.")] = 10_000,
    test: Annotated[int, typer.Option(help="Rows to test on.")] = 11_000,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    output: Annotated[
        Path, typer.Option(help="File for the picture: .png, .pdf or .svg. An older one is replaced.")
    ] = Path("isbor-demo.png"),
    no_plot: Annotated[bool, typer.Option("--no-plot", help="Draw no picture.")] = False,
) -> None:
    """Fit ISBOR to the paper's synthetic data beside two other models: a table and a picture in seconds."""
    picture = None if no_plot else output
    try:
        check_request(train, test, seed=seed, output=picture)
    except (OSError, ValueError) as error:
        _fail(str(error))
    try:
        run_demo(train, test, seed=seed, output=picture, console=Console())
    except MemoryError:
        _fail(
            f"There is not enough memory for {train:,} rows to fit to and {test:,} to test on; ask for fewer."
        )


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, by default with the arguments of this process, and exit."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a dash that the terminal cannot show is no reason to fail
    try:
        # Typer's own handling of errors is off: it would frame the sentence and prefix the usage.
        code = app(arguments or ["--help"], prog_name="isbor", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):  # older versions of Typer turn the first into the second
        code = _INTERRUPTED
    except OSError as error:
        _fail(str(error))
    except Exception as error:
        # Errors in the arguments. Their class has moved between versions of Typer, this method has not.
        if not hasattr(error, "format_message"):
            raise
        _fail(error.format_message())
    if code == _INTERRUPTED:
        _fail("Interrupted.", _INTERRUPTED)
    sys.exit(code)


def _fail(message: str, code: int = _USER_ERROR) -> NoReturn:
    typer.echo(f"isbor: {message}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
