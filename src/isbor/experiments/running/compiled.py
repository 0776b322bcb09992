"""Importing this module compiles the inner loops of ISBOR and SVOR, on a few rows.

The fork server imports it before the first job, so that no job's time includes the compiler.
"""

import numpy as np

from isbor.data.rows import canonical_rows
from isbor.datasets import make_saddle
from isbor.estimators import SVOR
from isbor.model.basis import RowDictionary
from isbor.search.adaptive.training import Trainable, train_jointly

__all__: list[str] = []

X, y = make_saddle(20, random_state=0)
SVOR(probability=False).fit(X, y)
rows, _ = canonical_rows(X, np.arange(20) % 3, np.ones(20))
functions = RowDictionary(rows, 1.0).basis(np.arange(1))
start = Trainable(functions, np.zeros(1), np.array([-1.0, 1.0]), np.zeros(1))
train_jointly(rows, start, 1, 0.01, np.random.default_rng(0))
