"""Damaged files and hostile ones are refused with an error of ours; those that load can predict."""

import json
import subprocess
import sys
import warnings
from io import BytesIO
from zipfile import ZipFile

import numpy as np
import pytest

import isbor
from isbor import ModelFileError
from isbor.files.container import packed, unpacked
from tests.files.mutations import examples, judge
from tests.files.samples import EXAMPLES


def content_of(name):
    return (EXAMPLES / f"{name}.format-1.isbor").read_bytes()


def load(content, folder):
    file = folder / "hostile.isbor"
    file.write_bytes(content)
    return isbor.load(file)


def edited(name, change):
    """Change the description of an example, and renew its checksum."""
    text, arrays = unpacked(content_of(name))
    description = json.loads(text)
    change(description)
    return packed(json.dumps(description).encode(), arrays)


def with_array(name, kind, field, change):
    """Change an array of the first object of a class that has one, and renew table and checksum."""
    text, held = unpacked(content_of(name))
    description, arrays, start = json.loads(text), [], 0
    for entry in description["arrays"]:
        arrays.append(np.ndarray(entry["shape"], entry["dtype"], held, start, order=entry["order"]))
        start += arrays[-1].nbytes
    owner = next(node for node in description["objects"] if node["class"] == kind)
    if owner[field] is None:
        array, order = change(None), "C"
    else:
        place = owner[field]["array"]
        array, order = change(arrays[place].copy(order="K")), description["arrays"][place]["order"]
    owner[field] = {"array": len(arrays)}
    arrays.append(array)
    description["arrays"].append({"dtype": array.dtype.str, "shape": list(array.shape), "order": order})
    orders = [entry["order"] for entry in description["arrays"]]
    contents = [some.tobytes(order=order) for some, order in zip(arrays, orders, strict=True)]
    return packed(json.dumps(description).encode(), b"".join(contents))


def zipped(members, compression=0):
    archive = BytesIO()
    with ZipFile(archive, "w", compression) as writer:
        for name, content in members.items():
            writer.writestr(name, content)
    return archive.getvalue()


def newer(description):
    description.update(format=9, isbor="7.3")


def nested(depth):
    return [nested(depth - 1)] if depth else 1


STRUCTURE = {
    "begins with b''": b"",
    "begins with b'a,b": b"a,b\n1,2\n",
    r"archive cannot be read": content_of("svor")[:-10],
    r"zip archive of \['grades.csv'\]": zipped({"grades.csv": "1"}),
    "members are compressed": zipped({"arrays.bin": bytes(10**7), "model.json": "{}", "sha256": ""}, 8),
    "checksum is wrong": zipped({"arrays.bin": "", "model.json": "{}", "sha256": ""}),
    "model.json cannot be read": packed(b"[" * 10**6, b""),
    "does not say which version": packed(b"{}", b""),
    "more than any model needs": packed(b" " * 64_000_001, b""),
    r"format 9 and was written by isbor 7\.3; .* reads formats up to 1. Install isbor 7\.3": edited(
        "svor", newer
    ),
    "estimator 'os.system'": edited("svor", lambda it: it.update(estimator="os.system")),
    "estimator 'RandomForest": edited("svor", lambda it: it.update(estimator="RandomForestClassifier")),
    "attributes that SVOR does not have": edited("svor", lambda it: it["fitted"].update(__class__=1)),
    "should not have, checkpoint": edited("isbor", lambda it: it["parameters"].update(checkpoint="/etc")),
    "lacks, or should not have, _thresholds": edited("svor", lambda it: it["fitted"].pop("_thresholds")),
    "nested too deeply|cannot be read": edited("svor", lambda it: it["parameters"].update(tol=nested(900))),
    "C=-1.0: a finite number": edited("svor", lambda it: it["parameters"].update(C=-1.0)),
    "lacks members, or has unknown": edited("svor", lambda it: it["objects"][1].update(more=1)),
    "has no object 10": edited("svor", lambda it: it["fitted"].update(_model={"object": 10})),
    "arrays are larger": edited("svor", lambda it: it["arrays"][-1].update(shape=[10**3, 10**3])),
    r"array of shape \[1000000000000000000\]": edited(
        "svor", lambda it: it["arrays"][0].update(shape=[10**18])
    ),
    "dtype '|O'": edited("svor", lambda it: it["arrays"][0].update(dtype="|O")),
    "dtype 'f8,i4'": edited("svor", lambda it: it["arrays"][0].update(dtype="f8,i4")),
    "labels are of dtype '<U999999999'": edited(
        "svor", lambda it: it["fitted"]["classes_"].update(dtype="<U999999999")
    ),
    "classes are not distinct": edited(
        "svor", lambda it: it["fitted"]["classes_"].update(labels=["a", "a", "b"])
    ),
    "labels are of several types": edited(
        "svor", lambda it: it["fitted"]["classes_"].update(labels=["a", 1, []])
    ),
}


