"""Fits to Parquet files of up to ten million rows: seconds, memory, errors, beside LightGBM on a million.

Each fit has a process of its own. LightGBM gets the rows as an array; its time is without reading them.
"""

import argparse
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.metrics import log_loss

from benchmarks.measuring import Cost, in_fresh_process, measured
from benchmarks.problems import draw_grades
from benchmarks.report import number, print_machine, print_table, print_target, progress, seconds
from isbor import ISBOR, sources

SIZES = (100_000, 1_000_000, 10_000_000)
COLUMNS = 10
DRAWN = 1_000_000  # rows drawn at a time
ROW_GROUP = 65_536
TEST_ROWS = 20_000
MODELS = {
    'ISBOR(basis="rbf", max_vectors=50)': partial(ISBOR, basis="rbf", max_vectors=50),
    'ISBOR(basis="mixed")': partial(ISBOR, basis="mixed"),
}
RIVAL = "LightGBM"
MOST_MEGABYTES = 2048


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_files", description=__doc__)
    parser.add_argument("--most-rows", type=int, default=SIZES[-1], help="leave out longer tables")
    sizes = [n for n in SIZES if n <= parser.parse_args().most_rows]
    results: dict[tuple[str, int], tuple[Cost, float, int]] = {}
    with TemporaryDirectory() as name:
        for n in sizes:
            file = Path(name) / f"{n}.parquet"
            in_fresh_process(write, file, n)
            for model in MODELS:
                results[model, n] = in_fresh_process(fit, file, model)
                progress(f"{model}, {n} rows: {results[model, n][0].seconds:.1f} s")
            if n == 1_000_000:
                results[RIVAL, n] = in_fresh_process(fit_rival, file)
                progress(f"{RIVAL}, {n} rows: {results[RIVAL, n][0].seconds:.1f} s")
    print_table(
        f"Parquet files of {COLUMNS} columns, {TEST_ROWS:,} test rows",
        ["model", "rows", "fit, seconds", "MB above the libraries", "log loss", "functions or trees"],
        [
            [model, f"{n:,}", seconds(cost.seconds), number(cost.megabytes, 0), number(loss, 4), str(size)]
            for (model, n), (cost, loss, size) in results.items()
        ],
    )
    for model, limit in zip(MODELS, (1.0, 3.0), strict=True):
        for small, large in zip(sizes, sizes[1:], strict=False):
            ratio = results[model, large][0].seconds / results[model, small][0].seconds
            print_target(f"{model}: time of {large:,} rows over that of {small:,}", ratio, 11, 2)
        print_target(
            f"{model}: MB, {sizes[-1]:,} rows", results[model, sizes[-1]][0].megabytes, MOST_MEGABYTES, 0
        )
        if (RIVAL, 1_000_000) in results:
            ratio = results[model, 1_000_000][0].seconds / results[RIVAL, 1_000_000][0].seconds
            print_target(f"{model}: time over that of {RIVAL}, 1,000,000 rows", ratio, limit, 2)
    print_machine()


# --- What the processes do --------------------------------------------------------------------------------


def write(file: Path, rows: int) -> None:
    """Write grades that depend on four of the columns."""
    with pq.ParquetWriter(file, _table(1, 0).schema) as writer:
        for k, first in enumerate(range(0, rows, DRAWN)):
            writer.write_table(_table(min(DRAWN, rows - first), 2 + k), row_group_size=ROW_GROUP)


def _table(rows: int, seed: int) -> pa.Table:
    X, y = draw_grades(rows, COLUMNS, seed)
    return pa.table({**{f"x{j}": X[:, j] for j in range(COLUMNS)}, "grade": y})


def fit(file: Path, name: str) -> tuple[Cost, float, int]:
    """Fit a model to a file; return the cost, the log loss and the number of functions."""
    ISBOR(basis="mixed", effort="fast").fit(*draw_grades(2000, COLUMNS, 0))  # libraries, threads
    table = sources.open_table(file, target="grade")
    model, cost = measured(MODELS[name]().fit, table)
    X, y = draw_grades(TEST_ROWS, COLUMNS, 1)
    return cost, log_loss(y, model.predict_proba(_named(X))), model.n_relevance_


def fit_rival(file: Path) -> tuple[Cost, float, int]:
    """Fit the rival to the same rows."""
    from lightgbm import LGBMClassifier

    frame = pq.read_table(file)
    y = frame["grade"].to_numpy()
    X = np.column_stack([frame[name].to_numpy() for name in frame.column_names[:-1]])
    model, cost = measured(LGBMClassifier(n_jobs=2, verbose=-1).fit, X, y)
    X_test, y_test = draw_grades(TEST_ROWS, COLUMNS, 1)
    return cost, log_loss(y_test, model.predict_proba(X_test)), int(model.booster_.num_trees())


def _named(X: Any) -> pa.Table:
    return pa.table({f"x{j}": X[:, j] for j in range(COLUMNS)})


if __name__ == "__main__":
    main()
