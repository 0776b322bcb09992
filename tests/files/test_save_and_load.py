"""What is saved comes back to the last bit, also in another process, and goes on learning."""

import io
import json
import pickle
import subprocess
import sys
import zipfile
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import isbor
from isbor import ISBOR, KDLOR, SVOR, ModelFileError
from isbor.estimators.linear import OrderedProbit
from isbor.files.arrays import ArrayReader
from isbor.files.codecs import Reader, Writer, codec_of
from isbor.files.formats import FORMAT
from tests.files.samples import (
    EXAMPLES,
    GRADES,
    SYSTEMS,
    fitted,
    fitted_anew,
    grades,
    predictions,
    smooth_grades,
    table_of,
)


@pytest.fixture(scope="module", params=SYSTEMS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def model(name):
    return fitted(name)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "grades.isbor"


def assert_same(one, other):
    """The same types and values at all depths, to the last bit."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert_array_equal(one, other)
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for item, its in zip(one, other, strict=True):
            assert_same(item, its)
    elif is_dataclass(one) and not isinstance(one, Enum):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    else:
        assert one == other


def again(model, file, **options):
    model.save(file, **options)
    return isbor.load(file)


def test_everything_comes_back(name, model, file):
    loaded = again(model, file, training_rows=True)
    assert type(loaded) is type(model)
    assert vars(loaded).keys() == vars(model).keys()
    for attribute, value in vars(model).items():
        if attribute != "_learned":  # its matrix is no dataclass
            assert_same(getattr(loaded, attribute), value)
    assert_same(predictions(loaded, table_of(name)[0]), predictions(model, table_of(name)[0]))
    assert repr(clone(loaded)) == repr(clone(model))


IN_ANOTHER_PROCESS = """
import pickle, sys
import isbor
from tests.files.samples import predictions, table_of
folder, *names = sys.argv[1:]
said = {name: predictions(isbor.load(f"{folder}/{name}.isbor"), table_of(name)[0]) for name in names}
sys.stdout.buffer.write(pickle.dumps(said))
"""


def test_another_process_predicts_the_same(tmp_path):
    models = {name: fitted(name) for name in SYSTEMS}
    for name, some in models.items():
        some.save(tmp_path / f"{name}.isbor")
    call = [sys.executable, "-c", IN_ANOTHER_PROCESS, str(tmp_path), *models]
    done = subprocess.run(call, stdout=subprocess.PIPE, check=True)
    for name, said in pickle.loads(done.stdout).items():
        assert_same(said, predictions(models[name], table_of(name)[0]))


@pytest.mark.parametrize("name", ["isbor", "isbor-streamed", "isvor"])
def test_learning_goes_on_as_if_nothing_had_happened(name, file):
    (X, _), model = table_of(name), fitted(name)
    for seed in (2, 3):  # from a file of a fit, and from one of a stream
        loaded = again(model, file, training_rows=True)
        for learner in (model, loaded):
            learner.partial_fit(*grades(16, seed))
        assert_same(predictions(loaded, X), predictions(model, X))
        assert loaded.n_iter_ == model.n_iter_


def test_a_stream_of_one_class_so_far_goes_on(file):
    X, y = grades()
    model = ISBOR(classes=GRADES).partial_fit(X[y == "low"], y[y == "low"])
    loaded = again(model, file, training_rows=True)
    with pytest.raises(ValueError, match="All rows so far are of one class"):
        loaded.predict_proba_interval(X)
    assert_same(predictions(loaded.partial_fit(X, y), X), predictions(model.partial_fit(X, y), X))


@pytest.mark.parametrize("name", ["isbor", "isvor"])
def test_without_training_rows_learning_does_not_begin_anew_unnoticed(name, file):
    (X, y), model = table_of(name), fitted(name)
    loaded = again(model, file)
    assert_same(predictions(loaded, X), predictions(model, X))
    again_loaded = again(loaded, file)
    for some in (loaded, again_loaded):
        with pytest.raises(ValueError, match=r"without the training rows .* training_rows=True"):
            some.partial_fit(X, y)
        with pytest.raises(ValueError, match="without the training rows"):
            some.save(file, training_rows=True)
    assert_same(predictions(loaded.fit(X, y).partial_fit(X, y), X), predictions(model.partial_fit(X, y), X))


def test_few_training_rows_are_in_a_file_without_them(file):
    X, y = smooth_grades(600, seed=4)
    model = ISBOR(basis="mixed", n_members=1, classes=GRADES).fit(X, y)
    sizes = {}
    for kept in (False, True):
        model.save(file, training_rows=kept)
        sizes[kept] = sum(value.tobytes() in file.read_bytes() for value in X.ravel())
    assert sizes[True] == X.size  # cells as they were read
    # Rows with which explanations compare, and the ends of the ranges of the columns.
    assert sizes[False] <= 500 * X.shape[1] + 4


def test_the_same_model_gives_the_same_bytes(name, model, tmp_path):
    X, files = table_of(name)[0], [tmp_path / f"{k}.isbor" for k in range(3)]
    fitted_anew(name).save(files[0])
    model.predict(X)  # which leaves matrices behind
    model.save(files[1])
    isbor.load(files[1]).save(files[2])
    assert files[0].read_bytes() == files[1].read_bytes() == files[2].read_bytes()


LABELS = {
    "booleans": np.array([False, True]),
    "small integers": np.array([-3, 5, 6], np.int8),
    "big-endian integers": np.array([1, 2, 3], ">i4"),
    "floats": np.array([1.0, 2.0, 4.0], np.float32),
    "wide strings": np.array(["low", "middle", "high"], "U40"),
    "objects": np.array(["low", "middle", "high"], object),
    "strings of any length": np.array(["low", "", "hö\ud800ch"], object),
    "integers beyond 64 bits": np.array([1, 2**70, 2**80], object),
}
if hasattr(np.dtypes, "StringDType"):
    LABELS["NumPy's strings"] = np.array(["low", "middle", "high"], np.dtypes.StringDType())


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_of_all_types(labels, file):
    X = np.arange(30.0)[:, None]
    model = OrderedProbit(classes=labels).fit(X, labels[np.arange(30) * len(labels) // 30])
    loaded = again(model, file)
    assert loaded.classes_.dtype in (labels.dtype, labels.dtype.type)
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert_array_equal(loaded.classes, labels)


def test_classes_without_rows_and_kernels_that_are_given(file):
    X, y = smooth_grades(40)
    model = ISBOR(classes=["none", *GRADES, "more"], effort="fast").fit(X, y)
    assert_same(predictions(again(model, file), X), predictions(model, X))
    machine = SVOR(kernel="precomputed", classes=GRADES, probability=False).fit(X @ X.T, y)
    assert_array_equal(again(machine, file).predict(X @ X.T), machine.predict(X @ X.T))


# --- Parameters --------------------------------------------------------------------------------------------

simple = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None))
keys = st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    simple, lambda part: st.lists(part) | st.tuples(part, part) | st.dictionaries(keys, part), max_leaves=20
)


@settings(max_examples=50)
@given(value=values)
def test_values_of_parameters_come_back(value):
    writer, codec = Writer(), codec_of(Any)
    text = json.dumps(codec.write(value, writer), allow_nan=False)
    reader = Reader(ArrayReader(writer.arrays.table, writer.arrays.content()), writer.objects, lambda _: None)
    assert repr(codec.read(json.loads(text), reader)) == repr(value)


def test_parameters_become_plain_values(file):
    X, y = grades()
    model = KDLOR(C=np.float64(2.0), degree=np.int64(3), probability=np.bool_(True), classes=pd.Index(GRADES))
    model.set_params(class_weight={np.str_("low"): np.int64(2), "middle": 1, "high": 1}).fit(X, y)
    loaded = again(model, file)
    assert type(loaded.degree) is int and loaded.degree == 3
    assert loaded.class_weight == model.class_weight
    assert_array_equal(loaded.classes, GRADES)
    assert_same(predictions(clone(loaded).fit(X, y), X), predictions(model, X))


def test_what_belongs_to_a_process_is_left_out(file, tmp_path):
    X, y = grades()
    model = ISBOR(classes=GRADES, callback=str, checkpoint=tmp_path / "kept").fit(X, y)
    loaded = again(model, file)
    assert loaded.callback is None and loaded.checkpoint is None
    assert b"kept" not in file.read_bytes()


class Renamed(KDLOR):
    pass


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (KDLOR(), NotFittedError, "not fitted yet"),
        (Renamed(classes=GRADES), ModelFileError, "class Renamed, which is not one of isbor"),
        (KDLOR(classes=GRADES, random_state=np.random.RandomState(0)), ModelFileError, "set_params"),
        (KDLOR(classes=[date(2020, 1, d) for d in (1, 2, 3)]), ModelFileError, "labels that are numbers or"),
    ],
)
def test_what_no_file_can_hold(model, error, message, file):
    X, y = grades()
    if model.classes is not None:
        model.fit(X, np.array(model.classes)[[GRADES.index(label) for label in y]])
    with pytest.raises(error, match=message):
        model.save(file)
    assert not file.exists()


def test_probabilities_that_were_not_learned(file):
    model = KDLOR(probability=False, classes=GRADES).fit(*grades())
    with pytest.raises(ModelFileError, match="has probability=True now"):
        model.set_params(probability=True).save(file)


# --- Files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "remedy"), [("nowhere/grades.isbor", "Create its folder first"), (".", "Save it elsewhere")]
)
def test_a_place_that_cannot_be_written_to(place, remedy, tmp_path):
    model = KDLOR(classes=GRADES).fit(*grades())
    with pytest.raises(
        OSError, match=r"The model was not saved, and nothing was changed: .*" + remedy
    ) as raised:
        model.save(tmp_path / place)
    assert raised.value.filename == str(tmp_path / place)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        isbor.load(tmp_path / "grades.isbor")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.isbor")), ids=lambda path: path.stem)
def test_files_of_all_formats_are_read(path):
    name, written = path.stem.split(".format-")
    expected = json.loads((EXAMPLES / f"probabilities.format-{written}.json").read_text())[name]
    model = isbor.load(path)
    assert_allclose(model.predict_proba(table_of(name)[0][:4]), expected, rtol=1e-9)
    if hasattr(model, "partial_fit") and name != "isbor-dense":
        model.partial_fit(*grades(8, seed=4))


def test_every_estimator_has_a_file_of_this_format():
    assert {path.stem for path in EXAMPLES.glob("*.isbor")} >= {f"{name}.format-{FORMAT}" for name in SYSTEMS}


def test_a_reader_in_another_language_needs_zip_json_and_numbers(file):
    """docs/model-files.md, followed by hand: the score of a linear model."""
    X, y = smooth_grades()
    model = again(OrderedProbit(classes=GRADES).fit(X, y), file)
    with zipfile.ZipFile(file) as zipped:
        description, content = json.loads(zipped.read("model.json")), zipped.read("arrays.bin")
    arrays = []
    for entry in description["arrays"]:
        dtype = np.dtype(entry["dtype"])
        count = int(np.prod(entry["shape"]))
        flat, content = content[: count * dtype.itemsize], content[count * dtype.itemsize :]
        arrays.append(np.frombuffer(flat, dtype).reshape(entry["shape"], order=entry["order"]))
    assert content == b""
    attributes = description["fitted"]
    coef, thresholds = (arrays[attributes[key]["array"]] for key in ("coef_", "thresholds_"))
    score = X @ coef
    assert_allclose(score, model.latent(X), atol=1e-12)
    labels = np.array(attributes["classes_"]["labels"])
    assert_array_equal(labels[(score[:, None] > thresholds).sum(axis=1)], model.predict(X))


# --- Other ways --------------------------------------------------------------------------------------------


def by_joblib(model):
    content = io.BytesIO()
    joblib.dump(model, content)
    content.seek(0)
    return joblib.load(content)


def by_skops(model):
    content = skops.io.dumps(model)
    unknown = skops.io.get_untrusted_types(data=content)
    assert all(kind.startswith("isbor.") for kind in unknown)
    return skops.io.loads(content, trusted=unknown)


@pytest.mark.parametrize("way", [lambda model: pickle.loads(pickle.dumps(model)), by_joblib, by_skops])
def test_pickle_joblib_and_skops(name, model, way):
    X, y = table_of(name)
    other = way(model)
    assert_same(predictions(other, X), predictions(model, X))
    if name == "isvor":
        assert_same(predictions(other.partial_fit(X, y), X), predictions(fitted(name).partial_fit(X, y), X))
