"""Rows predicted in a second, by the library and by the command line: ``python -m benchmarks.predicting``.

A million rows of ten features and a model of at most fifty functions, sparse and with one width, or mixed.
The command reads a CSV or a Parquet file and writes a CSV file. What pyarrow needs to read the file is
subtracted; the start of the interpreter and the imports are not.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.csv
import pyarrow.parquet

from benchmarks.problems import draw_grades
from benchmarks.report import number, print_machine, print_table, print_target
from isbor import ISBOR

ROWS, FEATURES, FUNCTIONS, TRAINING_ROWS = 1_000_000, 10, 50, 20_000
REPEATS = 5
MOST_OF_LIBRARY, MOST_OF_COMMAND = 0.5, 3.33  # microseconds a row: 2,000,000 and 300,000 rows a second
NAMES = [f"x{j}" for j in range(FEATURES)]


def seconds(function: Callable[[], Any]) -> float:
    """Return the median time of a call."""
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        function()
        times.append(time.perf_counter() - begun)
    return float(np.median(times))


def rate(taken: float) -> str:
    """Return the rows predicted in a second."""
    return f"{ROWS / taken:,.0f}"


def predict(folder: Path, file: str, *options: str) -> None:
    """Predict the rows of a file in a process of its own."""
    words = ["predict", folder / "model.isbor", folder / file, "-o", folder / "out.csv", *options]
    subprocess.run(
        [sys.executable, "-m", "isbor.cli", *map(str, words)], check=True, stderr=subprocess.DEVNULL
    )


def main() -> None:
    """Fit, predict and print the tables."""
    X, y = draw_grades(TRAINING_ROWS, FEATURES, 0)
    X_new = draw_grades(ROWS, FEATURES, 1)[0].round(4)
    of_library, of_command, times = [], [], []
    with TemporaryDirectory() as name:
        folder = Path(name)
        frame = pd.DataFrame(X_new, columns=NAMES)
        frame.to_csv(folder / "new.csv", index=False)
        frame.to_parquet(folder / "new.parquet", index=False)
        reading = {
            "new.csv": seconds(lambda: pyarrow.csv.read_csv(folder / "new.csv")),
            "new.parquet": seconds(lambda: pyarrow.parquet.read_table(folder / "new.parquet")),
        }
        for basis in ("rbf", "mixed"):
            model = ISBOR(basis=basis, max_vectors=FUNCTIONS).fit(X, y)
            for method in ("predict_proba", "predict"):
                taken = seconds(partial(getattr(model, method), X_new))
                of_library.append([basis, method, str(len(model.relevance_vectors_)), rate(taken)])
                times.append((f"{basis}, {method}", taken, MOST_OF_LIBRARY))
            model.fit(pd.DataFrame(X, columns=NAMES), y).save(folder / "model.isbor")
            for file, read in reading.items():
                for options in ((), ("--proba",)):
                    taken = seconds(partial(predict, folder, file, *options)) - read
                    of_command.append(
                        [basis, file, " ".join(options), number(read, 2), number(taken, 2), rate(taken)]
                    )
                    times.append((f"{basis}, {file} {' '.join(options)}", taken, MOST_OF_COMMAND))
    print_table("The library", ["basis", "method", "functions", "rows a second"], of_library, n_text=2)
    header = ["basis", "file", "options", "reading, s", "the rest, s", "rows a second"]
    print_table("The command", header, of_command, n_text=3)
    for what, taken, most in times:
        print_target(f"{what}: microseconds a row", 1e6 * taken / ROWS, most, 2)
    print_machine()


if __name__ == "__main__":
    main()
