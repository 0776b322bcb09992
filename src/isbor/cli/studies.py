"""``isbor reproduce`` and ``isbor compare``: thin over `isbor.experiments.commands`."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from rich.console import Console

from isbor.cli.exits import INTERRUPTED, fail, in_words
from isbor.cli.options import names

__all__ = ["compare", "reproduce"]

Models = Annotated[str | None, typer.Option(help="Only these models, separated by commas.", metavar="A,B,…")]
Jobs = Annotated[int | None, typer.Option(help="Parallel jobs (default: all cores).", min=1)]
TimeLimit = Annotated[float | None, typer.Option(help="Seconds per job, search included.")]
MemoryLimit = Annotated[float | None, typer.Option(help="Gigabytes of memory per job.")]
Retry = Annotated[bool, typer.Option("--retry", help="Rerun jobs that failed or timed out.")]
Output = Annotated[
    Path | None, typer.Option(help="Directory for results and report. The same command again continues.")
]


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
            models=names(models),
            datasets=names(datasets),
            splits=splits,
            limits={"seconds": time_limit, "memory": memory_limit},
            records=records,
            output=output,
            command=context.obj,
        ),
        jobs,
        retry,
    )


def compare(
    context: typer.Context,
    data: Annotated[Path, typer.Argument(help="A table: .csv, .tsv (.gz) or .parquet.")],
    target: Annotated[str, typer.Option(help="Column of the labels.")],
    order: Annotated[
        str | None,
        typer.Option(help="Labels, lowest first; needed if they are text.", metavar="A,B,…"),
    ] = None,
    ignore: Annotated[
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
            order=names(order),
            drop=names(ignore),
            models=names(models),
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
        fail(in_words(error))
    try:
        commands.carry_out(request, n_jobs=jobs, retry=retry, console=Console())
    except commands.UnusableStoreError as error:
        fail(in_words(error))
    except KeyboardInterrupt:
        fail(commands.how_to_continue(request), INTERRUPTED)
