import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import check_classifiers_train, parametrize_with_checks

from isbor import ISBOR
from isbor._core.trace import StopReason
from isbor.datasets import make_balance_scale, make_saddle, saddle_labels
from isbor.metrics import get_scorer, log_loss, mean_absolute_error


class MostProbable(ISBOR):
    """ISBOR as scikit-learn would have it: the prediction is the argmax of everything."""

    def predict(self, X):
        return super().predict(X, loss="zero_one")

    def decision_function(self, X):
        log_p = self.predict_log_proba(X)
        return log_p[:, 1] - log_p[:, 0] if len(self.classes_) == 2 else log_p


def test_the_failing_check_fails_for_the_median_alone():
    check_classifiers_train("MostProbable", MostProbable(basis="rbf"))


def expected_failures(estimator):
    return {
        "check_classifiers_classes": "Strings without an order are refused on purpose.",
        "check_classifiers_train": "predict is the median of predict_proba, not its argmax.",
    }


@parametrize_with_checks(
    [ISBOR(basis="rbf"), ISBOR(basis="mixed", n_members=1)], expected_failed_checks=expected_failures
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([ISBOR()], expected_failed_checks=expected_failures)
def test_scikit_learn_by_default(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def saddle():
    X, y, score = make_saddle(3000, random_state=0, return_score=True)
    return X[:1000], y[:1000], X[1000:], y[1000:], score[1000:]


@pytest.fixture(scope="module")
def fitted(saddle):
    return ISBOR().fit(saddle[0], saddle[1])


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 2))
    return X, np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=150), [0.0, 1.0, 2.0])


# --- What it learns ----------------------------------------------------------------------------------------


def test_it_learns_the_saddle_with_few_vectors(saddle, fitted):
    _, _, X, y, score = saddle
    best = mean_absolute_error(y, saddle_labels(score))
    assert mean_absolute_error(y, fitted.predict(X)) < best + 0.010
    assert fitted.n_relevance_ <= 20


def test_it_learns_the_balance_scale_from_three_quarters():
    X, y = make_balance_scale()
    order = np.random.default_rng(0).permutation(625)
    train, test = order[:468], order[468:]
    model = ISBOR().fit(X[train], y[train])
    assert mean_absolute_error(y[test], model.predict(X[test])) <= 0.02
    assert model.n_relevance_ <= 17


def test_pure_noise_costs_little_against_the_class_frequencies():
    rng = np.random.default_rng(0)
    y = rng.choice([0, 1, 2], p=[0.2, 0.5, 0.3], size=600)
    model = ISBOR().fit(rng.normal(size=(600, 3)), y)
    new = rng.choice([0, 1, 2], p=[0.2, 0.5, 0.3], size=5000)
    frequencies = np.tile(np.bincount(y) / 600, (5000, 1))
    loss = log_loss(new, model.predict_proba(rng.normal(size=(5000, 3))), labels=[0, 1, 2])
    assert loss < log_loss(new, frequencies, labels=[0, 1, 2]) + 0.05
    assert model.n_relevance_ <= 6


def test_constant_columns_are_harmless(noisy):
    X, y = noisy
    model = ISBOR().fit(X, y)
    padded = np.hstack([X, np.full((len(X), 300), 0.1)])
    again = ISBOR().fit(padded, y)
    assert again.basis_ == model.basis_
    assert_allclose(again.predict_proba(padded), model.predict_proba(X), atol=0.1)


# --- Its attributes ----------------------------------------------------------------------------------------


def test_attributes_describe_the_score(saddle):
    X = saddle[0]
    fitted = ISBOR(basis="rbf").fit(X, saddle[1])
    squares = ((X[:, None] - fitted.relevance_vectors_) / fitted.feature_scale_) ** 2
    kernel = np.exp(-fitted.gamma_ * squares.sum(axis=2))
    score = fitted.latent(X)
    weights = fitted.dual_coef_
    assert_allclose(kernel @ weights + fitted.intercept_, score, atol=1e-8 * np.abs(weights).sum())
    assert_allclose([score.mean(), score.std()], [0.0, 1.0], atol=1e-9)
    assert_array_equal(fitted.relevance_vectors_, X[fitted.relevance_])
    labels = fitted.classes_[np.searchsorted(fitted.thresholds_, score)]
    assert_array_equal(labels, fitted.predict(X))


def test_sigma_is_noise_to_signal(saddle, fitted):
    """The saddle's noise is 0.5 and its score has standard deviation 250/3."""
    assert_allclose(fitted.sigma_, 0.5 / (250 / 3), rtol=0.5)
    _, std = fitted.latent(saddle[2], return_std=True)
    assert np.all(std > 0)


