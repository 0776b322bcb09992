"""The best public implementations as references: skordinal's SVOR (Chu's C code) and KDLOR."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from isbor import KDLOR, SVOR
from isbor.datasets import make_balance_scale, make_saddle

skordinal = pytest.importorskip("skordinal.classifiers")


def split(make):
    X, y = make()
    order = np.random.default_rng(0).permutation(len(y))
    X = StandardScaler().fit_transform(X)[order]
    return X[:468], y[order][:468], X[468:], y[order][468:]


SETS = pytest.mark.parametrize(
    "make", [make_balance_scale, lambda: make_saddle(1200, random_state=0)], ids=["balance scale", "saddle"]
)


@SETS
@pytest.mark.parametrize("C", [1.0, 10.0])
@pytest.mark.parametrize("constraints", ["implicit", "explicit"])
def test_svor_predicts_the_same(make, C, constraints):
    X, y, X_test, _ = split(make)
    gamma = 1.0 / X.shape[1]
    theirs = skordinal.SVOR(C=C, gamma=gamma, constraints=constraints).fit(X, y).predict(X_test)
    # It adds this number to the diagonal of its training kernel.
    K = rbf_kernel(X, gamma=gamma) + 1e-3 * np.eye(len(X))
    ours = SVOR(C=C, constraints=constraints, kernel="precomputed", probability=False).fit(K, y)
    assert np.mean(ours.predict(rbf_kernel(X_test, X, gamma=gamma)) == theirs) >= 0.99


@SETS
def test_kdlor_predicts_the_same(make):
    X, y, X_test, _ = split(make)
    gamma = 1.0 / X.shape[1]
    theirs = skordinal.KDLOR(gamma=gamma).fit(X, y).predict(X_test)
    ours = KDLOR(kernel="precomputed", probability=False).fit(rbf_kernel(X, gamma=gamma), y)
    assert np.mean(ours.predict(rbf_kernel(X_test, X, gamma=gamma)) == theirs) >= 0.98
