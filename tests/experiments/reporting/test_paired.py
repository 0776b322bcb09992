"""Differences on repeated splits, against hand-computed values."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from isbor.experiments import CATALOGUE, Experiment, Holdout, Record, Results, Saddle, Task
from isbor.experiments.reporting.paired import paired_difference
from isbor.experiments.reporting.tables.difference_tables import against_first
from isbor.experiments.reporting.tables.quantities import LOG_LOSS, MAE


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


def test_the_corrected_test_is_the_plain_one_with_a_larger_variance():
    d = np.random.default_rng(0).normal(0.5, 1.0, size=10)
    t = stats.ttest_1samp(d, 0.0).statistic * math.sqrt((1 / 10) / (1 / 10 + 1 / 9))
    assert_allclose(of_zero(d, 1 / 9).p_value, 2 * stats.t.sf(abs(t), 9), rtol=1e-12)
    assert_allclose(of_zero(-d, 1 / 9).p_value, of_zero(d, 1 / 9).p_value, rtol=1e-12)


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


def test_nothing_in_common_is_not_compared():
    assert paired_difference({0: 1.0}, {1: 1.0}, 0.5) is None
    with pytest.raises(ValueError, match="test_over_train is 0"):
        of_zero([1.0, 2.0], 0)


def results_of(scheme, errors, log_losses=None):
    """Return results of models on one task, by the names of the models and by split."""
    task = Task("saddle", "Saddle", Saddle(300), scheme)
    experiment = Experiment("e", "E", tuple(CATALOGUE[name] for name in errors), (task,), splits=4)
    records = {}
    for job in experiment.jobs():
        if job.split < len(errors[job.model.name]):
            metrics = {"mae": errors[job.model.name][job.split]}
            if job.model.name in (log_losses or {}):
                metrics["log_loss"] = log_losses[job.model.name][job.split]
            record = Record(
                "saddle", job.model.name, job.split, "ok", n_train=200, n_test=100, metrics=metrics
            )
            records[job.key] = record
    return Results.of(experiment, records)


def test_the_first_model_beside_the_others():
    errors = {"isbor": [0.1, 0.2, 0.2, 0.3], "svor": [0.2, 0.3, 0.3, 0.4], "trees": [0.2, 0.4]}
    found = results_of(Holdout(200), errors, {"isbor": [1, 1, 1, 1], "trees": [2, 3]})
    table = against_first(found, {"MAE": MAE, "log loss": LOG_LOSS})
    texts = [[entry.text for entry in row] for row in table.rows]
    # trees: differences -0.1 and -0.2, variance 0.005: √(0.005/2) and √(0.005 (1/2 + 1/2)).
    assert texts == [
        ["Saddle", "SVOR", "4", "-0.1000 ± 0.0000 (0.0000) win", "–"],
        ["Saddle", "Boosted trees", "2", "-0.1500 ± 0.0500 (0.0707) draw", "-1.5000 ± 0.5000 (0.7071) draw"],
        ["wins/draws/losses", "SVOR", "", "1/0/0", "–"],
        ["wins/draws/losses", "Boosted trees", "", "0/1/0", "0/1/0"],
    ]
