"""What ONNX Runtime computes from an exported graph, against the predictions of Python."""

import json
import sys
from copy import copy
from dataclasses import replace

import mpmath
import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from onnx import TensorProto, compose, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isbor import GPOR, ISBOR, ISVOR, KDLOR, SVOR, __version__
from isbor.data.ranges import Ranges
from isbor.export import to_onnx
from isbor.export.graph.files import as_bytes
from isbor.export.graph.normal import normal_cdf
from isbor.export.graph.tensors import Graph, Port
from tests.export.models import FAMILIES, GRADES, MODELS
from tests.problems import noisy_rows, shop

TOLERANCE = {"float32": 1e-5, "float64": 1e-10}


def opened(content):
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


def exported(model, folder, **options):
    """Return a session with the file of a model, after all checks that the format has."""
    path = folder / "model.onnx"
    to_onnx(model, path, **options)
    onnx.checker.check_model(str(path), full_check=True)
    return opened(str(path))


def inputs_of(session, X, dtype="float32"):
    """Return the inputs for rows, as docs/export.md says."""
    if not isinstance(X, pd.DataFrame):
        return {"X": X.astype(dtype)}
    return {
        port.name: X[[port.name]].astype(object).fillna("").to_numpy()
        if port.type == "tensor(string)"
        else X[[port.name]].to_numpy(dtype)
        for port in session.get_inputs()
    }


