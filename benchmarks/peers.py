"""SVOR and KDLOR beside skordinal's: how often they predict the same, and which is faster.

Both get the same standardised rows, gamma = 1/d and the same C. skordinal's SVOR adds 1e-3 to the diagonal of
its training kernel, so for the comparison of predictions ours is given that kernel. Times are those of plain
fits, without probabilities (skordinal's have none that are fitted), of the second call.
"""

import argparse
import os
import time
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import skordinal.classifiers as skordinal
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from benchmarks.processes import in_fresh_process
from benchmarks.protocol import load_set
from benchmarks.report import number, print_machine, print_table, print_target, progress, seconds
from isbor import KDLOR, SVOR
from isbor._core.types import FloatArray, IntArray
from isbor.datasets import make_saddle
from isbor.metrics import mean_absolute_error

DIAGONAL = 1e-3
TRAINING = {"bs": 468, "swd": 750, "bank": 2000, "computer": 2000}
PRICES = (1.0, 10.0)
TIMED_ROWS = (2000, 8000)


def standardised(name: str, n_train: int) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    """Return training and test rows of a set, split 0."""
    data = load_set(name)
    order = np.random.default_rng(0).permutation(len(data.y))
    train, test = order[:n_train], order[n_train : n_train + 5000]
    X = data.numeric
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), data.y[train], scaler.transform(X[test]), data.y[test]


def agreement(name: str) -> list[list[str]]:
    """Return a row of the table for each model and price: MAE of both and how often they agree."""
    X, y, X_test, y_test = standardised(name, TRAINING[name])
    gamma = 1.0 / X.shape[1]
    K, K_test = rbf_kernel(X, gamma=gamma), rbf_kernel(X_test, X, gamma=gamma)
    table = []

    def compare(model: str, theirs: Any, ours: IntArray) -> None:
        peer = theirs.fit(X, y).predict(X_test)
        maes = [number(mean_absolute_error(y_test, labels)) for labels in (peer, ours)]
        table.append([name, model, f"{len(X)}", *maes, number(float(np.mean(peer == ours)))])

    for C in PRICES:
        for kind in ("implicit", "explicit"):
            machine = SVOR(C=C, constraints=kind, kernel="precomputed", probability=False)
            ours = machine.fit(K + DIAGONAL * np.eye(len(K)), y).predict(K_test)
            compare(f"SVOR, {kind}, C = {C:g}", skordinal.SVOR(C=C, gamma=gamma, constraints=kind), ours)
    ours = KDLOR(kernel="precomputed", probability=False).fit(K, y).predict(K_test)
    compare("KDLOR, u = 0.001", skordinal.KDLOR(gamma=gamma), ours)
    return table


def timed(make: Callable[[], Any], X: FloatArray, y: IntArray, calls: int) -> list[float]:
    """Return the seconds of several fits, each of a new estimator."""
    durations = []
    for _ in range(calls):
        model = make()
        start = time.perf_counter()
        model.fit(X, y)
        durations.append(time.perf_counter() - start)
    return durations


def times(name: str, n: int) -> list[list[str]]:
    """Return a row of the table for each model: seconds of both and their ratio."""
    if name == "saddle":
        X, y = make_saddle(n, random_state=0)
        X = StandardScaler().fit_transform(X)
    else:
        X, y, _, _ = standardised(name, n)
    gamma = 1.0 / X.shape[1]
    pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        f"SVOR, {kind}, C = {C:g}": (
            lambda C=C, kind=kind: SVOR(C=C, gamma=gamma, constraints=kind, probability=False),
            lambda C=C, kind=kind: skordinal.SVOR(C=C, gamma=gamma, constraints=kind),
        )
        for kind in ("implicit", "explicit")
        for C in PRICES
    }
    pairs["KDLOR"] = (
        lambda: KDLOR(gamma=gamma, probability=False),
        lambda: skordinal.KDLOR(gamma=gamma),
    )
    table = []
    for model, (ours, theirs) in pairs.items():
        progress(f"{name}, {n} rows, {model}")
        _, second = timed(ours, X, y, 2)
        (peer,) = timed(theirs, X, y, 1)
        table.append([name, model, f"{len(X)}", seconds(second), seconds(peer), number(second / peer, 2)])
    return table


def first_fit(folder: str) -> float:
    """Return the seconds of a fit to a few rows that has to compile, which it keeps in the folder."""
    os.environ["NUMBA_CACHE_DIR"] = folder
    X, y = make_saddle(200, random_state=0)
    return timed(lambda: SVOR(probability=False), X, y, 1)[0]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("agreement", "times"), help="one of the two tables")
    parser.add_argument(
        "--sets", nargs="+", default=["saddle", "bank", "computer"], help="sets that are timed"
    )
    parser.add_argument("--rows", nargs="+", type=int, default=list(TIMED_ROWS), help="rows that are timed")
    options = parser.parse_args()
    if options.only != "times":
        rows = [row for name in TRAINING for row in agreement(name)]
        header = ["set", "model", "rows", "MAE, skordinal", "MAE, ours", "equal predictions"]
        print_table("Predictions beside skordinal's", header, rows, n_text=2)
        for model, least in (("SVOR", 0.99), ("KDLOR", 0.98)):
            differ = 1.0 - min(float(row[-1]) for row in rows if row[1].startswith(model))
            print_target(f"largest share of predictions in which {model} differs", differ, 1.0 - least, 4)
        print()
    if options.only != "agreement":
        with TemporaryDirectory() as folder:
            compiling, loading = (in_fresh_process(first_fit, folder) for _ in range(2))
            print(f"The first fit of SVOR on a new machine compiles: {seconds(compiling)} s.")
            print(f"The first one of a later process: {seconds(loading)} s.\n")
        rows = [row for n in options.rows for name in options.sets for row in times(name, n)]
        header = ["set", "model", "rows", "ours, s", "skordinal, s", "ratio"]
        print_table("Seconds of a fit beside skordinal's", header, rows, n_text=2)
        print_target("largest ratio", max(float(row[-1]) for row in rows), 1.0, 2)
    print_machine()


if __name__ == "__main__":
    main()
