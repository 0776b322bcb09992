"""What `ISVOR` promises beyond other systems: rows may come one by one, in any order, at any time."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.preprocessing import StandardScaler

from isbor import ISVOR, SVOR
from isbor.estimators import isvor
from isbor.kernel.calibration import calibrate
from isbor.metrics import log_loss
from isbor.model.latent import Latent
from isbor.prediction.probabilities import class_probabilities
from tests.estimators.hard_problems import check_fitted, random_problem
from tests.problems import noisy_rows

CLASSES = [0, 1, 2, 3]
both_constraints = pytest.mark.parametrize("constraints", ["implicit", "adjacent"])


@pytest.fixture(scope="module")
def rows():
    """Rows of numbers with few binary digits: they are not rounded in training, whichever come first."""
    X, y = noisy_rows(60, seed=0)
    return np.round(256.0 * X) / 256.0, y


def fit_in_the_scale_of(first, X, y, gamma=0.5, **parameters):
    """Return the scores of all rows by a machine that has seen them at once, scaled as the first were."""
    scaled = StandardScaler().fit(first).transform(X)
    gram = rbf_kernel(scaled, scaled, gamma)
    model = ISVOR(kernel="precomputed", probability=False, **parameters).fit(gram, y)
    return model.latent(gram)


# --- The optimum -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_it_solves_the_problem_of_svor(rows, kernel, C):
    X, y = rows
    model = ISVOR(C=C, kernel=kernel, probability=False).fit(X, y)
    other = SVOR(C=C, kernel=kernel, probability=False, tol=1e-9).fit(X, y)
    assert_allclose(model.dual_objective_, other.dual_objective_, rtol=1e-8)
    assert_allclose(model.latent(X), other.latent(X), atol=1e-3)


@both_constraints
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
def test_thresholds_are_in_the_middle_of_where_slacks_are_least(rows, kernel, C, constraints):
    X, y = rows
    model = ISVOR(C=C, kernel=kernel, constraints=constraints, probability=False).fit(X, y)
    middles = []
    for j in range(3):
        concerned = np.full(60, True) if constraints == "implicit" else (y == j) | (y == j + 1)
        f, sign = model.latent(X[concerned]), np.where(y[concerned] > j, 1.0, -1.0)
        kinks = np.sort(f - sign)  # where the sum of slacks, a function of b, bends
        slacks = np.maximum(1.0 - sign * (f - kinks[:, None]), 0.0).sum(axis=1)
        best = kinks[slacks < slacks.min() + 1e-6]
        middles.append(0.5 * (best.min() + best.max()))
    assert_allclose(model.thresholds_, np.sort(middles), atol=1e-6)


@both_constraints
def test_rows_one_by_one_after_a_fit(rows, constraints):
    X, y = rows
    model = ISVOR(C=2.0, constraints=constraints, gamma=0.5).fit(X[:45], y[:45])
    for i in range(45, 60):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    expected = fit_in_the_scale_of(X[:45], X, y, C=2.0, constraints=constraints)
    assert_allclose(model.latent(X), expected, atol=1e-6)
    assert_array_equal(model.support_vectors_, X[model.support_])
    assert model.violation_ < 1e-8
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_pieces_or_all_at_once(rows):
    X, y = rows
    at_once = ISVOR(classes=CLASSES).partial_fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    pieces = ISVOR().partial_fit(X[:30], y[:30], classes=CLASSES)
    for start in range(30, 60, 7):
        pieces.partial_fit(X[start : start + 7], y[start : start + 7], classes=CLASSES)
    assert_allclose(pieces.latent(X), at_once.latent(X), atol=1e-6)
    assert_allclose(pieces.thresholds_, at_once.thresholds_, atol=1e-6)
    assert_allclose(pieces.predict_proba(X), at_once.predict_proba(X), atol=1e-5)
    assert_array_equal(np.sort(pieces.support_), np.sort(at_once.support_))


@both_constraints
def test_repeated_rows_add_to_the_weight(rows, constraints):
    X, y = rows
    weight = np.random.default_rng(0).integers(0, 4, 60)
    model = ISVOR(constraints=constraints, gamma=0.5, probability=False).fit(X[:40], y[:40])
    for repetition in range(3):
        model.partial_fit(X, y, sample_weight=(weight > repetition).astype(float))
    total = np.where(np.arange(60) < 40, 1.0, 0.0) + weight
    repeated = np.repeat(np.arange(60), total.astype(int))
    expected = fit_in_the_scale_of(X[:40], X[repeated], y[repeated], constraints=constraints)
    assert_allclose(model.latent(X[repeated]), expected, atol=1e-6)


def test_another_price_of_slacks_goes_on_from_there(rows):
    X, y = rows
    model = ISVOR(C=1.0, gamma=0.5, probability=False).fit(X[:50], y[:50])
    for C in (5.0, 0.5):  # a higher price widens all intervals; a lower one starts anew
        model.set_params(C=C).partial_fit(X[50:], y[50:], sample_weight=np.full(10, 0.5))
    assert_allclose(model.latent(X), fit_in_the_scale_of(X[:50], X, y, C=0.5), atol=1e-6)


def test_a_feature_may_be_constant_at_first(rows):
    X, y = rows
    X = np.column_stack([X, np.where(np.arange(60) < 30, 7.0, 7.0 + 0.1 * X[:, 0])])
    model = ISVOR(kernel="linear", probability=False).fit(X[:30], y[:30])
    assert_array_equal(model.latent(X + [0.0, 0.0, 5.0]), model.latent(X))
    model.partial_fit(X[30:], y[30:])
    scaled = StandardScaler().fit(X[:30]).transform(X)  # the constant one: less its mean, divided by one
    expected = ISVOR(kernel="precomputed", probability=False).fit(linear_kernel(scaled), y)
    assert_allclose(model.latent(X), expected.latent(linear_kernel(scaled)), atol=1e-6)


# --- Classes that come late, or never ----------------------------------------------------------------------


def test_one_class_so_far(rows):
    X, y = rows
    model = ISVOR(classes=CLASSES).partial_fit(X[y == 2], y[y == 2])
    assert_array_equal(model.predict(X), 2)
    assert_array_equal(model.thresholds_, [-1.0, -1.0, 1.0])
    p = model.predict_proba(X)
    lapse = 1.0 / (np.sum(y == 2) + 2.0)
    assert_allclose(p, np.tile([lapse / 4, lapse / 4, 1.0 - 0.75 * lapse, lapse / 4], (60, 1)))
    assert_allclose(np.exp(model.predict_log_proba(X)), p)


@both_constraints
@pytest.mark.parametrize("order", [(2, 1, 3, 0), (0, 3, 1, 2), (3, 0, 2, 1)])
def test_classes_may_come_in_any_order(rows, order, constraints):
    X, y = rows
    start = np.flatnonzero(y == order[0])
    model = ISVOR(constraints=constraints, gamma=0.5, classes=CLASSES)
    for k in order:
        model.partial_fit(X[y == k], y[y == k])
        assert set(model.predict(X)) <= set(order[: order.index(k) + 1])
        assert np.all(np.isfinite(model.predict_log_proba(X)))
    expected = fit_in_the_scale_of(X[start], X, y, constraints=constraints)
    assert_allclose(model.latent(X), expected, atol=1e-6)


@both_constraints
def test_levels_without_rows(rows, constraints):
    X, y = rows
    reference = ISVOR(constraints=constraints).fit(X, y)
    model = ISVOR(constraints=constraints, classes=[-1, 0, 1, 1.5, 2, 3, 4]).fit(X, y)
    assert_array_equal(model.thresholds_[[1, 2, 3, 4]], reference.thresholds_[[0, 1, 1, 2]])
    f = model.latent(X)
    assert_allclose(model.thresholds_[[0, 5]], [f.min() - 1.0, f.max() + 1.0])
    assert_array_equal(model.predict(X), reference.predict(X))
    assert np.all(model.predict_proba(X) > 0)


def test_thresholds_that_come_out_in_disorder_are_sorted():
    """Class 0 is dear, the others cheap: b_1 is above all scores, and b_2 below for the many of class 2."""
    X = np.linspace(-1, 1, 30)[:, None]
    y = np.repeat([0, 1, 2], [10, 5, 15])
    np.random.default_rng(0).shuffle(y)
    model = ISVOR(C=1e-3, constraints="adjacent", class_weight={0: 1e3}, probability=False).fit(X, y)
    low, high = model.thresholds_
    assert low < -0.9 and high > 0.9
    assert_array_equal(model.predict(X), np.sum(model.latent(X)[:, None] > model.thresholds_, axis=1))


# --- Probabilities -----------------------------------------------------------------------------------------


def test_probabilities_are_those_of_held_out_rows():
    """On noise, a narrow kernel puts every row where its label wants it; only others can tell."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), rng.integers(0, 2, 120)
    model = ISVOR(C=100.0, gamma=20.0).fit(X[:90], y[:90]).partial_fit(X[90:], y[90:])
    assert np.mean(model.predict(X) == y) > 0.95
    assert log_loss(y, model.predict_proba(X), labels=[0, 1]) > 0.6  # one bit is 0.69
    new = rng.normal(size=(1000, 2))
    assert log_loss(rng.integers(0, 2, 1000), model.predict_proba(new), labels=[0, 1]) < 0.8


