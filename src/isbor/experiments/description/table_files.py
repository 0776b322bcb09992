"""Users' tables: CSV, TSV and Parquet files, read with pandas or polars."""

import contextlib
import importlib
from pathlib import Path
from typing import Any

import narwhals as nw

from isbor.datasets.frames import frame_library

__all__ = ["labels_as_written", "read_table"]


def read_table(path: Path) -> nw.DataFrame[Any]:
    """Read a table by the ending of its name; it has at least one row."""
    ending = _ending(path)
    if not ending.endswith((".csv", ".tsv", ".parquet")):
        raise ValueError(f"{path.name} is not a .csv, .tsv or .parquet file; save the table as one of these.")
    library = _library()
    try:
        table = _read_parquet(library, path) if ending.endswith(".parquet") else _read_text(library, path)
    except OSError:
        raise
    except Exception as error:  # each library has errors of its own
        raise ValueError(f"{path.name} cannot be read as a table: {' '.join(str(error).split())}") from error
    frame: nw.DataFrame[Any] = nw.from_native(table, eager_only=True)
    if len(frame) == 0:
        raise ValueError(f"{path.name} has no rows.")
    return frame


def labels_as_written(path: Path, labels: nw.Series[Any]) -> nw.Series[Any]:
    """Return labels as they are in the file.

    pandas takes "None" and "NA" for missing. In a feature they are; among labels they may well be a level.
    And "01" is read as a number, "false" as a truth value.
    """
    if _ending(path).endswith(".parquet"):
        return labels
    library = _library()
    if library.__name__ == "pandas":
        table = _read_text(library, path, dtype={labels.name: str}, keep_default_na=False, na_values=[""])
    else:
        table = _read_text(library, path, schema_overrides={labels.name: library.String})
    written: nw.Series[Any] = nw.from_native(table[labels.name], series_only=True)
    return written


def _library() -> Any:
    """Return pandas or polars."""
    library = frame_library()
    if library is None:
        raise ImportError(
            "To read a table, pandas or polars is needed, and neither is installed: "
            'pip install "isbor[experiments]".'
        )
    return library


def _read_parquet(library: Any, path: Path) -> Any:
    try:
        return library.read_parquet(path)
    except ImportError:  # pandas leaves this to a package of its own
        with contextlib.suppress(ImportError):
            return importlib.import_module("polars").read_parquet(path)
        raise


def _read_text(library: Any, path: Path, **options: Any) -> Any:
    """Read a CSV or TSV file; the types of columns are those of all rows, not of the first ones."""
    separator = "\t" if _ending(path).endswith(".tsv") else ","
    if library.__name__ == "pandas":
        return library.read_csv(path, sep=separator, low_memory=False, **options)
    return library.read_csv(path, separator=separator, infer_schema_length=None, **options)


def _ending(path: Path) -> str:
    return "".join(path.suffixes).lower().removesuffix(".gz")
