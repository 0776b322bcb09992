"""Tables that arrive in pieces of any size, cut anew into blocks of one size."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

__all__ = ["recut"]

Rows = TypeVar("Rows", bound=Any)  # a polars data frame or a pyarrow table


def recut(pieces: Iterable[Rows], block_rows: int, join: Callable[[Sequence[Rows]], Rows]) -> Iterator[Rows]:
    """Yield the same rows in the same order, `block_rows` at a time; only the last block may have fewer.

    Parameters
    ----------
    pieces : iterable of tables with a length and `slice(first, n_rows)`
    block_rows : int
    join : callable
        Puts tables one below the other.
    """
    waiting: list[Rows] = []
    n_waiting = 0
    for piece in pieces:
        first = 0
        while first < len(piece):
            taken = min(len(piece) - first, block_rows - n_waiting)
            waiting.append(piece.slice(first, taken))
            first += taken
            n_waiting += taken
            if n_waiting == block_rows:
                yield join(waiting)
                waiting, n_waiting = [], 0
    if waiting:
        yield join(waiting)
