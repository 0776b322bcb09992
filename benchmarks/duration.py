"""How long `ISBOR()` takes: the comparison of kinds, and the whole fit, by the size of the table."""

import time

import numpy as np

from benchmarks.report import number, print_machine, print_table, progress, seconds
from isbor import ISBOR
from isbor._core.trace import Step
from isbor._core.types import FloatArray, IntArray
from isbor.metrics import mean_absolute_error

SIZES = (
    (100, 10),
    (500, 10),
    (1000, 10),
    (2500, 10),
    (2500, 100),
    (2500, 1000),
    (10_000, 10),
    (100_000, 10),
    (1_000_000, 10),
)
TEST_ROWS = 5000


def draw(n: int, d: int, seed: int) -> tuple[FloatArray, IntArray]:
    """Return rows whose grade depends on four of d features: a line, a wave and a product."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = X[:, 0] + 2.0 * np.sin(2.0 * X[:, 1]) + X[:, 2] * X[:, 3]
    return X, np.digitize(f + 0.5 * rng.normal(size=n), [-2.0, -0.7, 0.7, 2.0])


def timed_fit(n: int, d: int) -> list[str]:
    """Fit once and return a row of the table."""
    X, y = draw(n, d, 0)
    start = time.perf_counter()
    last = 0.0

    def note(step: Step) -> None:
        nonlocal last
        if step.stage == "selection":
            last = time.perf_counter() - start

    model = ISBOR(callback=note).fit(X, y)
    whole = time.perf_counter() - start
    X_test, y_test = draw(TEST_ROWS, d, 1)
    mae = mean_absolute_error(y_test, model.predict(X_test))
    size = [f"{n:,}", str(d)]
    return [*size, model.kind_, seconds(last), seconds(whole), str(model.n_relevance_), number(mae, 3)]


def main() -> None:
    ISBOR().fit(*draw(60, 4, 0))  # loads libraries, starts threads
    rows = []
    for n, d in SIZES:
        progress(f"{n} rows, {d} columns")
        rows.append(timed_fit(n, d))
    header = ["rows", "columns", "kinds", "comparison, s", "whole fit, s", "functions", "test MAE"]
    print_table("ISBOR(), one fit each", header, rows, n_text=3)
    print_machine()


if __name__ == "__main__":
    main()
