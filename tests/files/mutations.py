"""Files that are damaged, or changed by somebody who knows the format.

``python -m tests.files.mutations N SEED`` loads N of them, and predicts and learns with those that load.
"""

import copy
import json
import random
import sys
import time
import warnings
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import numpy as np

import isbor
from isbor.files.container import packed, unpacked
from tests.files.samples import EXAMPLES, grades, predictions, smooth_grades

HOSTILE = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        7,
        2**31,
        2**62,
        2**64,
        -(2**63),
        10**400,
        0.0,
        0.5,
        -1.5,
        1e300,
        1e-300,
    ),
    *(
        {"float": "nan"},
        {"float": "inf"},
        {"float": "-inf"},
        {"float": "os.system"},
        "",
        "rbf",
        "low",
        "\ud800",
    ),
    *([], {}, [[]], ["low"], {"array": 0}, {"array": 3}, {"array": 10**9}, {"object": 0}, {"object": 5}),
    *(
        {"object": 10**9},
        {"object": -1},
        {"array": True},
        {"tuple": []},
        {"dict": [[[], 1]]},
        {"dict": [[1]]},
    ),
    *({"labels": ["a", "b", "c"], "dtype": "<U999999999"}, {"labels": [1, 2], "dtype": "object"}),
    *(
        {"class": "Functions"},
        "<f8",
        "|O",
        "object",
        "F",
        "C",
        [2, 2],
        [0],
        [0, 2**62],
        [10**18],
        "__import__",
    ),
)


def mutated(content, rng):
    """Return the content of a file with one or a few changes."""
    return rng.choice([_torn, _edited, _edited, _edited, _renumbered, _renumbered])(content, rng)


def _torn(content, rng):
    """Change bytes, and leave the checksum as it is."""
    kind, data = rng.randrange(5), bytearray(content)
    place = rng.randrange(len(data))
    if kind == 0:
        data[place] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del data[place:]
    elif kind == 2:
        data[place:place] = rng.randbytes(rng.randrange(1, 50))
    elif kind == 3:
        data[place : place + 100] = bytes(100)
    else:
        with ZipFile(BytesIO(content)) as zipped:
            members = [(member.filename, zipped.read(member)) for member in zipped.infolist()]
        names = [name for name, _ in members]
        rng.shuffle(names)
        archive = BytesIO()
        with ZipFile(archive, "w", compression=rng.choice([0, 8])) as zipped:
            for name, (_, held) in zip(names, members, strict=True):
                zipped.writestr(name, held)
        return archive.getvalue()
    return bytes(data)


def _edited(content, rng):
    """Change a few values of the description, and renew the checksum."""
    text, arrays = unpacked(content)
    description = json.loads(text)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        owner, key = _somewhere(description, rng)
        other, its_key = _somewhere(description, rng)
        kind = rng.randrange(5)
        if kind == 0:
            del owner[key]
        elif kind == 1:
            owner[key] = copy.deepcopy(other[its_key])
        elif kind == 2 and isinstance(owner[key], int | float) and not isinstance(owner[key], bool):
            owner[key] = owner[key] + rng.choice([-1, 1, 3, 1000])
        elif kind == 3 and isinstance(owner, dict):
            owner[rng.choice(["__class__", "_model", "trace_", "callback", "checkpoint"])] = owner[key]
        else:
            owner[key] = copy.deepcopy(rng.choice(HOSTILE))
    return packed(json.dumps(description).encode(), arrays)


def _somewhere(description, rng):
    """Return a list or dict within the description, and one of its keys."""
    objects = description.get("objects")  # which an earlier change may have taken away
    section = rng.choice([*description.values(), objects, objects])
    places = list(_places(section if isinstance(section, list | dict) else description))
    return rng.choice(places or [(description, "objects")])


def _places(owner):
    """Yield each list and dict with each of its keys, at all depths."""
    for key in list(owner) if isinstance(owner, dict) else range(len(owner)):
        yield owner, key
        if isinstance(owner[key], list | dict):
            yield from _places(owner[key])


def _renumbered(content, rng):
    """Change an array, and renew table and checksum."""
    text, held = unpacked(content)
    description, arrays, start = json.loads(text), [], 0
    for entry in description["arrays"]:
        array = np.ndarray(entry["shape"], entry["dtype"], held, start, order=entry["order"])
        arrays.append(array)
        start += array.nbytes
    place = rng.randrange(len(arrays))
    arrays[place] = _changed(arrays[place], rng)
    description["arrays"] = [
        {"dtype": array.dtype.str, "shape": list(array.shape), "order": "C"} for array in arrays
    ]
    return packed(json.dumps(description).encode(), b"".join(map(np.ndarray.tobytes, arrays)))


def _changed(array, rng):
    kind, axis = rng.randrange(8), rng.randrange(max(array.ndim, 1))
    if kind == 0 and array.size:
        return np.delete(array, -1, axis)
    if kind == 1 and array.size:
        return np.concatenate([array, array], axis)
    if kind == 2:
        return np.flip(array, axis).copy()
    if kind == 3:
        return rng.choice([array.T, array[None], array[..., None], array.ravel(), array[:0]]).copy()
    if kind == 4:
        return array.astype(rng.choice(["<f8", "<i8", "<u2", "|b1", "<f4"]))
    array = array.copy()
    for _ in range(rng.choice([1, 1, 3]) if array.size else 0):
        hostile = (
            [-1, 0, 1, len(array), 10**4] if array.dtype.kind != "f" else [np.nan, np.inf, -0.0, 1e300, -1]
        )
        array.flat[rng.randrange(array.size)] = rng.choice(hostile)
    return array


def judge(contents, seed, count, *, learn):
    """Load mutations; return how many did load, and every error that is not ours, with its number."""
    tables = {2: smooth_grades(8, seed=5), 3: grades(8, seed=5)}
    loaded, faults, slowest = 0, [], 0.0
    with TemporaryDirectory() as folder:
        path = Path(folder) / "mutated.isbor"
        for number in range(count):
            rng = random.Random(seed + number)
            path.write_bytes(mutated(rng.choice(contents), rng))
            begun = time.process_time()
            try:
                model = isbor.load(path)
            except isbor.ModelFileError:
                continue
            except Exception as error:
                faults.append((seed + number, "load", repr(error)))
                continue
            finally:
                slowest = max(slowest, time.process_time() - begun)
            loaded += 1
            X, y = tables[model.n_features_in_]
            try:
                predictions(model, X)
            except Exception as error:
                faults.append((seed + number, "predict", repr(error)))
            if learn and hasattr(model, "partial_fit"):
                try:
                    model.partial_fit(X, y)
                except Exception as error:
                    print(seed + number, "partial_fit", repr(error), flush=True)
    return loaded, faults, slowest


def examples():
    return [path.read_bytes() for path in sorted(EXAMPLES.glob("*.isbor"))]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    count, seed = map(int, sys.argv[1:])
    loaded, faults, slowest = judge(examples(), seed, count, learn=True)
    print(f"{loaded} of {count} loaded, the slowest in {slowest:.2f} s")
    for fault in faults:
        print(*fault)
    sys.exit(bool(faults))
