"""Effects of features: against scikit-learn, against sums by hand, and what their bands are."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.inspection import partial_dependence, permutation_importance

from isbor import ISBOR, SVOR
from isbor.estimators.linear import OrderedProbit
from isbor.metrics import get_scorer
from tests.problems import noisy_rows, shop


@pytest.fixture(scope="module")
def fitted():
    frame, y = shop(200)
    return ISBOR(basis="mixed", n_members=2).fit(frame, y), frame


@pytest.fixture(scope="module")
def smooth():
    X, y = noisy_rows(300, seed=1)
    return ISBOR(basis="rbf").fit(X, y), X, y


def test_partial_dependence_is_that_of_scikit_learn(smooth):
    model, X, _ = smooth
    curves = partial_dependence(model, X, [1], grid_resolution=7)
    found = model.effects(1, X, values=curves["grid_values"][0])
    assert_allclose(found.probabilities.T, curves["average"])
    few = np.round(X)  # all distinct numbers are shown
    maps = partial_dependence(model, few, [0, 1])
    found = model.effects((0, 1), few)
    assert_array_equal(found.values[1], maps["grid_values"][1])
    assert_allclose(np.moveaxis(found.probabilities, 2, 0), maps["average"])


def test_categories_and_missing_cells(fitted):
    """As if the column held nothing else."""
    model, frame = fitted
    for feature in ("colour", "size", "flag", "age"):
        found = model.effects(feature, frame, grid_size=3)
        for value, score, p in zip(found.values[0], found.score, found.probabilities, strict=True):
            held = frame.assign(**{feature: np.nan if value is None else value})
            if feature == "size":
                held["size"] = held["size"].astype(frame["size"].dtype)
            assert_allclose(score, model.latent(held).mean())
            assert_allclose(p, model.predict_proba(held).mean(axis=0))
    assert found.values[0][-1] is None
    assert model.effects("colour").values == (("blue", "green", "red"),)


def test_expected_ranks_and_tables(fitted):
    model, frame = fitted
    found = model.effects("age", frame, grid_size=4)
    assert_allclose(found.expected, found.probabilities @ [0, 1, 2])
    table = found.to_frame()
    assert_allclose(table["P(1)"], found.probabilities[:, 1])
    assert_array_equal(table["expected rank high"], found.expected_band[1])
    assert "missing" in str(found) and "band 90%" in str(found)
    two = model.effects(("age", "colour"), frame, grid_size=4).to_frame()
    assert len(two) == 5 * 3
    assert "Partial dependence on age and colour" in str(model.effects(("age", "colour"), grid_size=4))


def test_headings_of_a_printed_table_stand_apart():
    names = ["very low", "high", "remarkably and exceedingly high"]
    X = np.arange(30.0)[:, None]
    y = pd.Categorical(np.array(names)[np.repeat([0, 1, 2], 10)], names, ordered=True)
    head, line = str(OrderedProbit().fit(X, y).effects(0, grid_size=3)).splitlines()[1:3]
    assert head.endswith("  P(very low)                 P(high) P(remarkably and exceed")
    assert len(head) == len(line)


def test_accumulated_local_effects_of_a_linear_score_are_a_line_whatever_depends_on_what():
    """Partial dependence averages rows that do not occur; for a line it makes no difference."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    X = np.column_stack([x, x + 0.1 * rng.normal(size=500)])
    y = np.digitize(X @ [1.0, 1.0] + rng.normal(size=500), [-1.0, 1.0])
    model = OrderedProbit().fit(X, y)
    found = model.effects(0, X, kind="ale")
    z = np.array(found.values[0])
    assert_allclose(np.diff(found.score) / np.diff(z), model.coef_[0])
    # The mean over the rows, with both ends of each interval alike, is the mean score.
    count, _ = np.histogram(x, np.append(z[:-1], np.inf))
    count = np.diff(np.searchsorted(np.sort(x), z, side="right"), prepend=0)[1:]
    count[0] += 1
    assert_allclose(
        count @ (found.score[:-1] + found.score[1:]) / 2 / 500, model.latent(X).mean(), atol=1e-12
    )
    assert_allclose(found.probabilities.sum(axis=1), 1.0)