def test_probabilities_and_their_bands(saddle, fitted):
    X = saddle[2][:300]
    p = fitted.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1.0)
    assert_allclose(np.exp(fitted.predict_log_proba(X)), p, atol=1e-12)
    low, high = fitted.predict_proba_interval(X, coverage=0.8)
    wider_low, wider_high = fitted.predict_proba_interval(X, coverage=0.95)
    assert np.all(wider_low <= low) and np.all(low <= high) and np.all(high <= wider_high)
    with pytest.raises(ValueError, match="coverage is 90; a number between 0 and 1"):
        fitted.predict_proba_interval(X, coverage=90)


def test_decision_function_points_to_the_prediction(saddle, fitted):
    X = saddle[2]
    assert_array_equal(fitted.classes_[fitted.decision_function(X).argmax(axis=1)], fitted.predict(X))
    binary = ISBOR(gamma=0.1).fit(saddle[0], saddle[1] > 3)
    assert_array_equal(binary.decision_function(X) > 0, binary.predict(X))


def test_median_and_mode_differ_only_where_no_class_has_half(noisy):
    """All that the failing scikit-learn check asks of predict, but for its argmax."""
    X, y = noisy
    model = ISBOR(gamma=0.1).fit(X, y)
    p = model.predict_proba(X)
    differ = model.predict(X) != model.classes_[p.argmax(axis=1)]
    assert np.all(p.max(axis=1)[differ] < 0.5)
    assert np.all(np.abs(model.predict(X) - model.classes_[p.argmax(axis=1)])[differ] <= 1)
    assert np.mean(model.predict(X) == y) > 0.7


def test_losses(saddle, fitted):
    X = saddle[2]
    p = fitted.predict_proba(X)
    assert_array_equal(fitted.predict(X, loss="zero_one"), fitted.classes_[p.argmax(axis=1)])
    never_five = np.abs(np.subtract.outer(np.arange(5), np.arange(5))).astype(float)
    never_five[:, 4] = 100.0
    assert 5 not in fitted.predict(X, loss=never_five)


def test_blocks_do_not_change_predictions(saddle, fitted):
    X = np.repeat(saddle[2], 10, axis=0)
    assert_allclose(fitted.predict_proba(X)[::10], fitted.predict_proba(saddle[2]), atol=1e-12)


# --- Labels ------------------------------------------------------------------------------------------------

NAMES = np.array(["low", "mid", "high", "top"])


@pytest.mark.parametrize(
    ("wrap", "arguments"),
    [
        (lambda y: NAMES[y], {"classes": list(NAMES)}),
        (lambda y: NAMES[y].astype(object), {"classes": list(NAMES)}),
        (lambda y: pd.Series(pd.Categorical(NAMES[y], categories=NAMES, ordered=True)), {}),
        (lambda y: pl.Series(NAMES[y], dtype=pl.Enum(NAMES.tolist())), {}),
        (lambda y: y * 10 - 5, {}),
        (lambda y: y.astype(float), {}),
    ],
    ids=["strings", "objects", "pandas", "polars", "gaps", "floats"],
)
def test_labels_of_any_kind_give_the_same_model(noisy, wrap, arguments):
    X, y = noisy
    reference = ISBOR(gamma=0.1).fit(X, y)
    labels = wrap(y)
    model = ISBOR(gamma=0.1, **arguments).fit(X, labels)
    assert_allclose(model.predict_proba(X), reference.predict_proba(X))
    assert_array_equal(
        model.predict(X), np.asarray(labels)[[np.argmax(y == k) for k in reference.predict(X)]]
    )


def test_unordered_strings_are_refused(noisy):
    with pytest.raises(ValueError, match=r"classes=\[.*# lowest first"):
        ISBOR().fit(noisy[0], NAMES[noisy[1]])


def test_levels_without_rows_keep_their_place(noisy):
    X, y = noisy
    reference = ISBOR(gamma=0.1).fit(X, y)
    model = ISBOR(gamma=0.1, classes=[-1, 0, 1, 1.5, 2, 3, 4]).fit(X, y)
    p = model.predict_proba(X)
    empty, seen = [0, 3, 6], [1, 2, 4, 5]
    assert np.all(p[:, empty] > 0)
    assert np.all(p[:, empty] < 0.02)
    assert_allclose(p[:, seen], reference.predict_proba(X), atol=0.02)
    assert np.mean(model.predict(X) == reference.predict(X)) > 0.98


