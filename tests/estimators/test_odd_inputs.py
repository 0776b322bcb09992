"""Inputs that look fine and are not, or look odd and are fine."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from isbor import GPOR, ISBOR, ISVOR, KDLOR, SBOR, SVOR
from isbor.estimators.linear import OrderedProbit
from isbor.metrics import accuracy

SYSTEMS = [GPOR(gamma=0.3), ISBOR(gamma=0.3), ISVOR(), KDLOR(), SBOR(gamma=0.3), SVOR(), OrderedProbit()]
every_system = pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: type(system).__name__)


# A quantity as the target


@every_system
def test_a_quantity_is_warned_of(system):
    prices = 100 * np.arange(42)
    wanted = re.escape(
        "y holds 42 different numbers in 42 rows, and each becomes a class. If y is a quantity, cut it into "
        "a few classes first, for instance with pandas.qcut(y, 5, labels=False). If these are the classes, "
        "list them, lowest first, in classes=."
    )
    with pytest.warns(UserWarning, match=wanted):
        clone(system).fit(np.arange(42.0)[:, None], prices)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (np.arange(42) % 20, None),
        (np.arange(420) % 42, None),
        (np.arange(42), range(42)),
        (pd.Series(pd.Categorical(np.arange(42), ordered=True)), None),
    ],
    ids=["twenty", "ten rows each", "classes", "categorical"],
)
def test_many_classes_are_fine_if_they_are_meant(y, classes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OrderedProbit(classes=classes).fit(np.arange(float(len(y)))[:, None], y)


# Masked arrays


def draw_table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return X, np.digitize(X[:, 0] + 0.3 * rng.normal(size=60), [-0.5, 0.5]), np.full(60, 2.0)


def masked_in_row_7(values):
    return np.ma.array(values, mask=np.arange(values.size).reshape(values.shape) == 7 * values.size // 60)


@every_system
def test_masked_cells_are_missing_cells(system):
    X, y, _ = draw_table()
    X_masked, X_nan = masked_in_row_7(X), X.copy()
    X_nan[7, 0] = np.nan
    with pytest.raises(ValueError, match=r"NaN or inf in 1 cell.*\(NaN\) in row 7, column 0"):
        clone(system).fit(X_masked, y)
    plain = clone(system).fit(X, y)
    with pytest.raises(ValueError, match=r"\(NaN\) in row 7, column 0"):
        plain.predict(X_masked)
    marked = clone(system).set_params(missing="indicator").fit(X_masked, y)
    expected = clone(system).set_params(missing="indicator").fit(X_nan, y)
    assert marked.column_names_.tolist() == ["x0", "x0 missing", "x1"]
    assert_array_equal(marked.predict_proba(X_masked), expected.predict_proba(X_nan))


@every_system
def test_masked_arrays_without_masked_values_are_arrays(system):
    X, y, weight = draw_table()
    model = clone(system).fit(np.ma.array(X), np.ma.array(y), sample_weight=np.ma.array(weight))
    expected = clone(system).fit(X, y, sample_weight=weight)
    assert_array_equal(model.predict_proba(np.ma.array(X)), expected.predict_proba(X))
    assert type(model.classes_) is np.ndarray


# Subnormal numbers


@every_system
@pytest.mark.parametrize("unit", [1e-300, 1e-308, 1e-310, 1e-319])
def test_a_column_of_tiny_numbers_is_as_good_as_any(system, unit):
    X, y, _ = draw_table()
    X_tiny = X * [unit, 1.0]
    model = clone(system).fit(X_tiny, y)
    expected = clone(system).fit(X, y)
    assert accuracy(y, model.predict(X_tiny)) >= accuracy(y, expected.predict(X)) - 0.05
    far = np.array([[1e300, 0.0], [-1e300, 0.0]])
    assert np.all(model.predict_proba(far) >= 0.0)
    if isinstance(system, OrderedProbit):  # of which the order of rows is no part
        assert_allclose(model.predict_proba(X_tiny), expected.predict_proba(X), atol=1e-3)
