from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from isbor import GPOR, ISBOR, KDLOR, SBOR, SVOR
from isbor.estimators.linear import OrderedProbit
from isbor.plots import LatentDisplay
from tests.plots.samples import of_bands


@pytest.fixture(scope="module")
def model(saddle):
    return ISBOR(gamma=0.1).fit(*saddle)


@pytest.fixture(scope="module")
def wide(saddle):
    """The saddle in columns "north" and "east", with other columns between and after."""
    X, y = saddle
    noise = np.random.default_rng(1).normal(size=(len(X), 2))
    columns = {"north": X[:, 1], "u": 5 + noise[:, 0], "c": 3.0, "east": X[:, 0], "v": -30 + 4 * noise[:, 1]}
    return pd.DataFrame(columns), y


@pytest.fixture(scope="module")
def mixed():
    """Grades by a category and two numbers, the first with missing cells; then others that say nothing."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 120))
    kind = rng.choice(["a", "b", "c"], 120, p=[0.2, 0.5, 0.3]).astype(object)
    y = np.digitize(x + z + (kind == "a") + 0.3 * rng.normal(size=120), [-0.5, 0.5])
    x[:10], kind[15] = np.nan, None
    income, share, flag = rng.normal(4e4, 100, 120), rng.random(120), rng.random(120) < 0.4
    table = {"kind": kind, "x": x, "z": z, "income": income, "flag": flag, "site": 7.0, "share": share}
    return pd.DataFrame(table), y


def texts(display):
    return [text.get_text() for text in display.labels_]


# --- What is computed -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "vectors"),
    [
        (ISBOR(gamma=0.1), "relevance_vectors_"),
        (SBOR(gamma=0.05), "relevance_vectors_"),
        (KDLOR(), "support_vectors_"),
        (GPOR(gamma=0.05), None),
        (OrderedProbit(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_map_is_the_latent_score_on_a_grid_that_covers_the_rows(other, vectors, saddle):
    X, y = saddle[0][:60], saddle[1][:60]
    fitted = clone(other).fit(X, y)
    display = LatentDisplay.from_estimator(fitted, X, y, grid_resolution=25)
    points = np.column_stack([display.xx.ravel(), display.yy.ravel()])
    assert_allclose(display.score.ravel(), fitted.latent(points), rtol=1e-12)
    assert_array_equal(np.asarray(display.surface_.get_array()).ravel(), display.score.ravel())
    assert_array_equal(display.vectors, np.empty((0, 2)) if vectors is None else getattr(fitted, vectors))
    assert_array_equal(display.rows_.get_offsets(), X)
    assert_array_equal(display.rows_.get_array(), y - 1)
    extra = 0.05 * np.ptp(X, axis=0)
    assert np.all((X.min(axis=0) - extra < points.min(axis=0)) & (points.min(axis=0) < X.min(axis=0)))
    assert np.all((X.max(axis=0) < points.max(axis=0)) & (points.max(axis=0) < X.max(axis=0) + extra))


@pytest.mark.parametrize(
    "other",
    [ISBOR(gamma=0.05, patience=0), GPOR(gamma=0.05), SVOR()],
    ids=lambda estimator: type(estimator).__name__,
)
def test_the_features_that_matter_most_are_shown(other, wide):
    X, y = wide
    fitted = clone(other).fit(X[:150], y[:150])
    display = LatentDisplay.from_estimator(fitted, X, grid_resolution=9)
    assert display.feature_names == ["north", "east"]
    numbers = LatentDisplay.from_estimator(fitted, X, features=(3, 0), grid_resolution=9)
    names = LatentDisplay.from_estimator(fitted, X, features=("east", "north"), grid_resolution=9)
    assert_array_equal(display.score, numbers.score.T)
    assert_array_equal(display.score, names.score.T)
    assert (names.ax_.get_xlabel(), names.ax_.get_ylabel()) == ("east", "north")


@pytest.mark.parametrize(
    "other",
    [ISBOR(basis="mixed", n_members=1), ISBOR(basis="rbf"), GPOR(gamma=0.2), KDLOR(), OrderedProbit()],
    ids=lambda estimator: repr(estimator),
)
def test_categories_and_missing_cells(other, mixed):
    X, y = mixed
    fitted = clone(other).fit(X, y)
    display = LatentDisplay.from_estimator(fitted, X, y, grid_resolution=9)
    assert display.feature_names == ["x", "z"]
    grid = pd.DataFrame([X.drop(columns=["kind", "flag"]).mean()] * 81).assign(kind="b", flag=False)[
        X.columns
    ]
    grid["x"], grid["z"] = display.xx.ravel(), display.yy.ravel()
    assert_allclose(display.score.ravel(), fitted.latent(grid), rtol=1e-12)
    assert_array_equal(display.rows, X[["x", "z"]][10:])
    assert_array_equal(display.codes, y[10:])
    held, left_out = display.note.splitlines()
    income = f"{X['income'].mean():,.0f}"
    assert held == (
        f"Others at their mean or most frequent category: kind=b, income={income}, flag=False and 1 more"
    )
    assert left_out == "10 row(s) not shown: missing cells"
    assert LatentDisplay.from_estimator(fitted, X, grid_resolution=9).note == held
    if hasattr(fitted, "relevance_vectors_"):
        columns = [fitted.column_names_.tolist().index(name) for name in ("x", "z")]
        assert_array_equal(display.vectors, fitted.relevance_vectors_[:, columns])


# --- What is drawn ----------------------------------------------------------------------------------------


def test_boundaries_lie_where_the_score_equals_a_threshold(model, saddle):
    display = LatentDisplay.from_estimator(model, saddle[0])
    assert_array_equal(display.boundaries_.levels, model.thresholds_)
    for level, path in zip(display.boundaries_.levels, display.boundaries_.get_paths(), strict=True):
        assert len(path.vertices) > 100
        # Lines are interpolated between points of the grid.
        assert_allclose(model.latent(path.vertices), level, atol=0.01)


def test_thresholds_that_are_not_crossed_have_no_line():
    display = of_bands(["low", "mid", "high"])
    display.thresholds = np.array([0.7, 9.0])
    assert_array_equal(display.plot().boundaries_.levels, [0.7])
    display.thresholds = np.array([8.0, 9.0])
    assert display.plot().boundaries_ is None
    assert texts(display) == ["low"]


def test_labels_name_the_class_predicted_where_they_stand(model, saddle):
    display = LatentDisplay.from_estimator(model, saddle[0])
    places = np.array([text.get_position() for text in display.labels_])
    assert texts(display) == [str(label) for label in model.predict(places)]
    assert set(texts(display)) == {"1", "2", "3", "4", "5"}


@pytest.mark.parametrize(
    "classes",
    [list(range(10)), [f"from {k}0 to {k}9 percent of all" for k in range(6)]],
    ids=["ten", "six long"],
)
def test_every_class_is_named_inside_the_frame_and_not_under_another(classes):
    """On one of two axes, where there is less room and the legend is inside."""
    display = of_bands(classes).plot(plt.subplots(1, 2, figsize=(11, 5))[1][1])
    display.figure_.canvas.draw()
    frame = display.ax_.get_window_extent()
    boxes = [text.get_bbox_patch().get_window_extent() for text in display.labels_]
    assert len(boxes) == len(classes)
    for box in boxes:
        assert frame.x0 <= box.x0 < box.x1 <= frame.x1
        assert frame.y0 <= box.y0 < box.y1 <= frame.y1
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    legend = display.legend_.get_window_extent()
    assert not any(legend.contains(*box.get_points().mean(axis=0)) for box in boxes)
    starts = {text.replace("\n", " ")[:12] for text in texts(display)}
    assert starts == {str(label)[:12] for label in classes}


def test_vectors_are_larger_for_larger_weights(model, saddle):
    display = LatentDisplay.from_estimator(model, saddle[0], grid_resolution=9)
    assert_array_equal(display.vectors_.get_offsets(), model.relevance_vectors_)
    areas = display.vectors_.get_sizes()
    assert_array_equal(np.argsort(areas, kind="stable"), np.argsort(np.abs(model.dual_coef_), kind="stable"))
    assert [text.get_text() for text in display.legend_.get_texts()] == ["relevance vectors (area: weight)"]
    assert display.rows_ is None


# --- Errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": (1, 1)}, "two different columns are needed"),
        ({"features": (0, 2)}, r"the model has 2 feature\(s\), \['x0', 'x1'\].*from 0 to 1"),
        ({"features": ("east", "north")}, r"the model has 2 feature\(s\)"),
        ({"grid_resolution": 1}, "grid_resolution is 1; a whole number, at least 2, is needed"),
        ({"y": np.ones(299)}, "inconsistent numbers of samples"),
        ({"y": np.full(300, 9)}, "not in classes: .*9"),
    ],
    ids=str,
)
def test_options_are_checked(model, saddle, options, message):
    with pytest.raises(ValueError, match=message):
        LatentDisplay.from_estimator(model, saddle[0], **options)


def test_axes_need_numbers_that_vary(mixed):
    X, y = mixed
    model = ISBOR(gamma=0.1, patience=0).fit(X, y)
    with pytest.raises(
        ValueError, match=r"'kind' held categories .*'a', 'b', 'c'.*features are \['x', 'z', 'income'"
    ):
        LatentDisplay.from_estimator(model, X, features=("kind", "x"))
    with pytest.raises(ValueError, match=r"no row in which both 'x' and 'z' are present"):
        LatentDisplay.from_estimator(model, X[:10], features=("x", "z"))
    few = ["kind", "x", "site"]
    with pytest.raises(ValueError, match=r"1 numeric feature\(s\) that vary, \['x'\]; two are needed"):
        LatentDisplay.from_estimator(ISBOR(gamma=0.1, patience=0).fit(X[few], y), X[few])
