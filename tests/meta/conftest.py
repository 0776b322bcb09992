"""Two real sets of ordered classes, without files."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine


@pytest.fixture(scope="session")
def real_sets():
    """Five grades of the progress of diabetes (442 rows), and of the alcohol in wine (178 rows)."""
    X, progress = load_diabetes(return_X_y=True)
    wine = load_wine().data
    cut = lambda target: np.digitize(target, np.quantile(target, [0.2, 0.4, 0.6, 0.8]))
    return [(X, cut(progress)), (wine[:, 1:], cut(wine[:, 0]))]
