"""``isbor predict``: block by block, in the order of the rows."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from isbor.cli.modelling.outputs import table_writer
from isbor.cli.modelling.tables import UserTable, is_parquet, user_table
from isbor.data.blocks import located
from isbor.estimators.base import OrdinalClassifier
from isbor.estimators.loading import load
from isbor.prediction.costs import Loss
from isbor.sources.arrow import ArrowTable, pyarrow

__all__ = ["Wanted", "predict_table"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The columns that are asked for."""

    loss: Loss
    probabilities: bool
    coverage: float | None  # of bands
    score: bool
    keep: bool

    def check(self, model: OrdinalClassifier) -> None:
        """Raise ValueError if a model cannot give them."""
        if self.coverage is not None and not 0 < self.coverage < 1:
            raise ValueError(
                f"--interval is {self.coverage:g}; a number between 0 and 1 is needed, for example 0.9."
            )
        for asked, method, option in (
            (self.probabilities, "predict_proba", "--proba"),
            (self.coverage is not None, "predict_proba_interval", "--interval"),
            (self.score, "latent", "--score"),
        ):
            if asked and not hasattr(model, method):
                raise ValueError(f"{type(model).__name__} has no method {method}; leave {option} out.")

    def of(self, model: Any, X: Any) -> dict[str, Any]:
        """Return what the model says of some rows, column by column."""
        columns: dict[str, Any] = {"prediction": model.predict(X, loss=self.loss).tolist()}
        labels = model.classes_.tolist()
        if self.score:
            columns["score"] = model.latent(X)
        if self.probabilities:
            shares = np.asarray(model.predict_proba(X))
            columns |= {f"P({label})": shares[:, k] for k, label in enumerate(labels)}
        if self.coverage is not None:
            limits = model.predict_proba_interval(X, self.coverage)
            for k, label in enumerate(labels):
                for end, values in zip(("lower", "upper"), limits, strict=True):
                    columns[f"P({label}) {end}"] = values[:, k]
        return columns


def predict_table(
    model_path: Path,
    path: str,
    output: str,
    wanted: Wanted,
    *,
    delimiter: str | None,
    encoding: str | None,
) -> int:
    """Write predictions for all rows of a table; return how many these are."""
    model = load(model_path)
    wanted.check(model)
    features = getattr(model, "feature_names_in_", ())
    n_rows = 0
    with (
        user_table(path, names=features, delimiter=delimiter, encoding=encoding) as table,
        table_writer(output) as write,
    ):
        # Columns that are kept are copied as the file has them, 007 as 007; a Parquet file has features in
        # their types, so that a model can read them again.
        typed = features if is_parquet(output) else ()
        text = [name for name in table.names if name not in typed]
        # While a block is written, the next one is read and predicted.
        with ThreadPoolExecutor(1) as pool:
            written = pool.submit(lambda: None)
            for rows in _predicted(model, table, wanted, text):
                written.result()
                written = pool.submit(write, rows)
                n_rows += len(rows)
            written.result()
    return n_rows


def _predicted(
    model: OrdinalClassifier, table: UserTable, wanted: Wanted, text: Sequence[str]
) -> Iterator[ArrowTable]:
    """Yield predictions block by block, after the columns that are kept, of which `text` are read as text."""
    blocks = table.of_features(model).blocks()
    kept = table.open(text=text).blocks() if wanted.keep else None
    for block in blocks:
        with located(block):
            found = pyarrow().table(wanted.of(model, block.X))
        if kept is None:
            yield found
            continue
        rows: nw.DataFrame[Any] = nw.from_native(next(kept).X, eager_only=True)
        table_rows = rows.to_arrow()
        twice = [name for name in found.column_names if name in table_rows.column_names]
        if twice:
            raise ValueError(f"The table has a column {twice[0]!r} already. Rename it, or leave --keep out.")
        for name in found.column_names:
            table_rows = table_rows.append_column(name, found[name])
        yield table_rows
