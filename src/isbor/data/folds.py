"""Stratified folds.

The rows of each class are assigned to the folds in turn, so that every fold has about the same class
frequencies. The variants below differ in the fold with which a class starts, and in the rows that always stay
in training.
"""

import numpy as np

from isbor._core.types import FloatArray, IntArray

__all__ = ["fold_numbers", "growing_fold_numbers", "rank_in_class", "units_in_fold"]


def rank_in_class(y: IntArray, units: FloatArray | None = None) -> FloatArray:
    """Return the number of earlier rows of the same class, for each row; with `units`, their total units."""
    order = np.argsort(y, kind="stable")
    units = np.ones(len(y)) if units is None else units
    before = np.empty(len(y))
    for of_class in np.split(order, np.cumsum(np.bincount(y))[:-1]):
        before[of_class] = np.cumsum(units[of_class]) - units[of_class]
    return before


def fold_numbers(y: IntArray, n_folds: int) -> IntArray:
    """Return the fold in which each row is held out, -1 for the only row of a class.

    The first class starts with fold 0, and each other class where the previous one ended, so that folds have
    equal size.
    """
    counts = np.bincount(y)
    assigned = np.where(counts > 1, counts, 0)
    first = np.cumsum(assigned) - assigned
    fold = (first[y] + rank_in_class(y).astype(np.intp)) % n_folds
    return np.where(counts[y] > 1, fold, -1)


def growing_fold_numbers(y: IntArray, n_folds: int, known: IntArray) -> IntArray:
    """Extend the folds of the first rows, `known`, to rows appended later; -1 for the first row of a class.

    Class k starts with fold k + 1, so that folds have about the same size.
    """
    rank = rank_in_class(y).astype(np.intp)
    fold = np.where(rank == 0, -1, (rank + y) % n_folds)
    return np.concatenate([known, fold[len(known) :]])


def units_in_fold(y: IntArray, units: FloatArray, fold: int, n_folds: int) -> FloatArray:
    """Return the number of each row's units that are held out in a fold.

    A row of weight 3 has three units, as if it were repeated, and may be held out in part. Every class starts
    with fold 0.
    """
    begin = rank_in_class(y, units)
    end = begin + units
    # The number of units u in begin … end - 1 with u mod n_folds = fold.
    held_out: FloatArray = np.floor((end - 1 - fold) / n_folds) - np.floor((begin - 1 - fold) / n_folds)
    return held_out
