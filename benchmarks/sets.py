"""The benchmark sets of the paper, on random splits of the paper's sizes.

The files are read from the directory that the environment variable ISBOR_DATA names; see
`isbor.datasets.load_benchmark`. A set that cannot be loaded is left out.
"""

import argparse

from sklearn.preprocessing import OneHotEncoder

from benchmarks.models import HEADER, BoostedTrees, Split, compare, logistic_at, model_rows
from benchmarks.report import print_machine, print_table, progress
from isbor import ISBOR
from isbor.arrays import FloatArray, IntArray
from isbor.datasets import load_benchmark

TRAINING_ROWS = {
    "bs": 468,
    "swd": 750,
    "marketing": 6744,
    "bank": 8142,
    "computer": 8092,
    "calhouse": 20490,
    "census": 22584,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sets",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--sets",
        nargs="+",
        choices=TRAINING_ROWS,
        default=["bs", "swd", "bank", "computer"],
        metavar="SET",
        help=f"of {', '.join(TRAINING_ROWS)}",
    )
    parser.add_argument("--splits", type=int, default=5, help="number of random splits")
    options = parser.parse_args()

    models = {
        "ISBOR()": ISBOR,
        "LogisticAT (skordinal)": logistic_at,
        "boosted trees (median)": lambda: BoostedTrees(random_state=0),
    }
    rows = []
    for name in options.sets:
        try:
            X, y = load(name)
        except OSError as error:
            progress(f"{name} is left out: {error}")
            continue
        progress(f"{name}: {X.shape[0]} rows, {X.shape[1]} features")
        splits = [Split.of(X, y, TRAINING_ROWS[name], seed) for seed in range(options.splits)]
        rows += [[name, *row] for row in model_rows(compare(models, splits))]
    print_table(f"Benchmark sets, mean of {options.splits} splits", ["set", *HEADER], rows, n_text=2)
    print_machine()


def load(name: str) -> tuple[FloatArray, IntArray]:
    """Return a set's features, all numbers, and its labels."""
    X, y = load_benchmark(name, return_X_y=True)
    if name == "marketing":
        # Codes of categories: a column each, one more where a value is missing.
        X = OneHotEncoder(sparse_output=False).fit_transform(X)
    return X, y


if __name__ == "__main__":
    main()
