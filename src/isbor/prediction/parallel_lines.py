r"""Parallel lines: whether all rows have the same thresholds, and what labels say about it.

With constant thresholds, a row with a higher score has lower :math:`\Psi^{-1}(P(y \le k))` for all k, and by
the same amount: as functions of the score these are parallel lines (with a logistic link: proportional odds).
If thresholds vary, the gap between the two thresholds of an inner class is wider at some rows than at others
(`isbor.model.cuts`). What this is worth is seen by taking it away: the gap of one class is fixed at its
geometric mean over the rows, and all else stays as it is, the middle of the thresholds as well. The cost is
what the mean log probability of labels loses by it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.model.latent import Latent
from isbor.prediction.probabilities import log_label_probabilities

__all__ = ["ParallelLines", "parallel_lines"]

_CLEAR = 2.0  # standard errors
_NARROWEST = 1e-12  # of all gaps


@dataclass(frozen=True, slots=True, repr=False)
class ParallelLines:
    """What thresholds that vary are worth, for each inner class and together. It prints as a table.

    A cost is what the mean log probability of a label loses, in nats, if the gap between the two thresholds
    of a class is the same for all rows, all else as fitted. (A model fitted with thresholds="constant" can
    lose less.)
    """

    classes: LabelArray  # (r-2,) the inner classes
    vary: bool  # whether thresholds vary with the row at all
    narrow: (
        FloatArray  # (r-2,) a tenth of the rows have narrower gaps than this, in units of the geometric mean
    )
    wide: FloatArray  # (r-2,) a tenth of the rows have wider gaps
    cost: FloatArray  # (r-2,) of each class alone
    standard_error: FloatArray  # (r-2,)
    total_cost: float  # of all classes together
    total_standard_error: float
    n_labels: int

    @property
    def are_parallel(self) -> bool:
        """Whether the lines are parallel, as far as these labels can tell."""
        return self.total_cost <= _CLEAR * self.total_standard_error

    def __str__(self) -> str:
        if not len(self.classes):
            return "Two classes have a single threshold: there are no lines to compare."
        if not self.vary:
            return "Parallel lines: the thresholds of this model are the same for all rows."
        total = f"{self.total_cost:.4f} nats for each of {self.n_labels} labels"
        total += f" (std. error {self.total_standard_error:.4f})"
        if self.are_parallel:
            lines = [f"Parallel lines, as far as labels can tell: constant thresholds cost {total}."]
        else:
            most = self.classes[int(np.argmax(self.cost))]
            lines = [f"No parallel lines: constant thresholds cost {total}, most for class {most}."]
        lines.append(f"{'class':20}{'narrow gap':>12}{'wide gap':>10}{'cost':>10}{'std. error':>12}")
        columns = self.narrow, self.wide, self.cost, self.standard_error
        for name, *numbers in zip(self.classes, *columns, strict=True):
            lines.append(f"{name!s:20}" + "{:12.2f}{:10.2f}{:10.4f}{:12.4f}".format(*map(float, numbers)))
        return "\n".join(lines)

    __repr__ = __str__


def parallel_lines(
    blocks: Sequence[tuple[Latent, IntArray]], thresholds: FloatArray, places: IntArray, classes: LabelArray
) -> ParallelLines:
    """Return what varying thresholds are worth on blocks of rows with labels 0 … r-1.

    `places`, (r-1,), are the fitted thresholds with which the thresholds of all classes vary.
    """
    middle, n_gaps = _middle(places), len(thresholds) - 1
    gaps = np.concatenate([_log_gaps(latent, thresholds) for latent, _ in blocks])
    mean = gaps.mean(axis=0)
    choices = [[], *([gap] for gap in range(n_gaps)), list(range(n_gaps))]
    log_p = np.concatenate(
        [
            np.stack(
                [
                    log_label_probabilities(_fixed(latent, thresholds, middle, mean, some), thresholds, y)
                    for some in choices
                ],
                axis=1,
            )
            for latent, y in blocks
        ]
    )
    loss = log_p[:, :1] - log_p[:, 1:]
    cost, error = loss.mean(axis=0), loss.std(axis=0, ddof=1) / np.sqrt(len(loss))
    shares = blocks[0][0].shares or (1.0,)
    factor = np.exp(np.tensordot(shares, gaps - mean, axes=(0, 1)))
    narrow, wide = np.quantile(factor, [0.1, 0.9], axis=0)
    return ParallelLines(
        classes=classes[1:-1],
        vary=bool(np.any(np.ptp(gaps, axis=0) > 0.0)),
        narrow=narrow,
        wide=wide,
        cost=cost[:-1],
        standard_error=error[:-1],
        total_cost=float(cost[-1]),
        total_standard_error=float(error[-1]),
        n_labels=len(loss),
    )


def _of_rows(latent: Latent, thresholds: FloatArray) -> FloatArray:
    """Return the thresholds of each row, (n, r-1)."""
    return np.broadcast_to(latent.thresholds(thresholds), (len(latent.mean), len(thresholds)))


def _log_gaps(latent: Latent, thresholds: FloatArray) -> FloatArray:
    """Return the logarithms of the gaps of each row and model of an average, (n, K, r-2)."""
    parts = latent.parts or (latent,)
    gaps = np.stack([np.diff(_of_rows(part, thresholds), axis=1) for part in parts], axis=1)
    return np.log(np.maximum(gaps, _NARROWEST))


def _fixed(
    latent: Latent, thresholds: FloatArray, middle: FloatArray, log_gaps: FloatArray, gaps: Sequence[int]
) -> Latent:
    """Return the latent score with some gaps fixed, those of model k of an average at row k of `log_gaps`."""
    if not gaps:
        return latent
    if latent.parts:
        parts = tuple(
            _fixed(part, thresholds, middle, of_part[None], gaps)
            for part, of_part in zip(latent.parts, log_gaps, strict=True)
        )
        return replace(latent, parts=parts)
    before = _of_rows(latent, thresholds)
    gap = np.diff(before, axis=1)
    gap[:, gaps] = np.exp(log_gaps[0, gaps])
    after = np.pad(np.cumsum(gap, axis=1), ((0, 0), (1, 0)))
    after += ((before - after) @ middle)[:, None]
    return replace(latent, offsets=after - thresholds)


def _middle(places: IntArray) -> FloatArray:
    """Return the weights with which thresholds make up the middle of the fitted ones, (r-1,)."""
    n_fitted = int(places[-1]) + 1
    weights = np.zeros(len(places))
    for fitted in ((n_fitted - 1) // 2, n_fitted // 2):
        at = places == fitted
        weights[at] += 0.5 / at.sum()
    return weights