def test_accumulated_local_effects_by_hand():
    X, y = noisy_rows(120, seed=2)
    X = np.round(2 * X)  # few values: each is an end of an interval
    model = ISBOR(basis="rbf").fit(X, y)
    found = model.effects(1, X, kind="ale", grid_size=50)
    z = np.unique(X[:, 1])
    assert_array_equal(found.values[0], z)
    rises = []
    for low, high in zip(z[:-1], z[1:], strict=True):
        inside = (X[:, 1] == high) | ((X[:, 1] == low) & (low == z[0]))
        moved = [np.column_stack([X[inside, 0], np.full(inside.sum(), end)]) for end in (low, high)]
        rises.append(model.latent(moved[1]).mean() - model.latent(moved[0]).mean())
    assert_allclose(np.diff(found.score), rises)
    assert found.expected_band is None


def test_where_features_depend_on_each_other_the_two_kinds_differ():
    """Of the product of two features that are alike, the local slopes are those of a half of a square."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1)) + 0.5 * rng.normal(size=(300, 2))
    y = np.digitize(X[:, 0] * X[:, 1], [-0.5, 0.3, 1.0, 2.0])
    model = ISBOR(basis="rbf").fit(X, y)
    ale, partial = (model.effects(0, X, kind=kind, grid_size=9).score for kind in ("ale", "partial"))
    assert min(ale[0], ale[-1]) - ale[4] > 2.0 * (min(partial[0], partial[-1]) - partial[4])


def test_a_band_is_the_quantile_of_averaged_draws_and_contains_the_mean(smooth):
    model, X, _ = smooth
    found = model.effects(0, X, grid_size=5, coverage=0.8)
    low, high = found.expected_band
    assert np.all((low < found.expected) & (found.expected < high))
    assert np.all(found.probability_bands[0] <= found.probabilities)
    wider = model.effects(0, X, grid_size=5, coverage=0.99).expected_band
    assert np.all((wider[0] < low) & (wider[1] > high))
    # Over a single row, it is the band of that row.
    one = model.effects(0, X[:1], values=[X[0, 0]], coverage=0.8)
    assert_allclose(one.probability_bands, model.predict_proba_interval(X[:1], 0.8))


def test_machines_without_probabilities_have_scores():
    frame, y = shop(100)
    model = SVOR(probability=False).fit(frame, y)
    found = model.effects("age", frame, grid_size=3)
    assert found.probabilities is None and found.expected is None and found.expected_band is None
    assert list(found.to_frame().columns) == ["value", "score"]
    assert "score" in str(found)


def test_permutation_importance_agrees_with_relevance(smooth):
    model, X, y = smooth
    drop = permutation_importance(model, X, y, scoring=get_scorer("mae"), n_repeats=3, random_state=0)
    assert_array_equal(np.argsort(drop["importances_mean"]), np.argsort(model.feature_relevance_))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("height",), "features is 'height'; the model has 6 feature"),
        ((6,), "features is 6; .*by number from 0 to 5"),
        ((("age", "age"),), "one feature or a tuple of two different ones"),
        ((("age", "one", "flag"),), "one feature or a tuple of two different ones"),
        ((True,), "features is True"),
    ],
)
def test_unknown_features_are_refused(fitted, arguments, message):
    with pytest.raises(ValueError, match=message):
        fitted[0].effects(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "local"}, "kind is 'local'"),
        ({"grid_size": 1}, "grid_size is 1"),
        ({"coverage": 1.5}, "coverage is 1.5"),
        ({"values": []}, "values is empty"),
        ({"values": ["old"]}, "values holds 'old' for 'age'; finite numbers are needed, or None"),
        ({"kind": "ale", "values": [1.0]}, "values is for kind='partial'"),
        ({"X": pd.DataFrame({"a": [1.0]})}, "feature names should match"),
    ],
)
def test_bad_options_are_refused(fitted, options, message):
    with pytest.raises(ValueError, match=message):
        fitted[0].effects("age", **options)


def test_what_accumulated_local_effects_cannot_show(fitted):
    model, frame = fitted
    with pytest.raises(ValueError, match="'colour' has categories.*Use kind='partial'"):
        model.effects("colour", kind="ale")
    with pytest.raises(ValueError, match="are for one feature"):
        model.effects(("age", "income"), kind="ale")
    with pytest.raises(ValueError, match="values holds 'pink' for 'colour'; some of"):
        model.effects("colour", values=["pink"])
    with pytest.raises(ValueError, match="All cells of 'age' are missing"):
        model.effects("age", frame.assign(age=np.nan))
