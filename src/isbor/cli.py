"""The command ``isbor``.

A mistake of the user's is answered by one sentence on standard error and exit code 2, Ctrl-C by one line and
exit code 130. A fault of ours keeps its traceback: that is what has to be reported.
"""

import io
import shlex
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NoReturn

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
    # The option of the command itself; its callback does the work.
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


Models = Annotated[
    str | None, typer.Option(help="Some of the models only, by name, separated by commas.", metavar="A,B,…")
]
Jobs = Annotated[int | None, typer.Option(help="Parallel jobs (default: all cores).", min=1)]
TimeLimit = Annotated[float | None, typer.Option(help="Seconds per job, search included.")]
MemoryLimit = Annotated[float | None, typer.Option(help="Gigabytes of memory per job.")]
Retry = Annotated[bool, typer.Option("--retry", help="Run again what failed or was late.")]
Output = Annotated[
    Path | None, typer.Option(help="Directory of results and report; the same again goes on where it was.")
]


@app.command()
def reproduce(
    context: typer.Context,
    study: Annotated[
        str, typer.Argument(help="synthetic, benchmarks, or a .toml file that describes an experiment.")
    ],
    quick: Annotated[bool, typer.Option("--quick", help="A smaller version that takes minutes.")] = False,
    models: Models = None,
    datasets: Annotated[
        str | None,
        typer.Option(help="Some of the data sets only, by name, separated by commas.", metavar="A,B,…"),
    ] = None,
    splits: Annotated[int | None, typer.Option(help="The first so many splits only.")] = None,
    jobs: Jobs = None,
    time_limit: TimeLimit = None,
    memory_limit: MemoryLimit = None,
    retry: Retry = False,
    records: Annotated[
        Path | None, typer.Option(help="The records.jsonl of another run, whose results count as done.")
    ] = None,
    output: Output = None,
) -> None:
    """Run a study of the paper: tables, tests, figures and a page. What is done stays done."""
    commands = _experiment_commands()
    try:
        request = commands.reproduce_request(
            study,
            quick=quick,
            models=_names(models),
            datasets=_names(datasets),
            splits=splits,
            limits=(time_limit, memory_limit),
            records=records,
            output=output,
            command=context.obj,
        )
    except (OSError, ValueError, ImportError) as error:
        _fail(str(error))
    _carry_out(commands, request, jobs, retry)


@app.command()
def compare(
    context: typer.Context,
    data: Annotated[Path, typer.Argument(help="A table: .csv, .tsv (.gz) or .parquet.")],
    target: Annotated[str, typer.Option(help="Column of the labels.")],
    order: Annotated[
        str | None,
        typer.Option(help="The labels, lowest first; needed unless they are numbers.", metavar="A,B,…"),
    ] = None,
    drop: Annotated[
        str | None, typer.Option(help="Columns that are no features, such as identifiers.", metavar="A,B,…")
    ] = None,
    models: Models = None,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.")] = 5,
    rounds: Annotated[int, typer.Option(help="Cross-validations, each with other folds.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the folds.")] = 0,
    jobs: Jobs = None,
    time_limit: TimeLimit = None,
    memory_limit: MemoryLimit = None,
    retry: Retry = False,
    output: Output = None,
) -> None:
    """Compare ordinal models on a table of your own by cross-validation: table, tests and a page."""
    commands = _experiment_commands()
    try:
        request = commands.compare_request(
            data,
            target,
            order=_names(order),
            drop=_names(drop),
            models=_names(models),
            folds=folds,
            rounds=rounds,
            seed=seed,
            limits=(time_limit, memory_limit),
            output=output,
            command=context.obj,
        )
    except (OSError, ValueError, ImportError) as error:
        _fail(str(error))
    _carry_out(commands, request, jobs, retry)


def _experiment_commands() -> ModuleType:
    """Import what the experiments need: not all of it is installed everywhere."""
    try:
        from isbor.experiments import commands
    except ModuleNotFoundError as error:
        _fail(str(error))
    return commands


def _carry_out(commands: ModuleType, request: Any, jobs: int | None, retry: bool) -> None:
    try:
        commands.carry_out(request, n_jobs=jobs, retry=retry, console=Console())
    except commands.UnusableStoreError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail(commands.how_to_go_on(request), _INTERRUPTED)


def _names(text: str | None) -> list[str] | None:
    """Return the names that commas separate."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, by default with the arguments of this process, and exit."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a dash that the terminal cannot show is no reason to fail
    try:
        # Typer's own handling of errors is off: it would frame the sentence and prefix the usage.
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = app(
                arguments or ["--help"],
                prog_name="isbor",
                standalone_mode=False,
                obj=_command_to_continue(arguments),
            )
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


def _command_to_continue(arguments: Sequence[str]) -> str:
    """Return the command line to continue a run: as typed, quoted for a shell.

    ``--retry`` is left out: what it runs again has no record any more, and would be run a third time.
    """
    words = ["isbor", *(word for word in arguments if word != "--retry")]
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as one sentence, without the file and the line of code that it comes from."""
    typer.echo(f"isbor: Warning: {' '.join(str(message).split())}", err=True)


def _fail(message: str, code: int = _USER_ERROR) -> NoReturn:
    typer.echo(f"isbor: {message}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
