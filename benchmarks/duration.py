"""How long `ISBOR()` takes: the comparison of basis families, and the whole fit, by the size of the table."""

import argparse
import time

from benchmarks.measuring import measured
from benchmarks.problems import draw_grades
from benchmarks.report import number, print_machine, print_table, progress, seconds
from isbor import ISBOR
from isbor._core.trace import Step
from isbor.metrics import mean_absolute_error

SIZES = (
    *((n, 10) for n in (100, 500, 1000, 2500)),
    *((2500, d) for d in (100, 1000)),
    *((n, 10) for n in (10_000, 100_000, 1_000_000)),
)
TEST_ROWS = 5000


def timed_fit(n: int, d: int) -> list[str]:
    """Fit once and return a row of the table."""
    progress(f"{n} rows, {d} columns")
    X, y = draw_grades(n, d, 0)
    compared = start = time.perf_counter()

    def note(step: Step) -> None:
        nonlocal compared
        if step.stage == "selection":
            compared = time.perf_counter()

    model, cost = measured(ISBOR(callback=note).fit, X, y)
    X_test, y_test = draw_grades(TEST_ROWS, d, 1)
    mae = mean_absolute_error(y_test, model.predict(X_test))
    times = [seconds(compared - start), seconds(cost.seconds)]
    return [f"{n:,}", str(d), model.basis_, *times, str(model.n_relevance_), number(mae, 3)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.duration", description=__doc__)
    parser.add_argument("--most-rows", type=int, default=SIZES[-1][0], help="leave out longer tables")
    most_rows = parser.parse_args().most_rows
    ISBOR().fit(*draw_grades(60, 4, 0))  # loads libraries, starts threads
    rows = [timed_fit(n, d) for n, d in SIZES if n <= most_rows]
    header = ["rows", "columns", "basis families", "comparison, s", "whole fit, s", "functions", "test MAE"]
    print_table("ISBOR(), one fit each", header, rows, n_text=3)
    print_machine()


if __name__ == "__main__":
    main()
