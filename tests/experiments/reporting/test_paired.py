"""Differences on repeated splits, against hand-computed values."""

import math

import pytest
from numpy.testing import assert_allclose

from isbor.experiments.reporting.paired import paired_difference
from isbor.experiments.reporting.tables.difference_tables import against_first
from isbor.experiments.reporting.tables.quantities import LOG_LOSS, MAE
from tests.experiments.samples import ONE, experiment, results_of


def of_zero(d, test_over_train):
    """Return the comparison of errors d with none."""
    return paired_difference(dict(enumerate(d)), dict.fromkeys(range(len(d)), 0.0), test_over_train)


def test_errors_by_hand():
    """Differences -1, -3, -2: mean -2, variance 1; 2 rows train for each that tests: 1/3 + 1/2."""
    found = paired_difference({0: 1, 1: 2, 2: 2, 9: 5}, {0: 2, 1: 5, 2: 4, 8: 0}, 0.5)
    assert found.n_splits == 3
    assert_allclose(
        [found.mean, found.error, found.corrected_error], [-2, math.sqrt(1 / 3), math.sqrt(5 / 6)], rtol=1e-12
    )
    # Of two degrees of freedom the tail is known: P(|T| > t) = 1 - t/√(2 + t²).
    t = 2 / math.sqrt(5 / 6)
    assert_allclose(found.p_value, 1 - t / math.sqrt(2 + t**2), rtol=1e-12)


@pytest.mark.parametrize(
    ("d", "outcome"),
    [
        ([-0.1] * 5, "win"),
        ([0.1] * 5, "loss"),
        ([0.0] * 5, "draw"),
        ([-0.1], "draw"),  # one split tells nothing
        ([0.0, -0.2, -0.3, 0.0, -0.2, -0.3], "draw"),  # the plain test has p = .03
        ([-0.1, -0.11, -0.12, -0.1, -0.11, -0.12], "win"),
    ],
)
def test_what_counts_is_the_corrected_test(d, outcome):
    assert of_zero(d, 3 / 7).outcome == outcome


@pytest.mark.parametrize(
    ("d", "outcome"),
    [
        ([0.0, -0.1, -0.2], "win"),  # mean -0.1, error √((1/3 + 3/7) 0.01) = 0.087
        ([0.05, -0.1, -0.2], "draw"),  # mean -0.083, error 0.110; uncorrected it would be 0.073
        ([0.0, 0.1, 0.2], "loss"),
        ([0.1, 0.1, 0.1], "loss"),
        ([0.0, 0.0, 0.0], "draw"),
        ([-0.1], "draw"),  # one split tells nothing
    ],
)
def test_outcomes_by_one_corrected_error(d, outcome):
    found = of_zero(d, 3 / 7)
    assert found.beyond(1.0) == outcome
    assert found.beyond(0.0 if outcome != "draw" else math.inf) == outcome


def test_nothing_in_common_is_not_compared():
    assert paired_difference({0: 1.0}, {1: 1.0}, 0.5) is None


def test_the_first_model_beside_the_others():
    mae = {"a": [0.1, 0.2, 0.2, 0.3], "b": [0.2, 0.3, 0.3, 0.4], "c": [0.2, 0.4]}
    log_loss = {"a": [1, 1, 1, 1], "c": [2, 3]}

    def metrics(job):
        named = {"mae": mae, "log_loss": log_loss}.items()
        return {name: by[job.model.name][job.split] for name, by in named if job.model.name in by}

    study = experiment(tasks=(ONE,), splits=4)
    found = results_of(study, {("t1", model): errors for model, errors in mae.items()}, metrics=metrics)
    table = against_first(found, {"MAE": MAE, "log loss": LOG_LOSS})
    # C: differences -0.1 and -0.2, variance 0.005: √(0.005/2) and √(0.005 (1/2 + 1/2)).
    assert [[entry.text for entry in row] for row in table.rows] == [
        ["Task 1", "B", "4", "-0.1000 ± 0.0000 (0.0000) win", "–"],
        ["Task 1", "C", "2", "-0.1500 ± 0.0500 (0.0707) draw", "-1.5000 ± 0.5000 (0.7071) draw"],
        ["wins/draws/losses", "B", "", "1/0/0", "–"],
        ["wins/draws/losses", "C", "", "0/1/0", "0/1/0"],
    ]
