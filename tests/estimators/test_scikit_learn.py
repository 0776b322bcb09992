"""What scikit-learn's own tools do with the estimators; docs/scikit-learn.md has it as tables."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import RFE, SelectFromModel, SequentialFeatureSelector
from sklearn.inspection import (
    DecisionBoundaryDisplay,
    PartialDependenceDisplay,
    partial_dependence,
    permutation_importance,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score, confusion_matrix, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isbor import ISBOR, SBOR, OrderedLabelEncoder
from isbor.metrics import get_scorer, mean_absolute_error

GRADES = ["poor", "fair", "good", "excellent"]  # alphabetical order would reverse most of them


@pytest.fixture(scope="module")
def grades():
    """Four grades that depend on the second of three features, less on the last, not on the first."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    score = X[:, 1] + 0.5 * X[:, 2] + 0.4 * rng.normal(size=160)
    return X, np.digitize(score, [-1.0, 0.0, 1.0])


# The tables of docs/scikit-learn.md. A tool is a function of a model, X and y that returns a number, the
# greater the better, and the least number that is right for ordered integers.


def ranks(labels):
    labels = np.asarray(labels)
    return labels if labels.dtype.kind in "iu" else OrderedLabelEncoder(classes=GRADES).fit_transform(labels)


def accuracy_in_ranks(predicted, y):
    return -mean_absolute_error(ranks(y), ranks(predicted), labels=range(4))


def wrapped(wrap):
    return lambda model, X, y: accuracy_in_ranks(wrap(model).fit(X, y).predict(X), y), -0.35


def scored(scoring, least):
    return (
        lambda model, X, y: cross_val_score(model, X, y, cv=3, scoring=scoring, error_score="raise").mean(),
        least,
    )


def selecting(selector):
    """Return a tool that says whether a selector selects the feature that matters most."""
    return (
        lambda model, X, y: float(selector(model).fit(X, y).get_support().tolist() == [False, True, False]),
        1.0,
    )


def predicted_out_of_fold(model, X, y):
    return accuracy_in_ranks(cross_val_predict(model, X, y, cv=3), y)


def log_probability_out_of_fold(model, X, y):
    proba = cross_val_predict(model, X, y, cv=3, method="predict_proba")
    return np.log(proba[np.arange(len(y)), ranks(y)]).mean()


def importance(model, X, y):
    return permutation_importance(model.fit(X, y), X, y, random_state=0).importances_mean[1]


def rise(model, X, y):
    """By how much the probability of the highest grade rises along the feature that matters most."""
    curve = partial_dependence(model.fit(X, y), X, [1])["average"][-1]
    return curve[-1] - curve[0]


def displayed_rise(model, X, y):
    model.fit(X, y)
    ax = Figure().add_subplot()
    display = PartialDependenceDisplay.from_estimator(model, X, [1], target=model.classes_[-1], ax=ax)
    curve = display.pd_results[0]["average"][display.target_idx]
    return curve[-1] - curve[0]


def displayed_classes(model, X, y):
    display = DecisionBoundaryDisplay.from_estimator(
        model.fit(X[:, 1:], y),
        X[:, 1:],
        grid_resolution=9,
        response_method="predict",
        ax=Figure().add_subplot(),
    )
    points = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    return np.mean(display.response.ravel() == ranks(model.predict(points)))


def near_diagonal(model, X, y):
    matrix = confusion_matrix(y, model.fit(X, y).predict(X), labels=model.classes_)
    return (np.trace(matrix) + np.trace(matrix, 1) + np.trace(matrix, -1)) / len(y)