def assert_the_same(model, X, folder):
    """Labels and probabilities of the graph are those of Python, for many rows, one and none."""
    labels, probabilities = model.predict(X), model.predict_proba(X)
    for dtype, tolerance in TOLERANCE.items():
        session = exported(model, folder, dtype=dtype)
        for rows in (slice(None), slice(1), slice(0)):
            label, p = session.run(["label", "probabilities"], inputs_of(session, X[rows], dtype))
            assert label.tolist() == labels[rows].tolist()
            assert (p.dtype, p.shape) == (np.dtype(dtype), probabilities[rows].shape)
            assert_allclose(p, probabilities[rows], rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", [*MODELS, *FAMILIES])
def test_all_systems_and_families_predict_the_same(fitted, odd_rows, tmp_path, name):
    assert_the_same(fitted(name), odd_rows, tmp_path)


@pytest.mark.parametrize("name", ["mixed", "gp"])
def test_many_rows(fitted, tmp_path, name):
    """10,000 rows, among them many that are far outside the range of the training rows."""
    frame, _ = shop(10_000, seed=101)
    frame.loc[::7, "age"] *= 3.0
    frame.loc[::11, "income"] *= 1e4
    frame.loc[::13, "colour"] = "violet"
    frame.loc[::17, "colour"] = None
    assert_the_same(fitted(name), frame, tmp_path)


def test_the_reference_implementation_computes_the_same(fitted, odd_rows, tmp_path):
    """The graph relies on the standard's operators, not on those of one runtime."""
    model = fitted("rbf + mixed + gp")
    given = inputs_of(exported(model, tmp_path, dtype="float64"), odd_rows, "float64")
    reader = ReferenceEvaluator(str(tmp_path / "model.onnx"))
    label, probabilities = reader.run(["label", "probabilities"], given)
    assert label.tolist() == model.predict(odd_rows).tolist()
    assert_allclose(probabilities, model.predict_proba(odd_rows), rtol=0, atol=1e-10)


def test_thresholds_and_noise_that_vary_with_the_row(varying, tmp_path):
    assert_the_same(*varying, tmp_path)


def test_streams(tmp_path):
    X, y = noisy_rows(300, seed=1)
    model = ISBOR(effort="fast", classes=range(4))
    only = np.flatnonzero(y == 2)[:20]
    assert_the_same(model.partial_fit(X[only], y[only]), X[:10], tmp_path)
    assert_the_same(model.partial_fit(X, y), X[:10], tmp_path)
    assert_the_same(ISVOR(classes=range(4)).partial_fit(X[:40], y[:40]), X[:10], tmp_path)


@pytest.mark.parametrize("model", [ISBOR(basis="mixed", effort="fast"), GPOR(), SVOR(), KDLOR()])
def test_numbers_of_any_size(model, tmp_path):
    """Columns of subnormal, tiny, huge and constant numbers, and rows beyond all of them."""
    X, y = noisy_rows(80, seed=3)
    X = np.column_stack([1e-310 * X[:, 0], 1e-12 * X[:, 0], 2000.0 + 1e-3 * X[:, 1], 1e300 * X[:, 1]])
    X = np.column_stack([X, np.full(80, 7.0)])
    rows = np.vstack([X[:10], 1e5 * X[10:14], -X[14:18], np.full((1, 5), 1e308), np.zeros((1, 5))])
    model.fit(X, y)
    session = exported(model, tmp_path, dtype="float64")
    label, probabilities = session.run(None, inputs_of(session, rows, "float64"))
    assert label.tolist() == model.predict(rows).tolist()
    assert_allclose(probabilities, model.predict_proba(rows), rtol=0, atol=1e-10)


def test_single_precision_is_of_inputs_only(tmp_path):
    """The graph gets rounded numbers, but rounds no others: large numbers of little spread do no harm."""
    rng = np.random.default_rng(100)
    X = np.column_stack([rng.uniform(1990, 2025, 200), 3e7 + 1e6 * rng.normal(size=200)]).astype(np.float32)
    score = 2.0 * np.sin((X[:, 0] - 2000.0) / 2.0) + (X[:, 1] - 3e7) / 1e6
    model = GPOR().fit(X, np.digitize(score + 0.05 * rng.normal(size=200), [-1.0, 0.0, 1.0]))
    session = exported(model, tmp_path)
    assert_allclose(session.run(None, {"X": X})[1], model.predict_proba(X), rtol=0, atol=1e-7)


def test_a_score_that_is_constant(tmp_path):
    X = np.column_stack([np.ones(30), np.zeros(30)])
    assert_the_same(ISBOR(basis="rbf").fit(X, np.arange(30) % 2), X[:2] + 1.0, tmp_path)


def test_digits_in_the_tails(fitted, tmp_path):
    """Without lapses, probabilities are tiny, and exact nevertheless."""
    model = copy(fitted("mixed"))
    model._model = replace(model._model, lapse=0.0)
    model._ranges = Ranges(np.empty(0, np.intp), np.empty(0), np.empty(0))
    session = exported(model, tmp_path, dtype="float64")
    rows = shop(300, seed=102)[0]
    (found,) = session.run(["probabilities"], inputs_of(session, rows, "float64"))
    expected = model.predict_proba(rows)
    assert (expected < 1e-12).any(axis=0)[[0, -1]].all()
    assert_allclose(found, expected, rtol=1e-9)


# --- Inputs ------------------------------------------------------------------------------------------------


def test_categories_of_all_types(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "</script>": rng.choice(["<", "", "ß\u2028"], 90),
            "code": pd.Categorical(rng.choice([3, 1, 10], 90)),
            "tenth": pd.Categorical(rng.choice([0.1, 0.7, np.nan], 90)),
            "flag": rng.random(90) < 0.5,
            "none": pd.Categorical([None] * 90, ["a", "b"]),
        }
    )
    y = (frame["code"] == 10).astype(int) + frame["flag"] + (frame["</script>"] == "<")
    model = SVOR().fit(frame, y)
    new = frame.head(12).copy()
    new["code"] = new["code"].astype(float)
    new.loc[0, "code"] = 4.0
    new.loc[1, "code"] = np.nan
    new.loc[1, "none"] = "a"
    new.loc[2, "</script>"] = "unseen"
    assert_the_same(model, new, tmp_path)
    new["code"] = np.inf  # which Python refuses
    session = exported(model, tmp_path)
    assert np.isnan(session.run(["probabilities"], inputs_of(session, new))[0]).all()


