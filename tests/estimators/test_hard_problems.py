"""No error, warning or NaN escapes, whatever is wrong with the table. Warnings are errors in this suite."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isbor import ISBOR
from tests.estimators.hard_problems import named_problems, random_problem


def check(model, X):
    p = model.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1.0)
    assert np.all(p >= 0)
    assert not np.isnan(model.predict_log_proba(X)).any()
    for value in (
        *model.latent(X, return_std=True),
        model.decision_function(X),
        model.dual_coef_,
        model.alpha_,
        model.thresholds_,
        model.sigma_,
        model.log_evidence_,
    ):
        assert np.all(np.isfinite(value))
    assert np.all(np.diff(model.thresholds_) > 0)
    assert set(model.predict(X)) <= set(model.classes_)


KINDS = [{"basis": "rbf"}, {"metric": "ard"}, {"basis": "mixed", "n_members": 1}]
IDS = ["rbf", "ard", "mixed"]


@pytest.mark.parametrize(("X", "y"), [pytest.param(X, y, id=name) for name, X, y in named_problems()])
def test_named_problem(X, y):
    check(ISBOR().fit(X, y), X)


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
@pytest.mark.parametrize("seed", range(20))
def test_random_problem(seed, kind):
    X, y, weight = random_problem(seed)
    check(ISBOR(**kind).fit(X, y, weight), X)


@pytest.mark.parametrize("seed", range(20))
def test_random_problem_by_the_sequential_solver(seed):
    X, y, weight = random_problem(seed)
    check(ISBOR(gamma=0.3, solver="sequential").fit(X, y, weight), X)


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(20))
def test_two_thousand_random_problems(hundred):
    for seed in range(100 * hundred, 100 * (hundred + 1)):
        X, y, weight = random_problem(seed)
        check(ISBOR(**KINDS[seed % 3]).fit(X, y, weight), X)
