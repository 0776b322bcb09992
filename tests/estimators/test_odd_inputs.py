"""Inputs that look fine and are not, or look odd and are fine."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from isbor import GPOR, ISBOR, ISVOR, KDLOR, SBOR, SVOR
from isbor.estimators.linear import OrderedProbit

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
        system.fit(np.arange(42.0)[:, None], prices)


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
