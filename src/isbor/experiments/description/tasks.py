"""Tasks: data, and how they are split into training and test rows.

In split s of a random holdout, the first rows of a permutation seeded with seed + s train and the following
ones test. In cross-validation, split s is fold s modulo the number of folds; each round of folds has its own
shuffle. Both depend on the seed and on s alone.
"""

import hashlib
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.model_selection import StratifiedKFold

from isbor._core.types import IntArray, LabelArray
from isbor.data.labels import encode_labels, is_quantity
from isbor.datasets import load_benchmark, make_saddle
from isbor.datasets.catalogue import BENCHMARKS
from isbor.experiments.description.table_files import labels_as_written, read_table, unusual_format

__all__ = [
    "BenchmarkData",
    "CrossValidation",
    "Data",
    "Holdout",
    "ImportedData",
    "Saddle",
    "Scheme",
    "Share",
    "Source",
    "TableFile",
    "Task",
    "file_digest",
    "label_text",
]

_SHOWN = 10  # names quoted in a message


@dataclass(frozen=True, slots=True)
class Data:
    """Features, labels, and the classes in order."""

    X: Any  # array or data frame
    y: IntArray  # positions in classes
    classes: LabelArray

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, slots=True)
class Saddle:
    """The synthetic data of the paper.

    See Also
    --------
    isbor.datasets.make_saddle : Draws it.
    Task : Data with the way to split them.

    Examples
    --------
    >>> from isbor.experiments import Saddle
    >>> data = Saddle(rows=100).load()
    >>> len(data), data.classes.tolist()
    (100, [1, 2, 3, 4, 5])
    """

    rows: int = 21_000
    random_state: int = 0

    def load(self) -> Data:
        """Return the data."""
        X, y = make_saddle(self.rows, random_state=self.random_state)
        return _encoded(X, y)


