"""Every row, or unit of a row, is held out once, and no class ever leaves training."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from isbor.data.folds import fold_numbers, growing_fold_numbers, rank_in_class, units_in_fold

folds = st.integers(2, 6)
labels = st.lists(st.integers(0, 4), min_size=1, max_size=60).map(np.array)
classes = labels.map(lambda y: np.unique(y, return_inverse=True)[1])  # 0 … r - 1, each of which occurs


@given(y=classes, data=st.data())
def test_ranks_count_what_came_before(y, data):
    assert_array_equal(rank_in_class(y), [np.sum(y[:i] == y[i]) for i in range(len(y))])
    units = np.array(data.draw(st.lists(st.integers(0, 5), min_size=len(y), max_size=len(y))), float)
    expected = [units[:i][y[:i] == y[i]].sum() for i in range(len(y))]
    assert_array_equal(rank_in_class(y, units), expected)


@given(y=classes, n_folds=folds)
def test_folds_are_of_one_size_and_leave_every_class_in_training(y, n_folds):
    fold = fold_numbers(y, n_folds)
    assert_array_equal(fold < 0, np.bincount(y)[y] == 1)
    for number in range(n_folds):
        assert set(y[fold != number]) == set(y)
    sizes = np.bincount(fold[fold >= 0], minlength=n_folds)
    assert sizes.max() - sizes.min() <= 1


@given(y=labels, n_folds=folds, share=st.floats(0, 1))
def test_growing_folds_keep_their_numbers(y, n_folds, share):
    n = int(share * len(y))
    known = growing_fold_numbers(y[:n], n_folds, np.zeros(0, np.intp))
    fold = growing_fold_numbers(y, n_folds, known)
    assert_array_equal(fold[:n], known)
    assert_array_equal(fold, growing_fold_numbers(y, n_folds, np.zeros(0, np.intp)))
    assert_array_equal(fold < 0, rank_in_class(y) == 0)
    for k in np.unique(y):
        sizes = np.bincount(fold[(y == k) & (fold >= 0)], minlength=n_folds)
        assert sizes.max() - sizes.min() <= 1


@given(y=classes, n_folds=folds, data=st.data())
def test_units_are_held_out_like_repeated_rows(y, n_folds, data):
    units = np.array(data.draw(st.lists(st.integers(1, 5), min_size=len(y), max_size=len(y))))
    row = np.repeat(np.arange(len(y)), units)
    fold = rank_in_class(y[row]) % n_folds
    held_out = [units_in_fold(y, units.astype(float), number, n_folds) for number in range(n_folds)]
    for number in range(n_folds):
        assert_array_equal(held_out[number], np.bincount(row[fold == number], minlength=len(y)))
        left = np.bincount(y, units - held_out[number])
        assert np.all(left[np.bincount(y, units) > 1] > 0)
    assert_array_equal(np.sum(held_out, axis=0), units)
