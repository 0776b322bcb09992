"""What each effort of `ISBOR` costs and gains, beside scikit-learn's boosted trees with their defaults."""

import argparse

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks.measuring import measured
from benchmarks.report import number, print_machine, print_table, progress, seconds
from benchmarks.versions.problems import PROBLEMS, Problem
from isbor import ISBOR
from isbor.metrics import log_loss

NAMES = ("esl", "swd", "grades-1000x10", "marketing", "bank", "computer", "calhouse", "census")
EFFORTS = ("fast", "default", "thorough")


def fits(problem: Problem, split: int) -> list[tuple[float, float]]:
    """Return seconds and log loss of each effort, then of boosted trees."""
    rows = problem.rows(split)
    models: list[ClassifierMixin] = [
        *(ISBOR(effort=effort) for effort in EFFORTS),
        HistGradientBoostingClassifier(random_state=0),
    ]
    found = []
    for model in models:
        progress(f"{problem.name}, split {split}: {model}")
        fitted, cost = measured(model.fit, rows.X, rows.y)
        probabilities = np.zeros((len(rows.y_test), rows.n_classes))
        probabilities[:, fitted.classes_] = fitted.predict_proba(rows.X_test)
        found.append((cost.seconds, log_loss(rows.y_test, probabilities, labels=range(rows.n_classes))))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.effort", description=__doc__)
    parser.add_argument(
        "--problems", nargs="+", default=NAMES, choices=[p.name for p in PROBLEMS], metavar="NAME"
    )
    parser.add_argument("--splits", type=int, default=3, help="splits of each problem (3)")
    options = parser.parse_args()
    chosen = [problem for problem in PROBLEMS if problem.name in options.problems]
    warm = chosen[0].rows(0)
    ISBOR(effort="fast").fit(warm.X, warm.y)  # loads libraries, starts threads
    table = []
    for problem in chosen:
        means = np.mean([fits(problem, split) for split in range(options.splits)], axis=0)
        table.append([problem.name, *(f"{seconds(time)} / {number(loss, 3)}" for time, loss in means)])
    header = ["", *(f'effort="{effort}"' for effort in EFFORTS), "boosted trees"]
    print_table(f"Seconds / log loss, means of {options.splits} splits", header, table)
    print_machine()


if __name__ == "__main__":
    main()
