"""The saddle with a million training rows: time, memory, and the rate of a pass over the rows.

Each measurement has a process of its own, since the peak of a process's memory never falls. The data are
drawn by another process and reach it as files, so that its peak before the fit is what it holds then.
"""

import argparse
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.measuring import Cost, in_fresh_process, measured
from benchmarks.report import number, print_machine, print_table, print_target, progress, seconds
from isbor import ISBOR
from isbor._core.parallel import Workers
from isbor._core.types import FloatArray
from isbor.data.rows import canonical_rows
from isbor.datasets import make_saddle, saddle_labels
from isbor.experiments.description.baselines import BoostedTrees
from isbor.inference.expansion import expand, streamed
from isbor.metrics import mean_absolute_error
from isbor.model.basis import RowDictionary

MODELS: dict[str, Callable[[], Any]] = {
    'ISBOR(basis="rbf")': partial(ISBOR, basis="rbf"),
    "ISBOR()": ISBOR,
    "boosted trees (median)": partial(BoostedTrees, random_state=0),
}
N_TEST = 200_000
CANDIDATES = (200, 500)  # basis functions of the passes that are timed
N_ACTIVE = 4  # of them with a weight other than zero
GAMMA = 0.005  # about what the evidence chooses on this set
GEMM_SIZE = 3000
REPEATS = 3  # the best of so many counts, for passes and matrix products


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.million", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="training rows; a tenth is tried as well")
    rows = parser.parse_args().rows

    with TemporaryDirectory() as name:
        folder = Path(name)
        truth = in_fresh_process(draw, folder, rows)
        fits = {}
        for model in MODELS:
            for n in (rows // 10, rows):
                fits[model, n] = in_fresh_process(fit, folder, model, n)
                progress(f"{model}, {n} rows: {fits[model, n][0].seconds:.2f} s")
        predictions = {model: in_fresh_process(predict, folder, model, rows) for model in MODELS}
        gemm, passes = in_fresh_process(measure_rates, folder, rows)

    print_table(
        f"Saddle: {rows:,} training and {N_TEST:,} test rows (true f: MAE {truth:.5f})",
        ["model", "rows", "MAE", "MAE / true f", "vectors", "fit, seconds", "fit, MB above the data"],
        [
            [model, f"{n:,}", number(mae, 5), number(mae / truth, 3), number(vectors, 0), *_cells(cost)]
            for (model, n), (cost, mae, vectors) in fits.items()
        ],
    )
    print_table(
        f"Prediction of {rows:,} rows",
        ["model", "seconds", "MB above the data"],
        [[model, *_cells(cost)] for model, cost in predictions.items()],
    )
    print_table(
        f"A pass over {rows:,} rows beside np.dot of size {GEMM_SIZE} ({gemm / 1e9:.0f} GFLOP/s)",
        ["candidates n", "seconds", "N·n² GFLOP/s", "share of np.dot", "2·N·n² GFLOP/s", "share of np.dot"],
        [_rate_cells(rows, n, elapsed, gemm) for n, elapsed in passes.items()],
    )
    print("N·n² counts what a symmetric product needs, 2·N·n² what a general one would take.\n")
    one_width, default, trees = MODELS
    for model in (one_width, default):
        (small, _, _), (large, mae, _) = fits[model, rows // 10], fits[model, rows]
        ratio = large.seconds / small.seconds
        print_target(f"{model}: time of {rows:,} rows over that of a tenth", ratio, 12, 2)
        print_target(f"{model}: memory of the fit above the data, MB", large.megabytes, 1500, 0)
        print_target(f"{model}: MAE over that of the true f", mae / truth, 1.1, 3)
    ratio = fits[one_width, rows][0].seconds / fits[trees, rows][0].seconds
    print_target(f"{one_width}: time over that of boosted trees", ratio, 1, 2)
    print_machine()


def _cells(cost: Cost) -> list[str]:
    return [seconds(cost.seconds), number(cost.megabytes, 0)]


def _rate_cells(rows: int, n: int, elapsed: float, gemm: float) -> list[str]:
    needed = rows * n**2 / elapsed
    cells = [str(n), seconds(elapsed)]
    for rate in (needed, 2 * needed):
        cells += [number(rate / 1e9, 1), f"{rate / gemm:.0%}"]
    return cells


# --- What the processes do --------------------------------------------------------------------------------


def draw(folder: Path, rows: int) -> float:
    """Write the data into the folder, and return the mean absolute error of the true function."""
    X, y, score = make_saddle(rows + N_TEST, random_state=0, return_score=True)
    for part, chosen in (("train", slice(rows)), ("test", slice(rows, None))):
        np.save(folder / f"X_{part}.npy", X[chosen])
        np.save(folder / f"y_{part}.npy", y[chosen])
    return mean_absolute_error(y[rows:], saddle_labels(score[rows:]))


def fit(folder: Path, name: str, rows: int) -> tuple[Cost, float, float]:
    """Fit a model to the first rows, keep it in the folder, and return its cost, MAE and vectors."""
    X, y = _load(folder, "X_train", rows), _load(folder, "y_train", rows)
    MODELS[name]().fit(X[:1000], y[:1000])  # libraries, threads and their buffers
    model, cost = measured(MODELS[name]().fit, X, y)
    (folder / f"{name}.pickle").write_bytes(pickle.dumps(model))
    mae = mean_absolute_error(_load(folder, "y_test"), model.predict(_load(folder, "X_test")))
    return cost, mae, getattr(model, "n_relevance_", np.nan)


def predict(folder: Path, name: str, rows: int) -> Cost:
    """Predict the labels of the training rows with the model kept in the folder."""
    model = pickle.loads((folder / f"{name}.pickle").read_bytes())
    X = _load(folder, "X_train", rows)
    model.predict(X[:1000])
    return measured(model.predict, X)[1]


def measure_rates(folder: Path, rows: int) -> tuple[float, dict[int, float]]:
    """Return operations a second of a large matrix product, and seconds of passes by their candidates."""
    square = np.random.default_rng(0).normal(size=(GEMM_SIZE, GEMM_SIZE))
    gemm = 2.0 * GEMM_SIZE**3 / _best_time(np.dot, square, square)
    X, y = _load(folder, "X_train", rows), _load(folder, "y_train", rows)
    table, _ = canonical_rows(X, y - 1, np.ones(len(y)))
    dictionary = RowDictionary(table, GAMMA)
    thresholds = np.array([-1.0, -0.3, 0.3, 1.0])
    passes = {}
    with Workers() as workers:
        for n in CANDIDATES:
            columns = streamed(table, dictionary.basis(np.arange(n)))
            weights = np.where(np.arange(n) < N_ACTIVE, 1.0, 0.0)
            passes[n] = _best_time(expand, table, columns, weights, thresholds, workers)
    return gemm, passes


def _load(folder: Path, name: str, rows: int | None = None) -> FloatArray:
    """Return the first rows of a file, without ever holding the others."""
    return np.array(np.load(folder / f"{name}.npy", mmap_mode="r")[:rows])


def _best_time(function: Callable[..., object], *arguments: Any) -> float:
    """Return the seconds of the fastest of several calls, after one that does not count."""
    return min(measured(function, *arguments)[1].seconds for _ in range(REPEATS + 1))


if __name__ == "__main__":
    main()
