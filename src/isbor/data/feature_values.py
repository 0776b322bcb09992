"""Values of features in encoded rows, as the user knows them: numbers, categories, missing cells."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TypeAlias, cast

import numpy as np

from isbor._core.types import FloatArray, IntArray
from isbor.data.encoding import TableEncoding
from isbor.data.frames import UNSEEN, Category

__all__ = ["FeatureValues", "Value", "value_text"]

# A number or a category; None for a missing cell. Of a category that training did not have, "unseen".
Value: TypeAlias = Category | None

_UNSEEN = "(unseen)"


@dataclass(frozen=True, slots=True)
class FeatureValues:
    """The features of an encoding: their names, and their values in encoded rows."""

    encoding: TableEncoding

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features; by default those of scikit-learn."""
        encoding = self.encoding
        return encoding.feature_names or tuple(f"x{j}" for j in range(len(encoding.categories)))

    def number_of(self, feature: object, argument: str) -> int:
        """Return the position of a feature that is given by name or by position."""
        names = self.names
        if isinstance(feature, str) and feature in names:
            return names.index(feature)
        if isinstance(feature, Integral) and not isinstance(feature, bool) and 0 <= int(feature) < len(names):
            return int(feature)
        raise ValueError(
            f"{argument} is {feature!r}; the model has {len(names)} feature(s), {', '.join(names[:10])}"
            f"{', …' if len(names) > 10 else ''}. Give one of them by name, or by number from 0 to "
            f"{len(names) - 1}."
        )

    def columns(self, j: int) -> IntArray:
        """Return the encoded columns of feature j."""
        return np.flatnonzero(self.encoding.feature == j)

    def of_rows(self, X: FloatArray, j: int) -> list[Value]:
        """Return the values of feature j in encoded rows."""
        own, categories = X[:, self.columns(j)], self.encoding.categories[j]
        absent = np.zeros(len(X), np.bool_)
        if self.encoding.indicator[j]:  # the mark comes last, but for that of unseen categories
            absent = own[:, -1 if categories is None else -2] == 1.0
        if categories is None:
            return [None if none else float(x) for x, none in zip(own[:, 0], absent, strict=True)]
        known = own[:, : len(categories)]
        values: list[Value] = []
        for row, none in zip(known, absent, strict=True):
            found = np.flatnonzero(row == 1.0)
            values.append(categories[found[0]] if len(found) else None if none else _UNSEEN)
        return values

    def checked(self, j: int, values: Sequence[object]) -> list[Value]:
        """Return values that the user gives for feature j; raise ValueError if it cannot have them."""
        categories, checked = self.encoding.categories[j], list[Value]()
        for value in values:
            is_missing = value is None or value != value
            is_number = isinstance(value, Real) and bool(np.isfinite(float(value)))
            if is_missing and self.encoding.indicator[j]:
                checked.append(None)
            elif categories is None and is_number:
                checked.append(float(cast(float, value)))
            elif categories is not None and value in categories:
                checked.append(categories[list(categories).index(value)])
            else:
                needed = "finite numbers are" if categories is None else f"some of {list(categories)} are"
                raise ValueError(
                    f"values holds {value!r} for {self.names[j]!r}; {needed} needed"
                    f"{', or None for missing cells' if self.encoding.indicator[j] else ''}."
                )
        if not checked:
            raise ValueError(f"values is empty; at least one value of {self.names[j]!r} is needed.")
        return checked

    def encoded(self, j: int, values: list[Value]) -> FloatArray:
        """Return the encoded columns of feature j for each of these values, (k, columns)."""
        categories = self.encoding.categories[j]
        cells = np.full((len(values), len(self.encoding.categories)), np.nan)
        for row, value in enumerate(values):
            if value is None:
                continue
            if categories is None:
                cells[row, j] = float(value)
            else:
                cells[row, j] = categories.index(value) if value in categories else UNSEEN
        return self.encoding.encode(cells)[:, self.columns(j)]


def value_text(value: Value) -> str:
    """Return a value in words."""
    if value is None:
        return "missing"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e5 <= abs(value) < 1e9 and value == int(value) else f"{value:.4g}"
    return str(value)