@pytest.mark.parametrize("labels", [[False, True, True], [-3, 5, 2**40], [0.5, 1.0, 2.5], ["b", "a", "ü"]])
def test_labels_have_their_types(labels, tmp_path):
    X, y = noisy_rows(60, seed=2)
    y = np.array(labels)[np.minimum(y, 2)]
    model = SVOR(probability=False, classes=list(dict.fromkeys(labels))).fit(X, y)
    session = exported(model, tmp_path)
    (found,) = session.run(None, inputs_of(session, X))  # no probabilities
    assert found.tolist() == model.predict(X).tolist()
    assert found.dtype == (object if isinstance(labels[0], str) else np.array(labels).dtype)


@pytest.mark.parametrize("missing", ["auto", "indicator", "error"])
def test_missing_cells_and_infinite_numbers_are_refused_where_python_refuses_them(missing, tmp_path):
    X, y = noisy_rows(60, seed=2)
    odd = np.array([[0.0, 0.5], [np.nan, 0.5], [0.0, np.inf], [-np.inf, 1.0]])
    for make in (np.asarray, lambda cells: pd.DataFrame(cells, columns=["a", "b"])):
        model, rows = KDLOR(missing=missing).fit(make(X), y), make(odd)
        session = exported(model, tmp_path, dtype="float64")
        _, probabilities = session.run(None, inputs_of(session, rows, "float64"))
        for row, found in enumerate(probabilities):
            try:
                expected = model.predict_proba(rows[row : row + 1])[0]
            except ValueError:
                expected = np.full(len(found), np.nan)
            assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_a_missing_string_is_refused_where_python_refuses_it(tmp_path):
    frame = pd.DataFrame({"a": np.arange(20.0), "b": ["x", "y"] * 10})
    session = exported(SVOR(missing="error").fit(frame, np.arange(20) > 9), tmp_path)
    given = {"a": np.ones((2, 1), np.float32), "b": np.array([["y"], [""]], dtype=object)}
    assert np.isnan(session.run(None, given)[1]).all(axis=1).tolist() == [False, True]


def test_the_file_says_what_it_is(fitted, tmp_path):
    to_onnx(fitted("rbf"), tmp_path / "model.onnx")
    model = onnx.load(tmp_path / "model.onnx")
    assert (model.producer_name, model.producer_version) == ("isbor", __version__)
    assert model.doc_string.startswith("Ordinal regression: ISBOR(basis='rbf'")
    about = {prop.key: prop.value for prop in model.metadata_props}
    assert (about["estimator"], json.loads(about["classes"])) == ("ISBOR", GRADES)
    features = {feature["name"]: feature for feature in json.loads(about["features"])}
    assert features["size"]["categories"] == ["s", "m", "l"]
    comments = {port.name: port.doc_string for port in model.graph.input}
    assert list(comments) == list(features)
    assert comments["size"] == "One of: s, m, l. Empty if missing."
    names = [node.name for node in model.graph.node]
    assert len(set(names)) == len(names)


