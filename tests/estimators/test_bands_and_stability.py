"""Bands that contain the true probabilities, and fits that do not hang on last digits: small simulations.

`benchmarks.coverage` and `benchmarks.stability` are the same at length.
"""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from benchmarks.problems import draw_grades
from benchmarks.simulated import TRUTHS, draw, share_covered
from isbor import GPOR, ISBOR, SBOR
from isbor.estimators.linear import OrderedProbit
from isbor.metrics import log_loss

SIMULATED = {
    "default": ISBOR(),
    "rbf": ISBOR(basis="rbf"),
    "SBOR": SBOR(),
    "GPOR": GPOR(),
}


@pytest.mark.parametrize("model", SIMULATED.values(), ids=SIMULATED)
def test_bands_contain_the_truth_as_often_as_they_promise(model):
    """On 200 rows, with the mean over four truths and two tables of each; the widths, too, make sense."""
    found = []
    for truth in TRUTHS:
        for repetition in (100, 101):
            sample = draw(truth, 200, repetition)
            model.fit(sample.X, sample.y)
            bands = (model.predict_proba_interval(sample.test, c) for c in (0.5, 0.9))
            found.append([share_covered(sample.truth, *of_coverage) for of_coverage in bands])
    (half, _), (most, width) = np.mean(found, axis=0)
    assert 0.36 < half < 0.64
    assert 0.79 < most < 0.97
    assert width < 0.45


@pytest.mark.parametrize("model", [ISBOR(basis="rbf"), GPOR()], ids=["rbf", "GPOR"])
def test_bands_of_constant_noise_contain_the_truth_where_the_noise_varies(model):
    """The model is wrong, and the process beside it knows better: bands lean towards it."""
    found = []
    for repetition in (100, 101, 102):
        sample = draw("noise", 800, repetition)
        bands = model.fit(sample.X, sample.y).predict_proba_interval(sample.test, 0.9)
        found.append(share_covered(sample.truth, *bands))
    covered, width = np.mean(found, axis=0)
    assert 0.75 < covered < 0.98
    assert width < 0.22  # 0.27 around a prediction that is off to one side


def test_far_from_the_data_bands_are_wide():
    sample = draw("wave", 200, 102)
    for model in (ISBOR(basis="rbf"), SBOR(), GPOR()):
        model.fit(sample.X, sample.y)
        (_, near), (_, far) = (model.latent(X, return_std=True) for X in (sample.X, 1e3 + sample.X))
        assert far.min() > 2.0 * np.median(near)


def test_a_line_where_there_is_none_has_wide_bands():
    """A linear model of a wave is wrong, and its bands say so; of a line, they are narrow."""
    widths = {}
    for truth in ("wave", "line"):
        sample = draw(truth, 800, 0)
        low, high = OrderedProbit().fit(sample.X, sample.y).predict_proba_interval(sample.test)
        covered, widths[truth] = share_covered(sample.truth, low, high)
        assert covered > 0.6
    assert widths["wave"] > 2.0 * widths["line"]


@pytest.mark.parametrize(
    ("model", "range_of_loss", "largest"),
    [(ISBOR(), 0.01, 0.15), (ISBOR(basis="rbf"), 0.03, 0.5), (SBOR(), 0.03, 0.5), (GPOR(), 1e-6, 1e-6)],
    ids=str,
)
def test_last_digits_and_the_order_of_columns_change_hardly_anything(model, range_of_loss, largest):
    X, y = draw_grades(120, 6, 0)
    test, truth = draw_grades(500, 6, 1)
    rng = np.random.default_rng(0)
    p = [model.fit(X, y).predict_proba(test)]
    for _ in range(2):
        p.append(model.fit(X * (1 + 1e-13 * rng.choice([-1, 1], X.shape)), y).predict_proba(test))
        order = rng.permutation(6)
        p.append(model.fit(X[:, order], y).predict_proba(test[:, order]))
    assert np.ptp([log_loss(truth, some, labels=model.classes_) for some in p]) <= range_of_loss
    assert np.abs(np.array(p) - p[0]).max() <= largest


@pytest.mark.parametrize(
    "model", [ISBOR(basis="mixed", n_members=1, effort="fast"), ISBOR(basis="rbf")], ids=["mixed", "rbf"]
)
def test_joint_training_sees_the_same_numbers(model):
    """Above 1,500 rows, a search would magnify any difference; there is none, to the last bit.

    The last digit of one number in some millions counts; here, none of 12,000.
    """
    X, y = draw_grades(2000, 6, 0)
    test, _ = draw_grades(500, 6, 1)
    rng = np.random.default_rng(0)
    near, order = X * (1 + 1e-13 * rng.choice([-1, 1], X.shape)), rng.permutation(6)
    p = model.fit(X, y).predict_proba(test)
    coefficients = model.dual_coef_
    model.fit(near[:, order], y)
    assert_array_equal(model.dual_coef_, coefficients)
    assert_allclose(model.predict_proba(test[:, order]), p, atol=1e-12)


