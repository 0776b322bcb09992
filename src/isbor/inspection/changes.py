r"""What would have to change in a row for another class: the nearest row that is predicted differently.

Only values that training rows have are tried: numbers within their range, and known categories. The
**distance** of a change is the sum, over the features that change, of the share of the training rows between
the old and the new number; another category, or a value for a missing cell, counts ½. Rows with fewer changed
features are preferred, however far they are.

**Search.** First each feature alone takes every value of a grid: quantiles of the rows kept of the training
rows, or all categories. If none leads to the class, pairs are tried, then triples, of the features that alone
bring the row nearest to it, on coarser grids and with the categories that do. Of the rows found with the
fewest features, the nearest is taken. Its numbers are then moved back towards their old values, one after the
other, as far as the prediction allows, by bisection; a number that is whole in all training rows stays whole.
The prediction of the result is computed as `predict` does it. The search is a heuristic: a narrow region
between grid points may be missed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TypeAlias

import numpy as np

from isbor._core.types import FloatArray, IntArray
from isbor.data.feature_values import FeatureValues, Value, value_text
from isbor.inspection.background import Background

__all__ = ["MOST_FEATURES", "Change", "Changes", "Margin", "nearest_change"]

# How far encoded rows are within the class that is wanted, or beyond it: positive if they are predicted so.
Margin: TypeAlias = Callable[[FloatArray], FloatArray]

# Values of a feature that are tried if one, two, three features change (if one, of a number), and features.
_GRIDS = (41, 13, 7)
_FEATURES = (0, 8, 5)
_OTHER = 0.5  # distance of another category, or of a value from a missing cell
MOST_FEATURES = len(_GRIDS)
_BISECTIONS = 30
_LEAST = 1e-9  # share of the rows


@dataclass(frozen=True, slots=True)
class Change:
    """A feature, its value in the row, and the value that it would need."""

    feature: str
    before: Value
    after: Value

    def __str__(self) -> str:
        return f"{self.feature}: {value_text(self.before)} → {value_text(self.after)}"


@dataclass(frozen=True, slots=True, repr=False)
class Changes:
    """What would have to change in a row for another class. It prints as a sentence."""

    row: int
    before: object  # the predicted label of the row
    wanted: object | None  # the label that is to be reached or passed; None if there is no such class
    after: object | None  # the predicted label after the changes; None if none were found
    changes: tuple[Change, ...]
    distance: float  # of the changes; infinite if none were found

    @property
    def is_found(self) -> bool:
        """Whether changes were found that lead to the class."""
        return self.after is not None

    def __str__(self) -> str:
        if self.wanted is None:
            return f"Row {self.row}: there is no such class above or below {self.before}."
        if not self.is_found:
            return f"Row {self.row}: no change from {self.before} to {self.wanted} was found."
        return f"Row {self.row}: {self.before} → {self.after} if " + ", ".join(map(str, self.changes))

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where numbers stand among the training rows."""

    numbers: FloatArray  # increasing, within the range of the training rows
    level: FloatArray  # share of the rows below each, increasing from 0 to 1
    whole: bool  # whether all are whole

    @classmethod
    def of(cls, numbers: FloatArray, share: FloatArray, low: float, high: float) -> "_Scale":
        """Return the scale of rows with these shares; the range may be wider than theirs."""
        distinct, place = np.unique(np.append(numbers, [low, high]), return_inverse=True)
        # With a little more for each, so that levels increase.
        of_each = np.bincount(place[:-2], share, minlength=len(distinct)) + _LEAST
        level = np.cumsum(of_each) - 0.5 * of_each
        level = (level - level[0]) / max(level[-1] - level[0], _LEAST)
        return cls(distinct, level, bool((distinct == np.round(distinct)).all()))

    def distance(self, one: float, others: FloatArray) -> FloatArray:
        """Return the share of the rows between a number and others."""
        levels: FloatArray = np.interp(others, self.numbers, self.level)
        return np.abs(levels - np.interp(one, self.numbers, self.level))

    def grid(self, size: int) -> FloatArray:
        """Return numbers with about evenly spaced levels, both ends among them."""
        places = np.searchsorted(self.level, np.linspace(0.0, 1.0, size))
        chosen: FloatArray = self.numbers[np.unique(np.minimum(places, len(self.numbers) - 1))]
        return chosen


