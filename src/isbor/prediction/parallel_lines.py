r"""Parallel lines: whether all rows have the same thresholds, and what labels say about it.

With constant thresholds, a row with a higher score has lower :math:`\Psi^{-1}(P(y \le k))` for all k, and by
the same amount: as functions of the score these are parallel lines (with a logistic link: proportional odds).
A model whose thresholds vary gives an inner class more or less room at some rows (`isbor.model.cuts`). What
this is worth is seen by taking it away: the room of one class, the gap between its two thresholds, is held at
its geometric mean over the rows, and all else stays as it is, the middle of the thresholds as well. The cost
is what the mean log probability of labels loses by it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.model.latent import Latent
from isbor.prediction.probabilities import log_class_probabilities

__all__ = ["ParallelLines", "log_gaps", "log_probabilities_with_held_gaps", "parallel_lines"]

_CLEAR = 2.0  # standard errors


@dataclass(frozen=True, slots=True, repr=False)
class ParallelLines:
    """What thresholds that vary are worth, for each inner class and together. It prints as a table.

    A cost is what the mean log probability of a label loses, in nats, if the room of a class between its two
    thresholds is the same for all rows, all else as fitted. (A model fitted with thresholds="constant" can
    lose less.)
    """

    classes: LabelArray  # (r-2,) the inner classes
    narrow: FloatArray  # (r-2,) a tenth of the rows give less room, as a factor of the mean
    wide: FloatArray  # (r-2,) a tenth of the rows give more room
    cost: FloatArray  # (r-2,) of each class alone
    standard_error: FloatArray  # (r-2,)
    total_cost: float  # of all classes together
    total_standard_error: float
    n_labels: int

    @property
    def hold(self) -> bool:
        """Whether parallel lines hold, as far as these labels can tell."""
        return self.total_cost <= _CLEAR * self.total_standard_error

    def __str__(self) -> str:
        if not len(self.classes):
            return "Two classes have a single threshold: there are no lines to compare."
        total = f"{self.total_cost:.4f} nats for each of {self.n_labels} labels"
        total += f" (std. error {self.total_standard_error:.4f})"
        if not np.any(self.wide > self.narrow):
            return "Parallel lines: the thresholds of this model are the same for all rows."
        if self.hold:
            lines = [
                f"Parallel lines hold as far as these labels can tell: constant thresholds cost {total}."
            ]
        else:
            most = self.classes[int(np.argmax(self.cost))]
            lines = [f"Parallel lines do not hold: constant thresholds cost {total}, most for class {most}."]
        lines.append(f"{'class':20}{'room: narrow':>14}{'wide':>8}{'cost':>10}{'std. error':>12}")
        for name, *numbers in zip(
            self.classes, self.narrow, self.wide, self.cost, self.standard_error, strict=True
        ):
            lines.append(f"{name!s:20}" + "{:14.2f}{:8.2f}{:10.4f}{:12.4f}".format(*map(float, numbers)))
        return "\n".join(lines)

    __repr__ = __str__


def log_gaps(latent: Latent, thresholds: FloatArray) -> FloatArray:
    """Return the logarithms of the gaps of each row and model of an average, (n, K, r-2)."""
    parts = latent.parts or (latent,)
    return np.stack([np.log(np.diff(_of_rows(part, thresholds), axis=1)) for part in parts], axis=1)


def log_probabilities_with_held_gaps(
    latent: Latent, thresholds: FloatArray, mean_log_gaps: FloatArray
) -> FloatArray:
    """Return ln P(y = k) as fitted, with each gap held alone, and with all of them, (n, r, r).

    `mean_log_gaps`, (K, r-2), are what gaps are held at. The second axis has what is held, the last one the
    class.
    """
    n_gaps = len(thresholds) - 1
    choices = [[], *([gap] for gap in range(n_gaps)), list(range(n_gaps))]
    return np.stack(
        [
            log_class_probabilities(_held(latent, thresholds, mean_log_gaps, some), thresholds)
            for some in choices
        ],
        axis=1,
    )


def parallel_lines(
    classes: LabelArray, y: IntArray, gaps: FloatArray, log_probabilities: FloatArray
) -> ParallelLines:
    """Summarise the gaps of all rows, (n, K, r-2), and the log probabilities with held gaps, (n, r, r)."""
    n = len(y)
    of_labels = log_probabilities[np.arange(n), :, y]
    loss = of_labels[:, :1] - of_labels[:, 1:]
    cost, error = loss.mean(axis=0), loss.std(axis=0, ddof=1) / np.sqrt(n)
    factor = np.exp((gaps - gaps.mean(axis=0)).mean(axis=1))
    narrow, wide = np.quantile(factor, [0.1, 0.9], axis=0)
    return ParallelLines(
        classes[1:-1], narrow, wide, cost[:-1], error[:-1], float(cost[-1]), float(error[-1]), n
    )


def _of_rows(latent: Latent, thresholds: FloatArray) -> FloatArray:
    """Return the thresholds of each row, (n, r-1)."""
    return np.broadcast_to(latent.thresholds(thresholds), (len(latent.mean), len(thresholds)))


def _held(latent: Latent, thresholds: FloatArray, mean_log_gaps: FloatArray, gaps: Sequence[int]) -> Latent:
    """Return the latent score with some gaps held; those of model k of an average at row k of the means."""
    if not gaps:
        return latent
    if latent.parts:
        parts = tuple(
            _held(part, thresholds, mean[None], gaps)
            for part, mean in zip(latent.parts, mean_log_gaps, strict=True)
        )
        return replace(latent, parts=parts)
    before = _of_rows(latent, thresholds)
    gap = np.diff(before, axis=1)
    gap[:, gaps] = np.exp(mean_log_gaps[0, gaps])
    after = np.pad(np.cumsum(gap, axis=1), ((0, 0), (1, 0)))
    after += (_middle(before) - _middle(after))[:, None]
    return replace(latent, offsets=after - thresholds)


def _middle(thresholds: FloatArray) -> FloatArray:
    """Return the middle threshold of each row, or the middle between the two middle ones."""
    t = thresholds.shape[1]
    return 0.5 * (thresholds[:, (t - 1) // 2] + thresholds[:, t // 2])
