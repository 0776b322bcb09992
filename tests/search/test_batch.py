import numpy as np
import pytest
from numpy.testing import assert_allclose

from isbor import ISBOR, SBOR
from isbor._core.parallel import Workers
from isbor._core.trace import StopReason
from isbor.inference.mode import posterior_precision
from isbor.model.basis import RowDictionary
from isbor.search.recorder import Recorder
from isbor.search.settings import SolverSettings
from isbor.search.solvers.batch import mackay_precisions, solve_batch
from tests.problems import small_rows


@pytest.fixture(scope="module")
def solved():
    rows = small_rows(n=120)
    recorder = Recorder("fit", rows.source)
    with Workers(1) as workers:
        dictionary = RowDictionary(rows, 0.3)
        model, reason = solve_batch(rows, dictionary, None, SolverSettings(), workers, recorder)
    assert reason is not StopReason.MAX_ITER
    return model, recorder.steps


def test_precisions_are_a_fixed_point_of_the_rule(solved):
    model, _ = solved
    covariance = np.linalg.inv(posterior_precision(model.mode))
    gamma = 1.0 - model.mode.alpha * np.diag(covariance)[: len(model)]
    assert_allclose(mackay_precisions(model), gamma / model.mode.weights**2, rtol=1e-8)
    # Those that matter have come to rest; at rest the evidence has no slope in ln α but for the mode's own.
    slope = 0.5 * (gamma - model.mode.alpha * model.mode.weights**2)
    assert np.max(np.abs(slope)) < 0.02


def test_most_functions_leave_and_the_evidence_is_that_of_selection(solved):
    """Tipping's selection maximises the same objective from below, one function at a time."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.digitize(2 * np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.5 * rng.normal(size=200), [-0.5, 0.5, 2.0])
    batch = SBOR(gamma=0.3).fit(X, y)
    selected = ISBOR(gamma=0.3, size_prior=0.0).fit(X, y)
    assert batch.n_relevance_ < 40
    assert batch.log_evidence_ > selected.log_evidence_ - 3.0


def test_the_trace_tells_who_left(solved):
    model, steps = solved
    left = {step.row for step in steps if step.kind == "delete"}
    started = {step.row for step in steps if step.kind == "start"}
    rest = started - left
    assert len(rest) == len(model) == steps[-1].n_active
    modes = [step.log_evidence for step in steps if step.kind == "mode"]
    assert modes[-1] > steps[0].log_evidence + 5.0
    assert model.log_evidence == max(modes[-20:])
