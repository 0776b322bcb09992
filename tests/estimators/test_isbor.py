"""What ISBOR promises beyond what all estimators do (see test_contract)."""

from functools import cache
from itertools import count

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from sklearn.exceptions import NotFittedError

from isbor import ISBOR
from isbor._core.trace import StopReason
from isbor.data.order import on_grid
from isbor.datasets import SADDLE_THRESHOLDS, make_balance_scale, make_saddle, saddle_labels
from isbor.metrics import mean_absolute_error
from tests.problems import noisy_rows


@pytest.fixture(scope="module")
def saddle():
    X, y, score = make_saddle(3000, random_state=0, return_score=True)
    return X[:1000], y[:1000], X[1000:], y[1000:], score[1000:]


@pytest.fixture(scope="module")
def fitted(saddle):
    return ISBOR().fit(saddle[0], saddle[1])


# --- What it learns ----------------------------------------------------------------------------------------


def test_it_learns_the_saddle_with_few_vectors(saddle, fitted):
    _, _, X, y, score = saddle
    best = mean_absolute_error(y, saddle_labels(score))
    assert mean_absolute_error(y, fitted.predict(X)) < best + 0.010
    sparse = ISBOR(max_vectors=50).fit(*saddle[:2])  # the default may be a process, which is not
    assert mean_absolute_error(y, sparse.predict(X)) < best + 0.010
    assert sparse.n_relevance_ <= 20


def test_it_learns_the_balance_scale_from_three_quarters():
    X, y = make_balance_scale()
    errors, sizes = [], []
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(625)
        train, test = order[:468], order[468:]
        model = ISBOR().fit(X[train], y[train])
        errors.append(mean_absolute_error(y[test], model.predict(X[test])))
        # The default may find a Gaussian process clearly better; the paper's model is always sparse.
        sizes.append(ISBOR(basis="rbf").fit(X[train], y[train]).n_relevance_)
    assert np.mean(errors) <= 0.02
    assert np.mean(sizes) <= 17


def standard_error_of_log_noise(score, thresholds):
    """Of the maximum likelihood estimate, from Fisher's information; all in units of the noise.

    The score is taken as known, its thresholds are not.
    """

    def probabilities(parameters):
        z = (parameters[1:] - score[:, None]) / np.exp(parameters[0])
        return np.diff(ndtr(z), axis=1, prepend=0.0, append=1.0)

    at, h = np.append(0.0, thresholds), 1e-4
    slopes = [(probabilities(at + e) - probabilities(at - e)) / (2 * h) for e in h * np.eye(len(at))]
    p = probabilities(at)
    possible = p > 1e-12
    slopes = np.stack([slope[possible] for slope in slopes])
    return np.sqrt(np.linalg.inv(slopes / p[possible] @ slopes.T)[0, 0])


@pytest.mark.parametrize("noise", [0.5, 20.0, 60.0])
def test_sigma_is_noise_to_signal(noise):
    """Where there is little noise few rows tell how much, those next to a threshold."""
    X, y, score = make_saddle(1000, noise=noise, random_state=0, return_score=True)
    model = ISBOR(basis="rbf").fit(X, y)
    error = standard_error_of_log_noise(score / noise, np.array(SADDLE_THRESHOLDS) / noise)
    assert error < (0.3 if noise == 0.5 else 0.05)
    assert abs(np.log(model.sigma_ * score.std() / noise)) < 1.5 * error


# --- Its attributes ----------------------------------------------------------------------------------------


def test_attributes_describe_the_score(saddle):
    X = on_grid(saddle[0])
    model = ISBOR(basis="rbf").fit(X, saddle[1])
    squares = ((X[:, None] - model.relevance_vectors_) / model.feature_scale_) ** 2
    kernel = np.exp(-model.gamma_ * squares.sum(axis=2))
    score, std = model.latent(X, return_std=True)
    weights = model.dual_coef_
    assert_allclose(kernel @ weights + model.intercept_, score, atol=1e-8 * np.abs(weights).sum())
    assert_allclose([score.mean(), score.std()], [0.0, 1.0], atol=1e-9)
    assert np.all(std > 0)
    assert_array_equal(model.relevance_vectors_, X[model.relevance_])


def test_width_trials_show_the_search(noisy):
    X, y = noisy
    model = ISBOR(basis="rbf").fit(X, y)
    best = max(model.width_trials_, key=lambda trial: trial.objective)
    assert best.gamma == model.gamma_
    assert ISBOR(gamma=0.3).fit(X, y).width_trials_ == ()


def test_blocks_do_not_change_predictions(saddle, fitted):
    X = np.repeat(saddle[2], 10, axis=0)
    assert_allclose(fitted.predict_proba(X)[::10], fitted.predict_proba(saddle[2]), atol=1e-12)


def test_threads_do_not_change_the_model():
    X, y = make_saddle(6000, random_state=0)  # several blocks
    one = ISBOR(gamma=0.1, n_jobs=1).fit(X, y)
    two = ISBOR(gamma=0.1, n_jobs=2).fit(X, y)
    assert_array_equal(one.predict_proba(X), two.predict_proba(X))


# --- Trace, progress and interruption ----------------------------------------------------------------------


@cache
def traced(**parameters):
    return ISBOR(**parameters).fit(*noisy_rows(150, seed=3))


def passes(trace):
    """Group the steps of a trace by pass; the last step of each is the mode."""
    groups = {}
    for step in trace:
        if step.kind != "start":
            groups.setdefault(step.pass_number, []).append(step)
    return list(groups.values())


@pytest.mark.parametrize(
    "parameters",
    [{"basis": "rbf"}, *({"gamma": 0.1, "solver": s, "size_prior": 2.0} for s in ("gram", "sequential"))],
    ids=["rbf", "gram", "sequential"],
)
def test_the_trace_replays_to_the_model(parameters):
    model = traced(**parameters)
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
def test_nothing_falls(solver, size_prior):
    model = traced(gamma=0.1, solver=solver, size_prior=size_prior)
    before = None
    for steps in passes(model.trace_):
        *moves, mode = steps
        assert mode.kind == "mode"
        assert mode.n_rows == 150
        assert all(move.predicted_gain >= model.tol for move in moves)
        objectives = [move.objective for move in moves]
        assert np.all(np.diff(objectives) >= 0)
        if before is not None and before.size_prior == mode.size_prior:
            assert mode.objective >= before.objective - model.tol
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


def test_predicted_gains_come_true_near_the_end():
    model = traced(gamma=0.1, solver="sequential", size_prior=0.0)
    modes = [step for step in model.trace_ if step.kind == "mode"]
    actual = np.diff([step.log_evidence for step in modes])
    predicted = np.array([step.predicted_gain for step in modes[1:]])
    assert_allclose(actual[-3:], predicted[-3:], atol=0.1)


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_callback_sees_every_step(noisy, verbose):
    X, y = noisy
    seen = []
    model = ISBOR(gamma=0.1, patience=0, callback=seen.append, verbose=verbose).fit(X, y)
    assert tuple(seen) == model.trace_


@pytest.mark.parametrize("parameters", [{}, {"basis": "mixed"}], ids=["auto", "mixed"])
def test_interruption_leaves_the_estimator_as_it_was(noisy, parameters):
    X, y = noisy
    calls = count()

    def interrupt(step):
        if next(calls) >= 100:
            raise KeyboardInterrupt

    fresh = ISBOR(**parameters, callback=interrupt)
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
