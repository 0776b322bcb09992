"""Open anything that holds a table, as a source that can be read again and again."""

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from narwhals.dependencies import is_into_dataframe
from scipy.sparse import issparse

from isbor.data.blocks import Source
from isbor.data.frames import data_frame
from isbor.sources.arrays import open_arrays
from isbor.sources.arrow import pyarrow
from isbor.sources.batches import CalledBatches
from isbor.sources.csv_files import csv_names, open_csv
from isbor.sources.csv_format import CsvFormat
from isbor.sources.dask_collections import open_dask_arrays, open_dask_frame
from isbor.sources.errors import SourceError
from isbor.sources.files import ENDINGS, find_files
from isbor.sources.frames import open_frame
from isbor.sources.parquet_files import open_parquet, parquet_names
from isbor.sources.passes import RereadTable
from isbor.sources.queries import open_dataset, open_duckdb, open_polars, open_stream
from isbor.sources.roles import ColumnNames, assign_roles

__all__ = ["column_names", "open_table"]

_ACCEPTED = (
    f"paths of files ({ENDINGS}), folders, patterns or lists of them; a data frame (pandas, polars, "
    "pyarrow, Dask); a polars LazyFrame, a DuckDB relation or a pyarrow Dataset; a tuple of arrays (X, y) or "
    "(X, y, weight), also of Dask; a function that returns an iterator of such tuples"
)
_SORT = "Sort the query, so that it gives the same rows in the same order whenever it is run."


def open_table(
    data: object,
    *,
    target: Any | None = None,
    weight: Any | None = None,
    ignore: ColumnNames = (),
    columns: ColumnNames | None = None,
    block_rows: int = 65_536,
    csv_format: CsvFormat | None = None,
) -> Source:
    """Open a table that may be larger than memory, to be read block by block as often as a fit needs.

    Parameters
    ----------
    data : paths, query, data frame, arrays or callable
        One of:

        - a Parquet or CSV file (also .tsv; also .csv.gz, .bz2, .zst, .lz4), a folder of them, a pattern such
          as ``"ratings/*.parquet"``, or a list of these. The files of a folder or pattern are sorted; a list
          keeps its order. All files need the same columns;
        - a pandas or polars data frame, a pyarrow Table;
        - a polars LazyFrame, a DuckDB relation, a pyarrow Dataset, or any object with an Arrow stream that
          can be read again (``__arrow_c_stream__``). It is run anew for each pass, and must then give the
          same rows in the same order: sort it after a join or a group by. While a DuckDB relation is read,
          its connection is in use; ``connection.cursor()`` makes another one;
        - a tuple (X, y) or (X, y, weight) of arrays or memory maps, sliced without a copy; y may be None, X
          a sparse matrix;
        - a function without arguments that returns an iterator of such tuples. It is called anew for each
          pass, and must then give the same batches;
        - a Dask data frame, or a tuple of Dask arrays. Its rows are summarised where they are, on the cluster
          of the current client if there is one (docs/clusters.md).
    target : column name, optional
        The labels. Not needed to predict.
    weight : column name, optional
        The weights of the rows.
    ignore : column name or list of them, default=()
        Columns that are not read.
    columns : column name or list of them, optional
        The features, in this order. By default all columns but target, weight, those to ignore, and the
        index without a name that pandas saves in Parquet files (``__index_level_0__``).
    block_rows : int, default=65_536
        The most rows that are given at once.
    csv_format : CsvFormat, optional
        How CSV files are written, as `detect_csv_format` finds out. By default commas, in .tsv files tabs,
        between columns, UTF-8, and decimal points.

    Returns
    -------
    table : source
        ``table.blocks()`` yields the rows, from the first one, each time it is called. Features are a pyarrow
        Table for files, DuckDB and pyarrow, else a slice of what was passed. Rows, batches and partitions
        are counted from 0 in messages.

    Raises
    ------
    SourceError
        If the table cannot be read: a kind of ValueError.
    TypeError
        If `data` is none of these, or can be read once only.
    ImportError
        If pyarrow is needed and not installed: ``pip install "isbor[files]"``.

    Notes
    -----
    The types of CSV columns come from all cells of all files, read once more before the first pass: integers,
    numbers or booleans if all cells are, else text. An empty cell is missing.

    Examples
    --------
    A pair of arrays, and a function that makes batches:

    >>> import numpy as np
    >>> from isbor import sources
    >>> X, y = np.arange(10.0).reshape(5, 2), np.array([1, 1, 2, 2, 2])
    >>> table = sources.open_table((X, y), block_rows=2)
    >>> [len(block.y) for block in table.blocks()]
    [2, 2, 1]
    >>> def batches():
    ...     yield X[:3], y[:3]
    ...     yield X[3:], y[3:]
    >>> [len(block.y) for block in sources.open_table(batches).blocks()]
    [3, 2]
    """
    if not isinstance(block_rows, Integral) or block_rows < 1:
        raise SourceError(f"block_rows is {block_rows!r}; a whole number of rows, at least 1, is needed.")
    block_rows = int(block_rows)
    assign = partial(assign_roles, target=target, weight=weight, ignore=ignore, columns=columns)
    paths = _paths(data)
    if paths is not None:
        return _open_files(paths, assign, block_rows, csv_format, all_columns=columns is None)
    _refuse_read_once(data)
    if _is(data, "dask.dataframe", "DataFrame"):
        return open_dask_frame(data, assign, block_rows)
    query = _query_opener(data)
    if query is not None:
        source: Any = query(data, assign, block_rows)
        return RereadTable(source.blocks, f"query ({type(data).__name__})", _SORT, compare_rows=True)
    if _is(data, "pyarrow", "RecordBatch"):
        data = pyarrow().Table.from_batches([data])
    if is_into_dataframe(data):
        frame = data_frame(data)
        assert frame is not None
        source = open_frame(frame, assign, block_rows)
        return RereadTable(source.blocks, "data frame", "Let nothing change it.", compare_rows=False)
    is_array = isinstance(data, np.ndarray) or issparse(data) or _is_dask_array(data)
    if is_array or isinstance(data, tuple) or callable(data):
        _refuse_names(data, target=target, weight=weight, ignore=ignore, columns=columns)
    if is_array:
        data = (data, None)
    if isinstance(data, tuple) and len(data) in (2, 3):
        X, y, weights = data if len(data) == 3 else (*data, None)
        if any(map(_is_dask_array, data)):
            return open_dask_arrays(X, y, weights, block_rows)
        source = open_arrays(X, y, weights, block_rows)
        return RereadTable(source.blocks, "table of arrays", "Let nothing change them.", compare_rows=False)
    if callable(data):
        source = CalledBatches(data, block_rows)
        remedy = "Let the function begin anew in each call, and seed what is random in it."
        return RereadTable(source.blocks, "table of batches", remedy, compare_rows=True)
    raise TypeError(f"A table is needed, got {type(data).__name__}. Pass one of: {_ACCEPTED}.")


