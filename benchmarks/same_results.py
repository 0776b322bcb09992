"""Fit twelve fixed problems and compare what they predict with an earlier version, to the last bit.

    python -m benchmarks.same_results save before.npz      # in a checkout of the earlier version
    python -m benchmarks.same_results compare before.npz   # in this one

Only public names are used, so the script runs beside any version. Copy it into older checkouts.
"""

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd

from isbor import GPOR, ISBOR, ISVOR, KDLOR, SBOR, SVOR
from isbor.datasets import make_balance_scale, make_saddle

Results = dict[str, np.ndarray]


def ridge(n, d=6, noise=0.3, seed=0):
    """Return smooth scores of four features in d, cut into five classes, with noise that varies."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3]
    y = np.digitize(f + noise * np.exp(0.5 * X[:, 4]) * rng.normal(size=n), [-1.5, -0.4, 0.4, 1.5])
    return X, y


def shop(n, seed=0):
    """Return a table with a category, an ordered category, a boolean, missing cells and string labels."""
    rng = np.random.default_rng(seed)
    price, size, colour = rng.normal(size=n), rng.integers(0, 4, n), rng.integers(0, 5, n)
    f = price + 0.5 * size - 0.8 * (colour == 2) + 0.4 * rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "price": np.where(rng.random(n) < 0.1, np.nan, price),
            "size": pd.Categorical.from_codes(size, ["S", "M", "L", "XL"], ordered=True),
            "colour": np.array(["red", "green", "blue", "grey", "black"])[colour],
            "sale": rng.random(n) < 0.3,
        }
    )
    frame.loc[rng.random(n) < 0.05, "colour"] = None
    y = np.array(["poor", "fair", "good"])[np.digitize(f, [0.0, 1.5])]
    return frame, y


def predictions(model, X) -> Results:
    found = {"proba": model.predict_proba(X), "cuts": model.thresholds_, "latent": model.latent(X)}
    if hasattr(model, "predict_proba_interval"):
        found["lower"], found["upper"] = model.predict_proba_interval(X)
    return found


def learned(model, table, n_train, weight=None) -> Results:
    """Fit a model to the first rows of a table, and return what it predicts for the others."""
    X, y = table
    return predictions(model.fit(X[:n_train], y[:n_train], sample_weight=weight), X[n_train:])


def counts(n, seed, low, high):
    return np.random.default_rng(seed).integers(low, high, n).astype(float)


def sequential_and_batch() -> Results:
    X, y = make_balance_scale()
    found = predictions(ISBOR(solver="sequential", gamma=0.3).fit(X[::4], y[::4]), X)
    return found | prefixed("batch", predictions(SBOR().fit(X[::4], y[::4]), X))


def svor() -> Results:
    X, y = ridge(600, seed=7)
    explicit = SVOR(constraints="explicit", kernel="poly", coef0=1.0).fit(X[:300], y[:300])
    found = learned(SVOR(C=3.0), (X, y), 400, counts(400, 2, 1, 3))
    return found | prefixed("explicit", predictions(explicit, X[400:]))


def isvor() -> Results:
    X, y = ridge(400, d=5, seed=8)
    model = ISVOR(C=3.0).fit(X[:150], y[:150])
    for k in range(150, 200, 10):
        model.partial_fit(X[k : k + 10], y[k : k + 10])
    return predictions(model, X[200:])


def gpor() -> Results:
    ep = GPOR(inference="ep", classes=GRADES)
    found = learned(GPOR(metric="ard"), ridge(400, seed=9), 200)
    return found | prefixed("ep", learned(ep, shop(300, seed=2), 150))


def prefixed(prefix, found) -> Results:
    return {f"{prefix} {name}": values for name, values in found.items()}


GRADES = ["poor", "fair", "good"]
WEIGHT = np.random.default_rng(1).uniform(0.1, 2.0, 400)
PROBLEMS: dict[str, Callable[[], Results]] = {
    "default_small": lambda: learned(ISBOR(), make_saddle(700, random_state=1), 400),
    "default_mixed": lambda: learned(ISBOR(random_state=3), ridge(700), 450),
    "rbf_5000": lambda: learned(ISBOR(basis="rbf"), make_saddle(6000, random_state=2), 5000),
    "default_5000": lambda: learned(ISBOR(n_jobs=2), ridge(6000, d=5, seed=5), 5000),
    "ard_weighted": lambda: learned(
        ISBOR(metric="ard", class_weight="balanced"), ridge(500, seed=6), 300, counts(300, 0, 0, 4)
    ),
    "frame_default": lambda: learned(ISBOR(classes=[*GRADES, "best"]), shop(600), 400),
    "frame_mixed_weighted": lambda: learned(
        ISBOR(basis="mixed", classes=GRADES), shop(600, seed=1), 400, WEIGHT
    ),
    "sequential_and_batch": sequential_and_batch,
    "svor": svor,
    "isvor": isvor,
    "gpor": gpor,
    "kdlor": lambda: learned(KDLOR(), ridge(600, seed=10), 400),
}


def main() -> int:
    command, path, *names = sys.argv[1:]
    warnings.simplefilter("ignore")
    before = np.load(path) if command == "compare" else None
    kept: Results = {}
    different = 0
    for name, problem in PROBLEMS.items():
        if names and name not in names:
            continue
        start = time.perf_counter()
        found = {f"{name}/{key}": np.asarray(value) for key, value in problem().items()}
        seconds = time.perf_counter() - start
        if before is None:
            kept |= found
            print(f"{name:24}{seconds:8.1f} s", flush=True)
            continue
        off = max(float(np.max(np.abs(value - before[key]), initial=0.0)) for key, value in found.items())
        same = all(np.array_equal(value, before[key]) for key, value in found.items())
        different += not same
        verdict = "the same to the last bit" if same else f"differs by up to {off:.3g}"
        print(f"{name:24}{seconds:8.1f} s  {len(found):3} arrays  {verdict}", flush=True)
    if before is None:
        np.savez_compressed(path, **kept)
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