def test_what_is_reported_of_a_column_does_not_depend_on_its_place():
    X, y = draw_grades(200, 6, 0)
    order = np.array([4, 2, 0, 5, 1, 3])
    one, other = (ISBOR(basis="mixed", n_members=2).fit(X[:, some], y) for some in (np.arange(6), order))
    assert_allclose(one.feature_relevance_[order], other.feature_relevance_, atol=0.02)
    assert_allclose(one.feature_scale_[order], other.feature_scale_)
    assert one.n_relevance_ == other.n_relevance_
    for k in range(one.n_relevance_):
        assert_allclose(one.relevance_vectors_[k][order], other.relevance_vectors_[k], atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        ISBOR(basis="mixed", n_members=2),
        ISBOR(basis="rbf"),
        ISBOR(),
        SBOR(),
        GPOR(metric="ard"),
        OrderedProbit(),
    ],
    ids=str,
)
def test_slopes_of_the_score_are_its_derivatives(model):
    X, y = draw_grades(150, 4, 0)
    X[:, 0] = np.exp(X[:, 0])  # a column with a warp worth having
    model.fit(X, y)
    fitted = model._model
    scaling = fitted.preparation.scaling if hasattr(fitted, "preparation") else fitted.scaling
    rows, h = scaling(X)[:40] + 1e-3, 1e-6

    def score(scaled):
        return fitted.latent(scaling.inverse(scaled)).mean

    numeric = [(score(rows + h * e) - score(rows - h * e)) / (2 * h) for e in np.eye(4)]
    assert_allclose(fitted.slopes(rows), np.transpose(numeric), rtol=1e-4, atol=1e-4 * np.std(score(rows)))


@pytest.mark.parametrize("model", [ISBOR(basis="rbf"), ISBOR(), SBOR(), GPOR(), OrderedProbit()], ids=str)
def test_far_outside_the_training_rows_probabilities_drift_to_the_base_rates(model):
    sample = draw("wave", 200, 103)
    model.fit(sample.X, sample.y)
    assert_allclose(model.out_of_range(sample.X), 0.0)
    far = np.array([[1e6, 0.0], [-1e6, 1e9]])
    assert np.all(model.out_of_range(far) > 1e4)
    shares = np.bincount(sample.y) / 200
    assert_allclose(model.predict_proba(far), np.tile(shares, (2, 1)), atol=0.01)
    assert_allclose(np.exp(model.predict_log_proba(far)), model.predict_proba(far))
    assert_allclose(model.predict(far), np.searchsorted(np.cumsum(shares), 0.5))
    low, high = model.predict_proba_interval(far)
    assert np.all((low <= model.predict_proba(far)) & (model.predict_proba(far) <= high))
    # A row that is hardly outside loses nothing.
    top = sample.X[[sample.X[:, 0].argmax()]]
    near = top + [[0.02 * np.ptp(sample.X[:, 0]), 0.0]]
    assert 0.0 < model.out_of_range(near)[0] < 0.03
    assert_allclose(model.predict_proba(near), model.predict_proba(top), atol=0.1)


def test_columns_that_the_score_does_not_use_cause_no_drift():
    X, y = draw_grades(300, 12, 0)  # the first four columns matter
    model = ISBOR(basis="mixed", n_members=1).fit(X, y)
    unused = np.flatnonzero(model.feature_relevance_ == 0.0)
    assert len(unused) > 2
    far = X.copy()
    far[:, unused] += 1e3
    assert_allclose(model.predict_proba(far), model.predict_proba(X), atol=1e-12)
    assert_allclose(model.out_of_range(far), 0.0)


@pytest.mark.parametrize("value", [1e160, 1.7e308])
def test_rows_as_far_away_as_numbers_go(value):
    X, y = draw_grades(80, 4, 0)
    model = ISBOR(basis="rbf").fit(X, y)
    assert np.isfinite(model.predict_proba(np.full((2, 4), value))).all()
    assert np.isfinite(model.predict_proba_interval(np.full((2, 4), value))).all()


def test_simulations_need_sensible_arguments():
    X, y = draw_grades(60, 4, 0)
    model = GPOR(gamma=0.1, class_weight="balanced").fit(X, y)
    with pytest.raises(ValueError, match="n_simulations is 0; at least 1"):
        model.check_bands(X, n_simulations=0)
    with pytest.raises(ValueError, match="coverage is 2; a number between 0 and 1"):
        model.check_bands(X, coverage=2)
    sure = GPOR(gamma=1e-3).fit(X, (X[:, 0] > 0).astype(int))
    with pytest.raises(ValueError, match="are of one class: the model is sure of it"):
        sure.check_bands(X[[X[:, 0].argmax()]])
    assert model.check_bands(X, n_simulations=1).covered > 0.4


def test_simulations_say_how_far_bands_can_be_trusted():
    sample = draw("line", 150, 104)
    names = np.array(["poor", "fair", "good", "top"])
    frame = pd.DataFrame(sample.X, columns=["size", "age"])
    model = GPOR(classes=names).fit(frame, names[sample.y])
    before = model.predict_proba(frame)
    report = model.check_bands(frame, n_simulations=3)
    assert 0.75 < report.covered <= 1.0
    whole, sure, unsure, *of_classes = report.parts
    assert [part.name for part in of_classes] == [f"class {name}" for name in names]
    assert sum(part.n_probabilities for part in of_classes) == whole.n_probabilities
    assert sure.n_probabilities + unsure.n_probabilities == whole.n_probabilities
    assert unsure.width > sure.width
    wider = model.check_bands(frame, n_simulations=3, coverage=0.99)
    assert wider.covered >= report.covered
    assert wider.parts[0].width > whole.width
    first, verdict, header, *rows = str(report).splitlines()
    assert first.startswith(
        f"Bands of 90% contained {report.covered:.0%} of the probabilities in 3 simulations"
    )
    assert verdict.startswith("These bands ")
    assert len(rows) == 7
    assert str(model.check_bands(frame, n_simulations=3)) == str(report)
    assert_allclose(model.predict_proba(frame), before)


def test_a_model_that_is_sure_of_all_classes_says_so():
    X = np.linspace(-3.0, 3.0, 60)[:, None]
    model = GPOR(gamma=1e-3).fit(X, (X[:, 0] > 0).astype(int))
    sure = model.check_bands(np.array([[-3.0], [-2.9], [2.9], [3.0]]), n_simulations=1)
    assert str(sure) == "The model is sure of all classes: no probability is between 0.05 and 0.95."
