"""Fits to arrays in single precision and to sparse matrices: memory beside that of the numbers as doubles.

Each fit has a process of its own. Its memory is what its peak grows by, above the libraries, their buffers
and the table itself. The sparse tables have 25 entries in a row, as short texts have, and grades that depend
on 20 columns with more entries; the last row of each kind is the same table with its zeros.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import log_loss

from benchmarks.measuring import in_fresh_process, measured
from benchmarks.problems import draw_grades
from benchmarks.report import number, print_machine, print_table, progress
from isbor import ISBOR
from isbor._core.types import IntArray
from isbor.datasets import make_saddle

COLUMNS = 10  # of the arrays
FILLED, STRONG = 25, 20  # entries of a sparse row; columns that the grades depend on
TEST_ROWS = 5_000
TABLES = (
    ("single precision", 1_000_000, COLUMNS),
    ("double precision", 1_000_000, COLUMNS),
    ("sparse", 20_000, 2_000),
    ("sparse", 100_000, 2_000),
    ("sparse, with its zeros", 20_000, 2_000),
)


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a fit and a prediction of the same rows took."""

    table: float  # megabytes of the table as it is
    seconds: float  # of a processor, for the fit
    fit: float  # megabytes above the table
    prediction: float  # megabytes above all that, results included
    loss: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.numbers_in_memory", description=__doc__)
    parser.add_argument("--most-cells", type=int, default=10**9, help="leave out larger tables")
    most = parser.parse_args().most_cells
    lines = []
    with TemporaryDirectory() as name:
        for kind, rows, columns in TABLES:
            if rows * columns > most:
                continue
            in_fresh_process(draw, Path(name), kind, rows, columns)
            found = in_fresh_process(fit, Path(name))
            progress(f"{kind}, {rows} × {columns}: {found.seconds:.0f} s")
            sizes = [found.table, 8e-6 * rows * columns, found.fit, found.prediction, found.seconds]
            numbers = [*(number(size, 0) for size in sizes), number(found.loss, 4)]
            lines.append([kind, f"{rows:,} × {columns:,}", *numbers])
    print_table(
        'ISBOR(basis="mixed", effort="fast"), one thread',
        [
            "table",
            "size",
            "MB",
            "MB as doubles",
            "MB of the fit",
            "of predictions",
            "CPU seconds",
            "log loss",
        ],
        lines,
    )
    print_machine()


# --- What the processes do --------------------------------------------------------------------------------


def draw(folder: Path, kind: str, rows: int, columns: int) -> None:
    """Write training and test rows."""
    for part, n, seed in (("train", rows, 100), ("test", TEST_ROWS, 101)):
        X, y = _drawn(kind, n, columns, seed)
        np.save(folder / f"y_{part}.npy", y)
        (folder / f"X_{part}.npy").unlink(missing_ok=True)
        if sp.issparse(X):
            sp.save_npz(folder / f"X_{part}.npz", X, compressed=False)
        else:
            np.save(folder / f"X_{part}.npy", X)


def fit(folder: Path) -> Fitted:
    """Fit to a table, predict it, and score the predictions of other rows."""
    estimator = ISBOR(basis="mixed", effort="fast", n_jobs=1)
    estimator.fit(*make_saddle(2000, random_state=0))  # libraries and their buffers
    X, y = _load(folder, "train")
    begun = time.process_time()
    model, cost = measured(estimator.fit, X, y)
    spent = time.process_time() - begun
    more = measured(model.predict_proba, X)[1]
    X_test, y_test = _load(folder, "test")
    loss = log_loss(y_test, model.predict_proba(X_test))
    return Fitted(_megabytes(X), spent, cost.megabytes, more.megabytes, loss)


def _load(folder: Path, part: str) -> tuple[Any, IntArray]:
    whole = folder / f"X_{part}.npy"
    X = np.load(whole) if whole.exists() else sp.load_npz(folder / f"X_{part}.npz")
    return X, np.load(folder / f"y_{part}.npy")


def _drawn(kind: str, rows: int, columns: int, seed: int) -> tuple[Any, IntArray]:
    if not kind.startswith("sparse"):
        X, y = draw_grades(rows, columns, seed)
        single = X.astype(np.float32)
        return (single if kind.startswith("single") else single.astype(np.float64)), y
    X, y = _sparse(rows, columns, seed)
    return (X if kind == "sparse" else X.toarray()), y


def _sparse(rows: int, columns: int, seed: int) -> tuple[Any, IntArray]:
    random = np.random.default_rng(seed)
    others = sp.random_array((rows, columns - STRONG), density=FILLED / columns, format="csr", rng=random)
    strong = (random.random((rows, STRONG)) < 0.2) * random.exponential(size=(rows, STRONG))
    slopes = 2.0 * np.random.default_rng(0).normal(size=STRONG)
    score = strong @ slopes + np.sin(2.0 * strong[:, 0]) + 0.5 * random.normal(size=rows)
    return sp.hstack([sp.csr_array(strong), others]).tocsr(), np.digitize(score, [-1.5, 0.0, 1.5])


def _megabytes(X: Any) -> float:
    parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    return float(sum(part.nbytes for part in parts) / 1e6)


if __name__ == "__main__":
    main()