def test_levels_whose_rows_weigh_nothing_are_absent(noisy):
    X, y = noisy
    weight = (y != 3).astype(float)
    kept = y != 3
    model = ISBOR(gamma=0.1).fit(X, y, sample_weight=weight)
    reference = ISBOR(gamma=0.1, classes=[0, 1, 2, 3]).fit(X[kept], y[kept])
    assert_array_equal(model.classes_, [0, 1, 2, 3])
    assert_allclose(model.predict_proba(X), reference.predict_proba(X))


def test_reversed_labels_reverse_the_score(noisy):
    X, y = noisy
    model = ISBOR(gamma=0.1, classes=[0, 1, 2, 3]).fit(X, y)
    turned = ISBOR(gamma=0.1, classes=[3, 2, 1, 0]).fit(X, y)
    # The pseudo-random order of rows depends on the labels' codes, so the models differ in detail.
    assert np.corrcoef(model.latent(X), turned.latent(X))[0, 1] < -0.97


# --- Weights and order of rows -----------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["gram", "sequential"])
def test_order_of_rows_does_not_matter(noisy, solver):
    X, y = noisy
    order = np.random.default_rng(0).permutation(len(y))
    model = ISBOR(gamma=0.1, solver=solver).fit(X, y)
    other = ISBOR(gamma=0.1, solver=solver).fit(X[order], y[order])
    assert_array_equal(model.predict_proba(X), other.predict_proba(X))
    assert_array_equal(model.relevance_vectors_, other.relevance_vectors_)


def test_weight_means_repetition(noisy):
    X, y = noisy
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = ISBOR().fit(X, y, sample_weight=times)
    repeated = ISBOR().fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    assert weighted.log_evidence_ == repeated.log_evidence_


def test_class_weights_are_sample_weights(noisy):
    X, y = noisy
    by_class = ISBOR(gamma=0.1, class_weight={0: 3.0, 2: 0.5}).fit(X, y)
    by_row = ISBOR(gamma=0.1).fit(X, y, sample_weight=np.select([y == 0, y == 2], [3.0, 0.5], 1.0))
    assert_array_equal(by_class.predict_proba(X), by_row.predict_proba(X))
    balanced = ISBOR(gamma=0.1, class_weight="balanced").fit(X, y)
    counts = np.bincount(y)
    by_row = ISBOR(gamma=0.1).fit(X, y, sample_weight=(len(y) / (4 * counts))[y])
    assert_allclose(balanced.predict_proba(X), by_row.predict_proba(X))


# --- Trace, progress and interruption ----------------------------------------------------------------------


def passes(trace):
    """Group the steps of a trace by pass; the last step of each is the mode."""
    groups = {}
    for step in trace:
        if step.kind != "start":
            groups.setdefault(step.pass_number, []).append(step)
    return list(groups.values())


@pytest.mark.parametrize(
    "arguments", [{"basis": "rbf"}, {"gamma": 0.1}, {"gamma": 0.1, "solver": "sequential"}]
)
def test_the_trace_replays_to_the_model(noisy, arguments):
    X, y = noisy
    model = ISBOR(**arguments).fit(X, y)
    runs = {}
    for step in model.trace_:
        chosen = runs.setdefault(step.run, set())
        if step.kind in ("start", "add"):
            assert step.row not in chosen
            chosen.add(step.row)
        elif step.kind == "delete":
            chosen.remove(step.row)
        elif step.kind == "reestimate":
            assert step.row in chosen
        assert len(chosen) == step.n_active
    assert runs[max(runs)] == set(model.relevance_.tolist())
    assert {"start", "reestimate", "delete"} <= {step.kind for step in model.trace_}
    numbers = [step.pass_number for step in model.trace_]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("size_prior", [0.0, 2.0])
@pytest.mark.parametrize("solver", ["gram", "sequential"])
def test_nothing_falls(noisy, solver, size_prior):
    X, y = noisy
    tol = 1e-2
    model = ISBOR(gamma=0.1, solver=solver, size_prior=size_prior, tol=tol).fit(X, y)
    before = None
    for steps in passes(model.trace_):
        *moves, mode = steps
        assert mode.kind == "mode"
        assert mode.n_rows == len(X)
        assert all(move.predicted_gain >= tol for move in moves)
        objectives = [move.objective for move in moves]
        assert np.all(np.diff(objectives) >= 0)
        if before is not None and before.size_prior == mode.size_prior:
            assert mode.objective >= before.objective - tol
        before = mode
    assert before.log_evidence == model.log_evidence_
    assert before.n_active == model.n_relevance_
    assert model.stop_reason_ is StopReason.CONVERGED


