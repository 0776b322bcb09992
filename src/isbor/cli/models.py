"""The commands for models: arguments only, the work is in `isbor.cli.modelling`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from isbor.cli.exits import fail, in_words
from isbor.cli.options import names

__all__ = ["evaluate", "explain", "export", "fit", "info", "predict"]

Table = Annotated[str, typer.Argument(help="A table: .csv, .tsv (.gz) or .parquet; - is CSV from a pipe.")]
Model = Annotated[Path, typer.Argument(help="A model file, which isbor fit or save wrote.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no report.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Delimiter = Annotated[
    str | None, typer.Option(help="Character between columns of a CSV file (default: found out).")
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of a CSV file (default: by its mark, else UTF-8).")
]


def fit(
    table: Table,
    target: Annotated[str, typer.Option(help="Column of the labels.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File for the model. Overwritten if it exists.")
    ],
    order: Annotated[
        str | None, typer.Option(help="Labels, lowest first; needed if they are text.", metavar="A,B,…")
    ] = None,
    ignore: Annotated[
        str | None, typer.Option(help="Columns that are not features, such as identifiers.", metavar="A,B,…")
    ] = None,
    weight: Annotated[str | None, typer.Option(help="Column of the weights of rows.")] = None,
    basis: Annotated[
        Literal["auto", "rbf", "mixed"], typer.Option(help="Family of basis functions.")
    ] = "auto",
    max_vectors: Annotated[int | None, typer.Option(help="Largest number of basis functions.", min=1)] = None,
    effort: Annotated[
        Literal["fast", "default", "thorough"], typer.Option(help="How much is tried.")
    ] = "default",
    max_time: Annotated[float | None, typer.Option(help="Seconds after which the search ends.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the search (default: a fixed order).")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder for finished steps. The same command again continues.")
    ] = None,
    training_rows: Annotated[
        bool, typer.Option("--training-rows", help="Store the rows that partial_fit goes on from.")
    ] = False,
    cv: Annotated[
        int | None, typer.Option(help="Folds that measure the error; 0: none (default: 5 up to 5,000 rows).")
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    quiet: Quiet = False,
) -> None:
    """Fit a model to a table, save it, and say what it is like."""
    with _users_errors():
        from isbor.cli.modelling.fitting import FitRequest, fit_model

        request = FitRequest(
            target=target,
            output=output,
            order=names(order),
            ignore=names(ignore) or [],
            weight=weight,
            parameters={
                "basis": basis,
                "max_vectors": max_vectors,
                "effort": effort,
                "max_time": max_time,
                "random_state": seed,
            },
            checkpoint=checkpoint,
            training_rows=training_rows,
            folds=cv,
            quiet=quiet,
        )
        fit_model(table, request, delimiter=delimiter, encoding=encoding)


def predict(
    model: Model,
    table: Table,
    output: Annotated[
        str, typer.Option("--output", "-o", help="A .csv, .tsv or .parquet file; - is standard output.")
    ] = "-",
    proba: Annotated[bool, typer.Option("--proba", help="Add class probabilities.")] = False,
    interval: Annotated[
        float | None, typer.Option(help="Add bands around class probabilities of this coverage, such as 0.9.")
    ] = None,
    score: Annotated[bool, typer.Option("--score", help="Add the latent score.")] = False,
    loss: Annotated[
        Literal["absolute", "zero_one", "quadratic"], typer.Option(help="Loss that predictions minimise.")
    ] = "absolute",
    keep: Annotated[bool, typer.Option("--keep", help="Copy the columns of the table.")] = False,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    quiet: Quiet = False,
) -> None:
    """Predict the rows of a table, which may be larger than memory."""
    with _users_errors():
        from isbor.cli.modelling.predicting import Wanted, predict_table

        wanted = Wanted(loss=loss, probabilities=proba, coverage=interval, score=score, keep=keep)
        n_rows = predict_table(model, table, output, wanted, delimiter=delimiter, encoding=encoding)
        if not quiet and output != "-":
            typer.echo(f"{n_rows:,} rows predicted: {output}", err=True)


def evaluate(
    model: Model,
    table: Table,
    target: Annotated[str, typer.Option(help="Column of the true labels.")],
    as_json: Json = False,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
) -> None:
    """Compare predictions with true labels: scores beside those of a constant, and a confusion table."""
    with _users_errors():
        from isbor.cli.modelling.evaluating import evaluate_model

        report = evaluate_model(model, table, target, delimiter=delimiter, encoding=encoding)
        typer.echo(report.as_json() if as_json else str(report))


def info(model: Model, as_json: Json = False) -> None:
    """Say what a model file holds."""
    with _users_errors():
        from isbor.cli.modelling.describing import as_json_text, as_text, describe_model

        description = describe_model(model)
        typer.echo(as_json_text(description) if as_json else as_text(description))


def explain(
    model: Model,
    table: Table,
    row: Annotated[
        int | None, typer.Option(help="Only this row, counted from 0 (default: the first 3).", min=0)
    ] = None,
    as_json: Json = False,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
) -> None:
    """Say what each feature contributes to the scores of some rows."""
    with _users_errors():
        from isbor.cli.modelling.explaining import as_json_text, as_text, explain_rows

        found = explain_rows(model, table, row, delimiter=delimiter, encoding=encoding)
        typer.echo(as_json_text(*found) if as_json else as_text(*found))


def export(
    model: Model,
    html: Annotated[
        Path | None, typer.Option(help="Write a page that predicts in any browser, without a server.")
    ] = None,
    json: Annotated[
        Path | None, typer.Option(help="Write the model as JSON, for programs in other languages.")
    ] = None,
    onnx: Annotated[
        Path | None, typer.Option(help="Write labels and probabilities as an ONNX graph, for runtimes.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    no_bands: Annotated[
        bool, typer.Option("--no-bands", help="Leave out what bands need: pages and JSON are smaller.")
    ] = False,
    onnx_dtype: Annotated[
        Literal["float32", "float64"], typer.Option(help="Type of numbers in and out of the ONNX graph.")
    ] = "float32",
) -> None:
    """Write a model for use without Python: a page, JSON, or ONNX. Files that exist are overwritten."""
    with _users_errors():
        if html is None and json is None and onnx is None:
            raise ValueError(
                "Nothing is to be written. Give --html page.html, --json model.json, or --onnx model.onnx."
            )
        from isbor.estimators.loading import load
        from isbor.export import to_html, to_json, to_onnx

        fitted = load(model)
        if json is not None:
            to_json(fitted, json, bands=not no_bands)
        if html is not None:
            to_html(fitted, html, title=title, bands=not no_bands)
        if onnx is not None:
            to_onnx(fitted, onnx, dtype=onnx_dtype)
        for path in (html, json, onnx):
            if path is not None:
                typer.echo(f"{path}: {path.stat().st_size / 1000:,.0f} kB", err=True)


@contextmanager
def _users_errors() -> Iterator[None]:
    """Turn the errors that the library raises about files, tables and values into one sentence."""
    try:
        yield
    except BrokenPipeError:
        from isbor.cli.exits import ClosedPipeError

        raise ClosedPipeError from None
    except (OSError, ValueError, ImportError, MemoryError) as error:
        message = in_words(error) or "Not enough memory for this table."
        if "UTF8" in message:
            message += " Name the encoding of the file, such as --encoding cp1252."
        fail(message)
