"""The JavaScript reader, which knows the JSON file only, against the predictions of Python."""

import json
import os

import mpmath
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from isbor import GPOR, ISBOR, ISVOR, SVOR
from isbor.estimators.linear import OrderedProbit
from isbor.export import to_html, to_json
from tests.export.models import FAMILIES, GRADES, MODELS
from tests.export.programs import in_javascript, needs_node, rows_of, run_node
from tests.problems import noisy_rows


def assert_the_same(model, X, folder, rows=None):
    """The reader's predictions are those of Python."""
    found = in_javascript(model, folder, rows_of(X) if rows is None else rows)

    def read(key):
        return np.array([one[key] for one in found])

    assert_allclose(read("probabilities"), model.predict_proba(X), rtol=0, atol=1e-10)
    assert [one["label"] for one in found] == model.predict(X).tolist()
    assert_allclose(read("score"), model.latent(X), rtol=1e-10, atol=1e-10)
    assert_allclose(read("again"), read("score"), rtol=1e-13, atol=1e-13)
    of_functions = [sum(one["contribution"] for one in row["functions"]) for row in found]
    assert_allclose(read("constant") + of_functions, read("score"), rtol=1e-10, atol=1e-10)
    if hasattr(model, "out_of_range"):
        assert_allclose(read("excess"), model.out_of_range(X), rtol=1e-13)
        assert_allclose(read("thresholds"), model.thresholds_at(X), rtol=1e-10, atol=1e-10)
        assert_allclose(read("noiseScale"), model.noise_scale(X), rtol=1e-10)
    if hasattr(model, "_reference"):
        lower, upper = model.predict_proba_interval(X)
        # The root of an eigenvalue of zero is that of a rounding error.
        assert_allclose([one["bands"]["lower"] for one in found], lower, rtol=0, atol=1e-7)
        assert_allclose([one["bands"]["upper"] for one in found], upper, rtol=0, atol=1e-7)
    else:
        assert found[0]["bands"] is None
    return found


@needs_node
@pytest.mark.parametrize("name", [*MODELS, *FAMILIES])
def test_all_systems_and_families_predict_the_same(fitted, odd_rows, tmp_path, name):
    found = assert_the_same(fitted(name), odd_rows, tmp_path)
    if name in FAMILIES:
        assert len({one["model"] for one in found[0]["functions"]}) == len(fitted(name)._model.models)


@needs_node
def test_thresholds_and_noise_that_vary_with_the_row(varying, tmp_path):
    model, rows = varying
    found = assert_the_same(model, rows, tmp_path, [{"x0": a, "x1": b} for a, b in rows.tolist()])
    assert np.ptp([one["thresholds"][1] - one["thresholds"][0] for one in found]) > 0.0


@needs_node
def test_streams(tmp_path):
    X, y = noisy_rows(300, seed=1)
    rows = [{"x0": a, "x1": b} for a, b in X[:10].tolist()]
    model = ISBOR(effort="fast", classes=range(4))
    only = np.flatnonzero(y == 2)[:20]
    assert_the_same(model.partial_fit(X[only], y[only]), X[:10], tmp_path, rows)
    assert_the_same(model.partial_fit(X, y), X[:10], tmp_path, rows)
    machine = ISVOR(classes=range(4)).partial_fit(X[:40], y[:40]).partial_fit(X[40:80], y[40:80])
    assert_the_same(machine, X[:10], tmp_path, rows)
    to_json(machine, tmp_path / "model.json")
    feature = json.loads((tmp_path / "model.json").read_text())["features"][0]
    assert (feature["low"], feature["high"]) == (X[:80, 0].min(), X[:80, 0].max())


@needs_node
def test_categories_of_all_types(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "</script>": rng.choice(["<", '"', "ß\u2028"], 90),
            "code": pd.Categorical(rng.choice([3, 1, 10], 90)),
            "half": pd.Categorical(rng.choice([0.5, 2.0], 90)),
            "flag": rng.random(90) < 0.5,
        }
    )
    y = (frame["code"] == 10).astype(int) + frame["flag"] + (frame["</script>"] == "<")
    assert_the_same(SVOR().fit(frame, y), frame.head(12), tmp_path)


@needs_node
def test_the_normal_distribution_to_machine_precision():
    z = np.concatenate([np.linspace(-37.0, 8.0, 1801), [-2.0, 2.0, 0.0, 1e-300, -1e-9, -1e9]])
    code = """return given.map((z) => {
        const [below, above] = [isborModel.logNormalCdf(z), isborModel.logNormalCdf(-z)];
        return [isborModel.normalCdf(z), below, isborModel.normalScore(below, above)];
    });"""
    cdf, log, quantile = np.array(run_node(code, z.tolist())).T
    with mpmath.workdps(50):
        exact = [mpmath.ncdf(mpmath.mpf(x)) for x in z[:-1]]
        in_log = np.array([float(mpmath.log(p)) for p in exact])
        assert_allclose(cdf[:-1], np.array(exact, dtype=float), rtol=1e-13, atol=0)
    assert np.abs(cdf[:-1] - np.array(exact, dtype=float)).max() < 1e-15
    assert cdf[-1] == 0.0
    assert_allclose(log[:-1], in_log, rtol=5e-14)
    assert_allclose(quantile[:-1], z[:-1], rtol=1e-12, atol=1e-14)


