"""``isbor fit``: a table becomes a model file and a report."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer

from isbor.cli.modelling.describing import as_text
from isbor.cli.modelling.evaluating import Evaluation, label_codes
from isbor.cli.modelling.labels import LabelledTable
from isbor.cli.modelling.outputs import check_output
from isbor.cli.modelling.tables import UserTable, user_table
from isbor.data.folds import fold_numbers
from isbor.estimators.description import Description
from isbor.estimators.isbor import ISBOR
from isbor.sources.arrow import pyarrow

__all__ = ["FitRequest", "fit_model"]

_USUAL_FOLDS = 5
_MOST_ROWS = 5_000  # with more, cross-validation must be asked for


@dataclass(frozen=True, slots=True)
class FitRequest:
    """What the options of the command say."""

    target: str
    output: Path
    order: Sequence[str] | None
    ignore: Sequence[str]
    weight: str | None
    parameters: Mapping[str, Any]  # of `ISBOR`
    checkpoint: Path | None
    training_rows: bool
    folds: int | None  # of the cross-validation; None: as many as usual
    quiet: bool

    def check(self) -> None:
        """Raise an error for what can be seen before a table is read."""
        check_output(self.output)
        if self.order is not None and len(set(self.order)) < max(2, len(self.order)):
            raise ValueError(
                f"--order names {', '.join(self.order)}; at least 2 different labels are needed."
            )
        if self.folds is not None and (self.folds < 0 or self.folds == 1):
            raise ValueError(f"--cv is {self.folds}; at least 2 folds are needed, or 0 for none.")

    def check_columns(self, table: UserTable) -> None:
        """Raise an error if a column that an option names does not exist."""
        for option, name in (
            ("--target", self.target),
            *([("--weight", self.weight)] if self.weight is not None else []),
            *(("--ignore", name) for name in self.ignore),
        ):
            table.check_column(option, name)


def fit_model(path: str, request: FitRequest, *, delimiter: str | None, encoding: str | None) -> None:
    """Fit a model to a table, save it, and print the report."""
    request.check()
    names = [request.target, *request.ignore, *([] if request.weight is None else [request.weight])]
    with user_table(path, names=names, delimiter=delimiter, encoding=encoding) as table:
        request.check_columns(table)
        opened = table.open(
            text=[request.target] if request.order is not None else (),
            target=request.target,
            weight=request.weight,
            ignore=request.ignore,
        )
        labelled = LabelledTable(opened, request.target, request.order)
        classes = None if request.order is None else _classes(labelled, request.order, table)
        parameters = {**request.parameters, "classes": classes}
        model = ISBOR(**parameters, checkpoint=request.checkpoint, verbose=0 if request.quiet else 1)
        model.fit(labelled)
        model.save(request.output, training_rows=request.training_rows)
        if request.quiet:
            return
        counts = tuple(labelled.counts[label] for label in model.classes_.tolist())
        typer.echo(f"{request.output}: a model of {sum(counts):,} rows")
        typer.echo(as_text(Description.of(model, counts)))
        typer.echo(_error(labelled, model, parameters, request.folds))


def _classes(labelled: LabelledTable, order: Sequence[str], table: UserTable) -> Sequence[Any]:
    """Return the labels of the order in the type of the column: in Parquet files it may be numbers."""
    if table.form is not None:
        return order
    first: Any = next(labelled.blocks(), None)
    if first is None:
        return order
    found = set(first.y.unique().to_pylist())
    by_text = {str(label): label for label in found}
    kind = type(next(iter(found)))
    return [by_text.get(label, label if kind is str else kind(label)) for label in order]


def _error(labelled: LabelledTable, model: ISBOR, parameters: Mapping[str, Any], folds: int | None) -> str:
    """Say how large the error of such a model is on rows that it was not fitted to."""
    n_rows = labelled.counts.total()
    if folds is None:
        folds = _USUAL_FOLDS if n_rows <= _MOST_ROWS else 0
    if folds == 0:
        return (
            "Error on new rows: not measured; isbor evaluate measures it on a table of its own, --cv 5 here."
        )
    found = _cross_validated(labelled, model.classes_.tolist(), {**parameters, "effort": "fast"}, folds)
    return (
        f"Error on held-out rows ({folds}-fold cross-validation with --effort fast, each fit to "
        f"{(folds - 1) / folds:.0%} of the rows): off by {found.model['mae']:.2f} classes on average; "
        f"always {found.median!r}: {found.baseline['mae']:.2f}"
    )


def _cross_validated(
    labelled: LabelledTable, classes: list[Any], parameters: Mapping[str, Any], folds: int
) -> Evaluation:
    blocks = list(labelled.blocks())
    X: Any = pyarrow().concat_tables([block.X for block in blocks])
    y = np.concatenate([label_codes(block.y, classes) for block in blocks])
    weight = (
        None if blocks[0].weight is None else np.concatenate([np.asarray(block.weight) for block in blocks])
    )
    fold = fold_numbers(y, folds)
    predicted = np.full(len(y), -1)
    shares = np.empty((len(y), len(classes)))
    labels = np.array(classes)
    for held_out in (fold == k for k in range(folds)):
        if not held_out.any():
            continue
        inner = np.flatnonzero(~held_out)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the fit to all rows has warned of the table
            model = ISBOR(**{**parameters, "classes": classes}).fit(
                X.take(inner), labels[y[inner]], None if weight is None else weight[inner]
            )
        rows = X.filter(held_out)
        predicted[held_out] = label_codes(model.predict(rows), classes)
        shares[held_out] = model.predict_proba(rows)
    counted = predicted >= 0  # the only row of a class is never held out
    return Evaluation.of(classes, y[counted], predicted[counted], shares[counted])
