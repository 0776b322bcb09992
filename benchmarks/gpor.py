"""GPOR on two sets of the paper, with its numbers of training rows.

The files of the sets are read from the directory that the environment variable ISBOR_DATA names.
"""

import argparse

from benchmarks.models import HEADER, Split, average, compare, model_rows
from benchmarks.report import print_machine, print_table, print_target
from isbor.datasets import load_benchmark
from isbor.estimators.gpor import GPOR

N_TRAIN = {"bs": 468, "swd": 750}
LIMITS = {"bs": 0.03, "swd": 0.44}  # of the MAE
MODELS = {
    "GPOR()": GPOR,
    'GPOR(metric="ard")': lambda: GPOR(metric="ard"),
    'GPOR(inference="ep")': lambda: GPOR(inference="ep"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpor", description=__doc__)
    parser.add_argument("--splits", type=int, default=20, help="number of random splits")
    parser.add_argument("--ep-splits", type=int, default=20, help="of them, for expectation propagation")
    arguments = parser.parse_args()

    for name, n_train in N_TRAIN.items():
        X, y = load_benchmark(name, return_X_y=True, as_frame=False)
        splits = [Split.of(X, y, n_train, seed) for seed in range(arguments.splits)]
        results = compare(MODELS, splits, fits={'GPOR(inference="ep")': arguments.ep_splits})
        print_table(
            f"{name}: {n_train} training and {len(y) - n_train} test rows, mean of {arguments.splits} splits",
            HEADER,
            model_rows(results),
        )
        print_target("MAE of GPOR", average(results["GPOR()"]).mae, LIMITS[name], 4)
        print()
    print_machine()


if __name__ == "__main__":
    main()
