"""`Explanation`: where the scores of some rows come from."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from isbor._core.tables import as_frame, objects
from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.data.feature_values import Value, value_text

__all__ = ["Explanation"]

_MOST_ROWS = 3  # that are printed one by one
_MOST_FEATURES = 10
_MOST_FUNCTIONS = 3
_NAME_WIDTH = 34


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """Where the scores of n rows come from. It prints as text.

    ``baseline + contributions.sum(axis=1)`` is the score, and so is ``intercept + functions.sum(axis=1)``.
    """

    score: FloatArray  # (n,) on the scale of `thresholds_`
    thresholds: FloatArray  # (n, r-1) of each row
    classes: LabelArray  # (r,)
    predicted: LabelArray  # (n,) labels
    probabilities: FloatArray | None  # (n, r); None if the model has none
    feature_names: tuple[str, ...]  # (d,)
    values: tuple[tuple[Value, ...], ...]  # n rows of the d features: numbers, categories, None for missing
    baseline: float  # mean score of the background
    contributions: FloatArray  # (n, d) Shapley values
    intercept: float
    functions: FloatArray | None  # (n, m) what each basis function adds; None if left out
    typical: FloatArray | None  # (m,) what each basis function adds in the mean over the background
    source: IntArray  # (m,) number of the training row behind each function, -1 if there is none

    def __len__(self) -> int:
        return len(self.score)

    @property
    def distances(self) -> FloatArray:
        """Score minus thresholds, (n, r-1): negative if the score is below."""
        return self.score[:, None] - self.thresholds

    def difference(self, row: int, other: int) -> FloatArray:
        """Return by how much each feature contributes more to one explained row than to another, (d,).

        They sum to the difference of the two scores.
        """
        difference: FloatArray = self.contributions[row] - self.contributions[other]
        return difference

    def largest_functions(self, row: int, count: int = _MOST_FUNCTIONS) -> IntArray:
        """Return the functions that differ most from their mean over the background, largest first."""
        if self.functions is None or self.typical is None:
            raise ValueError("Contributions of functions were left out; pass functions=True to explain.")
        order = np.argsort(-np.abs(self.functions[row] - self.typical), kind="stable")
        return order[:count]

    def to_frame(self) -> Any:
        """Return one line for each row and feature: row, feature, value, contribution.

        A data frame of pandas or polars; without them, a dict of arrays.
        """
        n, d = self.contributions.shape
        return as_frame(
            {
                "row": np.repeat(np.arange(n), d),
                "feature": objects(list(self.feature_names) * n),
                "value": objects([value for row in self.values for value in row]),
                "contribution": self.contributions.ravel(),
            }
        )

    def __str__(self) -> str:
        if len(self) > _MOST_ROWS:
            return self._summary()
        return "\n\n".join(self._row_text(row) for row in range(len(self)))

    __repr__ = __str__

    def _summary(self) -> str:
        lines = [
            f"{len(self)} rows, scores from {self.score.min():.2f} to {self.score.max():.2f}, on average "
            f"{self.score.mean():.2f}; of the background {self.baseline:.2f}.",
            f"{'mean size of the contribution':{_NAME_WIDTH}}",
        ]
        sizes = np.abs(self.contributions).mean(axis=0)
        order = np.argsort(-sizes, kind="stable")[:_MOST_FEATURES]
        lines += [f"  {self.feature_names[j]:{_NAME_WIDTH}.{_NAME_WIDTH}}{sizes[j]:8.2f}" for j in order]
        return "\n".join(lines)

    def _row_text(self, row: int) -> str:
        k = int(np.flatnonzero(self.classes == self.predicted[row])[0])
        lines = [f"Row {row}: class {self.predicted[row]}, score {self.score[row]:.2f}"]
        distance = self.distances[row]
        for place in (k - 1, k):
            if 0 <= place < len(distance):
                side = f"{abs(distance[place]):.2f} {'above' if distance[place] > 0 else 'below'}"
                where = f"{self.classes[place]} | {self.classes[place + 1]}"
                lines.append(f"  {side} the threshold of {where} at {self.thresholds[row, place]:.2f}")
        if self.probabilities is not None:
            shares = zip(self.classes, self.probabilities[row], strict=True)
            lines.append("  " + ", ".join(f"P({name}) = {p:.2f}" for name, p in shares))
        lines.append(f"  {'mean score of the background':{_NAME_WIDTH}}{self.baseline:+8.2f}")
        contributions = self.contributions[row]
        order = np.argsort(-np.abs(contributions), kind="stable")
        for j in order[:_MOST_FEATURES]:
            name = f"{self.feature_names[j]} = {value_text(self.values[row][j])}"
            lines.append(f"  {name:{_NAME_WIDTH}.{_NAME_WIDTH}}{contributions[j]:+8.2f}")
        others = order[_MOST_FEATURES:]
        if len(others):
            name = f"{len(others)} other feature(s)"
            lines.append(f"  {name:{_NAME_WIDTH}}{contributions[others].sum():+8.2f}")
        if self.functions is not None and self.typical is not None and len(self.source):
            apart = self.functions[row] - self.typical
            named = [
                f"{apart[m]:+.2f}" + (f" (training row {self.source[m]})" if self.source[m] >= 0 else "")
                for m in self.largest_functions(row)
            ]
            lines.append(f"  largest of {len(self.source)} functions: {', '.join(named)}")
        return "\n".join(lines)
