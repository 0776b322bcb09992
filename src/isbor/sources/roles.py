"""What the columns of a table are: features, target, weight, or nothing that is read."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from isbor._core.types import FloatArray
from isbor.data.blocks import Block
from isbor.sources.errors import SourceError, listed, near_misses, rows_text

__all__ = ["ColumnNames", "Roles", "as_blocks", "assign_roles"]

# One or several names. A single name need not be in a list.
ColumnNames = str | Sequence[Any]

_SAVED_INDEX = re.compile(r"__index_level_\d+__")  # of a pandas frame in a Parquet file, without a name


@dataclass(frozen=True, slots=True)
class Roles:
    """Names of the columns that are read."""

    features: tuple[Any, ...]
    target: Any | None
    weight: Any | None

    @property
    def needed(self) -> list[Any]:
        """Names of all columns that are read."""
        return [*self.features, *(name for name in (self.target, self.weight) if name is not None)]


def assign_roles(
    names: Sequence[Any],
    *,
    target: Any | None,
    weight: Any | None,
    ignore: ColumnNames,
    columns: ColumnNames | None,
) -> Roles:
    """Say what each column of a table is; raise SourceError if a named column is not in the table.

    Without `columns`, the features are all columns but the target, the weight, those to ignore, and the
    index that pandas saves in Parquet files if it has no name.
    """
    _refuse_twice(names, "The table has several columns named {}. Rename or drop columns.")
    ignored = _as_list(ignore)
    for argument, found in (("target", target), ("weight", weight)):
        if found is not None:
            _refuse_unknown([found], names, argument)
    _refuse_unknown(ignored, names, "ignore")
    if target is not None and target == weight:
        raise SourceError(f"{target!r} is named as target and as weight. A column is one of them.")
    used = [name for name in (target, weight) if name is not None]
    for name in used:
        if name in ignored:
            raise SourceError(f"{name!r} is in ignore, but is also named as target or weight. Name it once.")
    if columns is None:
        others = {*used, *ignored}
        features = [name for name in names if name not in others and not _SAVED_INDEX.fullmatch(str(name))]
    else:
        features = _as_list(columns)
        _refuse_unknown(features, names, "columns")
        _refuse_twice(features, "columns names {} more than once. Name each column once.")
        for name in features:
            if name in used or name in ignored:
                raise SourceError(
                    f"{name!r} is in columns, and is also named as target, as weight or in ignore. "
                    "columns lists the features alone; leave it out there, or here."
                )
    if not features:
        raise SourceError(
            f"No column is left to be a feature; at least one is needed. The columns are {listed(names)}."
        )
    return Roles(tuple(features), target, weight)


def as_blocks(
    parts: Iterable[tuple[nw.DataFrame[Any], str]], roles: Roles, first: int = 0
) -> Iterator[Block]:
    """Yield frames and what names their rows as blocks; the rows are numbered through, from `first` on.

    Where the name is empty, the rows are named by their numbers in the whole table.
    """
    for frame, where in parts:
        n_rows = len(frame)
        where = where or rows_text(first, n_rows)
        place = {name: j for j, name in enumerate(frame.columns)}
        X = frame[:, [place[name] for name in roles.features]].to_native()
        y = None if roles.target is None else frame[:, place[roles.target]].to_native()
        weight = None if roles.weight is None else _weights(frame[:, place[roles.weight]], where)
        yield Block(X, y, weight, first, where)
        first += n_rows


def _weights(column: nw.Series[Any], where: str) -> FloatArray:
    if not (column.dtype.is_numeric() or isinstance(column.dtype, nw.Boolean)):
        raise SourceError(
            f"The weight column {column.name!r} is of type {column.dtype} in {where}; numbers are needed. "
            "Convert it, or name another column as weight."
        )
    weights = column.cast(nw.Float64).to_numpy()
    return np.asarray(weights, dtype=np.float64)


def _as_list(names: ColumnNames) -> list[Any]:
    return [names] if isinstance(names, str) else list(names)


def _refuse_unknown(wanted: Iterable[Any], names: Sequence[Any], argument: str) -> None:
    for name in wanted:
        if name not in names:
            near = near_misses(name, names)
            meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise SourceError(
                f"{argument} names {name!r}, which is not a column of the table.{meant} "
                f"The columns are {listed(names)}."
            )


def _refuse_twice(names: Iterable[Any], sentence: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SourceError(sentence.format(listed(twice)))
