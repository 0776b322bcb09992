"""Rough fits of weights: near the mode, with an exact expansion, also where single precision fails."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor._core.linalg import UnresolvedError
from isbor._core.parallel import Workers
from isbor.inference import mode, sparse
from isbor.inference.mode import find_mode_at_rows, starting_thresholds
from isbor.inference.sparse import fit_weights
from isbor.model.basis import RowDictionary
from tests.problems import expanded, random_shape, small_rows


@pytest.mark.parametrize("single_fails", [False, True])
@pytest.mark.parametrize("n", [300, 6000], ids=["one block", "several blocks"])
def test_rough_weights_are_near_the_mode_and_have_an_exact_expansion(monkeypatch, single_fails, n):
    rows = small_rows(n=n)
    shape, functions = random_shape(rows), RowDictionary(rows, 0.3).basis(np.arange(80))
    start = np.full(80, 0.1), np.zeros(80), starting_thresholds(rows.y, rows.weight)

    def find(*given, single=False, **options):
        if single and single_fails:
            raise UnresolvedError
        return find_mode_at_rows(*given, single=single, **options)

    monkeypatch.setattr(sparse, "find_mode_at_rows", find)
    with Workers(1) as workers:
        exact, rough = (
            fit_weights(rows, functions, *start, workers, shape, rough=rough) for rough in (False, True)
        )
    here = rough.mode.expansion
    again = expanded(rows, functions, here.weights, here.thresholds, shape=shape)
    assert_array_equal(here.precision, again.precision)
    assert_array_equal(here.gradient, again.gradient)
    assert_allclose(rough.log_evidence, exact.log_evidence, atol=1.0)
    assert np.abs(rough.mode.weights - exact.mode.weights).max() > 0


def test_expansions_are_rough_far_from_the_mode_and_exact_near_it(monkeypatch):
    rows = small_rows(n=6000)
    functions = RowDictionary(rows, 0.3).basis(np.arange(80))
    start = np.full(80, 0.1), np.zeros(80), starting_thresholds(rows.y, rows.weight)
    rough = []
    expand = mode.expand
    monkeypatch.setattr(
        mode, "expand", lambda *given, single: rough.append(single) or expand(*given, single=single)
    )
    with Workers(1) as workers:
        fitted = fit_weights(rows, functions, *start, workers, rough=True)
        n_far = rough.count(True)
        assert n_far > 1 and rough == [True] * n_far + [False] * (len(rough) - n_far)
        # At the mode, nothing is far: its rough expansion is followed by the exact one.
        rough.clear()
        fit_weights(
            rows, functions, start[0], fitted.mode.weights, fitted.mode.thresholds, workers, rough=True
        )
    assert rough == [True, False]
