"""What all systems promise, whatever is inside: labels, weights, order of rows, bad and hard input."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from isbor import GPOR, ISVOR, KDLOR, SBOR, SVOR
from isbor.metrics import get_scorer, log_loss, mean_absolute_error
from tests.estimators.hard_problems import named_problems, random_problem

SYSTEMS = [
    SBOR(gamma=0.3),
    SVOR(),
    SVOR(constraints="explicit"),
    ISVOR(),
    GPOR(gamma=0.3),  # a free width takes longer; see test_gpor
    KDLOR(),
]
MACHINES = [system for system in SYSTEMS if hasattr(system, "kernel")]


def name(system):
    return "".join(c for c in repr(system) if c.isalnum() or c in "=.")


systems = pytest.mark.parametrize("system", SYSTEMS, ids=name)
machines = pytest.mark.parametrize("system", MACHINES, ids=name)


def expected_failures(estimator):
    failures = {
        "check_classifiers_classes": "Strings without an order are refused on purpose.",
        "check_classifiers_train": "predict follows the thresholds, not the argmax of predict_proba.",
    }
    if isinstance(estimator, KDLOR):
        failures["check_class_weight_classifiers"] = "Midpoints of class means do not ask for weights."
    return failures


@parametrize_with_checks(SYSTEMS, expected_failed_checks=expected_failures)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 2))
    return X, np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=150), [0.0, 1.0, 2.0])


@pytest.fixture(scope="module")
def fresh():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2000, 2))
    return X, np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=2000), [0.0, 1.0, 2.0])


# --- What they learn ---------------------------------------------------------------------------------------


@systems
def test_it_learns_and_its_probabilities_are_worth_something(system, noisy, fresh):
    model = clone(system).fit(*noisy)
    X, y = fresh
    assert mean_absolute_error(y, model.predict(X)) < 0.62  # the median class of all: 0.98
    p = model.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1.0)
    assert log_loss(y, p, labels=model.classes_) < 1.05  # the class frequencies: 1.30


@systems
def test_scores_thresholds_and_labels_belong_together(system, noisy):
    X, y = noisy
    model = clone(system).fit(X, y)
    assert np.all(np.diff(model.thresholds_) >= 0)
    codes = np.searchsorted(model.thresholds_, model.latent(X))
    assert_array_equal(model.classes_[codes], model.predict(X))
    assert_array_equal(model.classes_[model.decision_function(X).argmax(axis=1)], model.predict(X))
    two = clone(system).fit(X, y > 1)
    assert_array_equal(two.decision_function(X) > 0, two.predict(X))


@systems
def test_losses(system, noisy):
    X, y = noisy
    model = clone(system).fit(X, y)
    p = model.predict_proba(X)
    assert_array_equal(model.predict(X, loss="zero_one"), model.classes_[p.argmax(axis=1)])
    never_three = np.abs(np.subtract.outer(np.arange(4), np.arange(4))).astype(float)
    never_three[:, 3] = 100.0
    assert 3 not in model.predict(X, loss=never_three)
    assert_allclose(np.exp(model.predict_log_proba(X)), p, atol=1e-12)


# --- Labels ------------------------------------------------------------------------------------------------

NAMES = np.array(["low", "mid", "high", "top"])


@systems
@pytest.mark.parametrize(
    ("wrap", "arguments"),
    [
        (lambda y: NAMES[y], {"classes": list(NAMES)}),
        (lambda y: pd.Series(pd.Categorical(NAMES[y], categories=NAMES, ordered=True)), {}),
        (lambda y: pl.Series(NAMES[y], dtype=pl.Enum(NAMES.tolist())), {}),
        (lambda y: y * 10 - 5, {}),
    ],
    ids=["strings", "pandas", "polars", "gaps"],
)
def test_labels_of_any_kind_give_the_same_model(system, noisy, wrap, arguments):
    X, y = noisy
    reference = clone(system).fit(X, y)
    labels = wrap(y)
    model = clone(system).set_params(**arguments).fit(X, labels)
    assert_allclose(model.predict_proba(X), reference.predict_proba(X))
    assert_array_equal(
        model.predict(X), np.asarray(labels)[[np.argmax(y == k) for k in reference.predict(X)]]
    )


@systems
def test_unordered_strings_are_refused(system, noisy):
    with pytest.raises(ValueError, match=r"classes=\[.*# lowest first"):
        clone(system).fit(noisy[0], NAMES[noisy[1]])


@systems
def test_levels_without_rows_keep_their_place(system, noisy):
    X, y = noisy
    reference = clone(system).fit(X, y)
    model = clone(system).set_params(classes=[-1, 0, 1, 1.5, 2, 3, 4]).fit(X, y)
    p = model.predict_proba(X)
    empty, seen = [0, 3, 6], [1, 2, 4, 5]
    assert np.all(p[:, empty] > 0)
    assert np.all(p[:, empty] < 0.02)
    assert_allclose(p[:, seen], reference.predict_proba(X), atol=0.02)
    assert np.mean(model.predict(X) == reference.predict(X)) > 0.98


# --- Weights and order of rows -----------------------------------------------------------------------------


@systems
def test_order_of_rows_does_not_matter(system, noisy):
    X, y = noisy
    order = np.random.default_rng(0).permutation(len(y))
    model, other = clone(system).fit(X, y), clone(system).fit(X[order], y[order])
    assert_array_equal(model.predict_proba(X), other.predict_proba(X))
    assert_array_equal(model.predict(X), other.predict(X))


@systems
def test_weight_means_repetition(system, noisy):
    X, y = noisy
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = clone(system).fit(X, y, sample_weight=times)
    repeated = clone(system).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))


@systems
def test_class_weights_are_sample_weights(system, noisy):
    X, y = noisy
    by_class = clone(system).set_params(class_weight={0: 3.0, 2: 0.5}).fit(X, y)
    by_row = clone(system).fit(X, y, sample_weight=np.select([y == 0, y == 2], [3.0, 0.5], 1.0))
    assert_array_equal(by_class.predict_proba(X), by_row.predict_proba(X))


# --- In scikit-learn's company -----------------------------------------------------------------------------


@systems
def test_clone_pickle_and_repeat(system, noisy):
    X, y = noisy
    model = clone(system).set_params(random_state=3).fit(X, y)
    again = clone(model).fit(X, y)
    restored = pickle.loads(pickle.dumps(model))
    assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    assert_array_equal(model.predict_proba(X), restored.predict_proba(X))


@systems
def test_data_frames_with_categories_and_missing_cells(system, noisy):
    X, y = noisy
    frame = pd.DataFrame({"dose": X[:, 0], "kind": np.where(X[:, 1] ** 2 > 1, "odd", "even"), "age": X[:, 1]})
    frame.loc[::7, "age"] = np.nan
    model = clone(system).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["dose", "kind", "age"]
    assert mean_absolute_error(y, model.predict(frame)) < 0.5
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["age", "kind", "dose"]])


@systems
def test_cross_validation_with_an_absent_class(system, noisy):
    X, y = noisy
    y = np.where(np.arange(len(y)) == 5, 9, y)  # one row: absent from all training parts but one
    scores = cross_val_score(
        clone(system), X, y, cv=[(np.arange(50, 150), np.arange(50))], scoring=get_scorer("rps")
    )
    assert -0.5 < scores[0] < 0


# --- Kernel machines ---------------------------------------------------------------------------------------


@machines
def test_attributes_describe_the_score(system, noisy):
    X, y = noisy
    model = clone(system).fit(X, y)
    scale = X.std(axis=0)
    kernel = rbf_kernel(X / scale, model.support_vectors_ / scale, gamma=model.gamma_)
    assert_allclose(kernel @ model.dual_coef_, model.latent(X), atol=1e-9 * np.abs(model.dual_coef_).sum())
    assert_array_equal(model.support_vectors_, X[model.support_])


@machines
def test_a_precomputed_kernel_gives_the_same_machine(system, noisy, fresh):
    X, y = noisy
    Z = fresh[0][:200]
    inside = clone(system).fit(X, y)
    scale = X.std(axis=0)
    K, K_new = rbf_kernel(X / scale, gamma=0.5), rbf_kernel(Z / scale, X / scale, gamma=0.5)
    outside = clone(system).set_params(kernel="precomputed").fit(K, y)
    assert np.mean(outside.predict(K_new) == inside.predict(Z)) > 0.99
    assert_allclose(outside.predict_proba(K_new), inside.predict_proba(Z), atol=0.15)
    with pytest.raises(ValueError, match=r"\(150, 10\).*square"):
        clone(outside).fit(K[:, :10], y)


@machines
def test_grid_search_slices_a_precomputed_kernel(system, noisy):
    X, y = noisy
    search = GridSearchCV(
        clone(system).set_params(kernel="precomputed", probability=False),
        {"C": [0.1, 1.0]},
        cv=3,
        scoring=get_scorer("mae"),
    )
    assert search.fit(rbf_kernel(X, gamma=0.5), y).best_score_ > -0.6


@machines
def test_without_probabilities_the_rest_is_the_same(system, noisy):
    X, y = noisy
    model, bare = clone(system).fit(X, y), clone(system).set_params(probability=False).fit(X, y)
    assert_array_equal(model.predict(X), bare.predict(X))
    assert not hasattr(bare, "predict_proba")
    with pytest.raises(AttributeError, match="has no attribute|probability=True"):
        bare.predict_proba(X)
    with pytest.raises(AttributeError, match="need probability=True, set before fit"):
        bare.predict(X, loss="zero_one")


# --- Bad and hard input ------------------------------------------------------------------------------------

X_OK = np.arange(20.0).reshape(10, 2)
Y_OK = np.arange(10) % 3


@systems
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.where(X_OK == 4, np.nan, X_OK), Y_OK, r"first \(NaN\) in row 2, column 0.*SimpleImputer"),
        (np.where(X_OK == 5, np.inf, X_OK), Y_OK, r"first \(inf\) in row 2, column 1"),
        (X_OK, np.where(Y_OK == 0, np.nan, Y_OK), "NaN"),
        (X_OK, Y_OK + 0.5, "Unknown label type: continuous"),
        (X_OK, np.ones(10), r"1 class .*\[1.0\].*at least 2"),
        (X_OK[:5], Y_OK, r"inconsistent numbers of samples: \[5, 10\]"),
        (np.empty((0, 2)), np.empty(0), "empty|0 sample"),
        (X_OK[:, 0], Y_OK, "Expected 2D array"),
    ],
    ids=["X-NaN", "X-inf", "y-NaN", "y-floats", "one-class", "lengths", "empty", "1-D"],
)
def test_bad_data_is_refused(system, X, y, message):
    with pytest.raises(ValueError, match=message):
        clone(system).fit(X, y)


@pytest.mark.parametrize(
    ("system", "message"),
    [
        (SVOR(C=0), "SVOR has C=0: a finite number above 0 is needed"),
        (SVOR(kernel="cosine"), "kernel='cosine': 'rbf', 'linear', 'poly' or 'precomputed' is needed"),
        (SVOR(constraints="adjacent"), "constraints='adjacent': 'implicit' or 'explicit' is needed"),
        (SVOR(gamma="auto"), "gamma='auto': a finite number above 0 or 'scale' is needed"),
        (KDLOR(u=0), "KDLOR has u=0: a finite number above 0 is needed"),
        (KDLOR(thresholds="mean"), "thresholds='mean': 'midpoint' or 'weighted' is needed"),
        (SBOR(gamma=-1), "SBOR has gamma=-1: a finite number above 0 or 'evidence' is needed"),
        (SBOR(max_iter=0), "max_iter=0: an integer of at least 1 is needed"),
        (GPOR(inference="variational"), "GPOR has inference='variational': 'laplace' or 'ep' is needed"),
        (ISVOR(constraints="explicit"), "constraints='explicit': 'implicit' or 'adjacent' is needed"),
    ],
    ids=lambda value: name(value) if not isinstance(value, str) else None,
)
def test_bad_parameters_are_refused(system, message):
    with pytest.raises(ValueError, match=message):
        system.fit(X_OK, Y_OK)


def test_too_many_rows_are_refused_at_once():
    X = np.arange(20_001.0)[:, None]
    y = np.arange(20_001) % 2
    with pytest.raises(ValueError, match="20001 distinct rows; SBOR.*at most 10000.*ISBOR"):
        SBOR().fit(X, y)
    with pytest.raises(ValueError, match="20001 distinct rows; GPOR.*at most 10000.*ISBOR"):
        GPOR().fit(X, y)


def check(model, X):
    p = model.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1.0)
    assert np.all(p >= 0)
    assert not np.isnan(model.predict_log_proba(X)).any()
    for value in (model.latent(X), model.decision_function(X), model.thresholds_):
        assert np.all(np.isfinite(value))
    assert np.all(np.diff(model.thresholds_) >= 0)
    assert set(model.predict(X)) <= set(model.classes_)


# ISVOR's paths are long, times six for the probabilities: its problems are in test_isvor.
@pytest.mark.parametrize("system", [system for system in SYSTEMS if not isinstance(system, ISVOR)], ids=name)
@pytest.mark.parametrize(("X", "y"), [pytest.param(X, y, id=title) for title, X, y in named_problems()])
def test_named_problem(system, X, y):
    check(clone(system).fit(X, y), X)


@systems
@pytest.mark.parametrize("seed", range(15))
def test_random_problem(system, seed):
    X, y, weight = random_problem(seed)
    check(clone(system).fit(X, y, weight), X)


def test_numba_is_imported_only_when_it_is_used():
    code = (
        "import sys\n"
        "import isbor\n"
        "assert 'numba' not in sys.modules\n"
        "sys.modules['numba'] = None\n"
        "X, y = isbor.datasets.make_saddle(60, random_state=0)\n"
        "isbor.KDLOR().fit(X, y)\n"
        "try:\n"
        "    isbor.SVOR().fit(X, y)\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "isbor[svm]"' in done.stdout
