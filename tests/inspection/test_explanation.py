"""What an explanation says: text, tables, thresholds and the rows behind functions."""

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from isbor import GPOR, ISBOR, KDLOR, SVOR
from isbor.datasets import make_saddle
from tests.problems import shop, varying_cuts


@pytest.fixture(scope="module")
def fitted():
    frame, y = shop(200)
    grades = np.array(["mild", "moderate", "severe"])
    return ISBOR(basis="mixed", n_members=1, classes=list(grades)).fit(frame, grades[y]), frame


def test_it_says_what_the_predictions_say(fitted):
    model, frame = fitted
    found = model.explain(frame[:20])
    assert_array_equal(found.predicted, model.predict(frame[:20]))
    assert_allclose(found.probabilities, model.predict_proba(frame[:20]))
    assert_allclose(found.distances, model.latent(frame[:20])[:, None] - model.thresholds_at(frame[:20]))
    assert found.values[3][3] == frame["colour"][3]
    assert [row[1] for row in found.values] == [None if np.isnan(age) else age for age in frame["age"][:20]]


def test_the_text_of_a_row(fitted):
    model, frame = fitted
    row = int(np.flatnonzero(frame["age"].isna() & (model.predict(frame) == "moderate"))[0])
    found = model.explain(frame[row : row + 1])
    text = str(found)
    assert text.startswith(f"Row 0: class moderate, score {found.score[0]:.2f}")
    assert f"above the threshold of mild | moderate at {found.thresholds[0, 0]:.2f}" in text
    assert f"below the threshold of moderate | severe at {found.thresholds[0, 1]:.2f}" in text
    assert f"P(severe) = {found.probabilities[0, 2]:.2f}" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["age", "=", "missing", f"{found.contributions[0, 1]:+.2f}"] in lines
    largest = int(found.largest_functions(0)[0])
    assert f"(training row {model.relevance_[largest]})" in text
    assert "background" in str(model.explain(frame)) and "colour" in str(model.explain(frame))


def test_the_table_has_a_line_for_each_row_and_feature(fitted, monkeypatch):
    model, frame = fitted
    found = model.explain(frame[:4])
    table = found.to_frame()
    assert_allclose(table.groupby("row")["contribution"].sum() + found.baseline, found.score)
    assert list(table["feature"][:6]) == list(frame.columns)
    monkeypatch.setitem(sys.modules, "pandas", None)
    columns = found.to_frame()
    assert_array_equal(columns["contribution"], found.contributions.ravel())


def test_differences_of_two_rows(fitted):
    model, frame = fitted
    found = model.explain(frame[:2])
    assert_allclose(found.difference(0, 1).sum(), found.score[0] - found.score[1])


def test_thresholds_of_the_row():
    X, y, _ = varying_cuts(600, 0, spread=1.0)
    model = ISBOR(basis="mixed", n_members=1, thresholds="varying").fit(X, y)
    found = model.explain(X[:5])
    assert np.ptp(found.thresholds, axis=0).max() > 0.1
    assert_allclose(found.thresholds, model.thresholds_at(X[:5]))


@pytest.mark.parametrize("model", [GPOR(gamma=0.3), SVOR(C=10.0), KDLOR()])
def test_rows_behind_functions_are_those_of_the_table(model):
    """A row is nearest to itself: its own function has its largest value there."""
    X, y = make_saddle(60, random_state=0)
    found = model.fit(X, y).explain(X)
    weight = found.functions[found.source, np.arange(len(found.source))]
    assert_array_equal(np.abs(found.functions).max(axis=0), np.abs(weight))


def test_rows_of_the_default_background_are_training_rows_and_few():
    X, y = make_saddle(2000, random_state=0)
    model = ISBOR(basis="rbf").fit(X, y)
    kept = model._background
    assert len(kept.X) == 500
    assert {*map(tuple, kept.X)} <= {*map(tuple, X)}
    assert_allclose(kept.share.sum(), 1.0)
    assert_array_equal([kept.low, kept.high], [X.min(axis=0), X.max(axis=0)])
    # A stratified sample: the mean score of few of the rows is near that of all.
    assert abs(model.explain(X[:1]).baseline) < 0.1


def test_after_a_stream_and_before_two_classes():
    X, y = make_saddle(400, random_state=0)
    model = ISBOR(classes=[1, 2, 3, 4, 5])
    one = model.partial_fit(X[y == 3][:20], y[y == 3][:20]).explain(X[:2])
    assert_array_equal(one.contributions, 0.0)
    found = model.partial_fit(X, y).explain(X[:5])
    assert_allclose(found.baseline + found.contributions.sum(axis=1), model.latent(X[:5]), rtol=1e-9)
    assert model.effects(0, grid_size=3).expected_band is not None


def test_an_unseen_category_is_named_so(fitted):
    model, frame = fitted
    pink = frame[:1].assign(colour="pink")
    found = model.explain(pink)
    assert found.values[0][3] == "(unseen)"
    assert_allclose(found.score, model.latent(pink))
    (changes,) = model.changes(pink, to=1 if found.predicted[0] == "mild" else -1, allowed=["colour"])
    assert all(
        change.before == "(unseen)" and change.after in set(frame["colour"]) for change in changes.changes
    )


def test_functions_can_be_left_out(fitted):
    model, frame = fitted
    found = model.explain(frame[:2], functions=False)
    assert found.functions is None
    assert "functions" not in str(found)
    with pytest.raises(ValueError, match="functions=True"):
        found.largest_functions(0)


def test_what_is_refused(fitted):
    model, frame = fitted
    with pytest.raises(NotFittedError):
        ISBOR().explain(frame)
    with pytest.raises(ValueError, match="0 sample"):
        model.explain(frame[:0])
    with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing:\n- age"):
        model.explain(frame.drop(columns="age"))
    with pytest.raises(ValueError, match="0 sample"):
        model.explain(frame, background=frame[:0])
    with pytest.raises(ValueError, match="feature names should match"):
        model.explain(frame, background=pd.DataFrame({"a": [1.0]}))