@dataclass(frozen=True, slots=True)
class _Choice:
    """A feature of a row, and the values that it may take."""

    j: int
    columns: IntArray
    own: Value
    scale: _Scale | None  # None for categories
    values: list[Value]
    encoded: FloatArray  # (g, columns)

    @classmethod
    def of(cls, row: FloatArray, j: int, values: FeatureValues, background: Background) -> "_Choice":
        """Return what feature j of an encoded row may become."""
        own, categories, columns = (
            values.of_rows(row[None], j)[0],
            values.encoding.categories[j],
            values.columns(j),
        )
        scale, options = None, list[Value]()
        if categories is not None:
            options += [category for category in categories if category != own]
        else:
            present = np.array([value is not None for value in values.of_rows(background.X, j)])
            at, share = background.X[present, columns[0]], background.share[present]
            scale = _Scale.of(at, share, background.low[columns[0]], background.high[columns[0]])
            options += [number for number in scale.grid(_GRIDS[0]).tolist() if number != own]
        return cls(j, columns, own, scale, options, values.encoded(j, options))

    def coarser(self, size: int, reached: FloatArray) -> "_Choice":
        """Return it with at most `size` of the values; of categories, with those of the largest margins."""
        if len(self.values) <= size:
            return self
        kept = np.unique(np.linspace(0, len(self.values) - 1, size).round().astype(np.intp))
        if self.scale is None:
            kept = np.argsort(-reached, kind="stable")[:size]
        return replace(self, values=[self.values[place] for place in kept], encoded=self.encoded[kept])

    @property
    def distance(self) -> FloatArray:
        """Distance of each value from the own one."""
        if self.scale is None or not isinstance(self.own, float):
            return np.full(len(self.values), _OTHER)
        return self.scale.distance(self.own, np.array(self.values, dtype=np.float64))


def nearest_change(
    row: FloatArray,
    values: FeatureValues,
    allowed: Sequence[int],
    max_features: int,
    background: Background,
    margin: Margin,
) -> tuple[FloatArray, list[int], float] | None:
    """Return the nearest encoded row with a positive margin, the features changed, and the distance.

    None if none was found.
    """
    choices = [_Choice.of(row, j, values, background) for j in allowed]
    choices = [choice for choice in choices if choice.values]
    reached = [margin(_with(row, [choice], _all_of([choice]))) for choice in choices]
    order = np.argsort([-margins.max() for margins in reached], kind="stable")
    for count in range(1, min(max_features, len(choices)) + 1):
        few = choices
        if count > 1:
            few = [choices[k].coarser(_GRIDS[count - 1], reached[k]) for k in order[: _FEATURES[count - 1]]]
        found = [
            nearest
            for combination in combinations(few, count)
            if (nearest := _nearest(row, combination, margin)) is not None
        ]
        if found:
            _, chosen, place = min(found, key=lambda one: one[0])
            changed = _moved_back(row, _with(row, chosen, place[None])[0], chosen, margin)
            distance = sum(_distance(choice, changed) for choice in chosen)
            return changed, [choice.j for choice in chosen], distance
    return None


def _nearest(
    row: FloatArray, choices: Sequence[_Choice], margin: Margin
) -> tuple[float, Sequence[_Choice], IntArray] | None:
    """Return the nearest combination of values with a positive margin, with its distance."""
    places = _all_of(choices)
    is_there = margin(_with(row, choices, places)) > 0.0
    if not is_there.any():
        return None
    apart = np.sum([choice.distance[at] for choice, at in zip(choices, places.T, strict=True)], axis=0)
    nearest = int(np.argmin(np.where(is_there, apart, np.inf)))
    return float(apart[nearest]), choices, places[nearest]


def _all_of(choices: Sequence[_Choice]) -> IntArray:
    """Return the positions of all combinations of values, (g, number of choices)."""
    return np.array(list(product(*(range(len(choice.values)) for choice in choices))), dtype=np.intp)


def _with(row: FloatArray, choices: Sequence[_Choice], places: IntArray) -> FloatArray:
    """Return the row with these values, (g, d)."""
    rows = np.tile(row, (len(places), 1))
    for choice, place in zip(choices, places.T, strict=True):
        rows[:, choice.columns] = choice.encoded[place]
    return rows


def _moved_back(
    row: FloatArray, changed: FloatArray, choices: Sequence[_Choice], margin: Margin
) -> FloatArray:
    """Return the changed row with its numbers as near to the old ones as the margin allows."""
    changed = changed.copy()
    for choice in choices:
        if choice.scale is None or not isinstance(choice.own, float):
            continue
        column = choice.columns[0]
        near, far = float(row[column]), float(changed[column])
        for _ in range(_BISECTIONS):
            middle = 0.5 * near + 0.5 * far
            middle = float(np.round(middle)) if choice.scale.whole else middle
            if middle in (near, far):
                break
            changed[column] = middle
            if margin(changed[None])[0] > 0.0:
                far = middle
            else:
                near = middle
        changed[column] = far
    return changed


def _distance(choice: _Choice, changed: FloatArray) -> float:
    """Return the distance of a changed row in one feature."""
    if choice.scale is None or not isinstance(choice.own, float):
        return _OTHER
    return float(choice.scale.distance(choice.own, changed[choice.columns[:1]])[0])