@needs_node
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"a": 1.0}, 'The row has no value of \\"b\\". Give null if it is missing.'),
        ({"a": 1.0, "b": "x", "c": 2}, 'The row has a value of \\"c\\", which is no feature of the model.'),
        ({"a": "1", "b": "x"}, 'The value of \\"a\\" is \\"1\\"; a finite number is needed.'),
        ({"a": 1.0, "b": 3}, 'The value of \\"b\\" is 3; training had categories such as \\"x\\".'),
        ({"a": None, "b": "x"}, 'The value of \\"a\\" is missing; this model needs all values.'),
    ],
)
def test_rows_that_are_not_rows_of_the_model(tmp_path, row, message):
    frame = pd.DataFrame({"a": np.arange(20.0), "b": ["x", "y"] * 10})
    model = SVOR(missing="error", probability=False).fit(frame, np.arange(20) > 9)
    with pytest.raises(AssertionError, match="Error: ") as failure:
        in_javascript(model, tmp_path, [row])
    assert message.replace('\\"', '"') in str(failure.value)


@needs_node
def test_machines_without_probabilities_have_labels(table, odd_rows, tmp_path):
    model = SVOR(probability=False, classes=GRADES).fit(*table)
    found = in_javascript(model, tmp_path, rows_of(odd_rows))
    assert [one["label"] for one in found] == model.predict(odd_rows).tolist()
    assert found[0]["probabilities"] is None
    with pytest.raises(ValueError, match=r"^This SVOR has probability=False; the page shows class prob"):
        to_html(model, tmp_path / "page.html")


def test_the_file_says_what_the_features_are(table, tmp_path):
    frame, y = table
    model = SVOR(classes=GRADES).fit(frame, y)
    to_json(model, tmp_path / "model.json")
    found = json.loads((tmp_path / "model.json").read_text())
    features = {feature["name"]: feature for feature in found["features"]}
    age = frame["age"].dropna()
    assert features["age"]["typical"] == age.quantile(0.5, interpolation="lower")
    assert (features["age"]["low"], features["age"]["high"]) == (age.min(), age.max())
    assert features["age"]["had_missing"] and not features["income"]["had_missing"]
    assert features["one"]["whole"] and not features["age"]["whole"]
    assert features["size"]["categories"] == ["s", "m", "l"]
    assert features["colour"]["typical"] == frame["colour"].mode()[0]
    assert (found["classes"], found["training_weight"]) == (GRADES, len(frame))
    assert [column["name"] for column in found["columns"]] == model.column_names_.tolist()
    assert found["models"][0]["score"]["weights"] == model.dual_coef_.tolist()  # to the last digit


def test_what_cannot_be_exported(tmp_path, monkeypatch):
    path, (X, y) = tmp_path / "model.json", noisy_rows(40, seed=0)
    with pytest.raises(NotFittedError, match="This ISBOR instance is not fitted yet"):
        to_json(ISBOR(), path)
    with pytest.raises(TypeError, match=r"^to_json got a LogisticRegression; a fitted estimator of isbor"):
        to_json(LogisticRegression(), path)
    with pytest.raises(TypeError, match=r"^to_html cannot export OrderedProbit; ISBOR, SBOR"):
        to_html(OrderedProbit().fit(X, y), path)
    with pytest.raises(ValueError, match=r"^This SVOR has kernel='precomputed'; to_json needs"):
        to_json(SVOR(kernel="precomputed", probability=False).fit(X @ X.T, y), path)
    named = pd.DataFrame({"id": pd.Categorical([2**53 + 1, 2] * 20)})
    with pytest.raises(ValueError, match=r"^The label or category 9007199254740993 cannot be exported"):
        to_json(SVOR(probability=False).fit(named, y > 1), path)
    monkeypatch.setattr("isbor.export.description._MOST_NUMBERS", 500)
    with pytest.raises(
        ValueError, match=r"^This GPOR has a function .* would write 900 numbers; at most 500"
    ):
        to_json(GPOR().fit(X, y), path)
    assert not list(tmp_path.iterdir())


def test_where_nothing_can_be_written(tmp_path, monkeypatch):
    """The place is looked at before the model, and a write that fails leaves nothing behind."""
    with pytest.raises(IsADirectoryError, match="is a directory; give the name of a file"):
        to_json(ISBOR(), tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no directory .*; create it or choose another"):
        to_html(ISBOR(), tmp_path / "nowhere" / "page.html")
    with monkeypatch.context() as patched, pytest.raises(PermissionError, match="No file can be written to"):
        patched.setattr(os, "access", lambda *_: False)
        to_json(ISBOR(), tmp_path / "model.json")
    model = SVOR(probability=False).fit(*noisy_rows(40, seed=0))
    (tmp_path / "model.json").write_text("before")

    def full(*_):
        raise OSError("no space left")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="no space left"):
        patched.setattr(os, "fsync", full)
        to_json(model, tmp_path / "model.json")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]
