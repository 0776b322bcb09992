"""Data frames in memory, cut into blocks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from isbor.data.blocks import Block
from isbor.sources.arrow import as_plain, plain_schema, settled
from isbor.sources.roles import Roles, as_blocks

__all__ = ["FrameSlices", "open_frame"]


@dataclass(frozen=True, slots=True)
class FrameSlices:
    """The rows of a data frame: pandas, polars, pyarrow and what else narwhals reads."""

    frame: nw.DataFrame[Any]
    roles: Roles
    block_rows: int

    def blocks(self) -> Iterator[Block]:
        """Yield all rows, block by block, in the type of the frame."""
        return as_blocks(self._parts(), self.roles)

    def _parts(self) -> Iterator[tuple[nw.DataFrame[Any], str]]:
        for first in range(0, len(self.frame), self.block_rows):
            yield _plain(self.frame[first : first + self.block_rows], self.roles.needed), ""


def open_frame(
    frame: nw.DataFrame[Any], assign: Callable[[Sequence[Any]], Roles], block_rows: int
) -> FrameSlices:
    """Say what the columns of a data frame are."""
    return FrameSlices(frame, assign(frame.columns), block_rows)


def _plain(rows: nw.DataFrame[Any], names: list[Any]) -> nw.DataFrame[Any]:
    """Return some columns of an Arrow table in plain types, and other frames as they are."""
    if not rows.implementation.is_pyarrow():
        return rows
    table: Any = rows.to_native()
    return nw.from_native(as_plain(table, settled(plain_schema(table.schema, names))))
