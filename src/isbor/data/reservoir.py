r"""A bounded sample of a stream of rows, from which the sums over all rows can be estimated.

**Sampling.** Row i has a random number :math:`e_i \sim \mathrm{Exp}(1)`, a hash of the seed and of what the
row holds, and a rate :math:`r_i`. Kept are the rows with the smallest keys :math:`e_i / r_i`, the first
arrivals of independent clocks (the keys :math:`u^{1/r}` of Efraimidis and Spirakis, *Weighted random sampling
with a reservoir*, 2006). Since a row's key never rises, the rows that are kept of a stream are those that
would be kept of all its rows at once: nothing depends on how it is cut into batches. With equal rates, they
are a uniform sample of the distinct rows, whatever their order. Equal rows have the same number, so they are
merged, and a row that is kept has its whole weight.

Let κ be the smallest key of a row that is not kept. Given the numbers of the other rows, a row is kept with
probability

.. math:: \pi_i = 1 - \exp(-\kappa r_i) ,

and sums over all rows are estimated without bias by sums over kept ones, with weights
:math:`w_i = v_i/\pi_i` (Cohen and Kaplan, *Tighter estimation using bottom k sketches*, 2008). Until a row
has been dropped, κ is infinite, and the weights are those of the rows.

**Rates.** Half of the rows are kept at equal rates. The others are kept by what they tell: a row tells much
if the model was not sure of its label, and little if it was. The slope of the log likelihood in the score is
about :math:`g_i = 1 - p(y_i)`, the probability of all other labels, and rates are
proportional to :math:`\max(g_i, 0.02)`. Where classes are nearly free of noise, the rows between classes are
kept, and the sample tells nearly as much as all rows. Where labels are noisy, rates are nearly equal, and the
sample is nearly uniform. The first half is for what that model did not know: in a sorted stream, rows that
were no surprise may lie next to a class that comes later.

What a row tells is computed again as the model learns, and rates may rise and fall. Then κ may rise, too. A
row has been kept at all times, so for the sample by what rows tell, :math:`\kappa r_i` in the formula is the
least value since the row came. (With constant rates, this is the present one.)

A few rows of each class are kept at equal rates, too. A row is kept if it belongs to any of these samples:
:math:`\kappa r_i` in the formula is the largest one of the three.

With a half-life h, all weights halve when the total weight of the rows has grown by h. All rates of later
rows are higher by the same factor, so a row is kept as long as it counts. The oldest rows, which have a
thousandth of the total weight together, are dropped. (This is what is not exact then; and a row that was
dropped and comes again begins anew.)

**Counting.** With weights w, the sample would claim to know as much as all rows. The slope of the estimated
log likelihood has the variance :math:`\sum w_i^2 v_i^{-1} g_i`, if that of all rows has :math:`\sum v_i g_i`.
So weights are multiplied by

.. math:: c = \sum_i w_i g_i \Big/ \sum_i \frac{w_i^2}{v_i} g_i \le 1 ,

after which the mean curvature is the variance of the slope, as it should be for a posterior. For equal rates,
:math:`c\,w_i = v_i`: the rows count for themselves, and for nothing else. If the rows that tell something
are all kept, c is 1, and the others count for those that were dropped. Here g is what the model says now; it
is computed again from time to time.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from isbor._core.types import BoolArray, FloatArray, IntArray
from isbor.data.order import exact_keys

__all__ = ["Reservoir"]

_LEAST_INFORMATION = 0.02
_AT_EQUAL_RATES = 0.5  # share of the rows
_OF_CLASS = 200  # rows of each class that are kept, at least
_MOST_OF_CLASSES = 0.25  # share of the capacity for them
_FORGOTTEN = 1e-3  # share of the total weight that is dropped with the oldest rows


@dataclass(frozen=True, slots=True)
class Reservoir:
    """The rows kept of a stream."""

    capacity: int  # rows that are kept, without those of small classes
    seed: int
    cells: FloatArray  # (n, d) numbers, positions of categories, NaN
    codes: IntArray  # (n,) position of the label among all classes
    weight: FloatArray  # (n,) v, total weight of the rows like it; halved as time goes by
    chance: FloatArray  # (n,) ln e
    recency: FloatArray  # (n,) ln r of samples at equal rates
    information: FloatArray  # (n,) g
    least: FloatArray  # (n,) ln κr of the sample by what rows tell, at its least
    new: BoolArray  # (n,) whether the row came since the reservoir was last thinned
    number: IntArray  # (n,) of the row, the first one like it, counted over the stream
    even_limit: float  # ln κ of the sample at equal rates
    limits: FloatArray  # (r,) ln κ of the sample of each class
    of_class: FloatArray  # (r,) total weight of all rows so far, halved as time goes by
    seen: float  # total weight of all rows so far
    n_rows: int  # all rows so far
    decay: float = 0.0  # ln 2 over the half-life

    @classmethod
    def empty(cls, capacity: int, seed: int, n_features: int, n_classes: int) -> Self:
        """Return a reservoir without rows."""
        nothing, none = np.zeros(0), np.zeros(0, np.intp)
        return cls(
            capacity,
            seed,
            np.zeros((0, n_features)),
            none,
            nothing,
            nothing,
            nothing,
            nothing,
            nothing,
            none > 0,
            none,
            np.inf,
            np.full(n_classes, np.inf),
            np.zeros(n_classes),
            0.0,
            0,
        )

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def total_weight(self) -> float:
        """Total weight of all rows so far, halved as time goes by."""
        return float(self.of_class.sum())

    @property
    def is_complete(self) -> bool:
        """Whether no row has been dropped, nor will be now."""
        return self.even_limit == np.inf and len(self) <= _AT_EQUAL_RATES * self.capacity

    def sample_weights(self) -> FloatArray:
        """Return the weights with which the kept rows stand for all, (n,)."""
        chosen = -np.expm1(-np.exp(np.minimum(self._bounds(), 700.0)))  # π
        scaled = self.weight / chosen
        told = scaled @ self.information
        if told <= 0.0 or (chosen == 1.0).all():
            return scaled
        return scaled * (told / ((scaled / chosen) @ self.information))

    def _bounds(self) -> FloatArray:
        """Return for each row the logarithm of the number e below which it is kept."""
        even = np.maximum(self.even_limit, self.limits)[self.codes] + self.recency
        return np.maximum(even, self.least)

    def with_cells(self, cells: FloatArray) -> Self:
        """Return the reservoir with categories renumbered."""
        return replace(self, cells=cells)

    def with_rows(
        self,
        cells: FloatArray,
        contents: FloatArray,
        contents_before: FloatArray,
        codes: IntArray,
        weight: FloatArray,
        half_life: float | None = None,
    ) -> Self:
        """Return the reservoir with further rows, all of them for now, until it is `thinned`.

        Parameters
        ----------
        cells : (m, d) the rows
        contents : (m, d) numbers that are the same for equal rows, in all batches
        contents_before : (n, d) those of the rows that are kept already
        codes : (m,) positions of their labels among all classes
        weight : (m,) nonnegative; rows of weight 0 are left out
        half_life : total weight after which the weights of earlier rows are halved; None: never
        """
        decay = 0.0 if half_life is None else np.log(2.0) / half_life
        if decay != self.decay:
            changed = self._decaying(decay)
            return changed.with_rows(cells, contents, contents_before, codes, weight, half_life)
        order = np.flatnonzero(weight > 0.0)
        numbers = self.n_rows + order
        arrival = self.seen + np.cumsum(weight)
        end = float(arrival[-1]) if len(arrival) else self.seen
        own = weight * np.exp(-decay * (end - arrival))
        aged = float(np.exp(-decay * (end - self.seen)))
        hashes = exact_keys(contents[order], codes[order], self.seed, np.full(cells.shape[1], True))
        # The middle of the cell of the hash, so that no chance is 0 or 1.
        chance = np.log(-np.log((hashes.astype(np.float64) + 0.5) * 2.0**-64))
        grown = replace(
            self,
            cells=np.concatenate([self.cells, cells[order]]),
            codes=np.concatenate([self.codes, codes[order]]),
            weight=np.concatenate([aged * self.weight, own[order]]),
            chance=np.concatenate([self.chance, chance]),
            recency=np.concatenate([self.recency, decay * arrival[order]]),
            information=np.concatenate([self.information, np.ones(len(order))]),
            least=np.concatenate([self.least, np.full(len(order), np.inf)]),
            new=np.concatenate([self.new, np.ones(len(order), np.bool_)]),
            number=np.concatenate([self.number, numbers]),
            of_class=aged * self.of_class + np.bincount(codes, own, minlength=len(self.of_class)),
            seen=end,
            n_rows=self.n_rows + len(weight),
        )
        said = np.concatenate([contents_before, contents[order]])
        return grown._merged(said)

    def _decaying(self, decay: float) -> Self:
        """Return the reservoir with another decay from now on; what is kept counts as new."""
        change = (decay - self.decay) * self.seen
        return replace(
            self,
            recency=self.recency + change,
            even_limit=self.even_limit - change,
            limits=self.limits - change,
            decay=decay,
        )

    def _merged(self, said: FloatArray) -> Self:
        """Return the reservoir with equal rows merged; `said` are numbers that tell rows apart."""
        order = np.lexsort((self.number, self.chance))
        same = self.chance[order[1:]] == self.chance[order[:-1]]
        twins = np.flatnonzero(same)
        if not len(twins):
            return self
        one, other = order[twins], order[twins + 1]
        equal = ((said[one] == said[other]) | (np.isnan(said[one]) & np.isnan(said[other]))).all(axis=1)
        same[twins] = equal & (self.codes[one] == self.codes[other])
        first = np.flatnonzero(np.concatenate(([True], ~same)))
        rows = order[first]
        merged = replace(
            self._take(rows),
            weight=np.add.reduceat(self.weight[order], first),
            recency=np.maximum.reduceat(self.recency[order], first),
            information=np.maximum.reduceat(self.information[order], first),
            least=np.minimum.reduceat(self.least[order], first),
            new=np.logical_or.reduceat(self.new[order], first),
        )
        return merged._take(np.argsort(merged.number, kind="stable"))

    def thinned(self, information: FloatArray) -> Self:
        """Return the reservoir without the rows that belong to none of the samples.

        `information`, (n,), is the probability that a model gives to all labels but those of the rows, g.
        """
        even_key = self.chance - self.recency
        n_even, n_classes = int(_AT_EQUAL_RATES * self.capacity), len(self.limits)
        even_limit = _next(even_key, n_even, self.even_limit)
        each = int(min(_OF_CLASS, _MOST_OF_CLASSES * self.capacity // n_classes))
        limits = np.array(
            [_next(even_key[self.codes == k], each, before) for k, before in enumerate(self.limits.tolist())]
        )
        rate = self.recency + np.log(np.maximum(information, _LEAST_INFORMATION))
        others = even_key >= even_limit
        limit = _next((self.chance - rate)[others], self.capacity - n_even, np.inf)
        found = replace(
            self,
            information=information,
            least=np.minimum(self.least, limit + rate),
            new=np.zeros(len(self), np.bool_),
            even_limit=even_limit,
            limits=limits,
        )
        kept = self.chance < found._bounds()
        if self.decay:
            oldest = np.argsort(self.weight, kind="stable")
            sum_of_older = np.cumsum(self.weight[oldest])
            gone = oldest[sum_of_older < _FORGOTTEN * sum_of_older[-1]]
            kept[gone] &= even_key[gone] < limits[self.codes[gone]]
        return found._take(np.flatnonzero(kept))

    def _take(self, rows: IntArray) -> Self:
        return replace(
            self,
            cells=self.cells[rows],
            codes=self.codes[rows],
            weight=self.weight[rows],
            chance=self.chance[rows],
            recency=self.recency[rows],
            information=self.information[rows],
            least=self.least[rows],
            new=self.new[rows],
            number=self.number[rows],
        )


def _next(key: FloatArray, count: int, before: float) -> float:
    """Return the smallest key after the `count` smallest; `before` is that of the rows so far."""
    if len(key) <= count:
        return before
    return min(before, float(np.partition(key, count)[count]))
