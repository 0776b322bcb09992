r"""How predictions change along one feature or two, averaged over rows.

**Partial dependence.** At a value v, the features S that are shown are set to v in all rows, and predictions
are averaged,

.. math:: h(v) = \sum_i s_i\, p(v, x_{i,-S}), \qquad \sum_i s_i = 1 .

Where features depend on each other, this includes rows that do not occur, such as tall persons of the weight
of a child.

**Accumulated local effects** of a number avoid that. Between two neighbouring values of a grid
:math:`z_0 < \dots < z_K`, only the rows with values there are moved, from one end to the other,

.. math:: h(z_k) = c + \sum_{l \le k} \frac{\sum_{i \in I_l} s_i\,[p(z_l, x_{i,-j}) - p(z_{l-1}, x_{i,-j})]}
    {\sum_{i \in I_l} s_i}, \qquad I_l = \{i : z_{l-1} < x_{ij} \le z_l\},

with :math:`z_0` in the first interval, and c such that the mean over the rows, with the mean of both ends in
each interval, is the mean prediction. Rows in which the number is missing are left out.

**Bands** of partial dependence come from the distribution of the true probabilities at each row
(`isbor.prediction.bands`). How errors at different rows are related is not known, so they are taken to go
together: draw q of all rows is averaged, and the band has the quantiles of the averages. For given variances
at the rows, no other relation gives a larger variance of the mean score. At the ends of the range of a
feature, most averaged rows do not occur, and bands are too narrow there; so the numbers that are shown leave
out a twentieth of the rows on each side. For differences between values of a feature, errors that go together
are the opposite of safe, so accumulated local effects have no bands, and a band says nothing of how sure the
shape of a curve is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, TypeAlias

import numpy as np

from isbor._core.tables import as_frame, objects
from isbor._core.types import FloatArray, LabelArray
from isbor.data.feature_values import FeatureValues, Value, value_text
from isbor.inspection.background import Background

__all__ = ["Curve", "Effects", "Kind", "MeanDraws", "Predictor", "accumulated", "grid_of", "partial"]

Kind: TypeAlias = Literal["partial", "ale"]
# Mean draws of class probabilities, (q, r), over encoded rows with shares.
MeanDraws: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]

_WIDEST = 24  # column of a printed table
_MOST_LINES = 30
_TAIL = 0.05  # share of the rows on each side of the numbers that partial dependence shows


@dataclass(frozen=True, slots=True)
class Predictor:
    """What is averaged, as functions of encoded rows."""

    respond: Callable[[FloatArray], FloatArray]  # (n, 1 + r), scores and class probabilities; or (n, 1)
    mean_draws: MeanDraws | None  # None without bands


@dataclass(frozen=True, slots=True)
class Curve:
    """Averages at g points."""

    mean: FloatArray  # (g, 1 + r) of score and class probabilities; or (g, 1)
    draws: FloatArray | None = None  # (g, q, r)


@dataclass(frozen=True, slots=True, repr=False)
class Effects:
    """Averages of predictions along one feature (shape (g,)) or two (shape (g, h)). It prints as a table.

    Expected ranks count classes from 0, the lowest.
    """

    features: tuple[str, ...]  # one or two
    values: tuple[tuple[Value, ...], ...]  # of each feature: numbers or categories, None for missing cells
    kind: Kind
    classes: LabelArray  # (r,)
    thresholds: FloatArray  # (r-1,) `thresholds_` of the model
    score: FloatArray  # (g,) or (g, h)
    expected: FloatArray | None  # mean of the predicted ranks; None without probabilities, as what follows
    probabilities: FloatArray | None  # (…, r)
    coverage: float
    expected_band: tuple[FloatArray, FloatArray] | None = None  # ends; None without bands
    probability_bands: tuple[FloatArray, FloatArray] | None = None  # ends, (g, r)

    @classmethod
    def of(
        cls,
        curve: Curve,
        *,
        features: tuple[str, ...],
        values: tuple[tuple[Value, ...], ...],
        kind: Kind,
        classes: LabelArray,
        thresholds: FloatArray,
        coverage: float,
    ) -> "Effects":
        """Return averages at all combinations of the values, in which the last feature changes fastest."""
        shape = tuple(map(len, values))
        score, p = curve.mean[:, 0].reshape(shape), curve.mean[:, 1:]
        ranks = np.arange(len(classes), dtype=np.float64)
        expected_band = probability_bands = None
        if curve.draws is not None:
            tails = [0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage]
            expected_band = _around(np.quantile(curve.draws @ ranks, tails, axis=1), p @ ranks)
            probability_bands = _around(np.quantile(curve.draws, tails, axis=1), p)
        has_probabilities = p.shape[1] > 0
        return cls(
            features,
            values,
            kind,
            classes,
            thresholds,
            score,
            (p @ ranks).reshape(shape) if has_probabilities else None,
            p.reshape(*shape, len(classes)) if has_probabilities else None,
            coverage,
            expected_band,
            probability_bands,
        )

    def to_frame(self) -> Any:
        """Return a line for each value or pair of values, as a data frame; without pandas and polars, a dict.

        Columns are the values, score, expected rank, and class probabilities with the ends of their bands.
        """
        points = list(product(*self.values))
        names = ["value"] if len(self.features) == 1 else ["first value", "second value"]
        columns: dict[str, Any] = {
            name: objects([point[k] for point in points]) for k, name in enumerate(names)
        }
        columns["score"] = self.score.ravel()
        if self.expected is not None and self.probabilities is not None:
            columns["expected rank"] = self.expected.ravel()
            if self.expected_band is not None:
                columns["expected rank low"], columns["expected rank high"] = self.expected_band
            for k, label in enumerate(self.classes):
                columns[f"P({label})"] = self.probabilities[..., k].ravel()
                if self.probability_bands is not None:
                    low, high = self.probability_bands
                    columns[f"P({label}) low"], columns[f"P({label}) high"] = low[:, k], high[:, k]
        return as_frame(columns)

    def __str__(self) -> str:
        name = "Accumulated local effects" if self.kind == "ale" else "Partial dependence"
        lines = [f"{name} on {' and '.join(self.features)}"]
        head = f"{'':32}{'score':>8}"
        if self.expected is not None:
            head += f"{'rank':>7}" + (f"{f'band {self.coverage:.0%}':>16}" if self.expected_band else "")
            names = [f"P({label})" for label in self.classes]
            width = min(max(12, *(len(name) + 1 for name in names)), _WIDEST)
            head += "".join(f"{name:>{width}.{width - 1}}" for name in names)
        lines.append(head)
        points = list(product(*self.values))
        for i, point in enumerate(points[:_MOST_LINES]):
            line = f"{', '.join(map(value_text, point)):32.32}{self.score.flat[i]:8.2f}"
            if self.expected is not None and self.probabilities is not None:
                line += f"{self.expected.flat[i]:7.2f}"
                if self.expected_band is not None:
                    line += f"{f'{self.expected_band[0][i]:.2f} … {self.expected_band[1][i]:.2f}':>16}"
                p = self.probabilities.reshape(len(points), -1)[i]
                line += "".join(f"{share:{width}.2f}" for share in p)
            lines.append(line)
        if len(points) > _MOST_LINES:
            lines.append(f"… and {len(points) - _MOST_LINES} more; to_frame() has all.")
        return "\n".join(lines)

    __repr__ = __str__


def grid_of(values: FeatureValues, j: int, background: Background, size: int) -> list[Value]:
    """Return values of feature j to show: numbers but for a twentieth at each end, or categories.

    Of a few distinct numbers, all are shown. If training had missing cells, they come last.
    """
    categories, absent = values.encoding.categories[j], bool(values.encoding.indicator[j])
    missing: list[Value] = [None] if absent else []
    if categories is not None:
        return [*categories, *missing]
    numbers, share = _numbers(values, j, background)
    return [*_quantiles(numbers, share, size, _TAIL).tolist(), *missing]


def partial(
    columns: Sequence[FloatArray], grids: Sequence[FloatArray], background: Background, predictor: Predictor
) -> Curve:
    """Return the partial dependence at all combinations of grid points.

    `columns` are the encoded columns of each feature, and `grids` their contents at its values, (g, columns).
    """
    means, draws = [], []
    rows = background.X.copy()
    for point in product(*map(range, map(len, grids))):
        for own, grid, place in zip(columns, grids, point, strict=True):
            rows[:, own] = grid[place]
        means.append(background.share @ predictor.respond(rows))
        if predictor.mean_draws is not None:
            draws.append(predictor.mean_draws(rows, background.share))
    return Curve(np.stack(means), np.stack(draws) if draws else None)


def accumulated(
    values: FeatureValues, j: int, background: Background, size: int, predictor: Predictor
) -> tuple[list[Value], Curve]:
    """Return the ends of the intervals of a number, and its accumulated local effects there."""
    if values.encoding.categories[j] is not None:
        raise ValueError(
            f"{values.names[j]!r} has categories, which have no neighbours on a scale; accumulated local "
            "effects need a number. Use kind='partial'."
        )
    numbers, _ = _numbers(values, j, background)
    present = np.array([value is not None for value in values.of_rows(background.X, j)])
    share = background.share[present] / background.share[present].sum()
    rows, ends = background.X[present], _quantiles(numbers, share, size, 0.0)
    everywhere = share @ predictor.respond(rows)
    if len(ends) < 2:
        return ends.tolist(), Curve(everywhere[None])
    interval = np.maximum(np.searchsorted(ends, numbers, side="left") - 1, 0)
    column = values.columns(j)[0]
    change = np.zeros((len(rows), len(everywhere)))
    for sign, end in ((1.0, interval + 1), (-1.0, interval)):
        moved = rows.copy()
        moved[:, column] = ends[end]
        change += sign * predictor.respond(moved)
    in_interval = np.zeros((len(ends) - 1, len(rows)))
    in_interval[interval, np.arange(len(rows))] = share
    weight = in_interval.sum(axis=1)
    rise = in_interval @ change / np.where(weight > 0.0, weight, 1.0)[:, None]
    height = np.concatenate([np.zeros((1, rise.shape[1])), np.cumsum(rise, axis=0)])
    middle = weight @ (height[:-1] + height[1:]) / 2.0
    return ends.tolist(), Curve(height - middle + everywhere)


def _numbers(values: FeatureValues, j: int, background: Background) -> tuple[FloatArray, FloatArray]:
    """Return the numbers of feature j that are present, and the shares of their rows."""
    cells = values.of_rows(background.X, j)
    present = np.array([value is not None for value in cells])
    if not present.any():
        raise ValueError(
            f"All cells of {values.names[j]!r} are missing in these rows; numbers are needed to choose "
            "values. Pass other rows as X."
        )
    return background.X[present, values.columns(j)[0]], background.share[present]


def _quantiles(numbers: FloatArray, share: FloatArray, size: int, tail: float) -> FloatArray:
    """Return evenly spaced weighted quantiles between two tails; of a few numbers, all."""
    distinct, place = np.unique(numbers, return_inverse=True)
    if len(distinct) <= size:
        return distinct
    below = np.cumsum(np.bincount(place, share))
    levels = np.linspace(tail, 1.0 - tail, size) * below[-1]
    return np.unique(distinct[np.minimum(np.searchsorted(below, levels), len(distinct) - 1)])


def _around(ends: FloatArray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the ends of bands, moved so that they contain the mean."""
    return np.minimum(ends[0], mean), np.maximum(ends[1], mean)
