"""Labels of a table on their way into a fit: checked, and counted in the first complete pass."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw

from isbor.data.blocks import Block, Source
from isbor.sources import SourceError
from isbor.sources.errors import listed, near_misses

__all__ = ["LabelledTable"]


class LabelledTable:
    """A source that checks labels; its errors name options of the command, not parameters of the library."""

    def __init__(self, table: Source, target: str, order: Sequence[str] | None) -> None:
        self._table = table
        self._target = target
        self._order = order
        self.counts: Counter[Any] = Counter()  # of labels, once a pass is complete
        self._is_counted = False

    def blocks(self) -> Iterator[Block]:
        """Yield all rows, block by block."""
        counts: Counter[Any] = Counter()
        for block in self._table.blocks():
            if not self._is_counted:
                counts.update(self._checked(block))
            yield block
        if not self._is_counted:
            self.counts, self._is_counted = counts, True

    def _checked(self, block: Block) -> list[Any]:
        labels: nw.Series[Any] = nw.from_native(block.y, series_only=True)
        missing = labels.null_count()
        if missing:
            raise SourceError(
                f"{missing} rows have no label in {self._target!r} ({block.where}). Leave these rows out."
            )
        found: list[Any] = labels.to_list()
        different = list(dict.fromkeys(found))
        if self._order is None:
            if labels.dtype == nw.String:
                raise SourceError(
                    f"The labels in {self._target!r} are text, of unknown order: {listed(different)}. "
                    "Name all of them with --order, lowest first: --order low,mid,high."
                )
        else:
            unknown = [label for label in map(str, different) if label not in self._order]
            if unknown:
                near = near_misses(unknown[0], self._order)
                meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
                raise SourceError(
                    f"The labels in {self._target!r} have {listed(unknown)}, which --order does not name "
                    f"({block.where}).{meant} Name all labels, lowest first."
                )
        return found
