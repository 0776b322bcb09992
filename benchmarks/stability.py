"""How much a fit changes if the data hardly do.

A table is fitted again and again: with the last digits of its numbers changed (a relative 10⁻¹³), with its
columns in another order, with a thousandth of a standard deviation of noise added, without one row, and with
another `random_state`. The first two say nothing new, so the fit should not change. The others are small
changes of the data: where several models fit about equally well, another one may be found.
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import ClassifierMixin

from benchmarks.problems import draw_grades
from benchmarks.report import number, print_machine, print_table
from isbor import GPOR, ISBOR, SBOR
from isbor._core.types import FloatArray
from isbor.metrics import log_loss

SIZES = (120, 400, 1000)
COLUMNS = 10
TEST_ROWS = 2000
MODELS: dict[str, Callable[..., ClassifierMixin]] = {
    "ISBOR()": lambda **more: ISBOR(n_jobs=1, **more),
    'ISBOR(basis="rbf")': lambda **more: ISBOR(basis="rbf", n_jobs=1, **more),
    "SBOR()": lambda **more: SBOR(n_jobs=1, **more),
    "GPOR()": lambda **more: GPOR(n_jobs=1, **more),
}
CHANGES = {
    "digits": "10⁻¹³ of each number",
    "columns": "order of columns",
    "noise": "noise of 0.001",
    "row": "one row less",
    "seed": "random_state",
}
Job: TypeAlias = tuple[str, int, int, str, int]  # model, rows, table, change, draw


def run(job: Job) -> tuple[float, FloatArray]:
    """Return log loss and probabilities on test rows after a change; draw 0 is the table as it is."""
    name, n, table, change, draw = job
    X, y = draw_grades(n, COLUMNS, table)
    test, truth = draw_grades(TEST_ROWS, COLUMNS, 1000 + table)
    random, order, more = np.random.default_rng(draw), np.arange(COLUMNS), dict[str, Any]()
    if draw and change == "digits":
        X = X * (1.0 + 1e-13 * random.choice([-1.0, 1.0], size=X.shape))
    elif draw and change == "columns":
        order = random.permutation(COLUMNS)
    elif draw and change == "noise":
        X = X + 1e-3 * random.normal(size=X.shape)
    elif draw and change == "row":
        X, y = np.delete(X, draw, axis=0), np.delete(y, draw)
    elif draw:
        more = {"random_state": draw}
    model = MODELS[name](**more).fit(X[:, order], y)
    p = model.predict_proba(test[:, order])
    return log_loss(truth, p, labels=model.classes_), p


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stability", description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS), metavar="NAME")
    parser.add_argument("--changes", nargs="+", default=list(CHANGES), choices=list(CHANGES), metavar="NAME")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="rows (120 400 1000)")
    parser.add_argument("--tables", type=int, default=2, help="tables of each size (2)")
    parser.add_argument("--draws", type=int, default=8, help="changes of each kind (8)")
    parser.add_argument("--jobs", type=int, default=2, help="fits side by side (2)")
    options = parser.parse_args()
    tables, draws = range(options.tables), range(1, options.draws + 1)
    cases = list(product(options.models, options.sizes, tables))
    jobs: list[Job] = [(*case, "none", 0) for case in cases]
    jobs += [(*case, change, draw) for case in cases for change in options.changes for draw in draws]
    with ProcessPoolExecutor(options.jobs) as pool:
        results = dict(zip(jobs, pool.map(run, jobs), strict=True))
    rows = []
    for name, n, change in product(options.models, options.sizes, options.changes):
        spans, means, largest = [], [], []
        for table in tables:
            loss, p = results[name, n, table, "none", 0]
            found = [results[name, n, table, change, draw] for draw in draws]
            spans.append(np.ptp([loss, *(other for other, _ in found)]))
            apart = np.abs(np.stack([other for _, other in found]) - p)
            means.append(apart.mean())
            largest.append(apart.max())
        cells = number(max(spans), 4), number(float(np.mean(means)), 4), number(max(largest), 3)
        rows.append([name, f"{n:,}", CHANGES[change], *cells])
    header = ["model", "rows", "change", "range of log loss", "mean |ΔP|", "largest |ΔP|"]
    title = (
        f"{options.draws} draws of each change, {options.tables} tables: the widest range, the largest |ΔP|"
    )
    print_table(title, header, rows, n_text=3)
    print_machine()


if __name__ == "__main__":
    main()
