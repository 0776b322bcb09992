import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from isbor import GPOR, ISBOR, ISVOR, KDLOR, SBOR, SVOR
from isbor.datasets import make_saddle
from isbor.plots import LatentDisplay


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return make_saddle(300, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return ISBOR(gamma=0.1).fit(*data)


@pytest.fixture(scope="module")
def wide_data(data):
    """The saddle in columns 2 and 0, with two columns between and after that have other means."""
    X, y = data
    noise = np.random.default_rng(1).normal(size=(len(X), 2))
    return np.column_stack([X[:, 1], 5 + noise[:, 0], X[:, 0], -30 + 4 * noise[:, 1]]), y


@pytest.fixture(scope="module")
def wide_model(wide_data):
    return ISBOR(gamma=0.05, patience=0).fit(*wide_data)


def mixed_table(n=120):
    """Grades by a category, two numbers, of which the first has missing cells, and a number that is not."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, n))
    kind = rng.choice(["a", "b", "c"], n, p=[0.2, 0.5, 0.3])
    y = np.digitize(x + z + (kind == "a") + 0.3 * rng.normal(size=n), [-0.5, 0.5])
    x[:10] = np.nan
    return pd.DataFrame({"kind": kind, "x": x, "z": z}), y


def hand_made(**changes):
    """A display of the plane x + y that no estimator made."""
    xx, yy = np.meshgrid(np.linspace(0, 1, 30), np.linspace(0, 1, 30))
    parts = {
        "xx": xx,
        "yy": yy,
        "score": xx + yy,
        "thresholds": np.array([0.7, 1.3]),
        "classes": np.array(["low", "mid", "high"]),
        "vectors": np.array([[0.2, 0.2], [0.9, 0.8]]),
        "vectors_name": "relevance vectors",
        "coef": np.array([-2.0, 1.0]),
        "feature_names": ["a", "b"],
    }
    return LatentDisplay(**(parts | changes))


# --- What is computed -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "vectors"),
    [(SBOR(gamma=0.05), "relevance_vectors_"), (KDLOR(), "support_vectors_"), (GPOR(gamma=0.05), None)],
    ids=["SBOR", "KDLOR", "GPOR"],
)
def test_other_systems_have_a_map_too(other, vectors, data):
    X, y = data[0][:60], data[1][:60]
    fitted = clone(other).fit(X, y)
    display = LatentDisplay.from_estimator(fitted, X, y, grid_resolution=25)
    points = np.column_stack([display.xx.ravel(), display.yy.ravel()])
    assert_array_equal(display.score.ravel(), fitted.latent(points))
    assert_array_equal(display.vectors, np.empty((0, 2)) if vectors is None else getattr(fitted, vectors))


def test_the_map_is_the_latent_score_on_the_grid(model, data):
    X, _ = data
    display = LatentDisplay.from_estimator(model, X, grid_resolution=25)
    assert display.score.shape == display.xx.shape == display.yy.shape == (25, 25)
    points = np.column_stack([display.xx.ravel(), display.yy.ravel()])
    assert_array_equal(display.score.ravel(), model.latent(points))
    assert_array_equal(np.asarray(display.surface_.get_array()).ravel(), display.score.ravel())


def test_the_grid_covers_the_rows_and_little_more(model, data):
    X, _ = data
    display = LatentDisplay.from_estimator(model, X, grid_resolution=25)
    for grid, column in ((display.xx, X[:, 0]), (display.yy, X[:, 1])):
        extra = 0.05 * np.ptp(column)
        assert column.min() - extra < grid.min() < column.min()
        assert column.max() < grid.max() < column.max() + extra


def test_features_that_are_not_shown_are_held_at_their_mean(wide_model, wide_data):
    X, _ = wide_data
    display = LatentDisplay.from_estimator(wide_model, X, features=(2, 0), grid_resolution=12)
    points = np.tile(X.mean(axis=0), (144, 1))
    points[:, 2], points[:, 0] = display.xx.ravel(), display.yy.ravel()
    assert_allclose(display.score.ravel(), wide_model.latent(points), rtol=1e-12)
    assert_array_equal(display.vectors, wide_model.relevance_vectors_[:, [2, 0]])
    assert display.ax_.get_xlabel() == "feature 2"
    assert display.ax_.get_ylabel() == "feature 0"


def test_a_constant_feature_can_be_shown(model, data):
    X = data[0][:50].copy()
    X[:, 0] = 3.0
    display = LatentDisplay.from_estimator(model, X, grid_resolution=10)
    assert display.xx.min() < 3.0 < display.xx.max()


def test_columns_by_name(wide_data):
    X, y = wide_data
    table = pd.DataFrame(X, columns=["north", "u", "east", "v"])
    model = ISBOR(gamma=0.05, patience=0).fit(table, y)
    by_name = LatentDisplay.from_estimator(model, table, features=("east", "north"), grid_resolution=10)
    by_number = LatentDisplay.from_estimator(model, table, features=(2, 0), grid_resolution=10)
    assert by_name.ax_.get_xlabel() == "east"
    assert by_name.ax_.get_ylabel() == "north"
    assert_array_equal(by_name.score, by_number.score)


@pytest.mark.parametrize("basis", ["rbf", "mixed"])
def test_vectors_are_shown_at_their_own_features_where_these_have_more_columns(basis):
    table, y = mixed_table()
    model = ISBOR(basis=basis).fit(table, y)
    columns = [model._encoding.names.index(name) for name in ("z", "x")]
    display = LatentDisplay.from_estimator(
        model, table.dropna(), y[10:], features=("z", "x"), grid_resolution=9
    )
    assert_array_equal(display.vectors, model.relevance_vectors_[:, columns])
    assert_array_equal(display.rows, table[["z", "x"]][10:])
    assert list(display.feature_names) == ["z", "x"]


@pytest.mark.parametrize(
    "other",
    [ISBOR(basis="rbf"), SBOR(gamma=0.2), GPOR(gamma=0.2), KDLOR(), SVOR(), ISVOR()],
    ids=lambda estimator: type(estimator).__name__,
)
def test_categories_that_are_not_shown_are_held_at_their_most_frequent_level(other):
    table, y = mixed_table()
    model = clone(other).fit(table, y)
    display = LatentDisplay.from_estimator(model, table[10:], features=(1, 2), grid_resolution=9)
    grid = pd.DataFrame({"kind": "b", "x": display.xx.ravel(), "z": display.yy.ravel()})
    assert_allclose(display.score.ravel(), model.latent(grid), rtol=1e-12)


# --- What is drawn ----------------------------------------------------------------------------------------


def test_boundaries_lie_where_the_score_equals_a_threshold(model, data):
    display = LatentDisplay.from_estimator(model, data[0])
    assert_array_equal(display.boundaries_.levels, model.thresholds_)
    for level, path in zip(display.boundaries_.levels, display.boundaries_.get_paths(), strict=True):
        assert len(path.vertices) > 100
        # Lines are interpolated between points of the grid.
        assert_allclose(model.latent(path.vertices), level, atol=0.01)


def test_labels_name_the_class_predicted_where_they_stand(model, data):
    display = LatentDisplay.from_estimator(model, data[0])
    positions = np.array([text.get_position() for text in display.labels_])
    assert [text.get_text() for text in display.labels_] == [str(k) for k in model.predict(positions)]
    assert {text.get_text() for text in display.labels_} == {"1", "2", "3", "4", "5"}


def test_labels_keep_away_from_each_other_and_from_relevance_vectors(model, data):
    display = LatentDisplay.from_estimator(model, data[0])
    labels = np.array([text.get_position() for text in display.labels_])
    for point in model.relevance_vectors_:
        assert np.linalg.norm(labels - point, axis=1).min() > 0.3  # of a square of side 10
    for k, label in enumerate(labels):
        assert np.linalg.norm(np.delete(labels, k, axis=0) - label, axis=1).min() > 0.5


def test_relevance_vectors_are_larger_for_larger_weights(model, data):
    display = LatentDisplay.from_estimator(model, data[0])
    assert_array_equal(display.vectors_.get_offsets(), model.relevance_vectors_)
    areas = display.vectors_.get_sizes()
    assert_array_equal(np.argsort(areas, kind="stable"), np.argsort(np.abs(model.coef_), kind="stable"))
    assert areas.min() >= 40


def test_rows_are_drawn_with_the_ranks_of_their_labels(model, data):
    X, y = data
    display = LatentDisplay.from_estimator(model, X, y, grid_resolution=20)
    assert_array_equal(display.rows_.get_offsets(), X)
    assert_array_equal(display.rows_.get_array(), y - 1)
    assert LatentDisplay.from_estimator(model, X, grid_resolution=20).rows_ is None


def test_given_axes_are_used_and_none_others_are_made(model, data):
    figure, (left, right) = plt.subplots(1, 2)
    display = LatentDisplay.from_estimator(model, data[0], grid_resolution=20, ax=right)
    assert display.ax_ is right
    assert display.figure_ is figure
    assert not left.collections
    assert plt.get_fignums() == [figure.number]


def test_it_can_be_drawn_again():
    display = hand_made().plot()
    first = display.ax_
    assert display.plot() is display
    assert display.ax_ is not first
    assert [text.get_text() for text in display.labels_] == ["low", "mid", "high"]


def test_thresholds_that_are_not_crossed_have_no_line():
    assert_array_equal(hand_made(thresholds=np.array([0.7, 9.0])).plot().boundaries_.levels, [0.7])
    one_class = hand_made(thresholds=np.array([8.0, 9.0])).plot()
    assert one_class.boundaries_ is None
    assert [text.get_text() for text in one_class.labels_] == ["low"]


def test_a_constant_score_without_relevance_vectors_can_be_drawn():
    display = hand_made(score=np.zeros((30, 30)), vectors=np.empty((0, 2)), coef=np.empty(0)).plot()
    display.figure_.canvas.draw()
    assert display.boundaries_ is None


def test_nothing_is_cut_off(model, data):
    display = LatentDisplay.from_estimator(model, *data)
    display.figure_.canvas.draw()
    page = display.figure_.bbox
    for artist in (display.ax_.title, display.ax_.get_legend(), display.colorbar_.ax.yaxis.label):
        box = artist.get_window_extent()
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        assert page.y0 <= box.y0 < box.y1 <= page.y1
    assert (
        display.ax_.get_legend().get_window_extent().y1 < display.ax_.xaxis.label.get_window_extent().y0 + 1
    )


# --- Errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", [(0,), (0, 1, 1), (1, 1)])
def test_two_different_features_are_needed(model, data, features):
    with pytest.raises(ValueError, match=r"two different columns are needed"):
        LatentDisplay.from_estimator(model, data[0], features=features)


@pytest.mark.parametrize("features", [(0, 2), (-1, 0), ("east", "north"), (0, 1.0), (None, 0)])
def test_features_must_exist(model, data, features):
    with pytest.raises(ValueError, match=r"the model has 2 feature\(s\).*from 0 to 1"):
        LatentDisplay.from_estimator(model, data[0], features=features)


def test_axes_need_numbers():
    table, y = mixed_table()
    model = ISBOR(gamma=0.1, patience=0).fit(table, y)
    with pytest.raises(
        ValueError, match=r"'kind' held categories .*'a', 'b', 'c'.*features are \['x', 'z'\]"
    ):
        LatentDisplay.from_estimator(model, table[10:])


def test_missing_cells_cannot_be_shown():
    table, y = mixed_table()
    model = ISBOR(gamma=0.1, patience=0).fit(table, y)
    message = r"missing cells in 8 row\(s\), the first row 0, of \['x'\].*dropna"
    with pytest.raises(ValueError, match=message):
        LatentDisplay.from_estimator(model, table[2:], y[2:], features=("x", "z"))
    with pytest.raises(ValueError, match=message):  # where the model would take the mean without a mark
        complete = ISBOR(gamma=0.1, patience=0).fit(table[10:], y[10:])
        LatentDisplay.from_estimator(complete, table[2:], features=("x", "z"))
    X = table[["x", "z"]].to_numpy()
    marked = ISBOR(gamma=0.1, patience=0, missing="indicator").fit(X, y)
    with pytest.raises(
        ValueError, match=r"missing cells in 10 row\(s\), the first row 0, of \['feature 0'\]"
    ):
        LatentDisplay.from_estimator(marked, X)


def test_one_feature_is_not_enough(data):
    X, y = data
    model = ISBOR(gamma=0.1, patience=0).fit(X[:, :1], y)
    with pytest.raises(ValueError, match=r"the model has 1 feature\(s\)"):
        LatentDisplay.from_estimator(model, X[:, :1])


def test_the_estimator_must_be_fitted(data):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        LatentDisplay.from_estimator(ISBOR(), data[0])


def test_the_estimator_must_have_a_latent_score(data):
    with pytest.raises(TypeError, match="LogisticRegression has no latent score; a fitted estimator"):
        LatentDisplay.from_estimator(LogisticRegression().fit(*data), data[0])


def test_a_grid_has_at_least_two_points_an_axis(model, data):
    with pytest.raises(ValueError, match="grid_resolution is 1; at least 2"):
        LatentDisplay.from_estimator(model, data[0], grid_resolution=1)


def test_labels_must_be_known_and_as_many_as_rows(model, data):
    X, y = data
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        LatentDisplay.from_estimator(model, X, y[:-1])
    with pytest.raises(ValueError, match="9"):
        LatentDisplay.from_estimator(model, X, np.full(len(X), 9))


def test_without_matplotlib_it_says_what_to_install(model, data, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "isbor\[plots\]"'):
        LatentDisplay.from_estimator(model, data[0])
    with pytest.raises(ImportError, match=r'pip install "isbor\[plots\]"'):
        hand_made().plot()