def column_names(path: str | os.PathLike[str], *, csv_format: CsvFormat | None = None) -> list[str]:
    r"""Return the names of the columns of a Parquet or CSV file.

    Parameters
    ----------
    path : path
        A file as `open_table` takes it.
    csv_format : CsvFormat, optional
        How a CSV file is written.

    Raises
    ------
    SourceError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from isbor.sources import column_names
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "grades.csv"
    ...     _ = path.write_text("weight,grade\n1.5,low\n")
    ...     column_names(path)
    ['weight', 'grade']
    """
    file = find_files([path])[0]
    if file.format == "Parquet":
        return parquet_names(file)
    return csv_names(file, csv_format or CsvFormat())


def _open_files(
    paths: list[Any], assign: Any, block_rows: int, form: CsvFormat | None, *, all_columns: bool
) -> Source:
    files = find_files(paths)
    open_all = open_parquet if files[0].format == "Parquet" else partial(open_csv, form=form or CsvFormat())
    source: Any = open_all(files, assign, block_rows, all_columns=all_columns)
    name = f"table of {files[0].name}" + (f" and {len(files) - 1} more files" if len(files) > 1 else "")
    remedy = "Let nothing write to the files while they are used."
    return RereadTable(source.blocks, name, remedy, compare_rows=False)


def _paths(data: object) -> list[Any] | None:
    """Return paths as a list; None if these are none."""
    if isinstance(data, str | os.PathLike):
        return [data]
    if isinstance(data, list | tuple) and data and all(isinstance(path, str | os.PathLike) for path in data):
        return list(data)
    return None


def _query_opener(data: object) -> Callable[..., Any] | None:
    if _is(data, "polars", "LazyFrame"):
        return open_polars
    if _is(data, "duckdb", "DuckDBPyRelation"):
        return open_duckdb
    if _is(data, "pyarrow.dataset", "Dataset"):
        return open_dataset
    if hasattr(data, "__arrow_c_stream__") and not is_into_dataframe(data):
        return open_stream
    return None


def _refuse_read_once(data: object) -> None:
    if _is(data, "pyarrow", "RecordBatchReader"):
        raise TypeError(
            "A RecordBatchReader can be read once only, and a fit reads the table several times. Pass what "
            "it reads from: the path of the file, a pyarrow Dataset, or the query. If the rows fit in "
            "memory, pass reader.read_all()."
        )
    if isinstance(data, Iterator):
        raise TypeError(
            f"A {type(data).__name__} can be read once only, and a fit reads the table several times. Pass a "
            "function that makes it anew in each call: the generator function itself, without ()."
        )


def _refuse_names(data: object, **names: Any) -> None:
    given = [name for name, value in names.items() if value not in (None, (), [])]
    if given:
        raise SourceError(
            f"{', '.join(given)} cannot be used with {type(data).__name__}, which has no named columns. "
            "Leave it out: labels and weights are the second and third part of a batch."
        )


def _is_dask_array(data: object) -> bool:
    return _is(data, "dask.array", "Array")


def _is(data: object, module: str, name: str) -> bool:
    """Return whether data are of a type of another package; if it is not imported, they cannot be."""
    home = sys.modules.get(module)
    kind = getattr(home, name, None)
    return kind is not None and isinstance(data, kind)
