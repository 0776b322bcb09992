"""The store of records: a SQLite file that survives crashes of its writers.

Each job has one row, with the runner that has claimed it and its record:

- A record is written in one transaction, and only if there is none: no job is recorded twice.
- A job is claimed in a transaction before it starts: two runners never run the same job.
- A runner is alive as long as it holds the lock on its own small file beside the store. The operating system
  releases the lock however the runner ends, so the claims of a dead runner are free at once, and those of a
  living one never are.

Lock files are created, checked and removed within transactions of the store, so that none is removed before
it is locked. A transaction is a ``with`` block of the connection, which ends it in C: Ctrl-C cannot interrupt
it.

The file is in WAL mode, in which readers and a writer do not block each other.
"""

import sqlite3
import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from isbor.experiments.running.records import Record

__all__ = ["Store", "UnusableStoreError"]

_FORMAT = 2
_BUSY_SECONDS = 60.0
_PAUSE = 0.01
_BEGIN = "BEGIN IMMEDIATE"  # take the write lock now, not at the first write


class UnusableStoreError(ValueError):
    """The file cannot be used as a store."""


class Store:
    """Records by the keys of their jobs, in a file that runners on one machine can share.

    Parameters
    ----------
    path : Path
        The file; it and its directory are created if they do not exist.

    See Also
    --------
    run : Fills it.
    Record : What it keeps.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from isbor.experiments import Record, Store
    >>> record = Record("saddle", "linear", split=0, status="ok")
    >>> with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "mine.sqlite") as store:
    ...     store.add("key of a job", record)
    ...     store.records(["key of a job", "key of another"]).keys()
    dict_keys(['key of a job'])
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._database = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            self._write_ahead()
            self._database.execute("PRAGMA synchronous = FULL")
            self._prepare()
        except sqlite3.OperationalError as error:  # the content is fine
            raise UnusableStoreError(
                f"{str(path)!r} cannot be written to ({error}). Try again, or choose another directory."
            ) from error
        except sqlite3.DatabaseError as error:
            raise UnusableStoreError(
                f"{str(path)!r} is not a store of results ({error}). Choose another directory, or delete it."
            ) from error
        self._runner: str | None = None
        self._lock: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the claims of this runner, and close the file."""
        if self._runner is not None and self._lock is not None:
            self.release_all()
            with self._database as database:
                database.execute(_BEGIN)
                self._lock.close()
                self._lock_file(self._runner).unlink(missing_ok=True)
            self._runner = self._lock = None
        self._database.close()

    def records(self, keys: Iterable[str]) -> dict[str, Record]:
        """Return the records of these jobs, as far as they have one."""
        wanted = set(keys)
        rows = self._database.execute("SELECT key, record FROM jobs WHERE record IS NOT NULL")
        return {key: Record.from_json(text) for key, text in rows if key in wanted}

    def claim(self, keys: Sequence[str]) -> str | None:
        """Claim the first of these jobs that has no record and no living runner; None if all have."""
        with self._database as database:
            database.execute(_BEGIN)
            runner = self._identify()
            rows = database.execute("SELECT key, runner, record IS NOT NULL FROM jobs")
            taken = {key: (holder, bool(done)) for key, holder, done in rows}
            alive: dict[str, bool] = {runner: True}
            for key in keys:
                holder, done = taken.get(key, (None, False))
                if holder is not None and holder not in alive:
                    alive[holder] = self._is_alive(holder)
                if done or (holder is not None and alive[holder]):
                    continue
                database.execute(
                    "INSERT INTO jobs (key, runner) VALUES (?, ?) "
                    "ON CONFLICT (key) DO UPDATE SET runner = excluded.runner",
                    (key, runner),
                )
                return key
        return None

    def release(self, key: str) -> None:
        """Release a job that this runner has claimed."""
        self._database.execute(
            "UPDATE jobs SET runner = NULL WHERE key = ? AND runner = ? AND record IS NULL",
            (key, self._runner),
        )

    def release_all(self) -> None:
        """Release all jobs that this runner has claimed."""
        self._database.execute(
            "UPDATE jobs SET runner = NULL WHERE runner = ? AND record IS NULL", (self._runner,)
        )

    def add(self, key: str, record: Record) -> None:
        """Save the record of a job, unless it has one."""
        self._database.execute(
            "INSERT INTO jobs (key, record) VALUES (?, ?) "
            "ON CONFLICT (key) DO UPDATE SET record = excluded.record WHERE record IS NULL",
            (key, record.to_json()),
        )

    def forget(self, keys: Iterable[str]) -> None:
        """Delete the records of these jobs, so that they run again."""
        with self._database as database:
            database.execute(_BEGIN)
            database.executemany(
                "UPDATE jobs SET record = NULL, runner = NULL WHERE key = ? AND record IS NOT NULL",
                [(key,) for key in keys],
            )

    def _write_ahead(self) -> None:
        """Set WAL mode; here SQLite itself does not wait for others that open or close the file."""
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                self._database.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE)
            else:
                return

    def _prepare(self) -> None:
        with self._database as database:
            database.execute(_BEGIN)
            (found,) = database.execute("PRAGMA user_version").fetchone()
            if found not in (0, _FORMAT):
                raise sqlite3.DatabaseError(f"its format is {found}; this version of isbor writes {_FORMAT}")
            database.execute(
                "CREATE TABLE IF NOT EXISTS jobs (key TEXT PRIMARY KEY, runner TEXT, record TEXT)"
            )
            database.execute(f"PRAGMA user_version = {_FORMAT}")

    def _identify(self) -> str:
        """Return the name of this runner; its lock is taken in the transaction of its first claim."""
        if self._runner is None:
            self._sweep()
            runner = uuid.uuid4().hex
            self._lock = sqlite3.connect(self._lock_file(runner), timeout=0, isolation_level=None)
            self._lock.execute("BEGIN EXCLUSIVE")
            self._runner = runner
        return self._runner

    def _is_alive(self, runner: str) -> bool:
        """Return whether a runner holds its lock."""
        file = self._lock_file(runner)
        if not file.exists():
            return False
        lock = sqlite3.connect(file, timeout=0, isolation_level=None)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            return True
        finally:
            lock.close()
        return False

    def _sweep(self) -> None:
        """Remove the lock files of dead runners without claims."""
        rows = self._database.execute("SELECT DISTINCT runner FROM jobs WHERE record IS NULL")
        holders = {holder for (holder,) in rows}
        for file in self.path.parent.glob(f".{self.path.name}.*.lock"):
            runner = file.name.split(".")[-2]
            if runner not in holders and not self._is_alive(runner):
                file.unlink(missing_ok=True)

    def _lock_file(self, runner: str) -> Path:
        return self.path.with_name(f".{self.path.name}.{runner}.lock")
