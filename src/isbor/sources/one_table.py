"""Several files are one table if they have the same columns."""

from collections.abc import Sequence

from isbor.sources.errors import SourceError, listed
from isbor.sources.files import DataFile
from isbor.sources.roles import Roles

__all__ = ["refuse_other_columns"]


def refuse_other_columns(
    file: DataFile,
    first: DataFile,
    names: Sequence[str],
    expected: Sequence[str],
    roles: Roles,
    *,
    all_columns: bool,
) -> None:
    """Raise SourceError if a later file lacks columns of the first one, or has more and all are read."""
    needed = expected if all_columns else roles.needed
    lacking = [name for name in needed if name not in names]
    more = [name for name in names if name not in expected] if all_columns else []
    twice = [name for name in roles.needed if names.count(name) > 1]
    if lacking or more or twice:
        found = " and ".join(
            f"{what} {listed(those)}"
            for what, those in (("lacks", lacking), ("also has", more), ("has several", twice))
            if those
        )
        raise SourceError(
            f"{file.path} {found}; all files of a table need the columns of the first one, {first.path}. "
            "Correct the file, leave it out, or list the features that all files have in columns=."
        )
