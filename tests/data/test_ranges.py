"""How far rows lie outside the range of the training rows."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from isbor.data.ranges import Ranges


def test_excess_is_in_widths_of_the_range_of_the_farthest_column():
    X = np.array([[0.0, 10.0], [2.0, 14.0], [1.0, 11.0]])
    ranges = Ranges.of(X.min(axis=0), X.max(axis=0), np.ones(2, dtype=bool))
    rows = np.array([[1.0, 12.0], [3.0, 12.0], [1.0, 2.0], [-2.0, 22.0], [0.0, 14.0]])
    assert_allclose(ranges.excess(rows), [0.0, 0.5, 2.0, 2.0, 0.0])
    assert_array_equal(ranges.excess(X), 0.0)


def test_constant_columns_and_categories_do_not_count():
    X = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 5.0]])
    ranges = Ranges.of(X.min(axis=0), X.max(axis=0), np.array([True, False, True]))
    assert_allclose(ranges.excess(np.array([[0.5, 99.0, 99.0], [2.0, 0.0, 5.0]])), [0.0, 1.0])
    assert_array_equal(Ranges.of(X.min(axis=0), X.max(axis=0), np.zeros(3, dtype=bool)).excess(X), 0.0)


def test_the_largest_and_smallest_numbers():
    ranges = Ranges.of(np.array([-1.7e308, 0.0]), np.array([1.7e308, 5e-324]), np.ones(2, dtype=bool))
    assert_array_equal(ranges.excess(np.array([[1.6e308, 0.0]])), 0.0)
    assert ranges.excess(np.array([[0.0, 1.0]]))[0] > 1e6
