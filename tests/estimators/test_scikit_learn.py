"""What scikit-learn's own tools do with the estimators."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.multiclass import OneVsRestClassifier

from isbor import ISBOR, SBOR, OrderedLabelEncoder
from isbor.metrics import mean_absolute_error

GRADES = ["poor", "fair", "good", "excellent"]  # alphabetical order would reverse most of them


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


# Labels that a wrapper has replaced


@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: BaggingClassifier(model, n_estimators=2),
        lambda model: VotingClassifier([("isbor", model)]),
        lambda model: OneVsRestClassifier(model),
    ],
    ids=["BaggingClassifier", "VotingClassifier", "OneVsRestClassifier"],
)
@pytest.mark.parametrize("classes", [GRADES, [1, 2, 3, 4]], ids=["strings", "integers"])
def test_codes_of_a_wrapper_are_refused_with_the_cause(wrap, classes, grades):
    X, codes = grades
    model = wrap(ISBOR(gamma=0.3, classes=classes))
    wanted = r"scikit-learn wrapper.*isbor\.OrderedLabelEncoder.*leave out classes="
    with pytest.raises(ValueError, match=wanted):
        model.fit(X, np.array(classes)[codes])
    encoder = OrderedLabelEncoder(classes=classes)
    assert_array_equal(encoder.fit_transform(np.array(classes)[codes]), codes)
    fitted = wrap(ISBOR(gamma=0.3)).fit(X, codes)
    assert mean_absolute_error(codes, fitted.predict(X)) < 0.35
