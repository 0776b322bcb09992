"""``isbor demo``."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from isbor.cli.exits import fail, in_words

__all__ = ["demo"]


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
        fail(in_words(error))
    try:
        run_demo(train, test, seed=seed, output=picture, console=Console())
    except MemoryError:
        fail(f"Not enough memory for {train:,} training rows and {test:,} test rows; ask for fewer.")