@pytest.mark.parametrize(("message", "content"), STRUCTURE.items(), ids=range(len(STRUCTURE)))
def test_what_is_refused_and_why(message, content, tmp_path):
    with pytest.raises(ModelFileError, match=message):
        load(content, tmp_path)


def outside(array):
    array.flat[-1] = 10**9
    return array


def before(array):
    array.flat[0] = -7
    return array


def infinite(array):
    array.flat[0] = np.inf
    return array


# What compiled code or indexing would trust.
TRUSTED = [
    ("isbor", "Preparation", "source", outside),
    ("isbor", "Preparation", "source", before),
    ("isbor", "Scaling", "order", outside),
    ("isbor", "Scaling", "factor", infinite),
    ("isbor", "Scaling", "mean", lambda mean: mean[:-1]),
    ("isbor", "Functions", "centres", lambda centres: centres[:, :-1]),
    ("isbor", "Functions", "metric", lambda metric: metric[:0]),
    ("isbor", "Functions", "ramp", lambda ramp: ramp.astype(np.float64)),
    ("isbor", "Functions", "ramp", lambda ramp: (ramp.view(np.uint8) + 2).view(np.bool_)),
    ("isbor", "Functions", "offset", infinite),
    ("isbor", "Expansion", "thresholds", lambda thresholds: thresholds[::-1]),
    ("isbor", "Expansion", "precision", lambda precision: precision[:-1]),
    ("isbor", "Mode", "alpha", lambda alpha: np.append(alpha, 1.0)),
    ("isbor", "Ranges", "columns", outside),
    ("isbor", "Reference", "places", outside),
    ("isbor", "Reference", "fitted", before),
    ("isbor", "ReferenceProcess", "covariance", lambda covariance: covariance[1:, 1:]),
    ("isbor", "InducedFunctions", "inducing", lambda rows: rows[:, 1:]),
    ("isbor", "TableEncoding", "ranked", lambda ranked: ~ranked),
    ("isbor", "Reservoir", "codes", outside),
    ("isbor", "Reservoir", "weight", lambda weight: -weight),
    ("isbor", "Reservoir", "cells", lambda cells: np.where(np.isnan(cells), cells, 40.0)),
    ("isbor-streamed", "Member", "observed", outside),
    ("isbor-streamed", "Member", "numbers", lambda numbers: numbers[1:]),
    ("isbor-streamed", "Warp", "knots", lambda knots: knots[::-1]),
    ("isbor-streamed", "Warp", "knots", lambda knots: knots[:1]),
    ("isbor", "SparseModel", "shape_weights", lambda _: np.ones((9, 4))),
    ("isbor-dense", "ProcessPosterior", "lower", lambda lower: lower[:-1, :-1]),
    ("svor", "KernelMachine", "coef", lambda coef: coef[1:]),
    ("svor", "TrainingRows", "y", before),
    ("isvor", "Machine", "member_row", outside),
    ("isvor", "Machine", "member_threshold", before),
    ("isvor", "Machine", "inverse", lambda inverse: inverse[1:]),
    ("isvor", "TrainingSet", "observed", outside),
    ("isvor", "Learned", "fold", lambda fold: fold[1:]),
    ("gpor", "Process", "X", lambda X: X.T),
    ("gpor", "ProcessPosterior", "precision", infinite),
]


@pytest.mark.parametrize(("name", "kind", "field", "change"), TRUSTED)
def test_indices_and_sizes_that_compiled_code_trusts(name, kind, field, change, tmp_path):
    with pytest.raises(ModelFileError, match=r"^The file is damaged: .* Use another copy of it"):
        load(with_array(name, kind, field, change), tmp_path)


def test_the_same_array_written_again_is_accepted(tmp_path):
    load(with_array("isbor-dense", "ProcessPosterior", "lower", lambda lower: lower), tmp_path)


def test_numbers_with_which_nothing_can_be_predicted(tmp_path):
    content = with_array("isbor", "Expansion", "precision", lambda precision: -1e9 * np.eye(len(precision)))
    with pytest.raises(ModelFileError, match="its model cannot predict"):
        load(content, tmp_path)


WATCHED = """
import sys
import isbor
from tests.files.samples import EXAMPLES
files = sorted(EXAMPLES.glob("*.isbor"))
for file in files:  # imports and compiles
    isbor.load(file)
EVENTS = {"exec", "compile", "import", "pickle.find_class", "subprocess.Popen", "os.system", "socket.connect"}
def watch(event, arguments):
    if event in EVENTS:
        print(event, arguments)
sys.addaudithook(watch)
for file in files:
    isbor.load(file)
"""


def test_nothing_is_executed_or_imported():
    done = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_random_mutations_are_refused_or_predict():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numbers that make no sense may overflow
        loaded, faults, _ = judge(examples(), seed=0, count=300, learn=False)
    assert not faults
    assert loaded > 10  # where a change does no harm


@pytest.mark.slow
def test_ten_thousand_mutations():
    call = [sys.executable, "-X", "faulthandler", "-m", "tests.files.mutations", "10000", "1000"]
    done = subprocess.run(call, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr
