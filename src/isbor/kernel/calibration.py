r"""Class probabilities for machines without them: an ordered probit on cross-fitted scores.

A support vector machine or a discriminant gives a score f but no distribution of the label. The labels are
modelled by

.. math:: P(y \le k) = \Psi(c_k - a f), \qquad a \ge 0,

where (a, c) is the mode of the model of `isbor.inference.mode` with the standardised score as the only
function and the prior :math:`a \sim N(0, 30^2)`. The prior is so weak that it matters only if the classes can
be separated.

The scores must come from machines that have not seen the rows, because training pushes rows to or beyond the
margin. So each class is split into a few folds, and each fold is scored by a machine fitted to the others. A
class with fewer rows than folds is held out in as many folds as it has rows. **The only row of a class is
never held out**, nor are rows without which the class would have almost no weight, because then the threshold
of the class could not be learned; these rows are scored by the machine fitted to all rows. The scores of
machines of different folds may differ by a constant, which their thresholds absorb, so the mean threshold of
each machine is subtracted from its scores.
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
from isbor.model.latent import Latent

__all__ = ["Calibration", "calibrate", "cross_fitted_scores"]

_REACH = 30.0  # prior standard deviation of the slope, for scores of unit standard deviation
_NEGLIGIBLE = 1e-12  # share of the weight of all rows


@dataclass(frozen=True, slots=True)
class Calibration:
    """P(y ≤ k) = Ψ(thresholds_k - slope · score)."""

    slope: float
    thresholds: FloatArray  # (r-1,)

    def response(self, latent: Latent, lapse: float) -> Latent:
        """Return the scores in units of the noise."""
        return Latent(self.slope * latent.mean, latent.variance, latent.noise_variance, lapse)


class _Identity:
    """The score itself as the only basis function."""

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
        columns = streamed(rows, _Identity())
        mode = find_mode(
            lambda w, b: expand(rows, columns, w, b, workers),
            np.array([_REACH**-2]),
            np.zeros(1),
            thresholds,
        )
    if mode.weights[0] <= 0.0:  # labels do not increase with the score: ignore it
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
    """Return the score of each row by a machine not trained on it, shifted to the thresholds of `whole`."""
    fold = _folds(rows, n_folds)
    centre = float(whole.thresholds.mean())
    score = np.empty(len(rows))
    alone = np.flatnonzero(fold < 0)
    if len(alone):
        score[alone] = kernel(rows.X[alone], rows) @ whole.coef
    for number in np.unique(fold[fold >= 0]):
        held_out, rest = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        part = rows.take(rest)
        cut = fit(part)
        score[held_out] = kernel(rows.X[held_out], part) @ cut.coef - cut.thresholds.mean() + centre
    return score


def _folds(rows: TrainingRows, n_folds: int) -> IntArray:
    """Return the fold in which each row is held out, -1 if too little weight of its class would be left."""
    fold = fold_numbers(rows.y, n_folds)
    part = rows.y * n_folds + np.maximum(fold, 0)
    left = np.bincount(rows.y, rows.weight)[rows.y] - np.bincount(part, rows.weight)[part]
    return np.where(left < _NEGLIGIBLE * rows.total_weight, -1, fold)
