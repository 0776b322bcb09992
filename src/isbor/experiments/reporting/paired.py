r"""Two models on repeated splits of one table: how far apart they are, and how sure that is.

Splits of one table share training rows, so :math:`n` differences are not independent, and the standard error
:math:`s/\sqrt n` of their mean :math:`\bar d` is too small. With :math:`n_\mathrm{train}` rows to train and
:math:`n_\mathrm{test}` to test the variance of the mean is about

.. math:: \Big(\frac1n + \frac{n_\mathrm{test}}{n_\mathrm{train}}\Big)\, s^2 ,

and :math:`\bar d` over its root has a t-distribution of :math:`n-1` degrees of freedom (Nadeau & Bengio,
2003).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from isbor.experiments.reporting.significance import Outcome

__all__ = ["LEVEL", "PairedDifference", "paired_difference"]

LEVEL = 0.05
"""The p-value up to which a difference counts."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Mean difference of an error over the splits that two models have, the first less the second."""

    n_splits: int
    mean: float
    error: float  # standard error as if splits were independent; NaN for a single split
    corrected_error: float  # standard error corrected for the rows that splits share
    p_value: float  # two-sided, by the corrected error

    @property
    def outcome(self) -> Outcome:
        """What the difference says of the first model; less is better."""
        return self._decided(self.p_value <= LEVEL)

    def beyond(self, n_errors: float) -> Outcome:
        """Return what a difference of more than so many corrected errors says; one split says nothing."""
        return self._decided(abs(self.mean) > n_errors * self.corrected_error)

    def _decided(self, differs: bool) -> Outcome:
        if not differs:
            return "draw"
        return "win" if self.mean < 0.0 else "loss"


def paired_difference(
    first: Mapping[int, float], second: Mapping[int, float], test_over_train: float
) -> PairedDifference | None:
    """Compare errors by split of two models on the splits that both have, None if there is none.

    `test_over_train` are the rows that a split tests on, divided by those that it trains on: 1/9 for tenfold
    cross-validation.
    """
    differences = np.array([first[split] - second[split] for split in sorted(first.keys() & second.keys())])
    n_splits = len(differences)
    if n_splits == 0:
        return None
    mean = float(differences.mean())
    if n_splits == 1:
        return PairedDifference(1, mean, math.nan, math.nan, math.nan)
    variance = float(differences.var(ddof=1))
    corrected = math.sqrt((1.0 / n_splits + test_over_train) * variance)
    if corrected > 0.0:
        p_value = float(2.0 * stats.t.sf(abs(mean) / corrected, n_splits - 1))
    else:
        p_value = 1.0 if mean == 0.0 else 0.0
    return PairedDifference(n_splits, mean, math.sqrt(variance / n_splits), corrected, p_value)
