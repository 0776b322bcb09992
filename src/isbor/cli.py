"""The command ``isbor``.

A user's error gives one sentence on standard error and exit code 2, Ctrl-C one line and exit code 130. A bug
keeps its traceback, so that it can be reported. A command imports what it needs when it runs, so that the
help appears at once.
"""

import io
import shlex
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from isbor import __version__

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
    # The callback of the option does the work.
    pass


@app.command()
def demo(
    train: Annotated[int, typer.Option(help="Training rows, at least 100.")] = 10_000,
    test: Annotated[int, typer.Option(help="Test rows.")] = 11_000,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    output: Annotated[
        Path, typer.Option(help="File for the figure: .png, .pdf or .svg. Overwritten if it exists.")
    ] = Path("isbor-demo.png"),
    no_plot: Annotated[bool, typer.Option("--no-plot", help="Draw no figure.")] = False,
) -> None:
    """Compare ISBOR with two other models on the paper's synthetic data: a table and a figure in seconds."""
    from isbor.demo import check_request, run_demo

    picture = None if no_plot else output
    try:
        check_request(train, test, seed=seed, output=picture)
    except (OSError, ValueError) as error:
        _fail(str(error))
    try:
        run_demo(train, test, seed=seed, output=picture, console=Console())
    except MemoryError:
        _fail(f"Not enough memory for {train:,} training rows and {test:,} test rows; ask for fewer.")


Models = Annotated[str | None, typer.Option(help="Only these models, separated by commas.", metavar="A,B,…")]
Jobs = Annotated[int | None, typer.Option(help="Parallel jobs (default: all cores).", min=1)]
TimeLimit = Annotated[float | None, typer.Option(help="Seconds per job, search included.")]
MemoryLimit = Annotated[float | None, typer.Option(help="Gigabytes of memory per job.")]
Retry = Annotated[bool, typer.Option("--retry", help="Rerun jobs that failed or timed out.")]
Output = Annotated[
    Path | None, typer.Option(help="Directory for results and report. The same command again continues.")
]


@app.command()
def reproduce(
    context: typer.Context,
    study: Annotated[
        str, typer.Argument(help="synthetic, benchmarks, a .toml file, or package.module:EXPERIMENT.")
    ],
    quick: Annotated[bool, typer.Option("--quick", help="A smaller version that takes minutes.")] = False,
    models: Models = None,
    datasets: Annotated[
        str | None,
        typer.Option(help="Only these data sets, separated by commas.", metavar="A,B,…"),
    ] = None,
    splits: Annotated[int | None, typer.Option(help="Only the first splits, this many.")] = None,
    jobs: Jobs = None,
    time_limit: TimeLimit = None,
    memory_limit: MemoryLimit = None,
    retry: Retry = False,
    records: Annotated[
        Path | None, typer.Option(help="records.jsonl of another run; its results count as done.")
    ] = None,
    output: Output = None,
) -> None:
    """Run a study of the paper and report tables, tests and figures. Finished jobs are kept."""
    _run(
        lambda commands: commands.reproduce_request(
            study,
            quick=quick,
            models=_names(models),
            datasets=_names(datasets),
            splits=splits,
            limits={"seconds": time_limit, "memory": memory_limit},
            records=records,
            output=output,
            command=context.obj,
        ),
        jobs,
        retry,
    )


@app.command()
def compare(
    context: typer.Context,
    data: Annotated[Path, typer.Argument(help="A table: .csv, .tsv (.gz) or .parquet.")],
    target: Annotated[str, typer.Option(help="Column of the labels.")],
    order: Annotated[
        str | None,
        typer.Option(help="Labels, lowest first; needed if they are text.", metavar="A,B,…"),
    ] = None,
    drop: Annotated[
        str | None, typer.Option(help="Columns that are not features, such as identifiers.", metavar="A,B,…")
    ] = None,
    models: Models = None,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.", min=2)] = 5,
    rounds: Annotated[int, typer.Option(help="Repetitions, each with new folds.", min=1)] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the folds.")] = 0,
    jobs: Jobs = None,
    time_limit: TimeLimit = None,
    memory_limit: MemoryLimit = None,
    retry: Retry = False,
    output: Output = None,
) -> None:
    """Compare ordinal models on your own table by cross-validation, and report tables and tests."""
    _run(
        lambda commands: commands.compare_request(
            data,
            target,
            order=_names(order),
            drop=_names(drop),
            models=_names(models),
            folds=folds,
            rounds=rounds,
            seed=seed,
            limits={"seconds": time_limit, "memory": memory_limit},
            output=output,
            command=context.obj,
        ),
        jobs,
        retry,
    )


def _run(make_request: Callable[[ModuleType], Any], jobs: int | None, retry: bool) -> None:
    """Check a request and carry it out; the dependencies of experiments are optional."""
    try:
        from isbor.experiments import commands

        request = make_request(commands)
    except (OSError, ValueError, ImportError) as error:
        _fail(str(error))
    try:
        commands.carry_out(request, n_jobs=jobs, retry=retry, console=Console())
    except commands.UnusableStoreError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail(commands.how_to_continue(request), _INTERRUPTED)


def _names(text: str | None) -> list[str] | None:
    """Return names separated by commas."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, by default with the arguments of this process, and exit."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # for terminals that cannot show a dash
    try:
        # Typer's error handling is off: it would frame the sentence and print the usage.
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = app(
                arguments or ["--help"],
                prog_name="isbor",
                standalone_mode=False,
                obj=_command_to_continue(arguments),
            )
    except (KeyboardInterrupt, typer.Abort):  # older versions of Typer raise the second
        code = _INTERRUPTED
    except OSError as error:
        _fail(str(error))
    except Exception as error:
        # Errors in the arguments: their class differs between versions of Typer, this method does not.
        if not hasattr(error, "format_message"):
            raise
        _fail(error.format_message())
    if code == _INTERRUPTED:
        _fail("Interrupted.", _INTERRUPTED)
    sys.exit(code)


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


def _fail(message: str, code: int = _USER_ERROR) -> NoReturn:
    typer.echo(f"isbor: {message}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