def test_held_out_scores_are_those_of_machines_fitted_without(rows):
    """The calibration again, from machines that were fitted to the rest of the rows, one after the other."""
    X, y = rows
    model = ISVOR(gamma=0.5).fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
    known, fold = model._learned.training.rows, model._learned.fold
    assert_array_equal(np.sort(known.source), np.arange(60))
    assert_array_equal([np.sum(fold[known.y == k] < 0) for k in range(4)], 1)
    assert np.ptp(np.bincount(fold[fold >= 0], minlength=5)) <= 4
    gram = rbf_kernel(known.X, known.X, 0.5)
    level, score = model.thresholds_.mean(), model.latent(X[known.source])
    for number in range(5):
        held, rest = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        part = ISVOR(kernel="precomputed", probability=False).fit(gram[np.ix_(rest, rest)], known.y[rest])
        score[held] = part.latent(gram[np.ix_(held, rest)]) - part.thresholds_.mean() + level
    probit = calibrate(score, known.y, np.ones(60))
    f = probit.slope * model.latent(X)
    expected = class_probabilities(Latent(f, np.zeros(60), np.ones(60), 1 / 62), probit.thresholds)
    assert_allclose(model.predict_proba(X), expected, atol=1e-5)


def test_probabilities_may_be_asked_for_later(rows):
    X, y = rows
    late = ISVOR(probability=False).fit(X[:30], y[:30])
    assert not hasattr(late, "predict_proba")
    late.set_params(probability=True).partial_fit(X[30:], y[30:])
    model = ISVOR().fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    assert_allclose(late.predict_proba(X), model.predict_proba(X), atol=1e-5)