TOOLS = {
    "Pipeline": wrapped(lambda model: make_pipeline(StandardScaler(), model)),
    "GridSearchCV": wrapped(lambda model: GridSearchCV(model, {"gamma": [0.1, 0.3]}, cv=3)),
    "cross_val_score": scored(None, 0.6),
    "learning_curve": (lambda *data: learning_curve(*data, cv=3, train_sizes=[0.9])[2].mean(), 0.6),
    "validation_curve": (
        lambda *data: validation_curve(*data, cv=3, param_name="gamma", param_range=[0.3])[1].mean(),
        0.6,
    ),
    "cross_val_predict": (predicted_out_of_fold, -0.35),
    'cross_val_predict(method="predict_proba")': (log_probability_out_of_fold, -0.8),
    "CalibratedClassifierCV": wrapped(lambda model: CalibratedClassifierCV(model, cv=3)),
    "CalibratedClassifierCV(ensemble=False)": wrapped(
        lambda model: CalibratedClassifierCV(model, cv=3, ensemble=False)
    ),
    "BaggingClassifier": wrapped(lambda model: BaggingClassifier(model, n_estimators=3, random_state=0)),
    'VotingClassifier(voting="hard")': wrapped(lambda model: VotingClassifier([("a", model)])),
    'VotingClassifier(voting="soft")': wrapped(lambda model: VotingClassifier([("a", model)], voting="soft")),
    "StackingClassifier": wrapped(
        lambda model: StackingClassifier([("a", model)], LogisticRegression(), cv=3)
    ),
    "OneVsRestClassifier": wrapped(OneVsRestClassifier),
    "OneVsOneClassifier": wrapped(OneVsOneClassifier),
    "AdaBoostClassifier": wrapped(lambda model: AdaBoostClassifier(model, n_estimators=2)),
    "SelectFromModel": selecting(SelectFromModel),
    "RFE": selecting(lambda model: RFE(model, n_features_to_select=1)),
    "SequentialFeatureSelector": selecting(
        lambda model: SequentialFeatureSelector(model, n_features_to_select=1, cv=2)
    ),
    "permutation_importance": (importance, 0.3),
    "partial_dependence": (rise, 0.5),
    "PartialDependenceDisplay": (displayed_rise, 0.5),
    "DecisionBoundaryDisplay": (displayed_classes, 1.0),
    "confusion_matrix(labels=model.classes_)": (near_diagonal, 0.98),
    '"accuracy"': scored("accuracy", 0.6),
    '"balanced_accuracy"': scored("balanced_accuracy", 0.6),
    '"f1_macro"': scored("f1_macro", 0.6),
    '"neg_log_loss"': scored("neg_log_loss", -0.8),
    '"roc_auc_ovr"': scored("roc_auc_ovr", 0.85),
    '"roc_auc_ovo"': scored("roc_auc_ovo", 0.85),
    '"top_k_accuracy"': scored("top_k_accuracy", 0.9),
    '"neg_mean_absolute_error"': scored("neg_mean_absolute_error", -0.35),
    'make_scorer(cohen_kappa_score, weights="quadratic")': scored(
        make_scorer(cohen_kappa_score, weights="quadratic"), 0.7
    ),
    'isbor.metrics.get_scorer("mae")': scored(get_scorer("mae"), -0.35),
    'isbor.metrics.get_scorer("log_loss")': scored(get_scorer("log_loss"), -0.8),
}


def documented():
    """What the tables say of each tool: of strings with classes=, ordered categoricals, ordered integers."""
    lines = Path(__file__).parents[2].joinpath("docs", "scikit-learn.md").read_text("utf-8").splitlines()
    rows = [[cell.strip(" *") for cell in line.split("|")[1:5]] for line in lines if line.startswith("| `")]
    return {name.strip("`"): verdicts for name, *verdicts in rows}


def test_the_tables_have_all_tools_and_no_others():
    assert sorted(documented()) == sorted(TOOLS)


@pytest.mark.parametrize("name", TOOLS)
def test_a_row_of_the_tables(name, grades):
    run, least = TOOLS[name]
    X, codes = grades
    strings = np.array(GRADES)[codes]
    categorical = pd.Series(pd.Categorical(strings, GRADES, ordered=True))

    def result(y, classes=None):
        try:
            return run(ISBOR(gamma=0.3, classes=classes, n_jobs=1), X, y)
        except ValueError:
            return None

    def verdict(value):
        if value is None:
            return "error"
        return "right" if value >= least and value == pytest.approx(of_integers, abs=0.05) else "wrong"

    of_integers = result(codes)
    values = [result(strings, GRADES), result(categorical), of_integers]
    assert list(map(verdict, values)) == documented()[name], values


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
