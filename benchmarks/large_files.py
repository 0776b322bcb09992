"""Fits to Parquet files of up to ten million rows: seconds, memory, errors, beside LightGBM on a million.

Each fit has a process of its own. LightGBM gets the rows as an array; its time is without reading them. The
last table extrapolates the rates of the longest file to a billion rows and to more cores.
"""

import argparse
import time
from dataclasses import dataclass
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
from isbor._core.trace import Step

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
SIZED = (10_000_000, 100_000_000, 1_000_000_000)  # rows of the table of sizes
CORES = (2, 16, 64)  # of it
PARTITION = 1_000_000  # rows whose sums travel together


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a fit took, and what it gave."""

    cost: Cost
    reading: float  # seconds of the survey and the sample
    search: float  # seconds
    n_passes: int  # over all rows after the search
    loss: float
    size: int  # functions or trees
    n_sums: int  # numbers that a pass sums

    @property
    def passes(self) -> float:
        """Seconds of the passes over all rows after the search."""
        return self.cost.seconds - self.reading - self.search


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_files", description=__doc__)
    parser.add_argument("--most-rows", type=int, default=SIZES[-1], help="leave out longer tables")
    sizes = [n for n in SIZES if n <= parser.parse_args().most_rows]
    results: dict[tuple[str, int], Fitted] = {}
    with TemporaryDirectory() as name:
        for n in sizes:
            file = Path(name) / f"{n}.parquet"
            in_fresh_process(write, file, n)
            for model in MODELS:
                results[model, n] = in_fresh_process(fit, file, model)
                progress(f"{model}, {n} rows: {results[model, n].cost.seconds:.1f} s")
            if n == 1_000_000:
                results[RIVAL, n] = in_fresh_process(fit_rival, file)
                progress(f"{RIVAL}, {n} rows: {results[RIVAL, n].cost.seconds:.1f} s")
    print_table(
        f"Parquet files of {COLUMNS} columns, {TEST_ROWS:,} test rows",
        [
            "model",
            "rows",
            "fit, seconds",
            "reading",
            "search",
            "passes",
            "number of passes",
            "MB above the libraries",
            "log loss",
            "functions or trees",
        ],
        [_cells(model, n, fitted) for (model, n), fitted in results.items()],
    )
    print_sizes(list(MODELS)[-1], sizes, results)
    for model, limit in zip(MODELS, (1.0, 3.0), strict=True):
        for small, large in zip(sizes, sizes[1:], strict=False):
            ratio = results[model, large].cost.seconds / results[model, small].cost.seconds
            print_target(f"{model}: time of {large:,} rows over that of {small:,}", ratio, 11, 2)
        print_target(
            f"{model}: MB, {sizes[-1]:,} rows", results[model, sizes[-1]].cost.megabytes, MOST_MEGABYTES, 0
        )
        if (RIVAL, 1_000_000) in results:
            ratio = results[model, 1_000_000].cost.seconds / results[RIVAL, 1_000_000].cost.seconds
            print_target(f"{model}: time over that of {RIVAL}, 1,000,000 rows", ratio, limit, 2)
    print_machine()


def _cells(model: str, n: int, fitted: Fitted) -> list[str]:
    parts = [seconds(part) for part in (fitted.reading, fitted.search, fitted.passes)]
    cost = fitted.cost
    return [
        model,
        f"{n:,}",
        seconds(cost.seconds),
        *(parts if fitted.search else ["–"] * 3),
        str(fitted.n_passes) if fitted.search else "–",
        number(cost.megabytes, 0),
        number(fitted.loss, 4),
        str(fitted.size),
    ]


def print_sizes(model: str, sizes: list[int], results: dict[tuple[str, int], Fitted]) -> None:
    """Print what the rates of the longest file mean for others, and how well those of a shorter one did."""
    longest = sizes[-1]
    measured_there = results[model, longest]
    for n in sizes[:-1]:
        here = results[model, n]
        if not here.n_passes:
            continue
        predicted = (here.reading + here.passes / here.n_passes * measured_there.n_passes) * longest / n
        found = measured_there.reading + measured_there.passes
        progress(f"{longest:,} rows by the rates of {n:,}: {predicted:.1f} s besides the search")
        progress(f"… found {found:.1f} s")
    here = measured_there
    rows = []
    for n in SIZED:
        work = (here.reading + here.passes) * n / longest
        wire = (here.n_passes * here.n_sums * 8 + 1) * -(-n // PARTITION)
        times = [seconds(here.search + work * CORES[0] / cores) for cores in CORES]
        rows.append([f"{n:,}", *times, f"{wire / 1e6:,.0f}"])
    print_table(
        f"{model}, {here.size} functions, by the rates of {longest:,} rows: seconds of a fit",
        ["rows", *(f"{cores} cores" for cores in CORES), "MB on the wire"],
        rows,
    )


# --- What the processes do --------------------------------------------------------------------------------


def write(file: Path, rows: int) -> None:
    """Write grades that depend on four of the columns."""
    with pq.ParquetWriter(file, _table(1, 0).schema) as writer:
        for k, first in enumerate(range(0, rows, DRAWN)):
            writer.write_table(_table(min(DRAWN, rows - first), 2 + k), row_group_size=ROW_GROUP)


def _table(rows: int, seed: int) -> pa.Table:
    X, y = draw_grades(rows, COLUMNS, seed)
    return pa.table({**{f"x{j}": X[:, j] for j in range(COLUMNS)}, "grade": y})


def fit(file: Path, name: str) -> Fitted:
    """Fit a model to a file."""
    ISBOR(basis="mixed", effort="fast").fit(*draw_grades(2000, COLUMNS, 0))  # libraries, threads
    table, times = sources.open_table(file, target="grade"), []

    def note(step: Step) -> None:
        if step.stage != "all rows":
            times.append(time.perf_counter())

    begun = time.perf_counter()
    model, cost = measured(MODELS[name](callback=note).fit, table)
    X, y = draw_grades(TEST_ROWS, COLUMNS, 1)
    passes = {step.pass_number for step in model.trace_ if step.stage == "all rows"}
    sums = [(len(of.functions) + len(model.classes_) - 1) ** 2 for of in model._model.models]
    return Fitted(
        cost,
        times[0] - begun,
        times[-1] - times[0],
        len(passes),
        log_loss(y, model.predict_proba(_named(X))),
        model.n_relevance_,
        sum(sums),
    )


def fit_rival(file: Path) -> Fitted:
    """Fit the rival to the same rows."""
    from lightgbm import LGBMClassifier

    frame = pq.read_table(file)
    y = frame["grade"].to_numpy()
    X = np.column_stack([frame[name].to_numpy() for name in frame.column_names[:-1]])
    model, cost = measured(LGBMClassifier(n_jobs=2, verbose=-1).fit, X, y)
    X_test, y_test = draw_grades(TEST_ROWS, COLUMNS, 1)
    loss = log_loss(y_test, model.predict_proba(X_test))
    return Fitted(cost, 0.0, 0.0, 0, loss, int(model.booster_.num_trees()), 0)


def _named(X: Any) -> pa.Table:
    return pa.table({f"x{j}": X[:, j] for j in range(COLUMNS)})


if __name__ == "__main__":
    main()
