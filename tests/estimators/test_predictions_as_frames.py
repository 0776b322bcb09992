"""Predictions as data frames of the library that the rows come in."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isbor import ISBOR, SVOR
from isbor.meta import PredictionSetClassifier, TunedDecisionClassifier

GRADES = ["poor", "fair", "good", "excellent"]
COLUMNS = ["size", "weight"]


@pytest.fixture(scope="module")
def table(few):
    X, codes = few
    return pd.DataFrame(X, columns=COLUMNS, index=[f"row {k}" for k in range(len(X))]), np.array(GRADES)[
        codes
    ]


@pytest.fixture(scope="module")
def model(table):
    return ISBOR(gamma=0.3, classes=GRADES, n_jobs=1).fit(*table)


def test_pandas_keeps_the_index_and_the_labels(model, table):
    X, _ = table
    proba = model.predict_proba(X, as_frame=True)
    expected = pd.DataFrame(model.predict_proba(X), index=X.index, columns=GRADES)
    pd.testing.assert_frame_equal(proba, expected)
    bands = model.predict_proba_interval(X, 0.8, as_frame=True)
    for band, limits in zip(bands, model.predict_proba_interval(X, 0.8), strict=True):
        pd.testing.assert_frame_equal(band, pd.DataFrame(limits, X.index, GRADES))
    twice = X.iloc[[3, 3]]
    assert model.predict_proba(twice, as_frame=True).index.tolist() == ["row 3", "row 3"]


@pytest.mark.parametrize("convert", [pl.DataFrame, pa.table], ids=["polars", "pyarrow"])
def test_others_have_labels_as_text(convert, table):
    X, codes = convert({name: table[0][name].to_numpy() for name in COLUMNS}), np.arange(60) % 3
    model = SVOR(n_jobs=1).fit(X, codes)
    proba = model.predict_proba(X, as_frame=True)
    assert type(proba) is type(X)
    names = proba.column_names if isinstance(proba, pa.Table) else proba.columns
    assert names == ["0", "1", "2"]
    assert_array_equal(np.column_stack([proba["0"], proba["1"], proba["2"]]), model.predict_proba(X))


def test_rows_of_arrays_give_pandas_else_polars(few, monkeypatch):
    X, y = few
    model = ISBOR(gamma=0.3, n_jobs=1).fit(X, y)
    proba = model.predict_proba(X, as_frame=True)
    assert isinstance(proba, pd.DataFrame)
    assert proba.columns.tolist() == model.classes_.tolist()
    assert_array_equal(proba, model.predict_proba(X))
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert model.predict_proba(X, as_frame=True).columns == ["0", "1", "2", "3"]


@pytest.mark.parametrize("meta", [PredictionSetClassifier, TunedDecisionClassifier])
def test_meta_estimators(meta, model, table):
    X, y = table
    whole = meta(model, cv=2).fit(X, y)
    proba = whole.predict_proba(X, as_frame=True)
    pd.testing.assert_frame_equal(proba, pd.DataFrame(whole.predict_proba(X), X.index, GRADES))
    if isinstance(whole, PredictionSetClassifier):
        sets = whole.predict_set(X, 0.8, as_frame=True)
        pd.testing.assert_frame_equal(sets, pd.DataFrame(whole.predict_set(X, 0.8), X.index, GRADES))


def test_at_the_end_of_a_pipeline(model, table):
    X, y = table
    steps = make_pipeline(StandardScaler(), model).set_output(transform="pandas").fit(X, y)
    assert steps.predict_proba(X, as_frame=True).index.equals(X.index)
    assert isinstance(steps.predict_proba(X), np.ndarray)