# --- All or nothing ----------------------------------------------------------------------------------------


def test_a_call_that_fails_leaves_no_trace(rows, monkeypatch):
    X, y = rows
    model = ISVOR(classes=CLASSES).partial_fit(X[:30], y[:30])
    model.partial_fit(X[30:35], y[30:35])  # the kernel matrix has room behind its last row now
    before, attributes = model.predict_proba(X), dict(vars(model))
    bad = X[35:].copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(bad, y[35:])
    with pytest.raises(ValueError, match="not in classes"):
        model.partial_fit(X[35:], y[35:] + 7)
    calls = iter(range(3))

    def interrupted(*arguments, **options):
        if next(calls) == 2:
            raise KeyboardInterrupt
        return extend(*arguments, **options)

    extend = isvor.extend
    with monkeypatch.context() as patch:
        patch.setattr(isvor, "extend", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(-X[35:], y[35:])
    assert vars(model) == attributes
    assert_array_equal(model.predict_proba(X), before)
    never_failed = ISVOR(classes=CLASSES).partial_fit(X[:30], y[:30]).partial_fit(X[30:35], y[30:35])
    for each in (model, never_failed):
        each.partial_fit(X[35:], y[35:])
    assert_array_equal(model.predict_proba(X), never_failed.predict_proba(X))


def test_copies_learn_on_their_own(rows):
    X, y = rows
    model = ISVOR().fit(X[:25], y[:25]).partial_fit(X[25:30], y[25:30])
    copies = [copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    copies[0].partial_fit(-X[30:45], y[30:45])  # both would fit behind the last row of the kernel matrix
    model.partial_fit(X[30:45], y[30:45])
    for other in copies[1:]:
        other.partial_fit(X[30:45], y[30:45])
        assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    fresh = ISVOR().fit(X[:25], y[:25]).partial_fit(X[25:30], y[25:30]).partial_fit(-X[30:45], y[30:45])
    for each in (copies[0], fresh):
        each.partial_fit(X[45:], y[45:])
    assert_array_equal(copies[0].predict_proba(X), fresh.predict_proba(X))


# --- What is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "arguments", "message"),
    [
        ({}, {}, "classes is needed in the first call"),
        (
            {"classes": CLASSES},
            {"classes": [3, 2, 1, 0]},
            r"classes is \[3, 2, 1, 0\], but the estimator has",
        ),
        ({"class_weight": "balanced", "classes": CLASSES}, {}, "Pass a dict"),
        (
            {"kernel": "precomputed", "classes": CLASSES},
            {},
            "cannot be used in partial_fit, because it has no values",
        ),
        (
            {"classes": CLASSES, "class_weight": dict.fromkeys(CLASSES, 0)},
            {},
            "0 classes with positive weight",
        ),
    ],
)
def test_partial_fit_says_what_it_needs(rows, parameters, arguments, message):
    model = ISVOR(**parameters)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(*rows, **arguments)
    assert not hasattr(model, "n_features_in_")


def test_later_calls_must_agree_with_the_first(rows):
    X, y = rows
    model = ISVOR(probability=False).fit(X, y)
    with pytest.raises(ValueError, match=r"has \[0, 1, 2, 3\] already"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="expecting 2 features"):
        model.partial_fit(X[:, :1], y)


def test_class_weights_count_in_partial_fit(rows):
    X, y = rows
    by_class = ISVOR(class_weight={0: 3.0, 2: 0.5}, probability=False, classes=CLASSES)
    by_row = clone(by_class).set_params(class_weight=None)
    weight = np.select([y == 0, y == 2], [3.0, 0.5], 1.0)
    for part in (slice(30), slice(30, 60)):
        by_class.partial_fit(X[part], y[part])
        by_row.partial_fit(X[part], y[part], sample_weight=weight[part])
    assert_array_equal(by_class.latent(X), by_row.latent(X))


# --- Hard problems -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20, 30))
def test_random_problem_in_pieces(seed):
    X, y, weight = random_problem(seed)
    model = ISVOR(C=10.0, classes=np.unique(y))
    weight = np.maximum(weight, 1e-3)
    for part in np.array_split(np.arange(len(y)), 4):
        if len(part):
            model.partial_fit(X[part], y[part], sample_weight=weight[part])
            check_fitted(model, X)