def test_log_evidence_does_not_fall_between_passes_on_all_rows():
    X, y = make_saddle(5000, random_state=1)  # more than the first sample, so rows grow
    model = ISBOR(gamma=0.01, size_prior=0.0).fit(X, y)
    modes = [step for step in model.trace_ if step.kind == "mode"]
    assert modes[0].n_rows < modes[-1].n_rows == 5000
    evidence = [step.log_evidence for step in modes if step.n_rows == 5000]
    assert np.all(np.diff(evidence) >= -model.tol)


def test_predicted_gains_come_true_near_the_end(noisy):
    X, y = noisy
    model = ISBOR(gamma=0.1, solver="sequential", size_prior=0.0).fit(X, y)
    modes = [step for step in model.trace_ if step.kind == "mode"]
    actual = np.diff([step.log_evidence for step in modes])
    predicted = np.array([step.predicted_gain for step in modes[1:]])
    assert_allclose(actual[-3:], predicted[-3:], atol=0.1)


def test_callback_sees_every_step_and_verbose_writes_to_stderr(noisy, capsys):
    X, y = noisy
    seen = []
    model = ISBOR(gamma=0.1, patience=0, callback=seen.append, verbose=1).fit(X, y)
    assert tuple(seen) == model.trace_
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("mode found") == sum(step.kind == "mode" for step in seen)


def test_interruption_leaves_the_estimator_as_it_was(noisy):
    X, y = noisy

    def interrupt(step):
        raise KeyboardInterrupt

    fresh = ISBOR(callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    with pytest.raises(NotFittedError, match="not fitted"):
        fresh.predict(X)
    assert not hasattr(fresh, "n_features_in_")

    fitted = ISBOR(gamma=0.1).fit(X, y)
    before = fitted.predict_proba(X)
    fitted.set_params(callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X[:, :1], y)
    assert_array_equal(fitted.predict_proba(X), before)


def test_limit_on_passes_warns(noisy):
    X, y = noisy
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = ISBOR(gamma=0.1, max_iter=1).fit(X, y)
    assert model.stop_reason_ is StopReason.MAX_ITER


def test_width_trials_show_the_search(noisy):
    X, y = noisy
    model = ISBOR(basis="rbf").fit(X, y)
    best = max(model.width_trials_, key=lambda trial: trial.objective)
    assert best.gamma == model.gamma_
    assert ISBOR(gamma=0.3).fit(X, y).width_trials_ == ()


# --- In scikit-learn's company -----------------------------------------------------------------------------


def test_grid_search_over_the_paper_widths(noisy):
    X, y = noisy
    search = GridSearchCV(ISBOR(), {"gamma": [1e-2, 1e-1, 1.0, 10.0]}, cv=3, scoring=get_scorer("mae"))
    search.fit(X, y)
    assert search.best_params_["gamma"] in (1e-2, 1e-1, 1.0)
    assert search.best_score_ > -0.6


def test_cross_validation_with_an_absent_class(noisy):
    X, y = noisy
    y = np.where(np.arange(len(y)) == 5, 9, y)  # one row: absent from all training parts but one
    scores = cross_val_score(
        ISBOR(gamma=0.1), X, y, cv=[(np.arange(50, 150), np.arange(50))], scoring=get_scorer("rps")
    )
    assert -0.5 < scores[0] < 0


def test_clone_pickle_and_repeat(noisy):
    X, y = noisy
    model = ISBOR(gamma=0.1, random_state=3).fit(X, y)
    again = clone(model).fit(X, y)
    restored = pickle.loads(pickle.dumps(model))
    assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    assert_array_equal(model.predict_proba(X), restored.predict_proba(X))


def test_data_frames_name_their_features(noisy):
    X, y = noisy
    frame = pd.DataFrame(X, columns=["dose", "age"])
    model = ISBOR(gamma=0.1).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["dose", "age"]
    assert_array_equal(model.predict(frame), model.predict(pl.DataFrame(X, schema=["dose", "age"])))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["age", "dose"]])


