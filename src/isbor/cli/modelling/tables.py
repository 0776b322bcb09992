"""Tables of users: files of any size, or CSV from a pipe, as sources that a model can read."""

import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from isbor.data.blocks import Source
from isbor.estimators.base import OrdinalClassifier
from isbor.sources import CsvFormat, SourceError, column_names, detect_csv_format, open_table
from isbor.sources.errors import listed, near_misses

__all__ = ["UserTable", "is_parquet", "user_table"]

_PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, slots=True)
class UserTable:
    """A file, and how it is written."""

    path: str
    form: CsvFormat | None  # None for Parquet, which knows the types of its columns
    names: Sequence[str]  # of its columns

    def check_column(self, option: str, name: str) -> None:
        """Raise an error if a column that an option names does not exist."""
        if name not in self.names:
            near = near_misses(name, self.names)
            meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise SourceError(
                f"{option} names {name!r}, which is not a column of {self.path}.{meant} "
                f"The columns are {listed(self.names)}."
            )

    def open(self, *, text: Collection[str] = (), **roles: Any) -> Source:
        """Open the table; of a CSV file, the columns `text` are read as text."""
        form = None if self.form is None else replace(self.form, text=tuple(text))
        return open_table(self.path, csv_format=form, **roles)

    def of_features(self, model: OrdinalClassifier, *, target: str | None = None) -> Source:
        """Open the features of a model, and labels if they are named; other columns are ignored."""
        features = getattr(model, "feature_names_in_", None)
        if features is None:
            raise SourceError(
                "The model was fitted to an array, whose columns have no names. Fit it to a data frame, or "
                "by isbor fit, so that columns can be found by their names."
            )
        missing = [name for name in features if name not in self.names]
        if missing:
            count = f"{len(missing)} of the {len(features)} columns that the model needs"
            raise SourceError(
                f"{self.path} lacks {count}: {listed(missing)}. Its columns are {listed(self.names)}. "
                "Rename or add columns."
            )
        categories = model._encoding.categories
        text = [
            name
            for name, known in zip(features, categories, strict=True)
            if known is not None and any(isinstance(one, str) for one in known)
        ]
        if target is not None and any(isinstance(label, str) for label in model.classes_.tolist()):
            text.append(target)
        return self.open(text=text, columns=list(features), target=target)


def is_parquet(path: str) -> bool:
    """Return whether a name is that of a Parquet file."""
    return path.lower().endswith(_PARQUET)


@contextmanager
def user_table(
    path: str, *, names: Collection[str], delimiter: str | None, encoding: str | None
) -> Iterator[UserTable]:
    """Give a table as a file whose format is known; what comes from a pipe is kept in a file meanwhile.

    `names` are columns that it should have.
    """
    delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter)
    if delimiter is not None and len(delimiter) != 1:
        raise SourceError(f"The delimiter is {delimiter!r}; one character, or tab, is needed.")
    if path != "-":
        yield _described(path, names, delimiter, encoding)
        return
    with tempfile.TemporaryDirectory(prefix="isbor-") as folder:
        file = Path(folder) / "standard-input.csv"
        with file.open("xb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield _described(str(file), names, delimiter, encoding)


def _described(path: str, names: Collection[str], delimiter: str | None, encoding: str | None) -> UserTable:
    if is_parquet(path):
        return UserTable(path, None, column_names(path))
    form = detect_csv_format(path, names=names, delimiter=delimiter, encoding=encoding)
    found = column_names(path, csv_format=form)
    if not found:
        raise SourceError(f"{path} is empty; a line with the names of the columns, and rows, are needed.")
    return UserTable(path, form, found)
