"""Dealing rows out to folds: the rows of each class in turn.

A row is dealt by its rank among the rows of its class, so that every fold holds the classes in proportion.
The variants below differ in which fold a class starts with, and in the rows that always stay in training.
"""

import numpy as np

from isbor._core.types import FloatArray, IntArray

__all__ = ["fold_numbers", "growing_fold_numbers", "rank_in_class", "units_in_fold"]


def rank_in_class(y: IntArray, units: FloatArray | None = None) -> FloatArray:
    """Return how many rows of the same class come before each row, or how many units of them."""
    order = np.argsort(y, kind="stable")
    units = np.ones(len(y)) if units is None else units
    before = np.empty(len(y))
    for of_class in np.split(order, np.cumsum(np.bincount(y))[:-1]):
        before[of_class] = np.cumsum(units[of_class]) - units[of_class]
    return before


def fold_numbers(y: IntArray, n_folds: int) -> IntArray:
    """Return the fold in which each row is held out, -1 for the only row of a class.

    The first class starts with fold 0, the next where the one before has ended: folds are of equal size.
    """
    counts = np.bincount(y)
    dealt = np.where(counts > 1, counts, 0)
    first = np.cumsum(dealt) - dealt
    fold = (first[y] + rank_in_class(y).astype(np.intp)) % n_folds
    return np.where(counts[y] > 1, fold, -1)


def growing_fold_numbers(y: IntArray, n_folds: int, known: IntArray) -> IntArray:
    """Return folds for rows that were appended to others, whose folds are known; -1 for the first of a class.

    Class k starts with fold k + 1, so that folds are of about the same size.
    """
    rank = rank_in_class(y).astype(np.intp)
    fold = np.where(rank == 0, -1, (rank + y) % n_folds)
    return np.concatenate([known, fold[len(known) :]])


def units_in_fold(y: IntArray, units: FloatArray, fold: int, n_folds: int) -> FloatArray:
    """Return how many of each row's units, such as repetitions of the row, are held out in a fold.

    Every class starts with fold 0. A row of several units may be held out in part.
    """
    begin = rank_in_class(y, units)
    end = begin + units
    # How many of the units begin … end - 1 leave the rest `fold` when divided by the number of folds.
    held_out: FloatArray = np.floor((end - 1 - fold) / n_folds) - np.floor((begin - 1 - fold) / n_folds)
    return held_out
