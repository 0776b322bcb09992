"""ISVOR: what one more row costs, beside learning all rows anew."""

import argparse
import time
from statistics import median

import numpy as np

from benchmarks.duration import draw
from benchmarks.report import number, print_machine, print_table, print_target, progress, seconds
from isbor import ISVOR
from isbor.metrics import mean_absolute_error

SIZES = (500, 1000, 2000)
N_NEW = 20  # rows that are added one by one
N_FEATURES = 4
TEST_ROWS = 5000


def measure(n: int, *, probability: bool) -> tuple[list[str], float, float]:
    """Return a row of the table, the time of one more row as a share of a fit, and the largest violation."""
    X, y = draw(n + N_NEW, N_FEATURES, 0)
    start = time.perf_counter()
    model = ISVOR(C=10.0, probability=probability).fit(X[:n], y[:n])
    whole = time.perf_counter() - start
    steps, times, violations = model.n_iter_, [], [model.violation_]
    for i in range(n, n + N_NEW):
        start = time.perf_counter()
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        times.append(time.perf_counter() - start)
        violations.append(model.violation_)
    more = (model.n_iter_ - steps) / N_NEW
    X_test, y_test = draw(TEST_ROWS, N_FEATURES, 1)
    mae = mean_absolute_error(y_test, model.predict(X_test))
    worst = float(np.max(violations))
    cells = [
        f"{n:,}",
        "yes" if probability else "no",
        seconds(whole),
        seconds(median(times)),
        seconds(max(times)),
        f"{whole / median(times):.0f}",
        number(more, 1),
        str(len(model.support_)),
        f"{worst:.0e}",
        number(mae, 3),
    ]
    return cells, median(times) / whole, worst


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.isvor", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of rows")
    sizes = parser.parse_args().sizes
    ISVOR().fit(*draw(60, N_FEATURES, 0))  # loads libraries
    table, worst = [], 0.0
    for probability in (False, True):
        for n in sizes:
            progress(f"{n} rows, probability={probability}")
            cells, share, violation = measure(n, probability=probability)
            table.append(cells)
            worst = max(worst, violation)
    header = [
        "rows",
        "probabilities",
        "fit, s",
        "one more row, s",
        "at the most",
        "fit / row",
        "steps a row",
        "support vectors",
        "violation",
        "test MAE",
    ]
    print_table("ISVOR(C=10), 5 classes, 4 columns", header, table, n_text=2)
    print(
        f"One more row: median and largest of {N_NEW} calls of partial_fit; steps are those of one machine.\n"
    )
    print_target("largest violation, in units of 1e-8", 1e8 * worst, 1.0, 4)
    print_target(f"one more row, as a share of a fit of {sizes[-1]:,} rows", share, 0.05, 4)
    print_machine()


if __name__ == "__main__":
    main()