def test_the_same_model_gives_the_same_bytes(fitted, tmp_path):
    for name in ("one", "other"):
        to_onnx(fitted("mixed"), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_pipeline_is_the_graphs_of_its_steps(tmp_path):
    X, y = noisy_rows(100, seed=4)
    pipeline = make_pipeline(StandardScaler(), SVOR()).fit(X, y)
    scaler = pipeline[0]
    constants = {"mean": scaler.mean_, "scale": scaler.scale_}
    before = helper.make_graph(
        [
            helper.make_node("Sub", ["rows", "mean"], ["centred"]),
            helper.make_node("Div", ["centred", "scale"], ["scaled"]),
        ],
        "scaler",
        [helper.make_tensor_value_info("rows", TensorProto.DOUBLE, ["n", 2])],
        [helper.make_tensor_value_info("scaled", TensorProto.DOUBLE, ["n", 2])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    to_onnx(pipeline[-1], tmp_path / "model.onnx", dtype="float64")
    last = onnx.load(tmp_path / "model.onnx")
    first = helper.make_model(before, opset_imports=last.opset_import, ir_version=last.ir_version)
    whole = compose.merge_models(first, last, io_map=[("scaled", "X")], prefix2="isbor_")
    label, probabilities = opened(whole.SerializeToString()).run(None, {"rows": X})
    assert label.tolist() == pipeline.predict(X).tolist()
    assert_allclose(probabilities, pipeline.predict_proba(X), rtol=0, atol=1e-10)


def test_names_and_equal_parts_of_graphs():
    """Names of inputs are left alone; equal constants and nodes are stored once, those of other types not."""
    graph = Graph()
    x = graph.input(Port("constant_0", np.dtype(np.float64), 1, ""))
    assert graph.constant(0.0).name not in (x.name, graph.constant(np.array(0)).name)
    assert graph.constant(0.0) == graph.constant(np.zeros(()))
    assert (x + 1.0) * x == (x + 1.0) * x != x * (x + 1.0)
    assert [node.operator for node in graph.nodes] == ["Add", "Mul", "Mul"]


# --- Numbers -----------------------------------------------------------------------------------------------


def test_the_normal_distribution_to_machine_precision():
    graph = Graph()
    below, above = normal_cdf(graph.input(Port("z", np.dtype(np.float64), 1, "")))
    graph.output(Port("below", np.dtype(np.float64), 1, ""), below)
    graph.output(Port("above", np.dtype(np.float64), 1, ""), above)
    about = {"estimator": "normal", "parameters": "", "classes": [], "features": []}
    z = np.concatenate([np.linspace(-37.0, 8.0, 1801), [-4.0, 4.0, 0.0, 1e-300, -1e-9]])
    ends = np.array([-1e9, -np.inf, 1e300])
    session = opened(as_bytes(graph, about))
    found = session.run(None, {"z": np.append(z, ends)[:, None]})
    with mpmath.workdps(50):
        exact = np.array([[mpmath.ncdf(mpmath.mpf(sign * x)) for x in z] for sign in (1, -1)], dtype=float)
    for side, expected in zip(found, exact, strict=True):
        assert_allclose(side[: len(z), 0], expected, rtol=1e-12, atol=0)
        assert np.abs(side[: len(z), 0] - expected).max() < 5e-15
    assert_allclose(found[0][len(z) :, 0], [0.0, 0.0, 1.0], rtol=0, atol=1e-300)


# --- What cannot be written --------------------------------------------------------------------------------


def test_what_cannot_be_exported(tmp_path, monkeypatch):
    path, (X, y) = tmp_path / "model.onnx", noisy_rows(40, seed=0)
    with pytest.raises(ValueError, match=r"^This SVOR has kernel='precomputed'; to_onnx needs"):
        to_onnx(SVOR(kernel="precomputed", probability=False).fit(X @ X.T, y), path)
    model = SVOR(probability=False).fit(X, y)
    with pytest.raises(ValueError, match=r"^dtype is 'float16'; 'float32' or 'float64' is needed"):
        to_onnx(model, path, dtype="float16")

    def of_frame(**columns):
        return SVOR(probability=False).fit(pd.DataFrame(columns), y > 1)

    with pytest.raises(ValueError, match=r"^A feature is named 'label', .* the name of an output"):
        to_onnx(of_frame(label=X[:, 0]), path)
    with pytest.raises(ValueError, match=r"^A feature is named '', .* the name of nothing"):
        to_onnx(of_frame(**{"": X[:, 0]}), path)
    with pytest.raises(ValueError, match=r"^The feature 'a' has missing cells and the category ''"):
        to_onnx(of_frame(a=["", "x", None, "y"] * 10), path)
    close = of_frame(a=pd.Categorical([2**24, 2**24 + 1] * 20))
    with pytest.raises(ValueError, match=r"^Two categories of the feature 'a' are equal in single precision"):
        to_onnx(close, path)
    assert not list(tmp_path.iterdir())
    to_onnx(close, path, dtype="float64")
    path.unlink()
    with monkeypatch.context() as patched, pytest.raises(ImportError, match=r'pip install "isbor\[onnx\]"'):
        patched.setitem(sys.modules, "onnx", None)
        to_onnx(model, path)
    assert not list(tmp_path.iterdir())
