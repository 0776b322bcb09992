"""Held-out rows: how rows are divided, and how models are compared on those held out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import numpy as np

from isbor._core.types import BoolArray, FloatArray, IntArray
from isbor.data.folds import units_in_fold
from isbor.data.rows import TrainingRows
from isbor.data.training_set import TrainingSet
from isbor.model.latent import Latent
from isbor.prediction.ensemble import Ensemble
from isbor.prediction.probabilities import log_label_probabilities

__all__ = [
    "COMPARED_ROWS",
    "MIN_ROWS_OF_CLASS",
    "Part",
    "Validation",
    "compare",
    "folds",
    "in_large_classes",
    "is_close",
    "one_part",
    "validate",
]

_FOLDS = 3
COMPARED_ROWS = (700, 2000)  # training rows if one part is held out, at first and later
_HELD_OUT_ROWS = 4000  # validation rows in that case, at most
MIN_ROWS_OF_CLASS = 6  # a smaller class is never held out


@dataclass(frozen=True, slots=True)
class Validation:
    """A model on the held-out rows of one fold, and its log probabilities of their labels."""

    latent: Latent  # score and noise of the n rows
    thresholds: FloatArray
    y: IntArray  # (n,) labels
    weight: FloatArray  # (n,)
    n_functions: int  # of the model
    log_p: FloatArray  # (n,)

    def tempered(self, temperature: float) -> "Validation":
        """Return the validation of the model with another temperature."""
        latent = self.latent.tempered(temperature)
        return replace(self, latent=latent, log_p=log_label_probabilities(latent, self.thresholds, self.y))


def validate(model: Ensemble, latents: Sequence[Latent], rows: TrainingRows) -> Validation:
    """Evaluate an average of models on held-out rows, where the models have these latent scores."""
    latent, thresholds = model.average(latents), model.thresholds
    log_p = log_label_probabilities(latent, thresholds, rows.y)
    return Validation(latent, thresholds, rows.y, rows.weight, model.n_functions, log_p)


def compare(best: Sequence[Validation], other: Sequence[Validation]) -> tuple[float, float]:
    """Return the deficit of `other` in mean log score and its standard error, on the rows of both."""
    pairs = list(zip(best, other, strict=False))
    difference = np.concatenate([a.log_p - b.log_p for a, b in pairs])
    weight = np.concatenate([a.weight for a, _ in pairs])
    share = weight / weight.sum()
    deficit = float(share @ difference)
    return deficit, float(np.sqrt(np.sum(share**2 * (difference - deficit) ** 2)))


def is_close(best: Sequence[Validation], other: Sequence[Validation], limit: float) -> bool:
    """Return whether the deficit of `other` is at most `limit` standard errors."""
    deficit, error = compare(best, other)
    return deficit <= limit * error


_Split: TypeAlias = tuple[IntArray, FloatArray, IntArray, FloatArray]  # rows and weights: training, held out


@dataclass(frozen=True, slots=True)
class Part:
    """Training rows and held-out rows."""

    training: TrainingSet
    held_out: TrainingRows

    @classmethod
    def of(
        cls,
        training: TrainingSet,
        train: IntArray,
        train_weight: FloatArray,
        test: IntArray,
        test_weight: FloatArray,
    ) -> Self:
        """Divide rows; `train` and `test` are positions."""
        rows = training.rows
        of_part = replace(training, rows=replace(rows.take(train), weight=train_weight))
        held_out = replace(rows.take(test), weight=test_weight)
        return cls(of_part, of_part.with_unseen_categories(held_out))


def folds(rows: TrainingRows) -> Iterator[_Split]:
    """Yield the training and held-out rows of each fold.

    With integer weights, a row of weight w counts as w equal rows, some of which may be held out while others
    stay in training.
    """
    whole = bool((rows.weight == np.round(rows.weight)).all())
    units = rows.weight if whole else np.ones(len(rows))
    for k in range(_FOLDS):
        held_out = units_in_fold(rows.y, units, k, _FOLDS)
        held_out = np.where(in_large_classes(rows.y), held_out if whole else held_out * rows.weight, 0.0)
        kept = rows.weight - held_out
        train, test = np.flatnonzero(kept > 0), np.flatnonzero(held_out > 0)
        yield train, kept[train], test, held_out[test]


def one_part(rows: TrainingRows, n_rows: int) -> _Split:
    """Return about `n_rows` training rows, and the held-out rows: the same for any number of rows."""
    n, common = len(rows), in_large_classes(rows.y)
    train = np.flatnonzero((np.arange(n) < min(n_rows, int(0.7 * n))) | ~common)
    test = np.flatnonzero((np.arange(n) >= min(COMPARED_ROWS[-1], int(0.7 * n))) & common)[:_HELD_OUT_ROWS]
    return train, rows.weight[train], test, rows.weight[test]


def in_large_classes(y: IntArray) -> BoolArray:
    """Return which rows may be held out: those of classes large enough to stay in training."""
    counts = np.bincount(y)
    return counts[y] >= MIN_ROWS_OF_CLASS
