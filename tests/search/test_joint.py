"""The joint search: it finds what is there, keeps to its limits, and depends on the rows alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

from isbor import ISBOR
from isbor._core.parallel import Workers
from isbor._core.trace import StopReason
from isbor.metrics import log_loss
from isbor.search.adaptive import joint
from isbor.search.adaptive.joint import JointSettings, search_jointly
from isbor.search.families import mixed
from isbor.search.recorder import Recorder
from tests.estimators.hard_problems import check_fitted, named_problems, random_problem
from tests.problems import small_rows

N_ROWS = mixed._JOINT_ROWS + 100
THRESHOLDS = np.array([-0.5, 0.5, 1.5])


def local_score(X):
    """A narrow hill and a narrow valley of two features, and a step of a third."""
    hill = np.exp(-8 * ((X[:, 0] - 0.8) ** 2 + (X[:, 1] - 0.5) ** 2))
    valley = np.exp(-8 * ((X[:, 0] + 0.7) ** 2 + (X[:, 1] + 0.6) ** 2))
    return 3.0 * hill - 3.0 * valley + np.tanh(5 * X[:, 2])


def local_rows(n, seed):
    """Rows whose noise varies along the third feature, their labels, and the true probabilities."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    scale = 0.4 * np.exp(0.5 * np.tanh(5 * X[:, 2]))
    y = np.digitize(local_score(X) + scale * rng.normal(size=n), THRESHOLDS)
    below = ndtr((THRESHOLDS - local_score(X)[:, None]) / scale[:, None])
    return X, y, np.diff(below, axis=1, prepend=0.0, append=1.0)


@pytest.fixture(scope="module")
def table():
    return local_rows(N_ROWS, seed=0)[:2]


@pytest.fixture(scope="module")
def fitted(table):
    return ISBOR(basis="mixed", n_members=2).fit(*table)


def test_it_comes_close_to_a_truth_of_narrow_functions(fitted):
    X, y, truth = local_rows(4000, seed=1)
    labels = [0, 1, 2, 3]
    best = log_loss(y, truth, labels=labels)
    assert log_loss(y, fitted.predict_proba(X), labels=labels) < best + 0.06  # class frequencies: + 0.6
    assert {step.kind for step in fitted.trace_} >= {"training", "delete", "noise", "mode"}
    # The noise grows by a factor e along the third feature.
    ends = np.zeros((2, 5))
    ends[:, 2] = -1.5, 1.5
    low, high = fitted.noise_scale(ends)
    assert 1.5 < high / low < 5.0
    assert fitted.feature_relevance_[3:].sum() < 0.05


def test_weights_are_repetitions_in_any_order(table):
    X, y = table
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    repeated = np.random.default_rng(2).permutation(np.repeat(np.arange(len(y)), weight))
    model = ISBOR(basis="mixed", n_members=1, max_vectors=20)
    weighted = model.fit(X, y, sample_weight=weight).predict_proba(X[:200])
    assert_array_equal(model.fit(X[repeated], y[repeated]).predict_proba(X[:200]), weighted)
    assert np.ptp(model.thresholds_at(X), axis=0).max() > 0


def test_limits_and_constant_noise(table):
    X, y = table
    model = ISBOR(basis="mixed", n_members=2, max_vectors=17, noise="constant").fit(X, y)
    assert model.n_relevance_ <= 17
    assert_allclose(model.noise_scale(X[:10]), model.sigma_)
    assert_allclose(model.thresholds_at(X[:10]), np.tile(model.thresholds_, (10, 1)), atol=1e-12)
    assert "noise" not in {step.kind for step in model.trace_}


@pytest.mark.parametrize(
    ("limits", "searched"),
    [((1000, 2000), [1000, 2000]), ((1000, 5000), [1000, 3000]), ((2500, 5000), [3000])],
)
def test_with_very_many_rows_the_model_is_refitted_to_all(limits, searched):
    rows = small_rows(n=3000)
    recorder = Recorder("fit", rows.source)
    with Workers(2) as workers:
        random = np.random.default_rng(0)
        settings = JointSettings(first_rows=limits[0], most_rows=limits[1])
        model, _ = search_jointly(rows, np.arange(2), settings, random, workers, recorder)
    assert model.n_rows == 3000
    assert {step.n_rows for step in recorder.steps} == {*searched, 3000}
    # The search goes on, by training, on the rows of each stage.
    trained = [step.n_rows for step in recorder.steps if step.kind == "training"]
    assert list(dict.fromkeys(trained)) == searched
    assert model.shape_weights.shape == (2, len(model))


HARD = [(title, X, y) for title, X, y in named_problems() if title != "10,000 columns"]


@pytest.mark.parametrize(("title", "X", "y"), [pytest.param(*case, id=case[0]) for case in HARD])
def test_defects_of_tables_do_it_no_harm(title, X, y, monkeypatch):
    monkeypatch.setattr(mixed, "_JOINT_ROWS", 0)
    check_fitted(ISBOR(basis="mixed", n_members=1, n_jobs=1).fit(X, y), X)


@pytest.mark.parametrize("seed", range(30))
def test_random_defects_do_it_no_harm(seed, monkeypatch):
    monkeypatch.setattr(mixed, "_JOINT_ROWS", 0)
    X, y, weight = random_problem(seed)
    varying = {"noise": "constant"} if seed % 3 == 0 else {"thresholds": ("constant", "varying")[seed % 2]}
    check_fitted(ISBOR(basis="mixed", n_members=1, **varying, n_jobs=1).fit(X, y, weight), X)


@pytest.mark.parametrize(
    ("rises", "expected"),
    [
        # The second round is poor: the third starts from the first, with shorter steps.
        ([500.0, -80.0, 300.0, -1.0], [(0, 0.03), (1, 0.03), (1, 0.015), (3, 0.015)]),
        ([500.0, 0.1, 0.2], [(0, 0.03), (1, 0.03), (2, 0.015)]),
    ],
)
def test_the_second_poor_round_is_the_last(monkeypatch, rises, expected):
    """States are numbers here: the round that found them, with an objective that rises as given."""
    found, calls = [], []

    class Found:
        def __init__(self, number, height):
            self.number, self.height, self.rows, self.model = number, height, None, self
            self.log_evidence = -1000.0

        def objective(self, size_prior):
            return self.height

    def after(search, state, added, step_length):
        calls.append((state.number, step_length))
        found.append(Found(len(calls), state.height + rises[len(calls) - 1]))
        return found[-1]

    monkeypatch.setattr(joint.JointSearch, "_after", after)
    monkeypatch.setattr(joint, "_proposed", lambda *given: None)
    monkeypatch.setattr(joint.Proposals, "of", lambda *given: None)
    with Workers(1) as workers:
        search = joint.JointSearch(np.arange(2), JointSettings(), 5, np.random.default_rng(0), workers, None)
        best, reason, n_lost = search.rounds(Found(0, -8000.0), 8, 0.03)
    assert calls == expected
    assert reason is StopReason.CONVERGED
    assert best.height == max(state.height for state in found)
    assert n_lost == (-80.0 in rises)  # the others that were poor lowered the objective by little


def test_many_rows_have_fewer_and_longer_searches():
    few, some, many = (mixed._limits(n)["default"] for n in (1500, 20_000, 20_001))
    assert few.members > some.members > many.members
    assert few.rounds < some.rounds < many.rounds
