r"""Class probabilities for scores that have none: an ordered probit on cross-fitted scores.

A support vector machine or a discriminant gives a score f, no distribution. Its labels are taken to follow

.. math:: P(y \le k) = \Psi(c_k - a f), \qquad a \ge 0,

and (a, c) is the mode of the model of `isbor.inference.mode` with the score, standardised, as its only
function and :math:`a \sim N(0, 30^2)` in these units: weak enough not to matter, unless the classes can be
separated.

The scores must be those of rows that the machine has not seen: its own training rows lie at the margin or
beyond because they were put there. So the rows of each class are dealt out to a few folds, and each fold is
scored by a machine fitted to the others. A class of fewer rows than folds is held out in as many folds as
it has rows; **the only row of a class is never held out**, since without it its threshold could not be
learned: its score is that of the machine of all rows. Machines of different folds may differ by a constant,
which thresholds take up; so scores are compared after the mean of their machine's thresholds is subtracted.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.types import FloatArray, IntArray
from isbor.data.folds import fold_numbers
from isbor.data.rows import TrainingRows
from isbor.inference.expansion import expand, streamed
from isbor.inference.mode import find_mode, starting_thresholds
from isbor.kernel.kernels import CutScore, Kernel
from isbor.prediction.latent import Latent

__all__ = ["Calibration", "calibrate", "cross_fitted_scores"]

_REACH = 30.0  # prior standard deviation of the slope, for scores of unit standard deviation


@dataclass(frozen=True, slots=True)
class Calibration:
    """P(y ≤ k) = Ψ(thresholds_k - slope · score)."""

    slope: float
    thresholds: FloatArray  # (r-1,)

    def response(self, latent: Latent, lapse: float) -> Latent:
        """Return the scores in units of the noise."""
        return Latent(self.slope * latent.mean, latent.variance, latent.noise_variance, lapse)


class _TheScore:
    """The score as a function of itself."""

    def __len__(self) -> int:
        return 1

    def __call__(self, X: FloatArray) -> FloatArray:
        return X.copy()


def calibrate(score: FloatArray, y: IntArray, weight: FloatArray) -> Calibration:
    """Fit the ordered probit to scores and labels 0 … r-1, each of which occurs."""
    share = weight / weight.sum()
    centre = float(share @ score)
    spread = float(np.sqrt(share @ (score - centre) ** 2))
    thresholds = starting_thresholds(y, weight)
    if spread <= 1e-12 * float(np.max(np.abs(score))):
        return Calibration(0.0, thresholds)
    standard = ((score - centre) / spread)[:, None]
    rows = TrainingRows(standard, y, weight, np.arange(len(y)))
    with Workers(1) as workers:
        columns = streamed(rows, _TheScore())
        mode = find_mode(
            lambda w, b: expand(rows, columns, w, b, workers),
            np.array([_REACH**-2]),
            np.zeros(1),
            thresholds,
        )
    if mode.weights[0] <= 0.0:  # higher scores do not go with higher labels: the score says nothing
        return Calibration(0.0, thresholds)
    slope = float(mode.weights[0]) / spread
    return Calibration(slope, mode.thresholds + slope * centre)


def cross_fitted_scores(
    rows: TrainingRows,
    whole: CutScore,
    fit: Callable[[TrainingRows], CutScore],
    kernel: Kernel,
    n_folds: int,
) -> FloatArray:
    """Return each row's score by a machine that has not seen it, in line with the thresholds of the whole."""
    fold = fold_numbers(rows.y, n_folds)
    level = float(whole.thresholds.mean())
    score = np.empty(len(rows))
    alone = np.flatnonzero(fold < 0)
    if len(alone):
        score[alone] = kernel(rows.X[alone], rows) @ whole.coef
    for number in np.unique(fold[fold >= 0]):
        held_out, rest = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        part = rows.take(rest)
        cut = fit(part)
        score[held_out] = kernel(rows.X[held_out], part) @ cut.coef - cut.thresholds.mean() + level
    return score
