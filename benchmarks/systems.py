"""The six systems of the paper: how time and memory grow with the rows, and what each reaches.

Growth is measured on grades that depend on four of ten columns, each fit in a process of its own after a
small one that loads libraries and compiles. Quality is the mean over splits with the paper's sizes, all with
their defaults but for C of the support vector machines.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.duration import draw
from benchmarks.models import HEADER, Split, compare, kept_vectors, model_rows
from benchmarks.processes import in_fresh_process, peak_memory
from benchmarks.protocol import TRAINING_ROWS, load_set
from benchmarks.report import number, print_machine, print_table, progress, seconds
from isbor import GPOR, ISBOR, ISVOR, KDLOR, SBOR, SVOR
from isbor.datasets import make_saddle
from isbor.metrics import log_loss, mean_absolute_error

Factory = Callable[[], Any]

MODELS: dict[str, Factory] = {
    "ISBOR()": ISBOR,
    'ISBOR(basis="rbf")': partial(ISBOR, basis="rbf"),
    "SBOR()": SBOR,
    "GPOR()": GPOR,
    'GPOR(inference="ep")': partial(GPOR, inference="ep"),
    "SVOR(C=10)": partial(SVOR, C=10.0),
    "SVOR(C=10, probability=False)": partial(SVOR, C=10.0, probability=False),
    "ISVOR(C=10, probability=False)": partial(ISVOR, C=10.0, probability=False),
    "KDLOR()": KDLOR,
    "KDLOR(probability=False)": partial(KDLOR, probability=False),
}
ROWS = (500, 1000, 2000, 4000)
MOST_SECONDS = 120.0  # a model that takes longer is not tried on twice the rows
N_TEST = 5000


def measure(name: str, n: int) -> tuple[float, float, float, float, float]:
    """Return seconds and megabytes of a fit, its MAE and log loss, and how many rows it keeps."""
    X, y = draw(n, 10, 0)
    MODELS[name]().fit(X[:100], y[:100])
    model = MODELS[name]()
    before, start = peak_memory(), time.perf_counter()
    model.fit(X, y)
    elapsed, after = time.perf_counter() - start, peak_memory()
    X_test, y_test = draw(N_TEST, 10, 1)
    mae = mean_absolute_error(y_test, model.predict(X_test))
    loss = np.nan
    if hasattr(model, "predict_proba"):
        loss = log_loss(y_test, model.predict_proba(X_test), labels=model.classes_)
    return elapsed, after - before, mae, loss, kept_vectors(model)


def print_growth(rows: tuple[int, ...]) -> None:
    """Print seconds by number of rows, and what the largest fit took and reached."""
    table = []
    for name in MODELS:
        found = []
        for n in rows:
            if found and found[-1][0] * 4 > MOST_SECONDS:
                break
            found.append(in_fresh_process(measure, name, n))
            progress(f"{name}, {n} rows: {found[-1][0]:.2f} s")
        times = [seconds(fit[0]) for fit in found] + ["–"] * (len(rows) - len(found))
        _, memory, mae, loss, kept = found[-1]
        table.append([name, *times, f"{rows[len(found) - 1]}", number(memory, 0), number(kept, 0)])
        table[-1] += [number(mae, 3), number(loss, 3)]
    header = ["model", *(f"{n} rows, s" for n in rows)]
    header += ["the largest: rows", "MB", "vectors", "MAE", "log loss"]
    print_table("Growth", header, table)


def print_quality(n_splits: int, saddle_splits: int) -> None:
    """Print what the systems reach on two small sets and on the saddle."""
    for name in ("bs", "swd"):
        data = load_set(name)
        splits = [Split.of(data.numeric, data.y, TRAINING_ROWS[name], s) for s in range(n_splits)]
        results = compare(MODELS, splits)
        print_table(f"{name}, mean of {n_splits} splits", HEADER, model_rows(results))
    splits = [Split.of(*make_saddle(6000, random_state=s), 1000, s) for s in range(saddle_splits)]
    results = compare(MODELS, splits)
    print_table(f"Saddle, 1000 training rows, mean of {saddle_splits}", HEADER, model_rows(results))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.systems",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--splits", type=int, default=20, help="random splits of BS and SWD; 0: none")
    parser.add_argument(
        "--rows", nargs="*", type=int, default=list(ROWS), help="rows of the fits that are timed"
    )
    options = parser.parse_args()
    if options.rows:
        print_growth(tuple(options.rows))
    if options.splits:
        print_quality(options.splits, min(options.splits, 5))
    print_machine()


if __name__ == "__main__":
    main()
