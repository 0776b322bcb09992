"""SVOR and KDLOR beside skordinal's: how often they predict the same, and which is faster.

Both get the same standardised rows, gamma = 1/d and the same C. skordinal's SVOR adds 1e-3 to the diagonal of
its training kernel, so for the comparison of predictions ours is given that kernel. Times are those of plain
fits, without probabilities (skordinal's have none that are fitted), of the second call.
"""

import argparse
import os
from collections.abc import Callable
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import skordinal.classifiers as skordinal
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from benchmarks.measuring import in_fresh_process, measured
from benchmarks.report import number, print_machine, print_table, print_target, progress, seconds
from isbor import KDLOR, SVOR
from isbor._core.types import FloatArray, IntArray
from isbor.datasets import load_benchmark, make_saddle
from isbor.experiments import Holdout
from isbor.metrics import mean_absolute_error

DIAGONAL = 1e-3
TRAINING = {"bs": 468, "swd": 750, "bank": 2000, "computer": 2000}
PRICES = (1.0, 10.0)
TIMED_SETS = ("saddle", "bank", "computer")
TIMED_ROWS = (2000, 8000)


def standardised(name: str, n_train: int) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    """Return training and at most 5,000 test rows of a set, split 0."""
    if name == "saddle":
        X, y = make_saddle(n_train + 5000, random_state=0)
    else:
        X, y = load_benchmark(name, return_X_y=True, as_frame=False)
    train, test = Holdout(n_train, test_at_most=5000).split(y, 0, 0)
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def machines(gamma: float) -> dict[str, tuple[Callable[..., Any], Callable[..., Any], float]]:
    """Return our machine, skordinal's, and what it adds to the diagonal; ours has no kernel yet."""
    pairs = {
        f"SVOR, {constraints}, C = {C:g}": (
            partial(SVOR, C=C, constraints=constraints, probability=False),
            partial(skordinal.SVOR, C=C, gamma=gamma, constraints=constraints),
            DIAGONAL,
        )
        for C in PRICES
        for constraints in ("implicit", "explicit")
    }
    return {**pairs, "KDLOR": (partial(KDLOR, probability=False), partial(skordinal.KDLOR, gamma=gamma), 0.0)}


def agreement(name: str) -> list[list[str]]:
    """Return a row of the table for each model and price: MAE of both and how often they agree."""
    X, y, X_test, y_test = standardised(name, TRAINING[name])
    gamma = 1.0 / X.shape[1]
    K, K_test = rbf_kernel(X, gamma=gamma), rbf_kernel(X_test, X, gamma=gamma)
    table = []
    for model, (ours, theirs, diagonal) in machines(gamma).items():
        kernel = K + diagonal * np.eye(len(K))
        found = theirs().fit(X, y).predict(X_test), ours(kernel="precomputed").fit(kernel, y).predict(K_test)
        maes = [number(mean_absolute_error(y_test, labels), 4) for labels in found]
        table.append([name, model, f"{len(X)}", *maes, number(float(np.mean(found[0] == found[1])), 4)])
    return table


def times(name: str, n: int) -> list[list[str]]:
    """Return a row of the table for each model: seconds of both and their ratio."""
    X, y, _, _ = standardised(name, n)
    gamma = 1.0 / X.shape[1]
    table = []
    for model, (ours, theirs, _) in machines(gamma).items():
        progress(f"{name}, {n} rows, {model}")
        own = [measured(ours(gamma=gamma).fit, X, y)[1].seconds for _ in range(2)][1]
        peer = measured(theirs().fit, X, y)[1].seconds
        table.append([name, model, f"{len(X)}", seconds(own), seconds(peer), number(own / peer, 2)])
    return table


def first_fit(folder: str) -> float:
    """Return the seconds of a fit to a few rows that has to compile, which it keeps in the folder."""
    os.environ["NUMBA_CACHE_DIR"] = folder
    return measured(SVOR(probability=False).fit, *make_saddle(200, random_state=0))[1].seconds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("agreement", "times"), help="one of the two tables")
    parser.add_argument("--sets", nargs="+", default=TIMED_SETS, help="sets that are timed")
    parser.add_argument("--rows", nargs="+", type=int, default=TIMED_ROWS, help="rows that are timed")
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
