"""How the time and memory of the six systems grow with the rows, and what each reaches.

Grades depend on four of ten columns. Each fit has a process of its own, after a small one that loads
libraries and compiles. All have their defaults but for C of the support vector machines.
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measuring import Cost, in_fresh_process, measured
from benchmarks.problems import draw_grades
from benchmarks.report import number, print_machine, print_table, progress, seconds
from isbor import GPOR, ISBOR, ISVOR, KDLOR, SBOR, SVOR
from isbor.experiments.running.measure import kept_vectors
from isbor.metrics import log_loss, mean_absolute_error

MODELS: dict[str, Callable[[], Any]] = {
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


def measure(name: str, n: int) -> tuple[Cost, int | None, float, float]:
    """Return the cost of a fit, how many rows or functions it keeps, its MAE and its log loss."""
    X, y = draw_grades(n, 10, 0)
    MODELS[name]().fit(X[:100], y[:100])
    model, cost = measured(MODELS[name]().fit, X, y)
    X_test, y_test = draw_grades(N_TEST, 10, 1)
    mae = mean_absolute_error(y_test, model.predict(X_test))
    loss = np.nan
    if hasattr(model, "predict_proba"):
        loss = log_loss(y_test, model.predict_proba(X_test), labels=model.classes_)
    return cost, kept_vectors(model), mae, loss


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.systems", description=__doc__)
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS, help="numbers of rows")
    rows = parser.parse_args().rows
    table = []
    for name in MODELS:
        found: list[tuple[Cost, int | None, float, float]] = []
        for n in rows:
            if found and found[-1][0].seconds * 4 > MOST_SECONDS:
                break
            found.append(in_fresh_process(measure, name, n))
            progress(f"{name}, {n} rows: {found[-1][0].seconds:.2f} s")
        times = [seconds(cost.seconds) for cost, *_ in found] + ["–"] * (len(rows) - len(found))
        cost, vectors, mae, loss = found[-1]
        kept = "all" if vectors is None else str(vectors)
        largest = [f"{rows[len(found) - 1]}", number(cost.megabytes, 0), kept]
        table.append([name, *times, *largest, number(mae, 3), number(loss, 3)])
    header = ["model", *(f"{n} rows, s" for n in rows)]
    print_table("Growth", [*header, "the largest: rows", "MB", "vectors", "MAE", "log loss"], table)
    print_machine()


if __name__ == "__main__":
    main()