def test_threads_do_not_change_the_model():
    X, y = make_saddle(6000, random_state=0)  # several blocks
    one = ISBOR(gamma=0.1, n_jobs=1).fit(X, y)
    two = ISBOR(gamma=0.1, n_jobs=2).fit(X, y)
    assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_fitting_needs_no_extra():
    code = (
        "import sys\n"
        "sys.modules['matplotlib'] = sys.modules['numba'] = None\n"
        "import isbor\n"
        "X, y = isbor.datasets.make_saddle(200, random_state=0)\n"
        "print(isbor.ISBOR(gamma=0.1).fit(X, y).n_relevance_)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- Bad input ---------------------------------------------------------------------------------------------

X_OK = np.arange(20.0).reshape(10, 2)
Y_OK = np.arange(10) % 3


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        (
            np.where(X_OK == 4, np.nan, X_OK),
            Y_OK,
            ValueError,
            r"first \(NaN\) in row 2, column 0.*SimpleImputer",
        ),
        (np.where(X_OK == 5, np.inf, X_OK), Y_OK, ValueError, r"first \(inf\) in row 2, column 1"),
        (X_OK, np.where(Y_OK == 0, np.nan, Y_OK), ValueError, "NaN"),
        (X_OK, np.where(Y_OK == 0, np.inf, Y_OK), ValueError, "infinity"),
        (X_OK, Y_OK + 0.5, ValueError, "Unknown label type: continuous"),
        (X_OK, np.ones(10), ValueError, r"1 class .*\[1.0\].*at least 2"),
        (X_OK[:5], Y_OK, ValueError, r"inconsistent numbers of samples: \[5, 10\]"),
        (np.empty((0, 2)), np.empty(0), ValueError, "empty|0 sample"),
        (X_OK.astype(str).tolist()[:1] + [["a", "b"]], [0, 1], ValueError, "could not convert|dtype"),
        (X_OK[:, 0], Y_OK, ValueError, "Expected 2D array"),
    ],
    ids=["X-NaN", "X-inf", "y-NaN", "y-inf", "y-floats", "one-class", "lengths", "empty", "text", "1-D"],
)
def test_bad_data_is_refused(X, y, error, message):
    with pytest.raises(error, match=message):
        ISBOR().fit(X, y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gamma": -1}, "ISBOR has gamma=-1: a finite number above 0 or 'evidence' is needed"),
        ({"gamma": "scale"}, "gamma='scale': a finite number above 0 or 'evidence'"),
        ({"size_prior": -0.1}, r"size_prior=-0\.1: a finite number of at least 0 is needed"),
        ({"solver": "newton"}, "solver='newton': 'gram' or 'sequential' is needed"),
        ({"classes": [0, 1]}, r"\[2\].*classes"),
        ({"classes": [0, 1, 1, 2]}, "more than once|distinct|repeat|duplicate"),
        ({"class_weight": {7: 2.0}}, r"class_weight has the keys \[7\]"),
        ({"class_weight": {1: -2.0}}, r"class_weight\[1\] is -2.0"),
        ({"n_candidates": 0}, "n_candidates=0: an integer of at least 1 or 'all' is needed"),
        ({"tol": 0.0}, r"tol=0\.0: a finite number above 0 is needed"),
        ({"max_iter": 0}, "max_iter=0: an integer of at least 1 is needed"),
        (
            {"basis": "mixed", "gamma": 3.0},
            r"with gamma=3\.0: gamma applies to basis='rbf' only\. Remove",
        ),
        ({"basis": "mixed", "metric": "ard"}, "basis='mixed' cannot be combined with metric='ard'"),
        (
            {"basis": "mixed", "solver": "sequential"},
            "cannot be combined with solver='sequential'",
        ),
        ({"metric": "ard", "gamma": 3.0}, r"metric='ard' cannot be combined with gamma=3\.0"),
        (
            {"metric": "ard", "solver": "sequential"},
            "cannot be combined with solver='sequential'",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_bad_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ISBOR(**arguments).fit(X_OK, Y_OK)


def test_bad_weights_are_refused():
    with pytest.raises(
        ValueError, match=r"sample_weight is -1\.0 in row 0; a finite, nonnegative number is needed"
    ):
        ISBOR().fit(X_OK, Y_OK, sample_weight=-np.ones(10))
    with pytest.raises(ValueError, match=r"sum to 1e\+13; at most 1e\+12 .*divide sample_weight"):
        ISBOR().fit(X_OK, Y_OK, sample_weight=np.full(10, 1e12))
    with pytest.raises(ValueError, match=r"\b1 class|positive weight"):
        ISBOR().fit(X_OK, Y_OK, sample_weight=(Y_OK == 1).astype(float))


def test_too_many_rows_for_the_dense_solver_are_refused_at_once():
    X = np.arange(20_001.0)[:, None]
    with pytest.raises(ValueError, match="20001 distinct rows.*at most 20000.*solver='gram'"):
        ISBOR(solver="sequential").fit(X, np.arange(20_001) % 2)


def test_wrong_number_of_columns_is_refused(fitted):
    with pytest.raises(ValueError, match="X has 3 features, but ISBOR is expecting 2"):
        fitted.predict(np.ones((4, 3)))