@dataclass(frozen=True, slots=True)
class BenchmarkData:
    """One of the seven benchmark sets of the paper.

    See Also
    --------
    isbor.datasets.load_benchmark : Reads or downloads it.

    Examples
    --------
    >>> from isbor.experiments import BenchmarkData
    >>> BenchmarkData("bs")
    BenchmarkData(name='bs')
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in BENCHMARKS:
            raise ValueError(
                f"There is no data set {self.name!r}. Choose from saddle, {', '.join(BENCHMARKS)}."
            )

    def load(self) -> Data:
        """Return the data, downloaded if necessary."""
        X, y = load_benchmark(self.name, return_X_y=True)
        return _encoded(X, y)


@dataclass(frozen=True, slots=True)
class TableFile:
    """A user's table: a CSV, TSV or Parquet file with a column of ordered labels.

    See Also
    --------
    load_study : Reads an experiment from a file, which names tables.

    Examples
    --------
    >>> from isbor.experiments import TableFile
    >>> TableFile("grades.csv", target="grade", digest="", order=("low", "high")).order
    ('low', 'high')
    """

    path: str
    target: str
    digest: str  # of the file's content
    order: tuple[str, ...] = ()  # labels as text, lowest first; empty: labels are numbers
    drop: tuple[str, ...] | None = None  # columns that are not features

    def __post_init__(self) -> None:
        if len(self.order) == 1 or len(set(self.order)) < len(self.order):
            raise ValueError(
                f"The order names {', '.join(self.order)}; at least 2 different labels, lowest first, are "
                "needed."
            )

    @classmethod
    def of(cls, path: Path, target: str, order: Sequence[str] = (), drop: Sequence[str] = ()) -> "TableFile":
        """Return the file with a digest of its present content, so that a later change is noticed."""
        return cls(str(path.absolute()), target, file_digest(path), tuple(order), tuple(drop) or None)

    def remark(self) -> str:
        """Return how the file was read, if it is not UTF-8 text with the usual delimiter; else nothing."""
        path = Path(self.path)
        found = unusual_format(path, self.target)
        return f"{path.name} was read as {found}." if found else ""

    def load(self) -> Data:
        """Read the file."""
        path = Path(self.path)
        if file_digest(path) != self.digest:
            raise ValueError(f"{path.name} has changed since the comparison started; start a new one.")
        table = read_table(path, self.target)
        dropped = self.drop or ()
        for name, needed in (
            (self.target, "Name the column of the labels as the target"),
            *((name, "Only columns of the table can be dropped") for name in dropped),
        ):
            if name not in table.columns:
                raise ValueError(
                    f"{path.name} has no column {name!r}; its columns are {_some(table.columns)}. {needed}."
                )
        if self.target in dropped:
            raise ValueError(f"{self.target!r} is the target and cannot be dropped as well.")
        features = table.drop(self.target, *dropped)
        if not features.columns:
            without = f" after dropping {_some(dropped)}" if dropped else ""
            raise ValueError(
                f"{path.name} has no feature beside {self.target!r}{without}; at least one column is needed."
            )
        labels = table[self.target]
        if not labels.dtype.is_numeric() and labels.is_null().any():
            labels = labels_as_written(path, labels)
        n_missing = int(labels.is_null().sum())
        if n_missing:
            raise ValueError(
                f"{n_missing} of {len(table)} rows of {path.name} have no {self.target!r}. Remove these rows."
            )
        y, classes = self._ranked(labels, path)
        return Data(features.to_native(), y, classes)

    def _ranked(self, labels: nw.Series[Any], path: Path) -> tuple[IntArray, LabelArray]:
        """Return the labels as positions in their order, and the order."""
        file = path.name
        if not self.order:
            if nw.is_ordered_categorical(labels):
                ordered = encode_labels(labels.to_native())
                return ordered.codes, ordered.classes
            if not (labels.dtype.is_numeric() or labels.dtype == nw.Boolean):
                found = sorted({str(label) for label in labels.unique().to_list()})
                raise ValueError(
                    f"The labels in column {self.target!r} of {file} are text ({_some(found)}) of unknown "
                    "order. List all labels, lowest first: --order A,B,C, or order = [...] in a TOML "
                    "file."
                )
            n_distinct = labels.n_unique()
            if is_quantity(n_distinct, len(labels)):
                raise ValueError(
                    f"Column {self.target!r} of {file} holds {n_distinct} different numbers in {len(labels)} "
                    "rows. This is a continuous target; bin it into a few ordered classes first."
                )
            if n_distinct < 2:
                raise ValueError(
                    f"Column {self.target!r} of {file} holds {label_text(labels[0])} in all rows; at least 2 "
                    "classes are needed."
                )
            values = labels.to_numpy()
            codes = encode_labels(values, classes=np.unique(values))  # fractions are allowed
            return codes.codes, codes.classes
        texts = [label_text(label) for label in labels.to_list()]
        if not set(texts) <= set(self.order):
            texts = [str(label) for label in labels_as_written(path, labels).to_list()]
        unknown = sorted(set(texts) - set(self.order))
        if unknown:
            raise ValueError(
                f"Column {self.target!r} of {file} holds {_quoted(unknown)}, but the order is "
                f"{_quoted(self.order)}. List every label, lowest first."
            )
        place = {label: k for k, label in enumerate(self.order)}
        return np.array([place[text] for text in texts], dtype=np.intp), np.array(self.order)


@dataclass(frozen=True, slots=True)
class ImportedData:
    """Data returned by a function that takes a name and returns features and labels.

    See Also
    --------
    TableFile : A table in a file.

    Examples
    --------
    >>> from isbor.experiments import ImportedData
    >>> ImportedData("mypackage.data:load", name="ratings").name
    'ratings'
    """

    function: str  # "package.module:function"
    name: str

    def load(self) -> Data:
        """Return the data."""
        module, _, function = self.function.partition(":")
        return _encoded(*getattr(importlib.import_module(module), function)(self.name))


Source = Saddle | BenchmarkData | TableFile | ImportedData


@dataclass(frozen=True, slots=True)
class Holdout:
    """Random training rows; the others test.

    See Also
    --------
    Share : A share of the rows instead of a number.
    CrossValidation : Each row tests once.

    Examples
    --------
    >>> from isbor.experiments import CATALOGUE, Experiment, Holdout, Saddle, Task
    >>> task = Task("saddle", "Saddle", Saddle(rows=300), Holdout(train=200))
    >>> len(task.load())
    300
    """

    train: int
    test_at_most: int | None = None  # None: all other rows

    def check(self, data: Data, name: str) -> None:
        """Raise a ValueError if the data cannot be split this way."""
        if not 0 < self.train < len(data):
            raise ValueError(
                f"{name} has {len(data)} rows, of which {self.train} should train; at least 1 and fewer than "
                "all rows are needed."
            )
        if self.test_at_most is not None and self.test_at_most < 1:
            raise ValueError(f"test_at_most of {name} is {self.test_at_most}; at least 1 test row is needed.")

    def split(self, y: IntArray, split: int, seed: int) -> tuple[IntArray, IntArray]:
        """Return training and test rows."""
        order = np.random.default_rng(seed + split).permutation(len(y))
        end = None if self.test_at_most is None else self.train + self.test_at_most
        return order[: self.train], order[self.train : end]


@dataclass(frozen=True, slots=True)
class Share:
    """A random share of the rows trains; the others test.

    See Also
    --------
    Holdout : A number of rows instead of a share.
    CrossValidation : Each row tests once.

    Examples
    --------
    >>> from isbor.experiments import Share
    >>> Share(train=0.8).train
    0.8
    """

    train: float = 0.7
    train_at_most: int | None = None
    test_at_most: int | None = None  # None: all other rows

    def check(self, data: Data, name: str) -> None:
        """Raise a ValueError if the data cannot be split this way."""
        if not 0.0 < self.train < 1.0:
            raise ValueError(
                f"The share of training rows of {name} is {self.train}; it must be between 0 and 1."
            )
        self._rows(len(data)).check(data, name)

    def split(self, y: IntArray, split: int, seed: int) -> tuple[IntArray, IntArray]:
        """Return training and test rows."""
        return self._rows(len(y)).split(y, split, seed)

    def _rows(self, n_rows: int) -> Holdout:
        train = round(self.train * n_rows)
        return Holdout(min(train, self.train_at_most or train), self.test_at_most)


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """Stratified folds; in every round, each fold tests once.

    See Also
    --------
    Holdout : Random training rows.
    Share : A random share of the rows.

    Examples
    --------
    >>> from isbor.experiments import CrossValidation
    >>> CrossValidation(folds=10).folds
    10
    """

    folds: int = 5

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise ValueError(f"The cross-validation has {self.folds} fold(s); at least 2 are needed.")

    def check(self, data: Data, name: str) -> None:
        """Raise a ValueError if the data cannot be split this way."""
        counts = np.bincount(data.y, minlength=len(data.classes))
        if np.count_nonzero(counts) < 2:
            raise ValueError(f"{name} has labels of one class only; at least 2 classes are needed.")
        rare = [k for k in range(len(counts)) if 0 < counts[k] < self.folds]
        if rare:
            label = label_text(data.classes[rare[0]])
            raise ValueError(
                f"Class {label!r} of {name} has {counts[rare[0]]} row(s), fewer than the {self.folds} folds. "
                "Use fewer folds, or merge the class with a neighbouring one."
            )

    def split(self, y: IntArray, split: int, seed: int) -> tuple[IntArray, IntArray]:
        """Return training and test rows."""
        rounds, fold = divmod(split, self.folds)
        folds = StratifiedKFold(self.folds, shuffle=True, random_state=seed + rounds)
        train, test = list(folds.split(np.zeros(len(y)), y))[fold]
        return train, test


Scheme = Holdout | Share | CrossValidation


@dataclass(frozen=True, slots=True)
class Task:
    """Data and the way to split them.

    See Also
    --------
    Experiment : Compares models on tasks.
    Saddle, BenchmarkData, TableFile, ImportedData : What the data may be.
    Holdout, Share, CrossValidation : How they may be split.

    Examples
    --------
    >>> from isbor.experiments import CATALOGUE, Experiment, Holdout, Saddle, Task
    >>> task = Task("saddle", "Saddle", Saddle(rows=300), Holdout(train=200))
    >>> task.load().X.shape
    (300, 2)
    """

    name: str
    title: str
    source: Source
    scheme: Scheme

    def load(self) -> Data:
        """Return the data, checked against the scheme."""
        data = self.source.load()
        self.scheme.check(data, self.title)
        return data


def _encoded(X: Any, y: IntArray) -> Data:
    labels = encode_labels(y)
    return Data(X, labels.codes, labels.classes)


def file_digest(path: Path) -> str:
    """Return a digest of the content of a file."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def label_text(label: object) -> str:
    """Return a label as text; an integer has no decimals."""
    if isinstance(label, float | np.floating) and float(label).is_integer():
        return str(int(label))
    return str(label)


def _quoted(labels: Sequence[str]) -> str:
    return _some([repr(label) for label in labels])


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(str, names[:_SHOWN]))
    return f"{shown}, …" if len(names) > _SHOWN else shown
