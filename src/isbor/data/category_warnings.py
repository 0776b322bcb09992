"""Warnings about columns of text that are hardly categories: identifiers, and numbers stored as text."""

import re

from isbor._core.warnings import warn_user
from isbor.data.frames import Category

__all__ = ["warn_of_categories"]

_FEW_ROWS = 20  # with fewer, one category per row is nothing unusual
_NUMBER = re.compile(r"\s*[+-]?\d+([.,]\d+)?\s*")


def warn_of_categories(
    categories: tuple[Category, ...] | None, n_rows: int, where: str, *, ordered: bool
) -> None:
    """Warn of a feature with more categories than half the rows, or whose categories are numbers as text.

    From the former, nothing can be learned; of the latter, the order is lost, unless it is `ordered`. Whole
    numbers alone may be codes. So a number counts as such if at least one has a fraction.
    """
    if categories is None:
        return
    if n_rows >= _FEW_ROWS and len(categories) > n_rows / 2:
        warn_user(
            f"X holds {len(categories)} different categories, such as {categories[0]!r}, in {where}, for "
            f"{n_rows} rows. Convert numbers that are stored as text, for example with pandas.to_numeric, "
            "and drop identifiers.",
            UserWarning,
        )
        return
    texts = [] if ordered else [category for category in categories if isinstance(category, str)]
    numbers = [found for text in texts if (found := _NUMBER.fullmatch(text))]
    fraction = next((found.group() for found in numbers if found.group(1)), None)
    if fraction is not None and len(numbers) > max(2, len(categories) / 2):
        warn_user(
            f"X holds numbers that are stored as text, such as {fraction!r}, in {where}; they are read as "
            f"{len(categories)} categories without an order. Convert the column to numbers: write them with "
            "a decimal point, and leave a cell without a number empty (in pandas, "
            "to_numeric(…, errors='coerce')).",
            UserWarning,
        )
