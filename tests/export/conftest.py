"""A table with all that a model may meet, and models of all kinds that were fitted to it."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from isbor import ISBOR
from isbor.search.selection import Known, Selection
from tests.export.models import FAMILIES, GRADES, MODELS
from tests.problems import shop, varying_cuts


@pytest.fixture(scope="session")
def table():
    """Rows with categories, ordered ones too, and missing cells."""
    frame, y = shop(120)
    return frame, np.array(GRADES)[y]


@pytest.fixture(scope="session")
def odd_rows():
    """Rows with all that a model may meet: unseen categories, missing cells, values out of range."""
    frame, _ = shop(14, seed=5)
    frame["size"] = frame["size"].astype(object)
    frame.loc[0, "colour"] = "violet"
    frame.loc[1, "colour"] = None
    frame.loc[2, "age"] = np.nan
    frame.loc[3, "income"] = 1e4
    frame.loc[4, "age"] = -300.0
    frame.loc[5, "size"] = "xxl"
    frame.loc[6, "size"] = None
    frame.loc[7, "income"] = 1e12
    frame.loc[8, ["age", "one"]] = 90.0, 2.0
    frame["size"] = pd.Categorical(frame["size"], ["s", "m", "l", "xxl"], ordered=True)
    return frame


@pytest.fixture(scope="session")
def fitted(table):
    """Return a function that gives the fitted model of a name, fitted once."""
    models = {}

    def fit(name):
        if name not in models:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                models[name] = _of_families(name, table) if name in FAMILIES else _alone(name, table)
        return models[name]

    return fit


def _alone(name, table):
    return clone(MODELS[name]).set_params(classes=GRADES).fit(*table)


def _of_families(name, table):
    chosen = Selection(FAMILIES[name], (), "set by a test."), Known()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("isbor.estimators.isbor.select_families", lambda *_: chosen)
        model = ISBOR(classes=GRADES, effort="fast").fit(*table)
    model._model = replace(model._model, temperature=0.7)
    return model


@pytest.fixture(scope="session", params=[False, True], ids=["all classes", "empty classes"])
def varying(request):
    """A model whose thresholds and noise vary with the row, and rows."""
    X, y, _ = varying_cuts(400, seed=1, spread=0.4)
    X, y = np.column_stack([X, y]), np.clip(y + (X[:, 0] > 1.5), 0, 4)
    classes = range(-1, 7) if request.param else None
    y = y + (y > 2) if request.param else y
    model = ISBOR(basis="mixed", effort="fast", classes=classes).fit(X[:, :2], y)
    assert model._model.models[0].shape_weights is not None
    return model, np.vstack([X[:20, :2], [[9.0, -9.0], [0.0, 30.0]]])
