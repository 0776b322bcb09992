"""The files of a table: found by path, folder or pattern, and unchanged as long as they are read."""

import glob
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from isbor.sources.errors import SourceError, listed, near_misses

__all__ = ["ENDINGS", "DataFile", "find_files"]

_FORMATS = {".parquet": "Parquet", ".pq": "Parquet", ".csv": "CSV", ".tsv": "CSV"}
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}  # of CSV files
ENDINGS = f"{', '.join(_FORMATS)}, and for text also {', '.join('.csv' + end for end in _COMPRESSIONS)}"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file, and what it was when the table was opened."""

    path: str
    name: str  # in messages: without its folder, if no other file has the same name
    format: str  # "Parquet" or "CSV"
    delimiter: str  # of a CSV file
    compression: str | None  # of a CSV file
    size: int
    modified: int  # in nanoseconds

    def refuse_change(self) -> None:
        """Raise SourceError if the file is no longer what it was when the table was opened."""
        try:
            now = os.stat(self.path)
        except OSError as error:
            raise SourceError(
                f"{self.path} was there when the table was opened, and cannot be found any more. "
                "Put it back, or open the table anew."
            ) from error
        if (now.st_size, now.st_mtime_ns) != (self.size, self.modified):
            found = (
                f"from {self.size} to {now.st_size} bytes" if now.st_size != self.size else "at the same size"
            )
            raise SourceError(
                f"{self.path} has changed since the table was opened, {found}; each pass must read the same "
                "rows. Let nothing write to the file while it is used, and open the table anew."
            )

    def unreadable(self, error: BaseException) -> SourceError:
        """Return the error that names the file, and says why it cannot be read."""
        try:
            self.refuse_change()
        except SourceError as change:
            return change
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        return SourceError(
            f"{self.path} cannot be read as {self.format}: {reason.rstrip('.')}. "
            "If it is truncated or damaged, write or copy it anew; else leave it out."
        )


def find_files(paths: Iterable[str | os.PathLike[str]]) -> tuple[DataFile, ...]:
    """Return the files that paths, folders and patterns stand for, all of one format.

    The files of a folder or a pattern are sorted by their paths; several paths keep their order. Names that
    begin with "." or "_" are left out of folders, as are files with other endings.
    """
    found = [path for entry in paths for path in _expand(os.fspath(entry))]
    twice = [path for path, count in Counter(map(os.path.realpath, found)).items() if count > 1]
    if twice:
        raise SourceError(f"{twice[0]} is listed twice, so that its rows would count twice. List it once.")
    formats = {_format(path): path for path in found}
    if len(formats) > 1:
        raise SourceError(
            f"The files are of several formats, such as {listed(sorted(formats.values()))}; a table has one. "
            "Choose some of them with a pattern, such as 'folder/*.parquet'."
        )
    names = Counter(map(os.path.basename, found))
    return tuple(_describe(path, unique=names[os.path.basename(path)] == 1) for path in found)


def _expand(entry: str) -> Sequence[str]:
    path = os.path.expanduser(entry)
    if os.path.isdir(path):
        return _files_in(path)
    if os.path.exists(path):
        _format(path)
        return [path]
    if glob.has_magic(path):
        matches = sorted(match for match in glob.glob(path, recursive=True) if os.path.isfile(match))
        if not matches:
            raise SourceError(f"No file matches {entry!r}. Check the pattern and the working directory.")
        return matches
    raise _missing(entry, path)


def _files_in(folder: str) -> list[str]:
    entries = sorted(os.scandir(folder), key=lambda entry: entry.path)
    visible = [entry for entry in entries if not entry.name.startswith((".", "_"))]
    files = [entry.path for entry in visible if entry.is_file() and _format_or_none(entry.path)]
    if not files:
        folders = [entry.name for entry in visible if entry.is_dir()]
        inner = (
            f" It holds the folder {folders[0]!r}: for files in folders, pass a pattern such as "
            f"{os.path.join(folder, '**', '*.parquet')!r}, or, if their names have values of columns, "
            "pyarrow.dataset.dataset(folder, partitioning='hive')."
            if folders
            else " Check the path."
        )
        raise SourceError(f"The folder {folder!r} has no file that ends in {ENDINGS}.{inner}")
    return files


def _missing(entry: str, path: str) -> SourceError:
    if "://" in entry:
        return SourceError(
            f"{entry!r} is an address, not a local file. Pass pyarrow.dataset.dataset({entry!r})."
        )
    folder = Path(path).parent
    others = sorted(other.name for other in folder.iterdir()) if folder.is_dir() else []
    near = near_misses(Path(path).name, others)
    hint = (
        f"Did you mean {' or '.join(map(repr, near))}?"
        if near
        else f"Check the path; relative paths begin at {os.getcwd()!r}."
    )
    return SourceError(f"There is no file {entry!r}. {hint}")


def _describe(path: str, *, unique: bool) -> DataFile:
    stem, compression = _without_compression(path)
    now = os.stat(path)
    return DataFile(
        path,
        os.path.basename(path) if unique else path,
        _format(path),
        "\t" if stem.endswith(".tsv") else ",",
        compression,
        now.st_size,
        now.st_mtime_ns,
    )


def _without_compression(path: str) -> tuple[str, str | None]:
    stem, ending = os.path.splitext(path.lower())
    return (stem, _COMPRESSIONS[ending]) if ending in _COMPRESSIONS else (path.lower(), None)


def _format_or_none(path: str) -> str | None:
    stem, compression = _without_compression(path)
    found = _FORMATS.get(os.path.splitext(stem)[1])
    return None if compression and found == "Parquet" else found


def _format(path: str) -> str:
    found = _format_or_none(path)
    if found is None:
        raise SourceError(
            f"{path} has an ending that says nothing of its format; {ENDINGS} are read. "
            "Rename the file, or convert it to Parquet."
        )
    return found
