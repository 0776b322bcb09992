"""ISVOR: what one more row costs, beside learning all rows anew."""

import argparse
from statistics import median

from benchmarks.measuring import measured
from benchmarks.problems import draw_grades
from benchmarks.report import number, print_machine, print_table, print_target, progress, seconds
from isbor import ISVOR
from isbor.metrics import mean_absolute_error

SIZES = (500, 1000, 2000)
N_NEW = 20  # rows that are added one by one
N_FEATURES = 4
TEST_ROWS = 5000
HEADER = (
    *("rows", "probabilities", "fit, s", "one more row, s", "at the most", "fit / row"),
    *("steps a row", "support vectors", "violation", "test MAE"),
)


def measure(n: int, *, probability: bool) -> tuple[list[str], float, float]:
    """Return a row of the table, the time of one more row as a share of a fit, and the largest violation."""
    progress(f"{n} rows, probability={probability}")
    X, y = draw_grades(n + N_NEW, N_FEATURES, 0)
    model, whole = measured(ISVOR(C=10.0, probability=probability).fit, X[:n], y[:n])
    steps, times, worst = model.n_iter_, [], model.violation_
    for i in range(n, n + N_NEW):
        _, cost = measured(model.partial_fit, X[i : i + 1], y[i : i + 1])
        times.append(cost.seconds)
        worst = max(worst, model.violation_)
    X_test, y_test = draw_grades(TEST_ROWS, N_FEATURES, 1)
    share = median(times) / whole.seconds
    cells = [f"{n:,}", "yes" if probability else "no"]
    cells += [seconds(time) for time in (whole.seconds, median(times), max(times))]
    cells += [f"{1.0 / share:.0f}", number((model.n_iter_ - steps) / N_NEW, 1), str(len(model.support_))]
    cells += [f"{worst:.0e}", number(mean_absolute_error(y_test, model.predict(X_test)), 3)]
    return cells, share, float(worst)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.isvor", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of rows")
    sizes = parser.parse_args().sizes
    ISVOR().fit(*draw_grades(60, N_FEATURES, 0))  # loads libraries
    found = [measure(n, probability=probability) for probability in (False, True) for n in sizes]
    print_table("ISVOR(C=10), 5 classes, 4 columns", HEADER, [cells for cells, _, _ in found], n_text=2)
    print(
        f"One more row: median and largest of {N_NEW} calls of partial_fit; steps are those of one machine.\n"
    )
    worst = max(violation for _, _, violation in found)
    print_target("largest violation, in units of 1e-8", 1e8 * worst, 1.0, 4)
    print_target(f"one more row, as a share of a fit of {sizes[-1]:,} rows", found[-1][1], 0.05, 4)
    print_machine()


if __name__ == "__main__":
    main()
