"""Conformal sets: scores by hand, sets by brute force, and laws."""

from fractions import Fraction
from math import ceil, inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from isbor.meta.conformal import Calibration, central_scores, median_levels

R = 5
law = settings(max_examples=60, deadline=None)


def tables(max_rows, min_rows=1):
    """Probabilities with exact zeros and ties: multiples of 1/8 of each row's sum."""
    counts = st.integers(min_rows, max_rows).flatmap(
        lambda n: arrays(np.int64, (n, R), elements=st.integers(0, 8))
    )
    return counts.map(
        lambda c: (c + (c.sum(axis=1) == 0)[:, None]) / (c + (c.sum(axis=1) == 0)[:, None]).sum(1)[:, None]
    )


@st.composite
def calibrations(draw):
    """Probabilities and labels of the calibration rows of up to three classifiers, and of new rows."""
    n_models = draw(st.integers(1, 3))
    probas = [draw(tables(12)) for _ in range(n_models)]
    codes = [
        np.array(draw(st.lists(st.integers(0, R - 1), min_size=len(p), max_size=len(p)))) for p in probas
    ]
    n_new = draw(st.integers(1, 4))
    new = [draw(tables(n_new, n_new)) for _ in range(n_models)]
    return probas, codes, new


def test_scores_by_hand():
    proba = np.array([[0.1, 0.2, 0.4, 0.2, 0.1], [0.0, 0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]])
    assert_allclose(central_scores(proba)[0], [0.8, 0.4, 0.0, 0.4, 0.8])
    assert_allclose(central_scores(proba)[1], [1.0, 0.0, 0.0, 1.0, 1.0])
    assert_allclose(central_scores(proba)[2], [0.0, 1.0, 1.0, 1.0, 1.0])
    assert median_levels(proba).tolist() == [2, 1, 0]


@law
@given(proba=tables(8))
def test_scores_do_not_fall_away_from_the_median(proba):
    for scores, median in zip(central_scores(proba), median_levels(proba), strict=True):
        assert scores[median] == 0
        assert np.all(np.diff(scores[median:]) >= -1e-12)
        assert np.all(np.diff(scores[: median + 1]) <= 1e-12)


def quantile_sets(proba, codes, new, coverage, by_class):
    """The sets of one classifier by the definition: scores up to the ⌈c (n + 1)⌉-th smallest."""
    own, found = central_scores(proba)[np.arange(len(codes)), codes], np.zeros(new.shape, dtype=bool)
    for k in range(R):
        to_compare = sorted(own[codes == k] if by_class else own)
        place = ceil(Fraction(str(coverage)) * (len(to_compare) + 1))
        limit = to_compare[place - 1] if place <= len(to_compare) else inf
        found[:, k] = central_scores(new)[:, k] <= limit
    return found


def hull(accepted, median):
    accepted[np.arange(len(accepted)), median] = True
    levels = np.arange(R)
    return np.array([(levels >= row.argmax()) & (levels <= R - 1 - row[::-1].argmax()) for row in accepted])


@law
@given(
    calibration=calibrations(),
    coverage=st.sampled_from([0.1, 0.5, 0.7, 0.8, 0.9, 0.95]),
    by_class=st.booleans(),
)
def test_sets_of_one_classifier_are_those_below_a_quantile(calibration, coverage, by_class):
    (proba, *_), (codes, *_), (new, *_) = calibration
    sets = Calibration.of([proba], [codes], by_class=by_class).sets([new], coverage)
    brute = quantile_sets(proba, codes, new, coverage, by_class)
    if not by_class:
        assert_array_equal(
            hull(brute.copy(), median_levels(new)), brute
        )  # is a run around the median already
    assert_array_equal(sets, hull(brute, median_levels(new)))


@law
@given(calibration=calibrations(), coverage=st.sampled_from([0.5, 0.7, 0.8, 0.9]), by_class=st.booleans())
def test_sets_of_folds_count_smaller_scores_of_the_same_classifier(calibration, coverage, by_class):
    probas, codes, new = calibration
    sets = Calibration.of(probas, codes, by_class=by_class).sets(new, coverage)
    accepted = np.zeros(sets.shape, dtype=bool)
    for i, k in np.ndindex(*sets.shape):
        smaller = total = 0
        for proba, y, of_new in zip(probas, codes, new, strict=True):
            for row, label in zip(central_scores(proba), y, strict=True):
                if not by_class or label == k:
                    total += 1
                    smaller += row[label] < central_scores(of_new)[i, k]
        accepted[i, k] = smaller < Fraction(str(coverage)) * (total + 1)
    assert_array_equal(sets, hull(accepted, median_levels(np.mean(new, axis=0))))


@law
@given(calibration=calibrations(), by_class=st.booleans())
def test_sets_are_runs_around_the_median_and_grow_with_the_coverage(calibration, by_class):
    probas, codes, new = calibration
    found = Calibration.of(probas, codes, by_class=by_class)
    before = np.zeros(new[0].shape, dtype=bool)
    for coverage in (0.05, 0.3, 0.5, 0.8, 0.9, 0.99):
        sets = found.sets(new, coverage)
        assert np.all(np.count_nonzero(np.diff(sets.astype(int), axis=1, prepend=0, append=0), axis=1) == 2)
        assert sets[np.arange(len(sets)), median_levels(np.mean(new, axis=0))].all()
        assert np.all(sets >= before)
        before = sets


@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_the_coverage_is_exact_where_scores_have_no_ties(coverage):
    """49 calibration rows of random probabilities: ⌈c 50⌉/50 over all draws, whatever the labels' law."""
    random = np.random.default_rng(0)
    covered = []
    for _ in range(300):
        # The median is hardly ever right, so that scores of zero, which tie, do not decide.
        proba = random.dirichlet(np.full(R, 0.5), size=149)
        y = (median_levels(proba) + random.integers(1, R, 149)) % R
        found = Calibration.of([proba[:49]], [y[:49]], by_class=False)
        covered.append(found.sets([proba[49:]], coverage)[np.arange(100), y[49:]].mean())
    error = np.std(covered) / np.sqrt(len(covered))
    assert abs(np.mean(covered) - ceil(coverage * 50 - 1e-9) / 50) < 3 * error


def test_a_class_without_enough_rows_is_in_every_set():
    proba = np.tile([0.9, 0.1, 0.0, 0.0, 0.0], (30, 1))
    codes = np.array([0] * 22 + [1] * 8)  # 8 < 9 = .9/(1 - .9)
    sets = Calibration.of([proba], [codes], by_class=True).sets([proba[:1]], 0.9)
    assert sets.tolist() == [[True] * R]  # classes 2, 3 and 4 have no rows at all
    assert Calibration.of([proba], [codes], by_class=False).sets([proba[:1]], 0.7).sum() == 1
