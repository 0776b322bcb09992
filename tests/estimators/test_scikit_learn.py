"""What scikit-learn's own tools do with the estimators."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.feature_selection import RFE, SelectFromModel

from isbor import ISBOR, SBOR


@pytest.fixture(scope="module")
def grades():
    """Four grades that depend on the second of three features, less on the last, not on the first."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    score = X[:, 1] + 0.5 * X[:, 2] + 0.4 * rng.normal(size=300)
    return X, np.digitize(score, [-1.0, 0.0, 1.0])


# Feature selection


@pytest.mark.parametrize("model", [ISBOR(gamma=0.3), SBOR(gamma=0.3)], ids=["ISBOR", "SBOR"])
def test_feature_selection_reads_one_importance_for_each_feature(model, grades):
    assert not hasattr(model, "feature_importances_")  # before fit
    selected = SelectFromModel(model).fit(*grades)
    assert_array_equal(selected.estimator_.feature_importances_, selected.estimator_.feature_relevance_)
    assert selected.get_support().tolist() == [False, True, False]  # above the mean
    assert RFE(model, n_features_to_select=1).fit(*grades).ranking_.tolist() == [3, 1, 2]
